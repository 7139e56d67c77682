"""Lesser and greater of floats where one is a NaN, at every place of an array: loops of numpy treat its first and last elements in other ways."""

from __future__ import annotations

import numpy as np
import pytest

from cake_core.ptx.reductions import of_numbers, reduction

#: Quiet and signaling, of both signs.
NANS = {"f16": (0x7E00, 0x7C01, 0xFE30, 0xFC30), "bf16": (0x7FC0, 0x7F81, 0xFFC1, 0xFFA1), "f32": (0x7FC00000, 0x7F800001, 0xFFC00000, 0xFF800001)}
ONE = {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000}


@pytest.mark.parametrize("kind", NANS)
@pytest.mark.parametrize("operation", ["min", "max"])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 16, 33])
def test_a_number_stands_before_a_nan(kind, operation, count):
    of = np.dtype(np.uint32 if kind == "f32" else np.uint16)
    combine = reduction(operation, kind)
    for nan in NANS[kind]:
        for at in range(count):
            nans, ones = np.full(count, ONE[kind], of), np.full(count, ONE[kind], of)
            nans[at] = nan
            for old, new in ((nans, ones), (ones, nans)):
                assert (combine(old.view(np.uint8).reshape(1, -1), new.view(np.uint8).reshape(1, -1)).view(of) == ONE[kind]).all()


@pytest.mark.parametrize("of", [np.float32, np.float64])
def test_a_nan_of_two_stays(of):
    x = np.array([1, np.nan, np.nan, -2], of)
    y = np.array([np.nan, 3, np.nan, -1], of)
    for choose, wanted in ((np.minimum, [1, 3, np.nan, -2]), (np.maximum, [1, 3, np.nan, -1])):
        np.testing.assert_array_equal(of_numbers(choose)(x, y), np.array(wanted, of))
