"""Tensor maps that the driver's function encodes are what the instructions take: types by their names, fills, padded elements."""

from __future__ import annotations

import numpy as np
import pytest

from cake_core.emulate.bodies import on_body
from cake_core.emulate.device import KINDS, Api
from cake_core.plugins import load_registry

LOAD = """setp.eq.u32 %p0, %t, 0;
@%p0 mbarrier.init.shared::cta.b64 [%s+1024], 1;
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+1024], 64;
@%p0 cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%M, {16}], [%s+1024];
AGAIN:
mbarrier.try_wait.parity.shared::cta.b64 %p1, [%s+1024], 0;
@!%p1 bra AGAIN;
mad.lo.u32 %r0, %t, 2, %s;
mad.wide.u32 %d0, %t, 2, %D;
ld.shared.b16 %h0, [%r0];
st.global.b16 [%d0], %h0;
"""
ADD = """mad.lo.u32 %r0, %t, 2, %s;
mov.b16 %h0, 0x3C00;
st.shared.b16 [%r0], %h0;
fence.proxy.async;
bar.sync 0;
setp.eq.u32 %p0, %t, 0;
@%p0 cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%M, {0}], [%s];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
"""


@pytest.fixture(scope="module")
def run():
    emulates = load_registry().emulates

    def of(body: str, kind: str, fill: str = "NONE"):
        api = Api(emulates, (9, 0), lambda grid: None)

        def encoded(at: dict[str, int]):
            prefix = "CU_TENSOR_MAP_"
            status, map = api.cuTensorMapEncodeTiled(
                f"{prefix}DATA_TYPE_{kind}", 1, at["A"], [24], [], [32], [1], f"{prefix}INTERLEAVE_NONE", f"{prefix}SWIZZLE_NONE",
                f"{prefix}L2_PROMOTION_NONE", f"{prefix}FLOAT_OOB_FILL_{fill}",
            )  # fmt: skip
            assert not status
            return api.device.maps[-1]

        a = np.arange(24, dtype=np.float16)
        return on_body(body, {"A": a, "D": np.zeros(32, np.float16), "M": encoded}, emulates, shared=2048)

    return of


@pytest.mark.parametrize(("kind", "fill", "outside"), [("FLOAT16", "NONE", 0), ("FLOAT16", "NAN_REQUEST_ZERO_FMA", np.nan)])
def test_what_lies_outside_is_filled(run, kind, fill, outside):
    done = run(LOAD, kind, fill)
    assert done.findings == []
    np.testing.assert_array_equal(done["D"], np.array([*range(16, 24), *[outside] * 24], np.float16))


def test_a_sum_is_of_the_type_of_the_map(run):
    done = run(ADD, "FLOAT16")
    assert done.findings == [] and done["A"].tolist() == [n + 1.0 for n in range(24)]


def test_elements_with_padding_are_refused(run):
    assert run(LOAD, "16U4_ALIGN16B").codes == ["emulate/unsupported"]


def test_every_type_of_the_driver_is_known():
    from cuda.bindings.driver import CUtensorMapDataType

    names = {t.name.removeprefix("CU_TENSOR_MAP_DATA_TYPE_").lower() for t in CUtensorMapDataType}
    assert names - {"num_packed_types"} <= set(KINDS)


def test_a_map_is_not_at_its_address_in_the_space_of_parameters(run):
    """An H200 answers with a misaligned address where `cvta.param` is left out (driver 580.159.04, 2026-12-01)."""
    text = "cvta.to.param.u64 %d1, %M;\n" + LOAD.replace("[%M,", "[%d1,")
    found = run(text, "FLOAT16")
    assert found.codes[0] == "emulate/operand" and "no tensor map" in found.findings[0].message
