"""Votes, matches and reductions over a warp without a GPU: by loops over the lanes, of all and of a part of them."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
import pytest

from cake_core.emulate.outcome import Unsupported
from cake_core.emulate.registers import on_registers
from cake_core.plugins import load_registry

LANE = np.arange(32, dtype=np.uint32)
SOME = (LANE % 3 == 0) | (LANE > 28)
MASK = sum(1 << n for n in range(32) if SOME[n])


@pytest.fixture(scope="module")
def emulates():
    return load_registry().emulates


def within(statements: str) -> str:
    """Executed by the lanes of SOME."""
    return f"@!%some bra $out;\n{statements}\n$out:\n"


@pytest.mark.parametrize("who", [np.ones(32, bool), np.zeros(32, bool), LANE == 5, LANE != 30, SOME], ids=["all", "none", "one", "others", "some"])
@pytest.mark.parametrize("part", [False, True])
def test_votes(emulates, who, part):
    mask = MASK if part else 0xFFFFFFFF
    text = "\n".join(f"vote.sync.{m}.pred %{m}, %p, {mask};" for m in ("all", "any", "uni")) + f"\nvote.sync.ballot.b32 %b, !%p, {mask};"
    given = {"p": who, "some": SOME}
    run = on_registers(within(text) if part else text, given, {"all": "bool", "any": "bool", "uni": "bool", "b": "uint32"}, emulates)
    asked = [n for n in range(32) if mask >> n & 1]
    told = [bool(who[n]) for n in asked]
    assert run.findings == []
    for n in asked:
        assert (run["all"][n], run["any"][n], run["uni"][n]) == (all(told), any(told), len(set(told)) == 1)
        assert run["b"][n] == sum(1 << k for k in asked if not who[k])


def test_active_lanes(emulates):
    run = on_registers(within("activemask.b32 %m;"), {"some": SOME, "m": np.zeros(32, np.uint32)}, {"m": "uint32"}, emulates)
    assert run["m"].tolist() == [MASK if s else 0 for s in SOME]


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_matches(emulates, dtype):
    a = (np.arange(32, dtype=dtype) // 5 % 3) << (8 * np.dtype(dtype).itemsize - 4)
    bits = 8 * a.itemsize
    run = on_registers(
        f"match.any.sync.b{bits} %m, %a, -1;\nmatch.all.sync.b{bits} %n|%p, %a, -1;", {"a": a}, {"m": "uint32", "n": "uint32", "p": "bool"}, emulates
    )
    assert run["m"].tolist() == [sum(1 << k for k in range(32) if a[k] == a[n]) for n in range(32)]
    assert set(run["n"].tolist()) == {0} and not run["p"].any()
    text = within(f"match.all.sync.b{bits} %n|%p, %a, {MASK};\nmatch.any.sync.b{bits} %m, %a, {MASK};")
    same = np.where(SOME, a[0], a + np.array(1, dtype))
    run = on_registers(text, {"a": same, "some": SOME}, {"m": "uint32", "n": "uint32", "p": "bool"}, emulates)
    assert {run["n"][n] for n in np.flatnonzero(SOME)} == {MASK} == {run["m"][n] for n in np.flatnonzero(SOME)} and run["p"][SOME].all()


def wrapped(v: int, signed: bool) -> int:
    v &= 0xFFFFFFFF
    return v - 2**32 if signed and v >> 31 else v


@pytest.mark.parametrize("part", [False, True])
@pytest.mark.parametrize("op", ["add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32"])
def test_reductions_of_integers(emulates, op, part):
    a = (LANE * np.uint32(0x9E3779B9)) ^ np.uint32(0x1234)
    name, kind = op.split(".")
    mask = MASK if part else 0xFFFFFFFF
    text = f"redux.sync.{op} %d, %a, {mask};"
    run = on_registers(within(text) if part else text, {"a": a, "some": SOME, "d": np.full(32, 77, np.uint32)}, {"d": "uint32"}, emulates)
    f = {"add": lambda x, y: x + y, "min": min, "max": max, "and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y}[name]
    want = reduce(f, [wrapped(int(a[n]), kind == "s32") for n in range(32) if mask >> n & 1]) & 0xFFFFFFFF
    assert run.findings == [] and run["d"].tolist() == [want if mask >> n & 1 else 77 for n in range(32)]


@pytest.mark.parametrize(
    ("op", "values", "want"),
    [
        ("min", [3.0, -2.0, math.nan], "-2.0"),
        ("max.NaN", [3.0, -2.0, math.nan], "nan"),
        ("max.abs", [3.0, -5.0], "5.0"),
        ("min", [0.0, -0.0], "-0.0"),
        ("max", [0.0, -0.0], "0.0"),
        ("max", [-0.0], "-0.0"),
        ("min", [math.nan], "nan"),
        ("max", [-math.inf, math.inf, 1.0], "inf"),
    ],
)
def test_reductions_of_floats(emulates, op, values, want):
    a = np.array([values[n % len(values)] for n in range(32)], np.float32)
    run = on_registers(f"redux.sync.{op}.f32 %d, %a, -1;", {"a": a}, {"d": "uint32"}, emulates)
    assert {str(v) for v in run["d"].view(np.float32).tolist()} == {want}
    assert want != "nan" or set(run["d"].tolist()) == {0x7FFFFFFF}


def test_masks_from_matches_reduce_apart(emulates):
    """What warps do that count keys: lanes of one key reduce together, each group with its own mask."""
    keys = LANE % 5
    run = on_registers("match.any.sync.b32 %m, %k, -1;\nredux.sync.add.u32 %d, %a, %m;", {"k": keys, "a": LANE, "m": LANE}, {"d": "uint32"}, emulates)
    assert run.findings == [] and run["d"].tolist() == [sum(k for k in range(32) if k % 5 == n % 5) for n in range(32)]


@pytest.mark.parametrize(
    "text", ["vote.all.pred %p, %p;", "redux.sync.add.f32 %a, %a, -1;", "redux.sync.min.NaN.u32 %a, %a, -1;", "match.any.sync.b32 %a|%p, %a, -1;"]
)
def test_other_forms_are_refused(emulates, text):
    with pytest.raises(Unsupported):
        on_registers(text, {"a": LANE, "p": SOME}, {}, emulates)
