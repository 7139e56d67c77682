"""Integer arithmetic (PTX ISA, Integer Arithmetic Instructions; Extended-Precision Integer Arithmetic Instructions).

Results wrap, unless `.sat` stands there. Division by zero gives an unspecified value (PTX ISA, div, rem), which no kernel can want: it is a
finding, and the value is all ones, or for a remainder the dividend.
"""

from __future__ import annotations

import numpy as np

from cake_core.ptx.emulated import LANES, TYPES, Coder, Lanes, Step
from cake_core.ptx.forms import Words
from cake_core.ptx.reader import Statement

WHOLE = ("s16", "u16", "s32", "u32", "s64", "u64")
PACKED = ("u16x2", "s16x2")


def binary(s: Statement, c: Coder, kind: str, change) -> Step:
    """`d, a, b`; packed types by halves."""
    d, a, b = s.operands
    if kind in PACKED:
        to, x, y, half = c.result(d, "b32"), c.source(a, "b32"), c.source(b, "b32"), TYPES[kind[:3]]
        return lambda lanes: to(lanes, change(x(lanes).view(half), y(lanes).view(half)).view(np.uint32))
    to, x, y = c.result(d, kind), c.source(a, kind), c.source(b, kind)
    return lambda lanes: to(lanes, change(x(lanes), y(lanes)))


def saturated(values: np.ndarray, kind: str) -> np.ndarray:
    """Values of a wider type, limited to those of `kind`."""
    limits = np.iinfo(TYPES[kind])
    return np.clip(values, limits.min, limits.max).astype(TYPES[kind])


def add(s: Statement, c: Coder) -> Step:
    """PTX ISA, add: `.sat` limits to the range of .s32."""
    w = Words(s, c)
    if w.flag("cc"):
        return _carrying(s, c, w, +1, False)
    sat, kind = w.flag("sat"), w.type(*WHOLE, *PACKED)
    w.end()
    if not sat:
        return binary(s, c, kind, np.add)
    if kind != "s32":
        raise c.unsupported(f"'.sat' of type .{kind}")
    return binary(s, c, kind, lambda x, y: saturated(np.add(x, y, dtype=np.int64), "s32"))


def sub(s: Statement, c: Coder) -> Step:
    """PTX ISA, sub."""
    w = Words(s, c)
    if w.flag("cc"):
        return _carrying(s, c, w, -1, False)
    sat, kind = w.flag("sat"), w.type(*WHOLE, *PACKED)
    w.end()
    if not sat:
        return binary(s, c, kind, np.subtract)
    if kind != "s32":
        raise c.unsupported(f"'.sat' of type .{kind}")
    return binary(s, c, kind, lambda x, y: saturated(np.subtract(x, y, dtype=np.int64), "s32"))


# --- carry: CC.CF of each thread -----------------------------------------------------------------------------------
# A subtraction leaves and takes its borrow there, as the ISA says; what an addition adds that stands behind a subtraction is that borrow.


def carry(lanes: Lanes) -> np.ndarray:
    """The carry flag of each lane, to be written in place; false before the first instruction that sets it."""
    return lanes.state(("isa", "carry"), lambda: np.zeros(LANES, bool))


def addc(s: Statement, c: Coder) -> Step:
    """PTX ISA, addc."""
    w = Words(s, c)
    w.flag("cc")
    return _carrying(s, c, w, +1, True)


def subc(s: Statement, c: Coder) -> Step:
    """PTX ISA, subc: the flag is a borrow."""
    w = Words(s, c)
    w.flag("cc")
    return _carrying(s, c, w, -1, True)


def _carrying(s: Statement, c: Coder, w: Words, sign: int, comes: bool) -> Step:
    kind = w.type("s32", "u32", "s64", "u64")
    w.end()
    d, a, b = s.operands
    bits = f"u{kind[1:]}"
    to, x, y, sets = c.result(d, bits), c.source(a, bits), c.source(b, bits), "cc" in s.words

    def step(lanes: Lanes) -> None:
        one, two, flag = x(lanes), y(lanes), carry(lanes)
        if sign > 0:
            total = one + two
            out = total < one
        else:
            total = one - two
            out = one < two
        if comes:
            with_flag = total + flag if sign > 0 else total - flag
            out = out | ((with_flag < total) if sign > 0 else (with_flag > total))
            total = with_flag
        if sets:
            np.copyto(flag, out, where=lanes.active)
        to(lanes, total)

    return step


# --- products ------------------------------------------------------------------------------------------------------


