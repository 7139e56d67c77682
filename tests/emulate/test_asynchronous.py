"""What families of asynchronous instructions share: groups of operations, and reductions into memory."""

from __future__ import annotations

import itertools
import math
import struct

import ml_dtypes
import numpy as np
import pytest

from cake_core.ptx.groups import Groups, Operation, Unawaited, mask_of
from cake_core.ptx.reductions import reduction

ALL = 0xFFFFFFFF


def test_masks_are_bits_of_lanes():
    active = np.zeros(32, bool)
    active[[0, 5, 31]] = True
    assert (mask_of(active), mask_of(np.ones(32, bool)), mask_of(np.zeros(32, bool))) == (1 | 1 << 5 | 1 << 31, ALL, 0)


def counted(commands, lane: int, keep: int) -> list[str]:
    """The operations of a lane's groups but the last `keep`, as the ISA has it: a list a lane."""
    open_, closed = [], []
    for name, mask in commands:
        if not mask >> lane & 1:
            continue
        if name == "commit":
            closed.append(open_)
            open_ = []
        else:
            open_.append(name)
    return [o for group in closed[: len(closed) - keep] for o in group] if keep < len(closed) else []


def test_groups_of_lanes_that_commit_apart_and_together():
    """Drawn orders of operations and commits of three lanes in any company, against a list a lane."""
    draw = np.random.default_rng(0)
    for _ in range(200):
        commands = [("commit" if draw.random() < 0.4 else f"o{n}", int(draw.integers(1, 8))) for n in range(12)]
        groups = Groups()
        for name, mask in commands:
            groups.commit(mask) if name == "commit" else groups.add(Operation(mask, name))
        for lane, keep in itertools.product(range(3), range(5)):
            assert sorted(o.what for o in groups.older(1 << lane, keep)) == sorted(counted(commands, lane, keep)), (commands, lane, keep)


def test_what_is_waited_for_by_several_lanes_is_what_each_waits_for():
    groups, early, late = Groups(), Operation(3, "early"), Operation(1, "late")
    groups.add(early)
    groups.commit(3)
    groups.add(late)
    groups.commit(1)
    assert [o.what for o in groups.older(2, 0)] == ["early"]
    assert [o.what for o in groups.older(1, 1)] == ["early"]
    assert {o.what for o in groups.older(3, 0)} == {"early", "late"}
    assert groups.older(2, 1) == []


def test_groups_that_are_complete_and_awaited_are_forgotten():
    groups = Groups()
    for _ in range(50):
        operation = Operation(ALL, "o")
        groups.add(operation)
        groups.commit(ALL)
        operation.done, operation.awaited = (None,), ALL
    assert len(groups.closed) <= 2


def test_an_operation_that_nobody_awaited_is_told():
    kept, one = Unawaited(), Operation(5, "a copy")
    kept.add(one)
    one.awaited = 4
    assert kept.ended(None) == ["a copy may still read shared memory when the CTA ends: its thread has not waited for it"]
    one.awaited = 5
    assert kept.ended(None) == []


# --- reductions ----------------------------------------------------------------------------------------------------

FLOATS = {"f16": (np.float16, 0x7FFF), "bf16": (ml_dtypes.bfloat16, 0x7FFF), "f32": (np.float32, 0x7FFFFFFF), "f64": (np.float64, None)}
EDGES = [0.0, -0.0, 1.0, -1.0, 3.0e-5, -3.0e-5, 1e-40, 6e-8, 255.0, 65504.0, 3.0e38, -3.0e38, math.inf, -math.inf, math.nan]


def bits(value) -> int:
    return int.from_bytes(np.asarray(value).tobytes(), "little")


@pytest.mark.parametrize("type", FLOATS)
@pytest.mark.parametrize("operation", ["add", "min", "max"])
def test_floats(type, operation):
    """All pairs at the edges. The sum of two numbers is exact in Python's fractions and rounded once by the conversion from double: of f64 it is Python's."""
    kind, nan = FLOATS[type]
    with np.errstate(all="ignore"):
        values = [kind(v) for v in EDGES]
        pairs = list(itertools.product(values, values))
        old, new = (np.array([p[i] for p in pairs]).view(np.uint8).reshape(len(pairs), -1) for i in range(2))
        got = reduction(operation, type)(old, new)
        for row, (a, b) in zip(got, pairs, strict=True):
            x, y = float(a), float(b)
            if operation == "add":
                wanted = kind(x + y) if type != "f32" else np.float32(np.float64(x) + np.float64(y))
                if math.isnan(x + y):
                    wanted = None
            elif math.isnan(x) or math.isnan(y):
                wanted = None if math.isnan(x) and math.isnan(y) else (b if math.isnan(x) else a)
            elif x == y == 0:
                minus = [math.copysign(1, v) < 0 for v in (x, y)]
                wanted = kind(-0.0 if (any(minus) if operation == "min" else all(minus)) else 0.0)
            else:
                wanted = kind(min(x, y) if operation == "min" else max(x, y))
            found = int.from_bytes(row.tobytes(), "little")
            if wanted is None and nan is None:
                assert math.isnan(struct.unpack("<d", row.tobytes())[0])
            else:
                assert found == (nan if wanted is None else bits(wanted)), (a, b)


@pytest.mark.parametrize(("operation", "type"), [("inc", "s32"), ("dec", "u64"), ("and", "f32"), ("xor", "bf16"), ("mul", "u32"), ("add", "tf32")])
def test_there_is_no_such_reduction(operation, type):
    assert reduction(operation, type) is None
