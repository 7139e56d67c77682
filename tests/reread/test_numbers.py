"""Integer instructions against their definition in two's complement, on numbers at the edges and drawn ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_core.reread.numbers import function_of

EDGES = (0, 1, 2, 7, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF)
WORDS = st.one_of(st.sampled_from(EDGES), st.integers(0, 2**32 - 1))


def signed(x: int, width: int = 32) -> int:
    return int.from_bytes(x.to_bytes(width // 8, "little"), "little", signed=True)


def bits(x: int, width: int = 32) -> int:
    return int(format(x & (2**width - 1), "b"), 2)


def truncated(a: int, b: int) -> int:
    """The quotient towards zero, as the ISA divides."""
    return int(a / b) if abs(a) < 2**31 and abs(b) < 2**31 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


DEFINED = {
    "add.s32": lambda a, b: bits(signed(a) + signed(b)),
    "sub.s32": lambda a, b: bits(signed(a) - signed(b)),
    "mul.lo.s32": lambda a, b: bits(signed(a) * signed(b)),
    "mul.hi.u32": lambda a, b: a * b >> 32,
    "mul.wide.s32": lambda a, b: bits(signed(a) * signed(b), 64),
    "mul.wide.u32": lambda a, b: a * b,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
    "min.s32": lambda a, b: bits(min(signed(a), signed(b))),
    "max.s32": lambda a, b: bits(max(signed(a), signed(b))),
    "min.u32": min,
    "shl.b32": lambda a, b: bits(a << b) if b < 32 else 0,
    "shr.u32": lambda a, b: a >> b if b < 32 else 0,
    "shr.s32": lambda a, b: bits(signed(a) >> min(b, 32)),
    "div.u32": lambda a, b: a // b if b else None,
    "rem.u32": lambda a, b: a % b if b else None,
    "div.s32": lambda a, b: bits(truncated(signed(a), signed(b))) if b else None,
    "rem.s32": lambda a, b: bits(signed(a) - truncated(signed(a), signed(b)) * signed(b)) if b else None,
    "setp.lt.s32": lambda a, b: signed(a) < signed(b),
    "setp.ge.s32": lambda a, b: signed(a) >= signed(b),
    "setp.lt.u32": lambda a, b: a < b,
    "setp.ne.s32": lambda a, b: a != b,
}
ALONE = {
    "not.b32": lambda a: a ^ 0xFFFFFFFF,
    "neg.s32": lambda a: bits(-signed(a)),
    "abs.s32": lambda a: bits(abs(signed(a))),
    "mov.b32": lambda a: a,
    "cvt.u64.u32": lambda a: a,
    "cvt.s64.s32": lambda a: bits(signed(a), 64),
    "cvt.u16.u32": lambda a: a & 0xFFFF,
    "cvta.to.global.u64": lambda a: a,
}


@pytest.mark.parametrize("opcode", DEFINED)
@settings(max_examples=60, deadline=None)
@given(a=WORDS, b=WORDS)
def test_two_sources(opcode, a, b):
    function, width = function_of(tuple(opcode.split(".")))
    assert width == 32
    assert function(a, b) == DEFINED[opcode](a, b)


@pytest.mark.parametrize("opcode", ALONE)
@pytest.mark.parametrize("a", EDGES)
def test_one_source(opcode, a):
    function, _ = function_of(tuple(opcode.split(".")))
    assert function(a) == ALONE[opcode](a)


@settings(max_examples=60, deadline=None)
@given(a=WORDS, b=WORDS, c=WORDS)
def test_three_sources(a, b, c):
    assert function_of(("mad", "lo", "s32"))[0](a, b, c) == bits(signed(a) * signed(b) + signed(c))
    assert function_of(("mad", "wide", "s32"))[0](a, b, c) == bits(signed(a) * signed(b) + c, 64)
    assert function_of(("setp", "lt", "and", "s32"))[0](a, b, True) == (signed(a) < signed(b))
    assert function_of(("setp", "eq", "or", "s32"))[0](a, b, True) is True


@pytest.mark.parametrize(
    "opcode",
    ["add.f32", "setp.lt.f32", "cvt.rn.bf16x2.f32", "add.cc.s32", "min.relu.s16x2", "popc.b32", "add.sat.s32", "cvt.sat.u8.s32", "setp.lt.bf16x2"],
)
def test_what_is_not_known(opcode):
    """Floats, carries and what is left out: no value rather than a wrong one."""
    assert function_of(tuple(opcode.split("."))) is None


@pytest.mark.parametrize(
    ("opcode", "a", "b", "c"),
    [("add.s64", 2**64 - 1, 1, 0), ("or.b64", 1 << 62, 1, 1 << 62 | 1), ("shl.b64", 1, 63, 1 << 63), ("mul.lo.s64", 2**63, 2, 0)],
)
def test_sixty_four_bits(opcode, a, b, c):
    assert function_of(tuple(opcode.split(".")))[0](a, b) == c