def high(x: np.ndarray, y: np.ndarray, kind: str) -> np.ndarray:
    """The upper half of the product."""
    bits = int(kind[1:])
    if bits < 64:
        wide = np.multiply(x, y, dtype=np.int64 if kind[0] == "s" else np.uint64)
        return (wide >> np.array(bits, wide.dtype)).astype(TYPES[kind])
    a, b = x.view(np.uint64), y.view(np.uint64)
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> shift, b & low, b >> shift
    middle = a1 * b0 + (a0 * b0 >> shift)
    other = a0 * b1 + (middle & low)
    top = a1 * b1 + (middle >> shift) + (other >> shift)
    if kind[0] == "s":
        top = top - np.where(x < 0, b, 0).astype(np.uint64) - np.where(y < 0, a, 0).astype(np.uint64)
    return top.view(TYPES[kind])


def product(part: str, kind: str):
    """A function of two arrays, and the type of what it gives."""
    if part == "lo":
        return np.multiply, kind
    if part == "hi":
        return lambda x, y: high(x, y, kind), kind
    wide = f"{kind[0]}{2 * int(kind[1:])}"
    into = np.dtype(TYPES[wide])
    return lambda x, y: x.astype(into) * y, wide


def mul(s: Statement, c: Coder) -> Step:
    """PTX ISA, mul: `.lo`, `.hi`, `.wide` of 16 and 32 bits."""
    w = Words(s, c)
    part = w.need("lo", "hi", "wide")
    kind = w.type(*(WHOLE[:4] if part == "wide" else WHOLE))
    w.end()
    d, a, b = s.operands
    times, wide = product(part, kind)
    to, x, y = c.result(d, wide), c.source(a, kind), c.source(b, kind)
    return lambda lanes: to(lanes, times(x(lanes), y(lanes)))


def mad(s: Statement, c: Coder) -> Step:
    """PTX ISA, mad, mad.cc and madc: the product's part and a third operand; `.hi.sat` of .s32."""
    w = Words(s, c)
    part = w.need("lo", "hi", "wide")
    sets, comes = w.flag("cc"), s.words[0] == "madc"
    sat = w.flag("sat")
    kind = w.type(*(WHOLE[:4] if part == "wide" else WHOLE))
    w.end()
    d, a, b, added = s.operands
    times, wide = product(part, kind)
    if sat and (part, kind) != ("hi", "s32"):
        raise c.unsupported(f"'.sat' of {s.opcode}")
    if (sets or comes) and part == "wide":
        raise c.unsupported(f"'.wide' of {s.opcode}")
    to, x, y, z = c.result(d, wide), c.source(a, kind), c.source(b, kind), c.source(added, wide)
    if sat:
        return lambda lanes: to(lanes, saturated(np.add(times(x(lanes), y(lanes)), z(lanes), dtype=np.int64), kind))
    if not (sets or comes):
        return lambda lanes: to(lanes, times(x(lanes), y(lanes)) + z(lanes))
    bits = np.dtype(f"uint{kind[1:]}")

    def step(lanes: Lanes) -> None:
        flag = carry(lanes)
        first, second = times(x(lanes), y(lanes)).view(bits), z(lanes).view(bits)
        total = first + second
        out = total < first
        if comes:
            more = total + flag
            out, total = out | (more < total), more
        if sets:
            np.copyto(flag, out, where=lanes.active)
        to(lanes, total.view(TYPES[kind]))

    return step


def mul24(s: Statement, c: Coder) -> Step:
    """PTX ISA, mul24 and mad24: of the product of the operands' low 24 bits the low 32 bits, or with `.hi` the high 32 of 48."""
    w = Words(s, c)
    part, sat = w.need("lo", "hi"), w.flag("sat")
    kind = w.type("s32", "u32")
    w.end()
    adds = s.words[0] == "mad24"
    d, a, b, *rest = s.operands
    to, x, y = c.result(d, kind), c.source(a, kind), c.source(b, kind)
    z = c.source(rest[0], kind) if adds else None
    if sat and not (adds and part == "hi" and kind == "s32"):
        raise c.unsupported(f"'.sat' of {s.opcode}")
    into, cut = np.dtype(TYPES[kind]), np.array(8, TYPES[kind])

    def step(lanes: Lanes) -> None:
        wide = ((x(lanes) << cut) >> cut).astype(np.int64) * ((y(lanes) << cut) >> cut)
        value = (wide >> 16 if part == "hi" else wide).astype(into)
        if z is not None:
            value = saturated(np.add(value, z(lanes), dtype=np.int64), kind) if sat else value + z(lanes)
        to(lanes, value)

    return step


def sad(s: Statement, c: Coder) -> Step:
    """PTX ISA, sad: c + |a - b|."""
    w = Words(s, c)
    kind = w.type(*WHOLE)
    w.end()
    d, a, b, added = s.operands
    to, x, y, z = c.result(d, kind), c.source(a, kind), c.source(b, kind), c.source(added, kind)

    def step(lanes: Lanes) -> None:
        one, two = x(lanes), y(lanes)
        to(lanes, z(lanes) + np.where(one < two, two - one, one - two))

    return step


