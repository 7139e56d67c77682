"""Conversions (PTX ISA, Data Movement and Conversion Instructions: cvt, cvt.pack).

Bit for bit as the ISA says: rounding modes, saturation, NaN. Where it leaves something open: a NaN of a wider type becomes the canonical NaN of
f16, bf16, f32 (cvt.f32.bf16: unspecified NaN); between f16 and bf16 without a mode it is rounded to nearest; negative values to ue8m0 lose their sign, zero becomes its least value 2**-127 and what is beyond 2**127
without `.satfinite` its NaN. `.rs` of f16 and bf16 adds the random bits to the discarded ones (13 and 16, PTX ISA, cvt, Random bits), those of a subnormal
result to the highest discarded; the x4 forms are refused, since the layout of their random bits is a figure.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from cake_core.ptx.emulated import LANES, TYPES, Coder, Lanes, Step
from cake_core.ptx.forms import Words
from cake_core.ptx.reader import Statement
from cake_isa.floats import bf16_bits, bf16_values, flushed, unit
from cake_isa.rounding import BF16, F16, FORMATS, TF32, Format, exactly, limited, rounded

INTEGERS = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")
FLOATS = ("f16", "bf16", "f32", "f64")
SMALL = {"e4m3x2": "e4m3", "e5m2x2": "e5m2", "e2m3x2": "e2m3", "e3m2x2": "e3m2", "e2m1x2": "e2m1"}
REFUSED = ("e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4", "e2m1x4", "s2f6x2")


def cvt(s: Statement, c: Coder) -> Step:
    """PTX ISA, cvt."""
    words = s.words
    if refused := [w for w in words if w in REFUSED]:
        raise c.unsupported(f"cvt of .{refused[0]}")
    if words[1] == "pack":
        return _pack(s, c)
    to, come = words[-2], words[-1]
    if to == "ue8m0x2":
        return _scales(s, c)
    if come == "ue8m0x2":
        return _of_scales(s, c)
    if to in SMALL:
        return _small(s, c)
    if come in SMALL:
        return _of_small(s, c)
    if to in ("f16x2", "bf16x2"):
        return _pair(s, c)
    if to == "tf32":
        return _tf32(s, c)
    return _plain(s, c)


def coded(x: np.ndarray, to: Format) -> np.ndarray:
    """The bits (uint32) of values (float64) that the format has, infinities and NaN among them; its NaN is the canonical one."""
    size = np.abs(x)
    _, exponent = np.frexp(size)
    step = np.where(size == 0, to.least, np.maximum(exponent - to.digits, to.least))
    whole = np.ldexp(np.where(np.isfinite(size), size, 0.0), -step)
    bits = whole.astype(np.uint32) + ((step - to.least).astype(np.uint32) << np.uint32(to.digits - 1))
    if to.infinite:
        exponents = to.bits - to.digits
        bits = np.where(np.isinf(x), np.uint32(((1 << exponents) - 1) << (to.digits - 1)), bits)
    bits = np.where(np.signbit(x), bits | np.uint32(1 << (to.bits - 1)), bits)
    return bits if to.nan is None else np.where(np.isnan(x), np.uint32(to.nan), bits)


def values_of(of: Format) -> np.ndarray:
    """The value (float64) of each pattern of a format of 8 bits or fewer."""
    out = np.zeros(1 << of.bits)
    for bits in range(1 << of.bits):
        mantissa, exponent = bits & (1 << (of.digits - 1)) - 1, bits >> (of.digits - 1) & (1 << (of.bits - of.digits)) - 1
        size = mantissa if exponent == 0 else mantissa + (1 << (of.digits - 1))
        value = float(np.ldexp(float(size), of.least + max(exponent - 1, 0)))
        if value > of.top:
            value = np.inf if of.infinite and mantissa == 0 else np.nan
        out[bits] = -value if bits >> (of.bits - 1) else value
    return out


def converted(x: np.ndarray, to: Format, way: str, satfinite: bool, relu: bool) -> np.ndarray:
    """float64 to the format's bits (uint32)."""
    x = limited(rounded(x, to, way), to, way, satfinite)
    if to.nan is None:
        x = np.where(np.isnan(x), to.top, x)
    if relu:
        x = np.where(x < 0, 0.0, x) + 0.0
    return coded(x, to)


