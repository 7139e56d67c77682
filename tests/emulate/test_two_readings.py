"""Integer instructions by two readings of the ISA that share nothing: what machine code is read back with, and what it is executed with."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cake_core.emulate.registers import on_registers
from cake_core.plugins import load_registry
from cake_core.reread.numbers import function_of, types_of

WHOLE = [f"{k}{w}" for k in "su" for w in (16, 32, 64)]
OPCODES = [
    *[f"{op}.{t}" for op in ("add", "sub", "min", "max", "div", "rem", "sad", "mul.lo", "mul.hi", "mad.lo") for t in WHOLE],
    *[f"mul.wide.{t}" for t in WHOLE[:2] + WHOLE[3:5]],
    *[f"mad.wide.{t}" for t in WHOLE[:2] + WHOLE[3:5]],
    *[f"{op}.{t}" for op in ("neg", "abs") for t in WHOLE[:3]],
    *[f"{op}.b{w}" for op in ("and", "or", "xor", "not", "shl", "cnot") for w in (16, 32, 64)],
    *[f"shr.{t}" for t in WHOLE],
    *[f"setp.{c}.{t}" for c in ("eq", "ne", "lt", "le", "gt", "ge") for t in WHOLE],
    *[f"setp.{c}.u32" for c in ("lo", "ls", "hi", "hs")],
    *[f"cvt.{a}.{b}" for a in WHOLE for b in WHOLE if a != b],
    *[f"{op}.{t}" for op in ("bfe",) for t in ("u32", "s32", "u64", "s64")],
    *[f"{op}.b{w}" for op in ("popc", "clz", "brev", "bfi") for w in (32, 64)],
    "selp.b32", "prmt.b32", "shf.l.wrap.b32", "shf.r.clamp.b32", "setp.lt.and.s32", "setp.ge.or.u32",
]  # fmt: skip


@pytest.fixture(scope="module")
def emulates():
    return load_registry().emulates


def test_enough_is_read_twice():
    assert sum(function_of(tuple(o.split("."))) is not None for o in OPCODES) > 100


@pytest.mark.parametrize("opcode", [o for o in OPCODES if function_of(tuple(o.split("."))) is not None])
def test_both_give_the_same(emulates, opcode):
    words = tuple(opcode.split("."))
    function, _ = function_of(words)
    types = types_of(words)
    kind, width = types[-1], int(types[-1][1:])
    root = words[0]
    into = 2 * width if "wide" in words else int(types[0][1:]) if root == "cvt" else 32 if root in ("popc", "clz") else width
    joined = root == "setp" and len(words) == 4
    count = {"setp": 2 + joined, "mad": 3, "sad": 3, "selp": 3, "bfe": 3, "prmt": 3, "shf": 3, "bfi": 4}.get(
        root, 1 if root in ("neg", "abs", "not", "cnot", "cvt", "popc", "clz", "brev") else 2
    )
    sizes = [width] * count
    if root in ("shl", "shr"):
        sizes[1] = 32
    if root in ("bfe", "bfi"):
        sizes[-2:] = [32, 32]
    if "wide" in words and count == 3:
        sizes[2] = 2 * width
    pick = random.Random(opcode)
    top = 1 << width - 1
    given = {}
    for n, size in enumerate(sizes):
        values = [
            pick.choice([0, 1, 3, top - 1, top, 2 * top - 1, width, pick.getrandbits(size), pick.getrandbits(5)]) & (1 << size) - 1 for _ in range(32)
        ]
        if root in ("div", "rem") and n == 1:
            values = [v or 1 for v in values]
        given[f"s{n}"] = np.array(values, f"uint{size}")
    if joined or root == "selp":
        given[f"s{count - 1}"] = np.arange(32) % 3 == 0
    result = "bool" if root == "setp" else f"uint{into}"
    run = on_registers(f"{opcode} %d, {', '.join('%' + n for n in given)};", given, {"d": result}, emulates)
    assert run.findings == [], kind
    rows = zip(*(v.tolist() for v in given.values()), strict=True)
    assert run["d"].tolist() == [function(*row) for row in rows]