def _dividing(s: Statement, c: Coder, change) -> Step:
    kind = Words(s, c).type(*WHOLE)
    if s.words[1:] != (kind,):
        raise c.unsupported(f"'{s.opcode}'")
    d, a, b = s.operands
    to, x, y = c.result(d, kind), c.source(a, kind), c.source(b, kind)
    known = c.constant(b)
    if known:
        return lambda lanes: to(lanes, change(x(lanes), y(lanes)))

    def step(lanes: Lanes) -> None:
        one, two = x(lanes), y(lanes)
        zero = two == 0
        if zero.any():
            if (zero & lanes.active).any():
                lanes.finding("emulate/operand", "an integer is divided by zero", why="PTX ISA, div and rem: the result is unspecified")
            value = change(one, np.where(zero, np.ones_like(two), two))
            value = np.where(zero, one if change is _remainder else np.invert(np.zeros_like(one)), value)
            return to(lanes, value)
        return to(lanes, change(one, two))

    return step


def _quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Towards zero. The least integer over -1 wraps."""
    if x.dtype.kind == "u":
        return x // y
    return np.where(y == -1, np.negative(x), (x - np.fmod(x, y)) // y)


def _remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of the division towards zero: its sign is that of x."""
    return x % y if x.dtype.kind == "u" else np.where(y == -1, np.zeros_like(x), np.fmod(x, y))


def div(s: Statement, c: Coder) -> Step:
    """PTX ISA, div."""
    return _dividing(s, c, _quotient)


def rem(s: Statement, c: Coder) -> Step:
    """PTX ISA, rem."""
    return _dividing(s, c, _remainder)


# --- one operand, and choices --------------------------------------------------------------------------------------


def neg(s: Statement, c: Coder) -> Step:
    """PTX ISA, neg."""
    return unary(s, c, np.negative, WHOLE[0::2])


def absolute(s: Statement, c: Coder) -> Step:
    """PTX ISA, abs: that of the least integer is itself."""
    return unary(s, c, np.abs, WHOLE[0::2])


def unary(s: Statement, c: Coder, change, kinds) -> Step:
    w = Words(s, c)
    kind = w.type(*kinds)
    w.end()
    d, a = s.operands
    to, x = c.result(d, kind), c.source(a, kind)
    return lambda lanes: to(lanes, change(x(lanes)))


def least(s: Statement, c: Coder) -> Step:
    """PTX ISA, min: `.relu` of signed types turns what is negative to zero."""
    return _chosen(s, c, np.minimum)


def greatest(s: Statement, c: Coder) -> Step:
    """PTX ISA, max."""
    return _chosen(s, c, np.maximum)


def _chosen(s: Statement, c: Coder, change) -> Step:
    w = Words(s, c)
    relu, kind = w.flag("relu"), w.type(*WHOLE, *PACKED)
    w.end()
    if not relu:
        return binary(s, c, kind, change)
    if kind not in ("s32", "s16x2"):
        raise c.unsupported(f"'.relu' of type .{kind}")
    return binary(s, c, kind, lambda x, y: np.maximum(change(x, y), 0))


def dp4a(s: Statement, c: Coder) -> Step:
    """PTX ISA, dp4a: c and the sum of products of four bytes."""
    w = Words(s, c)
    one, two = w.type("s32", "u32"), w.type("s32", "u32")
    w.end()
    d, a, b, added = s.operands
    kind = "u32" if one == two == "u32" else "s32"
    to, z = c.result(d, kind), c.source(added, kind)
    x, y = (c.source(o, "b32") for o in (a, b))
    first, second = (np.int8 if t == "s32" else np.uint8 for t in (one, two))

    def step(lanes: Lanes) -> None:
        products = x(lanes).view(first).reshape(LANES, 4).astype(np.int64) * y(lanes).view(second).reshape(LANES, 4)
        to(lanes, (products.sum(1) + z(lanes)).astype(TYPES[kind]))

    return step


def dp2a(s: Statement, c: Coder) -> Step:
    """PTX ISA, dp2a: c and the sum of products of two halves of a with the low or high two bytes of b."""
    w = Words(s, c)
    part = w.need("lo", "hi")
    one, two = w.type("s32", "u32"), w.type("s32", "u32")
    w.end()
    d, a, b, added = s.operands
    kind = "u32" if one == two == "u32" else "s32"
    to, z = c.result(d, kind), c.source(added, kind)
    x, y = (c.source(o, "b32") for o in (a, b))
    first, second = np.int16 if one == "s32" else np.uint16, np.int8 if two == "s32" else np.uint8
    bytes_ = slice(0, 2) if part == "lo" else slice(2, 4)

    def step(lanes: Lanes) -> None:
        products = x(lanes).view(first).reshape(LANES, 2).astype(np.int64) * y(lanes).view(second).reshape(LANES, 4)[:, bytes_]
        to(lanes, (products.sum(1) + z(lanes)).astype(TYPES[kind]))

    return step