# --- to two halves, tf32, small floats -----------------------------------------------------------------------------


def bf16_nearest(x: np.ndarray) -> np.ndarray:
    """The bits (uint32) of float32 rounded to bf16, to nearest: half of a unit is added, less one bit where the lower neighbour is even."""
    bits = x.view(np.uint32)
    near = bits + (np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    if (dot := x.dot(x)) != dot:
        near = np.where(np.isnan(x), np.uint32(0x7FFF), near)
    return near


def _half(c: Coder, to: Format, way: str, satfinite: bool, relu: bool) -> Callable[[np.ndarray], np.ndarray]:
    """float32 to the bits (uint32) of f16 or bf16."""
    if to is BF16 and way == "rn" and not (satfinite or relu):
        return bf16_nearest
    return lambda x: converted(x.astype(np.float64), to, way, satfinite, relu)


def _random(x: np.ndarray, bits: np.ndarray, to: Format, satfinite: bool, relu: bool) -> np.ndarray:
    """`.rs`: float32 and the random bits of each, which stand right below the result's lowest bit."""
    wide = x.astype(np.float64)
    _, exponent = np.frexp(wide)
    step = np.maximum(exponent - to.digits, to.least)
    share = np.ldexp(bits.astype(np.float64), -(24 - to.digits))
    size = np.floor(np.ldexp(np.abs(wide), -step) + share)
    value = np.where(np.isfinite(wide), np.copysign(np.ldexp(size, step), wide), wide)
    value = limited(value, to, "rn", satfinite)
    return coded(np.where(value < 0, 0.0, value) + 0.0 if relu else value, to)


def _pair(s: Statement, c: Coder) -> Step:
    """cvt.f16x2.f32 and cvt.bf16x2.f32: `d, a, b`, a into the upper half."""
    w = Words(s, c)
    way = w.need("rn", "rz", "rs")
    relu, satfinite = w.flag("relu"), w.flag("satfinite")
    to = FORMATS[w.need("f16x2", "bf16x2")[:-2]]
    w.type("f32")
    w.end()
    d, a, b, *rest = s.operands
    give, x, y = c.result(d, "b32"), c.source(a, "f32"), c.source(b, "f32")
    shift = np.uint32(16)
    if way == "rs":
        r = c.source(rest[0], "b32")
        low = np.uint32((1 << (24 - to.digits)) - 1)

        def random(lanes: Lanes) -> None:
            bits = r(lanes)
            upper = _random(x(lanes), bits >> shift & low, to, satfinite, relu)
            give(lanes, upper << shift | _random(y(lanes), bits & low, to, satfinite, relu))

        return random
    half = _half(c, to, way, satfinite, relu)
    return lambda lanes: give(lanes, half(x(lanes)) << shift | half(y(lanes)))


def _tf32(s: Statement, c: Coder) -> Step:
    """cvt.tf32.f32: the low 13 bits of the result are zeros. NaN: `.rna` cuts them off, the others give 0x7fffe000 (H200, driver 580.159.04, 2026-12-01)."""
    w = Words(s, c)
    way = w.need("rna", "rn", "rz")
    relu, satfinite = w.flag("relu"), w.flag("satfinite")
    w.need("tf32"), w.type("f32")
    w.end()
    if way == "rna" and relu:
        raise c.unsupported(f"'{s.opcode}'")
    d, a = s.operands
    to, x = c.result(d, "b32"), c.source(a, "f32")

    def step(lanes: Lanes) -> None:
        given = x(lanes)
        value = limited(rounded(given.astype(np.float64), TF32, way), TF32, way, satfinite).astype(np.float32)
        if relu:
            value = np.where(value < 0, np.float32(0), value) + np.float32(0)
        bits = value.view(np.uint32)
        if (nan := np.isnan(given)).any():
            cut = given.view(np.uint32) & np.uint32(0xFFFFE000)
            kept = np.where(np.isnan(cut.view(np.float32)), cut, np.uint32(_TF32_NAN))
            bits = np.where(nan, kept if way == "rna" else np.uint32(_TF32_NAN), bits)
        to(lanes, bits)

    return step


#: The canonical NaN of tf32, its low 13 bits zeros.
_TF32_NAN = 0x7FFFE000


def _small(s: Statement, c: Coder) -> Step:
    """To two floats of 8, 6 or 4 bits: `d, a, b` of f32, or `d, a` of f16x2 and bf16x2."""
    w = Words(s, c)
    w.need("rn"), w.need("satfinite")
    relu = w.flag("relu")
    name = w.need(*SMALL)
    come = w.need("f32", "f16x2", "bf16x2")
    w.end()
    to = FORMATS[SMALL[name]]
    apart = 4 if name == "e2m1x2" else 8
    word, into = ("b8", np.uint8) if apart == 4 else ("b16", np.uint16)
    d, *operands = s.operands
    give = c.result(d, word)
    if come == "f32":
        x, y = (c.source(o, "f32") for o in operands)

        def step(lanes: Lanes) -> None:
            upper, lower = (converted(v(lanes).astype(np.float64), to, "rn", True, relu) for v in (x, y))
            give(lanes, (upper << np.uint32(apart) | lower).astype(into))

        return step
    (a,) = operands
    read = c.source(a, "b32")
    wide = (lambda bits: bits.view(np.float16)) if come == "f16x2" else (lambda bits: bf16_values(bits.view(np.uint16)))

    def packed(lanes: Lanes) -> None:
        both = converted(wide(read(lanes)).astype(np.float64), to, "rn", True, relu)
        give(lanes, (both[1::2] << np.uint32(apart) | both[0::2]).astype(into))

    return packed


def _of_small(s: Statement, c: Coder) -> Step:
    """cvt.f16x2 of two floats of 8, 6 or 4 bits: each is a value of f16."""
    w = Words(s, c)
    w.need("rn")
    relu = w.flag("relu")
    w.need("f16x2")
    name = w.need(*SMALL)
    w.end()
    of = FORMATS[SMALL[name]]
    apart, word = (4, "b8") if name == "e2m1x2" else (8, "b16")
    values = values_of(of)
    values = np.where(values < 0, 0.0, values) + 0.0 if relu else values
    table = coded(values, F16)
    d, a = s.operands
    to, x, mask = c.result(d, "b32"), c.source(a, word), (1 << of.bits) - 1
    return lambda lanes: to(lanes, table[x(lanes) >> apart & mask] << np.uint32(16) | table[x(lanes) & mask])


def _scales(s: Statement, c: Coder) -> Step:
    """To two ue8m0: the exponent of each, towards zero or up."""
    w = Words(s, c)
    way, satfinite = w.need("rz", "rp"), w.flag("satfinite")
    w.need("ue8m0x2")
    come = w.need("f32", "bf16x2")
    w.end()
    d, *operands = s.operands
    give = c.result(d, "b16")

    def scale(x: np.ndarray) -> np.ndarray:
        size = np.abs(x.astype(np.float64))
        part, exponent = np.frexp(size)  # 0.5 * 2**exponent is 2**(exponent - 1)
        bits = exponent.astype(np.int64) - 1 + 127 + ((part > 0.5) if way == "rp" else 0)
        bits = np.where(size == 0, 0, np.maximum(bits, 0))
        bits = np.where((bits > 254) | np.isinf(size), 254 if satfinite else 255, bits)
        return np.where(np.isnan(x), 255, bits).astype(np.uint16)

    if come == "f32":
        x, y = (c.source(o, "f32") for o in operands)
        return lambda lanes: give(lanes, scale(x(lanes)) << np.uint16(8) | scale(y(lanes)))
    (a,) = operands
    read = c.source(a, "b32")

    def packed(lanes: Lanes) -> None:
        both = scale(bf16_values(read(lanes).view(np.uint16)))
        give(lanes, both[1::2] << np.uint16(8) | both[0::2])

    return packed


def _of_scales(s: Statement, c: Coder) -> Step:
    """cvt.rn.bf16x2.ue8m0x2: powers of two from 2**-127, a subnormal bf16, to 2**127."""
    w = Words(s, c)
    w.need("rn"), w.need("bf16x2"), w.need("ue8m0x2")
    w.end()
    d, a = s.operands
    table = np.append(bf16_bits(np.ldexp(1.0, np.arange(-127, 128))), np.uint16(0x7FFF)).astype(np.uint32)
    to, x = c.result(d, "b32"), c.source(a, "b16")
    return lambda lanes: to(lanes, table[x(lanes) >> 8] << np.uint32(16) | table[x(lanes) & 255])


def _pack(s: Statement, c: Coder) -> Step:
    """cvt.pack.sat: a and b, saturated, behind each other, b lower; of bytes in front of what c holds in its low half."""
    w = Words(s, c, skip=2)
    w.need("sat")
    to = w.need("s16", "u16", "s8", "u8", "u4", "s4", "u2", "s2")
    w.need("s32"), w.one("b32")
    w.end()
    width = int(to[1:])
    d, a, b, *rest = s.operands
    if bool(rest) != (width < 16):
        raise c.unsupported(f"operands of '{s.opcode}'")
    give, x, y = c.result(d, "b32"), c.source(a, "s32"), c.source(b, "s32")
    more = c.source(rest[0], "b32") if rest else None
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if to[0] == "s" else (0, (1 << width) - 1)
    mask = np.uint32((1 << width) - 1)

    def step(lanes: Lanes) -> None:
        one, two = (np.clip(v(lanes), low, high).astype(np.int64).astype(np.uint32) & mask for v in (x, y))
        value = one << np.uint32(width) | two
        if more is not None:
            value = more(lanes) << np.uint32(2 * width) | value
        give(lanes, value)

    return step


# --- from one type to another ---------------------------------------------------------------------------------------


def _plain(s: Statement, c: Coder) -> Step:
    w = Words(s, c)
    whole = w.one("rni", "rzi", "rmi", "rpi")
    way = w.one("rn", "rz", "rm", "rp")
    ftz, sat, relu, satfinite = w.flag("ftz"), w.flag("sat"), w.flag("relu"), w.flag("satfinite")
    to, come = w.type(*INTEGERS, *FLOATS), w.type(*INTEGERS, *FLOATS)
    w.end()
    d, a = s.operands
    if ftz and "f32" not in (to, come):
        raise c.unsupported(f"'{s.opcode}': .ftz without f32")
    if (relu or satfinite) and (to not in ("f16", "bf16") or come != "f32"):
        raise c.unsupported(f"'{s.opcode}'")
    if to in INTEGERS:
        if come in INTEGERS:
            if way or whole:
                raise c.unsupported(f"'{s.opcode}': rounding of an integer")
            return _integer(c, d, a, to, come, sat)
        if not whole:
            raise c.unsupported(f"'{s.opcode}' without a rounding to integers")
        return _to_integer(c, d, a, to, come, whole[:2], ftz)
    if come in INTEGERS:
        if not way:
            raise c.unsupported(f"'{s.opcode}' without a rounding")
        return _of_integer(c, d, a, to, come, way, sat)
    return _float(c, d, a, to, come, way, whole[:2], ftz, sat, relu, satfinite)


def _integer(c: Coder, d, a, to: str, come: str, sat: bool) -> Step:
    give, x, into = c.result(d, to), c.source(a, come), np.dtype(TYPES[to])
    if not sat:
        return lambda lanes: give(lanes, x(lanes).astype(into))
    here, there = np.iinfo(TYPES[come]), np.iinfo(into)
    low, high = max(here.min, there.min), min(here.max, there.max)
    return lambda lanes: give(lanes, np.clip(x(lanes), np.dtype(TYPES[come]).type(low), np.dtype(TYPES[come]).type(high)).astype(into))


def _read(c: Coder, a, come: str) -> Callable[[Lanes], np.ndarray]:
    if come != "bf16":
        return c.source(a, come)
    bits = c.source(a, "b16")
    return lambda lanes: bf16_values(bits(lanes))


def _to_integer(c: Coder, d, a, to: str, come: str, way: str, ftz: bool) -> Step:
    """Limited to the type's range. NaN: zero, or of f64 and to 64 bits the highest bit alone."""
    give, x = c.result(d, to), _read(c, a, come)
    width, into = int(to[1:]), np.dtype(TYPES[to])
    limits = np.iinfo(into)
    below, above = float(limits.min), float(2 ** (width - 1) if to[0] == "s" else 2**width)
    nan = np.uint64(1 << (width - 1)).astype(f"uint{width}").view(into) if come == "f64" or width == 64 else into.type(0)
    change = {"rn": np.rint, "rz": np.trunc, "rm": np.floor, "rp": np.ceil}[way]

    def step(lanes: Lanes) -> None:
        given = x(lanes)
        if ftz:
            given = flushed(given)
        y = change(given.astype(np.float64))
        inside = (y >= below) & (y < above)
        value = np.where(inside, y, 0.0).astype(into)
        if np.count_nonzero(inside) != LANES:
            value = np.where(inside, value, np.where(y >= above, into.type(limits.max), np.where(y < below, into.type(limits.min), nan)))
        give(lanes, value)

    return step


def _of_integer(c: Coder, d, a, to: str, come: str, way: str, sat: bool) -> Step:
    x, exact = c.source(a, come), int(come[1:]) <= 32
    give = c.result(d, f"b{to.lstrip('bf')}")
    if way == "rn" and to in ("f32", "f64") and not sat:
        into, bits = np.dtype(TYPES[to]), f"uint{to[1:]}"
        return lambda lanes: give(lanes, x(lanes).astype(into).view(bits))

    def step(lanes: Lanes) -> None:
        given = x(lanes)
        if exact or (to == "f64" and way == "rn"):
            wide = given.astype(np.float64)
        else:  # more digits than float64 has: one lane after another
            of = FORMATS.get(to)
            digits, least = (of.digits, of.least) if of else (53, -1074)
            wide = np.array([exactly(Fraction(v), digits, least, way) if v else 0.0 for v in given.tolist()])
        give(lanes, _stored(unit(wide) if sat else wide, to, way))

    return step


def _stored(x: np.ndarray, to: str, way: str, satfinite: bool = False, relu: bool = False) -> np.ndarray:
    """The bits of float64 rounded to a type, as unsigned of its width."""
    if to == "f64":
        return x.view(np.uint64)
    of = FORMATS[to]
    return converted(x, of, way, satfinite, relu).astype(f"uint{of.bits}")


def _float(c: Coder, d, a, to: str, come: str, way: str, whole: str, ftz: bool, sat: bool, relu: bool, satfinite: bool) -> Step:
    """Between floats: wider ones exactly, narrower ones rounded, of the same size to integers with an integer rounding."""
    width = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
    if {to, come} == {"f16", "bf16"}:  # of one size, for which no mode is asked; neither holds all values of the other
        way = way or "rn"
    if width[to] < width[come] and not way:
        raise c.unsupported(f"cvt.{to}.{come} without a rounding")
    if whole and to != come:
        raise c.unsupported(f"cvt.{whole}i.{to}.{come}")
    x, give = _read(c, a, come), c.result(d, f"b{to.lstrip('bf')}")
    change = {"rn": np.rint, "rz": np.trunc, "rm": np.floor, "rp": np.ceil}.get(whole)
    if (to, come) == ("bf16", "f32") and way == "rn" and not (ftz or sat or relu or satfinite):
        return lambda lanes: give(lanes, bf16_nearest(x(lanes)).astype(np.uint16))

    def step(lanes: Lanes) -> None:
        given = x(lanes)
        if ftz and come == "f32":
            given = flushed(given)
        wide = given.astype(np.float64)
        if change is not None:
            wide = change(wide)
        if way or sat:
            if way and to != "f64":
                of = FORMATS[to]
                wide = limited(rounded(wide, of, way), of, way, satfinite)
            if sat:
                wide = unit(wide)
        if relu:
            wide = np.where(wide < 0, 0.0, wide) + 0.0
        if ftz and to == "f32":
            wide = np.where(np.abs(wide) < 2.0**-126, np.copysign(0.0, wide), wide)
        give(lanes, wide.view(np.uint64) if to == "f64" else coded(wide, FORMATS[to]).astype(f"uint{FORMATS[to].bits}"))

    return step
