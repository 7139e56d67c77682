"""Floating-point arithmetic (PTX ISA, Floating Point Instructions; Half Precision Floating Point Instructions; Mixed Precision).

Each result is the exact one rounded once. NaNs of f32, f16 and bf16 are the canonical one (PTX ISA: NaN payloads are not preserved). Operands of
all types are brought to float64, except f32 and f64 rounded to nearest, which numpy computes as the ISA asks.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from cake_core.ptx.emulated import LANES, Coder, Lanes, Step
from cake_core.ptx.forms import Words
from cake_core.ptx.reader import Operand, Statement
from cake_isa.rounding import BF16, F16, F32, exactly, fused, limited, root, rounded, sum_to_odd

WAYS = ("rn", "rz", "rm", "rp")
HALVES = ("f16", "f16x2", "bf16", "bf16x2")
_NAN = np.uint32(0x7FFFFFFF).view(np.float32)
_SUBNORMAL = np.uint32(0x7F800000)
_SIGN = np.uint32(0x80000000)


def canonical(x: np.ndarray) -> np.ndarray:
    """f32 with the canonical NaN; x is written."""
    if (dot := x.dot(x)) != dot:  # squares have no other NaN
        x[np.isnan(x)] = _NAN
    return x


def flushed(x: np.ndarray) -> np.ndarray:
    """f32 whose subnormals are zeros of their sign (PTX ISA, .ftz)."""
    bits = x.view(np.uint32)
    small = bits & _SUBNORMAL == 0
    if np.count_nonzero(small) == 0:
        return x
    return np.where(small, bits & _SIGN, bits).view(np.float32)


def unit(x: np.ndarray) -> np.ndarray:
    """Limited to 0..1, NaN to +0 (PTX ISA, .sat)."""
    return np.where(x > 0, np.minimum(x, 1), 0).astype(x.dtype)


# --- how values of each type come and go ---------------------------------------------------------------------------


def widened(c: Coder, operand: Operand, kind: str) -> Callable[[Lanes], np.ndarray]:
    """Values as float64, exactly; of packed types two a lane, the lower half first: (32,) or (64,)."""
    if kind in ("f32", "f64", "f16"):
        read = c.source(operand, kind)
        return lambda lanes: read(lanes).astype(np.float64)
    if kind == "f16x2":
        read = c.source(operand, "b32")
        return lambda lanes: read(lanes).view(np.float16).astype(np.float64)
    if kind == "f32x2":
        read = c.source(operand, "b64")
        return lambda lanes: read(lanes).view(np.float32).astype(np.float64)
    read = c.source(operand, "b32" if kind == "bf16x2" else "b16")
    return lambda lanes: bf16_values(read(lanes).view(np.uint16)).astype(np.float64)


def bf16_values(bits: np.ndarray) -> np.ndarray:
    """float32 of bf16's bits."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def bf16_bits(values: np.ndarray) -> np.ndarray:
    """The bits of float32 or float64 that are bf16's values; NaN is the canonical one."""
    single = values.astype(np.float32)
    return np.where(np.isnan(single), 0x7FFF, single.view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def narrowed(c: Coder, operand: Operand, kind: str, way: str = "rn") -> Callable[[Lanes, np.ndarray], None]:
    """Rounds values of float64 to the type and stores them."""
    if kind in ("f32", "f32x2"):
        to = c.result(operand, "f32" if kind == "f32" else "b64")

        def single(lanes: Lanes, x: np.ndarray) -> None:
            x = x if way == "rn" else limited(rounded(x, F32, way), F32, way)
            value = canonical(x.astype(np.float32))
            to(lanes, value if kind == "f32" else value.view(np.uint64))

        return single
    if kind in ("f16", "f16x2"):
        to = c.result(operand, "b16" if kind == "f16" else "b32")

        def half(lanes: Lanes, x: np.ndarray) -> None:
            x = x if way == "rn" else limited(rounded(x, F16, way), F16, way)
            bits = np.where(np.isnan(x), np.uint16(0x7FFF), x.astype(np.float16).view(np.uint16))
            to(lanes, bits if kind == "f16" else bits.view(np.uint32))

        return half
    if kind in ("bf16", "bf16x2"):
        to = c.result(operand, "b16" if kind == "bf16" else "b32")

        def brain(lanes: Lanes, x: np.ndarray) -> None:
            bits = bf16_bits(limited(rounded(x, BF16, way), BF16, way))
            to(lanes, bits if kind == "bf16" else bits.view(np.uint32))

        return brain
    raise c.unsupported(f"arithmetic of type .{kind}")


# --- add, sub, mul, fma --------------------------------------------------------------------------------------------


def _sum(x: np.ndarray, y: np.ndarray, way: str) -> np.ndarray:
    total = sum_to_odd(x, y)
    if way == "rm":  # an exact zero of two unlike signs is -0 (IEEE 754, 6.3)
        total = np.where((total == 0) & (np.signbit(x) | np.signbit(y)), -0.0, total)
    return total


def add(s: Statement, c: Coder) -> Step:
    """PTX ISA, add."""
    return _computed(s, c, np.add, lambda way, x, y: _sum(x, y, way), _exact_sum)


def sub(s: Statement, c: Coder) -> Step:
    """PTX ISA, sub."""
    return _computed(s, c, np.subtract, lambda way, x, y: _sum(x, -y, way), lambda way, x, y: _exact_sum(way, x, -y))


def mul(s: Statement, c: Coder) -> Step:
    """PTX ISA, mul."""
    return _computed(s, c, np.multiply, lambda way, x, y: x * y, _exact_product)


def fma(s: Statement, c: Coder) -> Step:
    """PTX ISA, fma: without rounding between product and sum; `.relu` turns what is negative to zero; `.oob`: zero where a factor is the NaN with which
    tensor maps fill what lies outside."""
    if "oob" in s.words:
        return _within(s, c)
    return _computed(s, c, fused, lambda way, x, y, z: _sum(x * y, z, way), _exact_fma, direct=("f32",))


#: The bits of that NaN but for the sign, of f16 and of bf16 (H200, driver 580.159.04, 2026-12-01; the ISA says only that it is a special one).
OUTSIDE = 0x7FF7


def _within(s: Statement, c: Coder) -> Step:
    w = Words(s, c)
    w.need("rn")
    w.need("oob")
    relu, kind = w.flag("relu"), w.type(*HALVES)
    w.end()
    d, *operands = s.operands
    word = "b32" if kind.endswith("x2") else "b16"
    reads, raw, to = [widened(c, o, kind) for o in operands], [c.source(o, word) for o in operands[:2]], narrowed(c, d, kind)

    def step(lanes: Lanes) -> None:
        x, y, z = (r(lanes) for r in reads)
        value = _sum(x * y, z, "rn")
        if relu:
            value = np.where(value < 0, 0.0, value) + 0.0
        a, b = (r(lanes).view(np.uint16) & 0x7FFF == OUTSIDE for r in raw)
        to(lanes, np.where(a | b, 0.0, value))

    return step


def mad(s: Statement, c: Coder) -> Step:
    """PTX ISA, mad of floating-point types: fma, as it is on all targets from sm_20 on."""
    return fma(s, c)


def _computed(s: Statement, c: Coder, plain, wide, exact, direct: tuple[str, ...] = ("f32", "f64")) -> Step:
    """`plain`: of numpy's own type, rounded to nearest; `wide(way, ..)`: of float64 whose result still has to be rounded; `exact(way, ..)`: of one
    lane's f64, rounded."""
    w = Words(s, c)
    way = w.one(*WAYS) or "rn"
    ftz, sat, relu = w.flag("ftz"), w.flag("sat"), w.flag("relu")
    kind = w.type("f32", "f64", "f32x2", *HALVES)
    given = w.one("f16", "bf16")  # mixed: factors or the first summand are of this type
    w.end()
    d, *operands = s.operands
    if sat and kind in ("f64", "f32x2", "bf16", "bf16x2") or relu and kind not in HALVES or ftz and kind in ("f64", "bf16", "bf16x2"):
        raise c.unsupported(f"'{s.opcode}'")
    if given and (kind != "f32" or s.words[0] == "mul") or way != "rn" and kind in HALVES:
        raise c.unsupported(f"'{s.opcode}'")
    if kind in direct and way == "rn" and not given:
        return _plain(c, d, operands, kind, plain, ftz, sat)
    if kind == "f64":
        to, reads = c.result(d, "f64"), [c.source(o, "f64") for o in operands]
        return lambda lanes: to(lanes, _each(lanes, [r(lanes) for r in reads], lambda *v: exact(way, *v)))
    mixed = len(operands) - 1 if given else 0
    reads = [widened(c, o, given if n < mixed else kind) for n, o in enumerate(operands)]
    to = narrowed(c, d, kind, way)
    flush = _flush_wide if ftz and kind in ("f32", "f32x2") else _flush_half if ftz else None

    def step(lanes: Lanes) -> None:
        values = [r(lanes) for r in reads]
        if flush is not None:
            values = [flush(v) for v in values]
        value = wide(way, *values)
        if flush is not None:
            value = flush(limited(rounded(value, F32, way), F32, way) if kind[:3] == "f32" else rounded(value, F16, way))
        if sat:
            value = unit(value)
        if relu:
            value = np.where(value < 0, 0.0, value) + 0.0
        to(lanes, value)

    return step


def _flush_wide(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 2.0**-126, np.copysign(0.0, x), x)


def _flush_half(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 2.0**-14, np.copysign(0.0, x), x)


def _plain(c: Coder, d: Operand, operands, kind: str, change, ftz: bool, sat: bool) -> Step:
    to, reads = c.result(d, kind), [c.source(o, kind) for o in operands]
    if kind == "f64":
        return lambda lanes: to(lanes, change(*[r(lanes) for r in reads]))
    if not ftz and not sat:
        if len(reads) == 2:
            x, y = reads
            return lambda lanes: to(lanes, canonical(change(x(lanes), y(lanes))))
        x, y, z = reads
        return lambda lanes: to(lanes, canonical(change(x(lanes), y(lanes), z(lanes))))

    def step(lanes: Lanes) -> None:
        values = [flushed(r(lanes)) if ftz else r(lanes) for r in reads]
        value = canonical(change(*values))
        value = flushed(value) if ftz else value
        to(lanes, unit(value) if sat else value)

    return step


# --- f64 in directions that numpy has not: one lane after another ---------------------------------------------------


def _each(lanes: Lanes, values: list[np.ndarray], one) -> np.ndarray:
    out = np.zeros(LANES, np.float64)
    for lane in np.flatnonzero(lanes.active).tolist():
        out[lane] = one(*[float(v[lane]) for v in values])
    return out


def _exact_product(way: str, x: float, y: float) -> float:
    value = Fraction(x) * Fraction(y) if _finite(x, y) else None
    return exactly(value, 53, -1074, way) if value else float(np.multiply(x, y))


def _finite(*values: float) -> bool:
    return all(np.isfinite(v) for v in values)


def _exact_sum(way: str, x: float, y: float) -> float:
    if not _finite(x, y):
        return float(np.add(x, y))
    total = Fraction(x) + Fraction(y)
    return exactly(total, 53, -1074, way) if total else (-0.0 if way == "rm" and (np.signbit(x) or np.signbit(y)) else float(x + y))


def _exact_fma(way: str, x: float, y: float, z: float) -> float:
    if not _finite(x, y, z):
        return float(np.multiply(x, y) + z) if not _finite(x, y) else z
    total = Fraction(x) * Fraction(y) + Fraction(z)
    if total:
        return exactly(total, 53, -1074, way)
    signs = np.signbit(np.float64(x)) ^ np.signbit(np.float64(y)), np.signbit(z)
    return -0.0 if all(signs) or (way == "rm" and any(signs)) else 0.0


# --- div, rcp, sqrt, rounded -----------------------------------------------------------------------------------------


def div(s: Statement, c: Coder) -> Step:
    """PTX ISA, div. `.approx`: the quotient rounded to nearest (the ISA allows 2 ulp), 0 or NaN for divisors from 2**126 on, as the ISA says; `.full`:
    the quotient rounded to nearest (2 ulp)."""
    w = Words(s, c)
    how = w.need("approx", "full", *WAYS)
    ftz, kind = w.flag("ftz"), w.type("f32", "f64")
    w.end()
    d, a, b = s.operands
    if kind == "f64" and (ftz or how in ("approx", "full")):
        raise c.unsupported(f"'{s.opcode}'")
    if how == "approx":

        def approximate(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            size = np.abs(y)
            huge = (size > 2.0**126) & (size < np.inf)
            value = x / y
            of_huge = np.where(np.isfinite(x), np.copysign(np.float32(0), value), np.float32(np.nan))
            return np.where(huge, of_huge, value)

        return _plain(c, d, (a, b), kind, approximate, ftz, False)
    if how in ("rn", "full"):
        return _plain(c, d, (a, b), kind, np.divide, ftz, False)
    return _lanes(c, d, (a, b), kind, ftz, np.divide, how, lambda x, y, digits, least: exactly(Fraction(x) / Fraction(y), digits, least, how))


def rcp(s: Statement, c: Coder) -> Step:
    """PTX ISA, rcp. `.approx.f32`: rounded to nearest (1 ulp allowed); `.approx.ftz.f64`: of the upper word of a, rounded to it, the lower word zero."""
    w = Words(s, c)
    how, ftz, kind = w.need("approx", *WAYS), w.flag("ftz"), w.type("f32", "f64")
    w.end()
    d, a = s.operands
    if kind == "f64" and how == "approx":
        return _gross(c, d, a, lambda x: 1 / x)
    if how in ("approx", "rn"):
        return _plain1(c, d, a, kind, lambda x: 1 / x, ftz)
    return _lanes(c, d, (a,), kind, ftz, lambda x: 1 / x, how, lambda x, digits, least: exactly(1 / Fraction(x), digits, least, how))


def sqrt(s: Statement, c: Coder) -> Step:
    """PTX ISA, sqrt. `.approx`: rounded to nearest (the ISA allows a relative error of 2**-23)."""
    w = Words(s, c)
    how, ftz, kind = w.need("approx", *WAYS), w.flag("ftz"), w.type("f32", "f64")
    w.end()
    d, a = s.operands
    if kind == "f64" and how == "approx":
        raise c.unsupported(f"'{s.opcode}'")
    if how in ("approx", "rn"):
        return _plain1(c, d, a, kind, np.sqrt, ftz)
    return _lanes(c, d, (a,), kind, ftz, np.sqrt, how, lambda x, digits, least: root(Fraction(x), digits, least, how))


def _lanes(c: Coder, d: Operand, operands, kind: str, ftz: bool, plain, way: str, exact) -> Step:
    """Lane after lane in a direction; what is not finite or zero as `plain` has it."""
    to, reads = c.result(d, kind), [c.source(o, kind) for o in operands]
    digits, least = (53, -1074) if kind == "f64" else (24, -149)

    def step(lanes: Lanes) -> None:
        values = [flushed(r(lanes)) if ftz else r(lanes) for r in reads]
        value = plain(*values).astype(np.float64)
        for lane in np.flatnonzero(lanes.active).tolist():
            given = [float(v[lane]) for v in values]
            if _finite(*given) and all(given) and value[lane] == value[lane]:  # else as `plain` has it
                value[lane] = exact(*given, digits, least)
        if kind == "f32":
            value = canonical(limited(value, F32, way).astype(np.float32))
        to(lanes, flushed(value) if ftz else value)

    return step


def _plain1(c: Coder, d: Operand, a: Operand, kind: str, change, ftz: bool) -> Step:
    to, x = c.result(d, kind), c.source(a, kind)
    if kind == "f64":
        return lambda lanes: to(lanes, change(x(lanes)))
    if ftz:
        return lambda lanes: to(lanes, flushed(canonical(change(flushed(x(lanes))))))
    return lambda lanes: to(lanes, canonical(change(x(lanes))))


def _gross(c: Coder, d: Operand, a: Operand, change) -> Step:
    to, x = c.result(d, "f64"), c.source(a, "f64")
    upper = np.uint64(0xFFFFFFFF00000000)

    def step(lanes: Lanes) -> None:
        given = (x(lanes).view(np.uint64) & upper).view(np.float64)
        given = np.where(np.abs(given) < 2.0**-1022, np.copysign(0.0, given), given)
        value = change(given)
        value = np.where(np.abs(value) < 2.0**-1022, np.copysign(0.0, value), value)
        bits = value.view(np.uint64)
        to(lanes, np.where(np.isnan(value), np.uint64(0x7FFFFFFF00000000), bits & upper).view(np.float64))

    return step
