"""Functions that the machine approximates, and floats by their bits (PTX ISA, Floating Point Instructions: rsqrt to tanh, min, max, neg, abs,
copysign, testp).

The ISA bounds the errors and leaves the values open. Chosen: the true value, computed in float64 and rounded to nearest, which is within each bound.
"""

from __future__ import annotations

import numpy as np

from cake_core.ptx.emulated import TYPES, Coder, Lanes, Step
from cake_core.ptx.forms import Words
from cake_core.ptx.reader import Statement
from cake_core.ptx.reductions import of_numbers
from cake_isa.floats import HALVES, _gross, canonical, flushed, narrowed, widened

_KINDS = {**{k: k for k in ("f32", "f64", "f16", "bf16")}, "f16x2": "f16", "bf16x2": "bf16"}


def _approximated(s: Statement, c: Coder, change, kinds: tuple[str, ...]) -> Step:
    """`.approx{.ftz}.type d, a`."""
    w = Words(s, c)
    w.need("approx")
    ftz, kind = w.flag("ftz"), w.type(*kinds)
    w.end()
    d, a = s.operands
    if kind != "f32":
        to, x = narrowed(c, d, kind), widened(c, a, kind)
        tiny = {"f16": 2.0**-14, "bf16": 2.0**-126}[_KINDS[kind]] if ftz else 0.0

        def half(lanes: Lanes) -> None:
            given = x(lanes)
            value = change(np.where(np.abs(given) < tiny, np.copysign(0.0, given), given))
            to(lanes, np.where(np.abs(value) < tiny, np.copysign(0.0, value), value))

        return half
    to, x = c.result(d, "f32"), c.source(a, "f32")
    if ftz:
        return lambda lanes: to(lanes, flushed(canonical(change(flushed(x(lanes)).astype(np.float64)).astype(np.float32))))
    return lambda lanes: to(lanes, canonical(change(x(lanes).astype(np.float64)).astype(np.float32)))


def rsqrt(s: Statement, c: Coder) -> Step:
    """PTX ISA, rsqrt: relative error at most 2**-22.9; `.ftz.f64`: of the upper word, to the upper word. Of `.approx.f64` no bound is given; it is the
    quotient and the root, each rounded."""
    if s.words[-1] == "f64":
        w = Words(s, c)
        w.need("approx"), w.type("f64")
        gross = w.flag("ftz")
        w.end()
        d, a = s.operands
        if gross:
            return _gross(c, d, a, lambda x: 1 / np.sqrt(x))
        to, x = c.result(d, "f64"), c.source(a, "f64")
        return lambda lanes: to(lanes, 1 / np.sqrt(x(lanes)))
    return _approximated(s, c, lambda x: 1 / np.sqrt(x), ("f32",))


def sin(s: Statement, c: Coder) -> Step:
    """PTX ISA, sin: absolute error at most 2**-20.5 in -2 pi..2 pi."""
    return _approximated(s, c, np.sin, ("f32",))


def cos(s: Statement, c: Coder) -> Step:
    """PTX ISA, cos: absolute error at most 2**-20.5 in -2 pi..2 pi."""
    return _approximated(s, c, np.cos, ("f32",))


def lg2(s: Statement, c: Coder) -> Step:
    """PTX ISA, lg2: absolute error at most 2**-22 in 0.5..2, relative 2**-22 elsewhere."""
    return _approximated(s, c, np.log2, ("f32",))


def ex2(s: Statement, c: Coder) -> Step:
    """PTX ISA, ex2: at most 2 ulp from the rounded result; of f16 a relative error of at most 2**-9.9, of bf16 2**-7."""
    return _approximated(s, c, np.exp2, ("f32", *HALVES))


def tanh(s: Statement, c: Coder) -> Step:
    """PTX ISA, tanh: relative error at most 2**-11; of f16 absolute 2**-10.987, of bf16 2**-8."""
    return _approximated(s, c, np.tanh, ("f32", *HALVES))


# --- by bits -------------------------------------------------------------------------------------------------------


def _halves(kind: str) -> tuple[str, int]:
    """The type of numpy of one element's bits, and its width."""
    width = {"f64": 64, "f32": 32}.get(kind, 16)
    return f"uint{width}", width


def _bits(kind: str) -> str:
    return {"f64": "b64", "f32": "b32", "f16x2": "b32", "bf16x2": "b32"}.get(kind, "b16")


def _ftz(c: Coder, s: Statement, kind: str, ftz: bool) -> float:
    """What is smaller is flushed, with `.ftz`."""
    if ftz and kind not in ("f32", "f16", "f16x2"):
        raise c.unsupported(f"'{s.opcode}'")
    return {"f32": 2.0**-126}.get(kind, 2.0**-14) if ftz else 0.0


def neg(s: Statement, c: Coder) -> Step:
    """PTX ISA, neg: the sign is turned, of a NaN too."""
    return _signed(s, c, lambda bits, sign: bits ^ sign)


def absolute(s: Statement, c: Coder) -> Step:
    """PTX ISA, abs: the sign is cleared, of a NaN too."""
    return _signed(s, c, lambda bits, sign: bits & ~sign)


