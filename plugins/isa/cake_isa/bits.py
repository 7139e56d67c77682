"""Logic, shifts and fields (PTX ISA, Logic and Shift Instructions; Integer Arithmetic Instructions: popc to bmsk; Data Movement: prmt)."""

from __future__ import annotations

import numpy as np

from cake_core.ptx.emulated import LANES, TYPES, Coder, Lanes, Step
from cake_core.ptx.forms import Words
from cake_core.ptx.reader import At, Pair, Statement

PLAIN = ("pred", "b16", "b32", "b64")

#: Of each byte: how many bits are set, and the byte with its bits in reverse order.
ONES = np.array([b.bit_count() for b in range(256)], np.uint8)
REVERSED = np.array([int(f"{b:08b}"[::-1], 2) for b in range(256)], np.uint8)


def _logic(s: Statement, c: Coder, change) -> Step:
    w = Words(s, c)
    kind = w.type(*PLAIN)
    w.end()
    d, *given = s.operands
    to = c.result(d, kind)
    if len(given) == 1:
        (x,) = (c.source(o, kind) for o in given)
        return lambda lanes: to(lanes, change(x(lanes)))
    x, y = (c.source(o, kind) for o in given)
    return lambda lanes: to(lanes, change(x(lanes), y(lanes)))


def conjunction(s: Statement, c: Coder) -> Step:
    """PTX ISA, and."""
    return _logic(s, c, np.bitwise_and)


def disjunction(s: Statement, c: Coder) -> Step:
    """PTX ISA, or."""
    return _logic(s, c, np.bitwise_or)


def exclusive(s: Statement, c: Coder) -> Step:
    """PTX ISA, xor."""
    return _logic(s, c, np.bitwise_xor)


def inverse(s: Statement, c: Coder) -> Step:
    """PTX ISA, not."""
    return _logic(s, c, np.invert)


def cnot(s: Statement, c: Coder) -> Step:
    """PTX ISA, cnot: 1 of zero, else 0."""
    kind = Words(s, c).type("b16", "b32", "b64")
    return _logic(s, c, lambda x: (x == 0).astype(TYPES[kind]))


def lop3(s: Statement, c: Coder) -> Step:
    """PTX ISA, lop3: bit 4a + 2b + c of immLut is the result for bits a, b, c. With `.and` or `.or`, d|p: p is (d != 0) joined with q."""
    w = Words(s, c)
    join = w.one("and", "or")
    w.type("b32")
    w.end()
    d, a, b, third, lut, *q = s.operands
    table = c.constant(lut)
    if table is None or not 0 <= table <= 255:
        raise c.unsupported("a table of lop3 that is no immediate of 0..255")
    x, y, z = (c.source(o, "b32") for o in (a, b, third))
    result, holds = (d.first, d.second) if isinstance(d, Pair) else (d, None)
    to = c.result(result, "b32")
    tells = c.result(holds, "pred") if holds is not None else None
    joined = c.source(q[0], "pred") if q else None
    if bool(join) != (tells is not None and joined is not None):
        raise c.unsupported(f"operands of '{s.opcode}'")
    flip = table.bit_count() > 4
    terms = [n for n in range(8) if (table >> n & 1) != flip]

    def step(lanes: Lanes) -> None:
        one, two, three = x(lanes), y(lanes), z(lanes)
        value = np.zeros(LANES, np.uint32)
        for n in terms:
            value |= (one if n & 4 else ~one) & (two if n & 2 else ~two) & (three if n & 1 else ~three)
        if flip:
            value = ~value
        to(lanes, value)
        if tells is not None:
            some = value != 0
            tells(lanes, some & joined(lanes) if join == "and" else some | joined(lanes))

    return step


# --- shifts --------------------------------------------------------------------------------------------------------


def shl(s: Statement, c: Coder) -> Step:
    """PTX ISA, shl: more than the width gives zero."""
    return _shift(s, c, np.left_shift, ("b16", "b32", "b64"))


def shr(s: Statement, c: Coder) -> Step:
    """PTX ISA, shr: `.s` types fill with the sign; more than the width is the width."""
    return _shift(s, c, np.right_shift, ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"))


def _shift(s: Statement, c: Coder, change, kinds) -> Step:
    w = Words(s, c)
    kind = w.type(*kinds)
    w.end()
    d, a, b = s.operands
    width, into = int(kind[1:]), np.dtype(TYPES[kind])
    to, x = c.result(d, kind), c.source(a, kind)
    signed = kind[0] == "s"
    if (known := c.constant(b)) is not None:
        known &= 0xFFFFFFFF
        if known >= width and not signed:
            return lambda lanes: to(lanes, np.zeros(LANES, into))
        by = into.type(min(known, width - 1))
        return lambda lanes: to(lanes, change(x(lanes), by))
    y = c.source(b, "u32")
    most = np.uint32(width - 1)

    def step(lanes: Lanes) -> None:
        amount = y(lanes)
        value = change(x(lanes), np.minimum(amount, most).astype(into))
        if not signed:
            value[amount > most] = 0
        to(lanes, value)

    return step


def shf(s: Statement, c: Coder) -> Step:
    """PTX ISA, shf: the upper (`.l`) or lower (`.r`) word of b:a shifted; `.clamp` limits the amount to 32, `.wrap` takes it modulo 32."""
    w = Words(s, c)
    way, mode = w.need("l", "r"), w.need("clamp", "wrap")
    w.type("b32")
    w.end()
    d, a, b, amount = s.operands
    to, x, y, by = c.result(d, "b32"), c.source(a, "b32"), c.source(b, "b32"), c.source(amount, "u32")

    def step(lanes: Lanes) -> None:
        n = by(lanes)
        n = (n & np.uint32(31) if mode == "wrap" else np.minimum(n, np.uint32(32))).astype(np.uint64)
        wide = y(lanes).astype(np.uint64) << np.uint64(32) | x(lanes)
        value = wide << n >> np.uint64(32) if way == "l" else wide >> n
        to(lanes, value.astype(np.uint32))

    return step


# --- counts and fields ---------------------------------------------------------------------------------------------


def length(x: np.ndarray) -> np.ndarray:
    """How many bits the number takes, 0 of zero; int32."""
    if x.dtype.itemsize < 8:
        return np.frexp(x.astype(np.float64))[1]
    top = (x >> np.uint64(32)).astype(np.float64)
    return np.where(top > 0, np.frexp(top)[1] + 32, np.frexp((x & np.uint64(0xFFFFFFFF)).astype(np.float64))[1])


def popc(s: Statement, c: Coder) -> Step:
    """PTX ISA, popc."""
    return _counted(s, c, lambda x: ONES[x.view(np.uint8).reshape(LANES, -1)].sum(1, dtype=np.uint32))


def clz(s: Statement, c: Coder) -> Step:
    """PTX ISA, clz: zeros above the highest bit; the width of zero."""
    return _counted(s, c, lambda x: (8 * x.dtype.itemsize - length(x)).astype(np.uint32))


def _counted(s: Statement, c: Coder, change) -> Step:
    w = Words(s, c)
    kind = w.type("b32", "b64")
    w.end()
    d, a = s.operands
    to, x = c.result(d, "u32"), c.source(a, kind)
    return lambda lanes: to(lanes, change(x(lanes)))


def bfind(s: Statement, c: Coder) -> Step:
    """PTX ISA, bfind: the highest bit that differs from the sign; 0xffffffff where there is none; `.shiftamt`: how far it is from the top."""
    w = Words(s, c)
    amount = w.flag("shiftamt")
    kind = w.type("u32", "u64", "s32", "s64")
    w.end()
    d, a = s.operands
    to, x, width = c.result(d, "u32"), c.source(a, kind), int(kind[1:])

    def step(lanes: Lanes) -> None:
        value = x(lanes)
        if kind[0] == "s":
            value = np.where(value < 0, ~value, value).view(f"uint{width}")
        at = length(value).astype(np.int32) - 1
        if amount:
            at = np.where(at < 0, at, width - 1 - at)
        to(lanes, at.astype(np.int32).view(np.uint32))

    return step


def brev(s: Statement, c: Coder) -> Step:
    """PTX ISA, brev."""
    w = Words(s, c)
    kind = w.type("b32", "b64")
    w.end()
    d, a = s.operands
    to, x, into = c.result(d, kind), c.source(a, kind), TYPES[kind]
    return lambda lanes: to(lanes, np.ascontiguousarray(REVERSED[x(lanes).view(np.uint8).reshape(LANES, -1)[:, ::-1]]).view(into).reshape(LANES))


def fns(s: Statement, c: Coder) -> Step:
    """PTX ISA, fns: the n-th set bit of a mask from a base on, downwards where n is negative; 0xffffffff where there is none."""
    w = Words(s, c)
    w.type("b32")
    w.end()
    d, mask, base, offset = s.operands
    to, m, b, o = c.result(d, "b32"), c.source(mask, "b32"), c.source(base, "u32"), c.source(offset, "s32")

    def step(lanes: Lanes) -> None:
        out = np.full(LANES, 0xFFFFFFFF, np.uint32)
        for lane, (bits, at, n) in enumerate(zip(m(lanes).tolist(), b(lanes).tolist(), o(lanes).tolist(), strict=True)):
            if n == 0:
                if at < 32 and bits >> at & 1:
                    out[lane] = at
                continue
            places = range(at, 32) if n > 0 else range(min(at, 31), -1, -1)
            found = [p for p in places if bits >> p & 1]
            if len(found) >= abs(n):
                out[lane] = found[abs(n) - 1]
        to(lanes, out)

    return step


def _low(width: int, length_: np.ndarray) -> np.ndarray:
    """A mask of the lowest bits, as many as said, of `width` at most."""
    unsigned = np.dtype(f"uint{width}")
    whole = unsigned.type((1 << width) - 1)
    n = np.minimum(length_, np.uint32(width)).astype(unsigned)
    return np.where(n == 0, unsigned.type(0), whole >> (unsigned.type(width) - np.maximum(n, unsigned.type(1))))


def bfe(s: Statement, c: Coder) -> Step:
    """PTX ISA, bfe: the field of c bits from bit b on, extended by its highest bit where the type is signed."""
    w = Words(s, c)
    kind = w.type("u32", "u64", "s32", "s64")
    w.end()
    d, a, at, size = s.operands
    width, signed = int(kind[1:]), kind[0] == "s"
    to, x, p, n = c.result(d, kind), c.source(a, kind), c.source(at, "u32"), c.source(size, "u32")
    unsigned = np.dtype(f"uint{width}")

    def step(lanes: Lanes) -> None:
        value, position, count = x(lanes), p(lanes) & np.uint32(255), n(lanes) & np.uint32(255)
        bits = value.view(unsigned)
        moved = np.where(position < width, bits >> np.minimum(position, np.uint32(width - 1)).astype(unsigned), unsigned.type(0))
        mask = _low(width, count)
        field = moved & mask
        if signed:
            top = np.minimum(position + count.astype(np.int64) - 1, width - 1)
            sign = (bits >> np.maximum(top, 0).astype(unsigned) & unsigned.type(1)).astype(bool) & (count > 0)
            there = _low(width, np.maximum(np.int64(width) - position, 0).astype(np.uint32)) & mask
            field = np.where(sign, field | ~there, field)
        to(lanes, field.view(TYPES[kind]))

    return step


def bfi(s: Statement, c: Coder) -> Step:
    """PTX ISA, bfi: the low d bits of a put into b from bit c on."""
    w = Words(s, c)
    kind = w.type("b32", "b64")
    w.end()
    f, a, b, at, size = s.operands
    width = int(kind[1:])
    to, x, y, p, n = c.result(f, kind), c.source(a, kind), c.source(b, kind), c.source(at, "u32"), c.source(size, "u32")
    unsigned = np.dtype(f"uint{width}")

    def step(lanes: Lanes) -> None:
        position, count = p(lanes) & np.uint32(255), n(lanes) & np.uint32(255)
        by = np.minimum(position, np.uint32(width - 1)).astype(unsigned)
        mask = np.where(position < width, _low(width, count) << by, unsigned.type(0))
        to(lanes, y(lanes) & ~mask | x(lanes) << by & mask)

    return step


def szext(s: Statement, c: Coder) -> Step:
    """PTX ISA, szext: the low b bits of a, extended by sign or zeros; `.wrap` takes b modulo 32, `.clamp` limits it to 32."""
    w = Words(s, c)
    mode, kind = w.need("clamp", "wrap"), w.type("u32", "s32")
    w.end()
    d, a, b = s.operands
    to, x, n = c.result(d, "b32"), c.source(a, "b32"), c.source(b, "u32")

    def step(lanes: Lanes) -> None:
        count = n(lanes)
        count = count & np.uint32(31) if mode == "wrap" else np.minimum(count, np.uint32(32))
        mask = _low(32, count)
        value = x(lanes) & mask
        if kind == "s32":
            sign = (value >> np.maximum(count.astype(np.int64) - 1, 0).astype(np.uint32) & np.uint32(1)).astype(bool) & (count > 0)
            value = np.where(sign, value | ~mask, value)
        to(lanes, value)

    return step


def bmsk(s: Statement, c: Coder) -> Step:
    """PTX ISA, bmsk: b ones from bit a on; `.wrap` takes both modulo 32, `.clamp` limits them to 32."""
    w = Words(s, c)
    mode = w.need("clamp", "wrap")
    w.type("b32")
    w.end()
    d, a, b = s.operands
    to, p, n = c.result(d, "b32"), c.source(a, "u32"), c.source(b, "u32")

    def step(lanes: Lanes) -> None:
        at, count = p(lanes), n(lanes)
        if mode == "wrap":
            at, count = at & np.uint32(31), count & np.uint32(31)
        at = np.minimum(at, np.uint32(32)).astype(np.uint64)
        to(lanes, (_low(32, count).astype(np.uint64) << at).astype(np.uint32))

    return step


#: Bytes of b:a, lowest of the result first, by the low two bits of the selector (PTX ISA, prmt).
_MODES = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0,) * 4, (1,) * 4, (2,) * 4, (3,) * 4),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}