def _signed(s: Statement, c: Coder, change) -> Step:
    w = Words(s, c)
    ftz, kind = w.flag("ftz"), w.type("f32", "f64", *HALVES)
    w.end()
    d, a = s.operands
    word = _bits(kind)
    element, width = _halves(kind)
    sign = np.dtype(element).type(1 << (width - 1))
    to, x, whole = c.result(d, word), c.source(a, word), TYPES[word]
    if _ftz(c, s, kind, ftz):
        exponent = np.dtype(element).type({32: 0x7F800000, 16: 0x7C00}[width])

        def step(lanes: Lanes) -> None:
            bits = x(lanes).view(element)
            bits = np.where(bits & exponent == 0, bits & sign, bits)
            to(lanes, change(bits, sign).view(whole))

        return step
    return lambda lanes: to(lanes, change(x(lanes).view(element), sign).view(whole))


def copysign(s: Statement, c: Coder) -> Step:
    """PTX ISA, copysign: the sign of a and the rest of b."""
    w = Words(s, c)
    kind = w.type("f32", "f64")
    w.end()
    d, a, b = s.operands
    word = _bits(kind)
    sign = np.dtype(TYPES[word]).type(1 << (int(kind[1:]) - 1))
    to, x, y = c.result(d, word), c.source(a, word), c.source(b, word)
    return lambda lanes: to(lanes, x(lanes) & sign | y(lanes) & ~sign)


_TESTS = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda x: ~np.isnan(x),
    "notanumber": np.isnan,
    "normal": lambda x: np.isfinite(x) & ((np.abs(x) >= np.finfo(x.dtype).tiny) | (x == 0)),
    "subnormal": lambda x: (np.abs(x) < np.finfo(x.dtype).tiny) & (x != 0),
}


def testp(s: Statement, c: Coder) -> Step:
    """PTX ISA, testp: zeros are normal (H200, driver 580.159.04, 2026-12-01)."""
    w = Words(s, c)
    test, kind = _TESTS[w.need(*_TESTS)], w.type("f32", "f64")
    w.end()
    d, a = s.operands
    to, x = c.result(d, "pred"), c.source(a, kind)
    return lambda lanes: to(lanes, test(x(lanes)))


# --- min and max ---------------------------------------------------------------------------------------------------


def least(s: Statement, c: Coder) -> Step:
    """PTX ISA, min: -0 is less than +0; the other operand where one is NaN, or NaN with `.NaN`; `.xorsign.abs`: the lesser size with the signs' xor;
    three operands: without `.xorsign`, with or without `.abs`."""
    return _chosen(s, c, of_numbers(np.minimum), np.minimum, np.bitwise_or)


def greatest(s: Statement, c: Coder) -> Step:
    """PTX ISA, max."""
    return _chosen(s, c, of_numbers(np.maximum), np.maximum, np.bitwise_and)


def pick(x: np.ndarray, y: np.ndarray, choose, join) -> np.ndarray:
    """The lesser or greater of floats. `join`: of the bits of equal ones, which are the same but for zeros of two signs."""
    value = choose(x, y)
    if np.count_nonzero(value) == value.size:
        return value
    bits = f"uint{8 * value.dtype.itemsize}"
    return np.where(x == y, join(x.view(bits), y.view(bits)), value.view(bits)).view(value.dtype)


def _chosen(s: Statement, c: Coder, quiet, strict, join) -> Step:
    w = Words(s, c)
    ftz, nan = w.flag("ftz"), w.flag("NaN")
    xorsign, size = w.flag("xorsign"), w.flag("abs")
    kind = w.type("f32", "f64", *HALVES)
    w.end()
    d, *operands = s.operands
    if xorsign != size if len(operands) == 2 else xorsign or kind != "f32":
        raise c.unsupported(f"'{s.opcode}' of {len(operands)} operands")
    choose = strict if nan else quiet
    if kind == "f32" and not (ftz or xorsign or size) and len(operands) == 2:
        to, x, y = c.result(d, "f32"), c.source(operands[0], "f32"), c.source(operands[1], "f32")
        return lambda lanes: to(lanes, canonical(pick(x(lanes), y(lanes), choose, join)))
    if kind == "f64" and (ftz or nan or xorsign or size):
        raise c.unsupported(f"'{s.opcode}'")
    tiny = _ftz(c, s, kind, ftz)
    if kind == "f64":
        to, x, y = c.result(d, "f64"), c.source(operands[0], "f64"), c.source(operands[1], "f64")
        return lambda lanes: to(lanes, pick(x(lanes), y(lanes), choose, join))
    reads, give = [widened(c, o, kind) for o in operands], narrowed(c, d, kind)

    def step(lanes: Lanes) -> None:
        values = [r(lanes) for r in reads]
        if tiny:
            values = [np.where(np.abs(v) < tiny, np.copysign(0.0, v), v) for v in values]
        signs = np.signbit(values[0]) ^ np.signbit(values[1]) if xorsign else None
        if size:
            values = [np.abs(v) for v in values]
        value = values[0]
        for other in values[1:]:
            value = pick(value, other, choose, join)
        if signs is not None:
            value = np.where(~np.isnan(value), np.copysign(value, np.where(signs, -1.0, 1.0)), value)
        give(lanes, value)

    return step