def prmt(s: Statement, c: Coder) -> Step:
    """PTX ISA, prmt: four bytes of b:a by four nibbles, whose top bit asks for the byte's sign instead; or by a mode."""
    w = Words(s, c)
    w.type("b32")
    mode = w.one(*_MODES)
    w.end()
    d, a, b, sel = s.operands
    to, x, y, by = c.result(d, "b32"), c.source(a, "b32"), c.source(b, "b32"), c.source(sel, "b32")
    rows = np.arange(LANES)[:, None]
    nibbles = np.arange(0, 16, 4, dtype=np.uint32)
    table = np.array(_MODES[mode]) if mode else None

    def step(lanes: Lanes) -> None:
        eight = np.stack([x(lanes), y(lanes)], 1).view(np.uint8)
        if table is not None:
            out = eight[rows, table[by(lanes) & np.uint32(3)]]
        else:
            pick = by(lanes)[:, None] >> nibbles
            out = eight[rows, pick & np.uint32(7)]
            out = np.where((pick & np.uint32(8)) != 0, np.where(out & 0x80, 0xFF, 0), out).astype(np.uint8)
        to(lanes, np.ascontiguousarray(out).view(np.uint32).reshape(LANES))

    return step


def selp(s: Statement, c: Coder) -> Step:
    """PTX ISA, selp: a where c holds, else b."""
    w = Words(s, c)
    kind = w.type("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f16", "bf16", "f32", "f64")
    w.end()
    d, a, b, p = s.operands
    if isinstance(a, At) or isinstance(b, At):
        raise c.unsupported("addresses as operands of selp")
    bits = kind if kind[0] in "fus" else f"b{kind.lstrip('bf')}"
    to, x, y, holds = c.result(d, bits), c.source(a, bits), c.source(b, bits), c.source(p, "pred")
    return lambda lanes: to(lanes, np.where(holds(lanes), x(lanes), y(lanes)))
