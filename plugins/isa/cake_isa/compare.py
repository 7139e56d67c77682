"""Comparisons (PTX ISA, Comparison and Selection Instructions; Half Precision Comparison Instructions).

With a NaN the ordered comparisons of floats do not hold, `ne` among them, and the unordered ones (`equ` to `geu`) do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cake_core.ptx.emulated import Coder, Lanes, Step
from cake_core.ptx.forms import Words
from cake_core.ptx.reader import Pair, Statement
from cake_isa.floats import bf16_values, flushed

_ORDERED = {
    "eq": np.equal,
    "ne": lambda x, y: (x < y) | (x > y),
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "num": lambda x, y: ~np.isnan(x) & ~np.isnan(y),
}
_UNORDERED = {
    "equ": lambda x, y: ~((x < y) | (x > y)),
    "neu": np.not_equal,
    "ltu": lambda x, y: ~(x >= y),
    "leu": lambda x, y: ~(x > y),
    "gtu": lambda x, y: ~(x <= y),
    "geu": lambda x, y: ~(x < y),
    "nan": lambda x, y: np.isnan(x) | np.isnan(y),
}
_WHOLE = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
_JOIN = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
FLOATS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")
TYPES_OF = ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", *FLOATS)


def _comparison(c: Coder, name: str, kind: str, ftz: bool, a, b) -> Callable[[Lanes], np.ndarray]:
    """bool: (32,), of packed types (64,), the lower half of each lane first."""
    if kind in FLOATS:
        change = (_ORDERED | _UNORDERED).get(name)
    else:
        names = {"b": ("eq", "ne"), "u": tuple(_WHOLE), "s": tuple(_WHOLE)[:6]}[kind[0]]
        change = _WHOLE[name] if name in names else None
    if change is None:
        raise c.unsupported(f"comparison .{name} of .{kind}")
    x, y = _values(c, a, kind, ftz), _values(c, b, kind, ftz)
    return lambda lanes: change(x(lanes), y(lanes))


def _values(c: Coder, operand, kind: str, ftz: bool) -> Callable[[Lanes], np.ndarray]:
    if kind in ("f16x2", "bf16x2", "bf16"):
        bits = c.source(operand, "b16" if kind == "bf16" else "b32")
        if kind == "f16x2":
            read = lambda lanes: bits(lanes).view(np.float16)
        else:
            return lambda lanes: bf16_values(bits(lanes).view(np.uint16))
    else:
        read = c.source(operand, kind)
    if not ftz:
        return read
    if kind == "f32":
        return lambda lanes: flushed(read(lanes))
    least = np.float16(2.0**-14)
    return lambda lanes: np.where(np.abs(h := read(lanes)) < least, np.copysign(np.float16(0), h), h)


def _taken(s: Statement, c: Coder):
    """The words of set and setp: (comparison, join, ftz, words)."""
    w = Words(s, c)
    name = w.need(*_ORDERED, *_UNORDERED, *_WHOLE)
    join = w.one(*_JOIN)
    return name, join, w.flag("ftz"), w


def _joined(c: Coder, join: str, rest) -> Callable[[Lanes, np.ndarray], np.ndarray]:
    if bool(join) != (len(rest) == 1):
        raise c.unsupported("a comparison that is joined with a predicate that is not there")
    if not join:
        return lambda lanes, value: value
    other, with_ = c.source(rest[0], "pred"), _JOIN[join]
    return lambda lanes, value: with_(value, other(lanes))


def setp(s: Statement, c: Coder) -> Step:
    """PTX ISA, setp: `p|q, a, b, c`: p is the comparison joined with c, q its opposite joined with c; of packed types p is of the lower half and
    q of the upper one."""
    name, join, ftz, w = _taken(s, c)
    kind = w.type(*TYPES_OF)
    w.end()
    d, a, b, *rest = s.operands
    if ftz and kind not in ("f32", "f16", "f16x2"):
        raise c.unsupported(f"'{s.opcode}'")
    holds, joined = _comparison(c, name, kind, ftz, a, b), _joined(c, join, rest)
    first, second = (d.first, d.second) if isinstance(d, Pair) else (d, None)
    p = c.result(first, "pred")
    packed = kind in ("f16x2", "bf16x2")
    if second is None and not packed:
        if not join:
            return lambda lanes: p(lanes, holds(lanes))
        return lambda lanes: p(lanes, joined(lanes, holds(lanes)))
    q = c.result(second, "pred") if second is not None else None

    def step(lanes: Lanes) -> None:
        value = holds(lanes)
        one, two = (value[0::2], value[1::2]) if packed else (value, ~value)
        one, two = joined(lanes, one), joined(lanes, two)
        p(lanes, one)
        if q is not None:
            q(lanes, two)

    return step


def set(s: Statement, c: Coder) -> Step:
    """PTX ISA, set: all ones or zero, of floating-point types 1.0 or 0.0; of packed types by halves."""
    name, join, ftz, w = _taken(s, c)
    to, kind = w.type("b32", "u32", "s32", "f32", "f16", "f16x2", "bf16", "bf16x2", "u16", "s16"), w.type(*TYPES_OF)
    w.end()
    d, a, b, *rest = s.operands
    holds, joined = _comparison(c, name, kind, ftz, a, b), _joined(c, join, rest)
    packed = kind in ("f16x2", "bf16x2")
    if packed != (to in ("f16x2", "bf16x2")) and not (packed and to in ("b32", "u32", "s32")):
        raise c.unsupported(f"'{s.opcode}'")
    width = 16 if packed or to in ("f16", "bf16", "u16", "s16") else 32
    true = {"f32": 0x3F800000, "f16": 0x3C00, "f16x2": 0x3C00, "bf16": 0x3F80, "bf16x2": 0x3F80}.get(to, (1 << width) - 1)
    element = np.dtype(f"uint{width}")
    give = c.result(d, "b32" if packed else f"b{width}")

    def step(lanes: Lanes) -> None:
        value = holds(lanes)
        if packed and join:
            value = np.stack([joined(lanes, value[0::2]), joined(lanes, value[1::2])], 1).reshape(-1)
        elif join:
            value = joined(lanes, value)
        bits = np.where(value, element.type(true), element.type(0))
        give(lanes, bits.view(np.uint32) if packed else bits)

    return step


def slct(s: Statement, c: Coder) -> Step:
    """PTX ISA, slct: a where c >= 0, else b; a NaN chooses b, -0 chooses a."""
    w = Words(s, c)
    ftz = w.flag("ftz")
    kind, by = w.type("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"), w.type("s32", "f32")
    w.end()
    d, a, b, third = s.operands
    if ftz and by != "f32":
        raise c.unsupported(f"'{s.opcode}'")
    to, x, y, z = c.result(d, kind), c.source(a, kind), c.source(b, kind), c.source(third, by)
    return lambda lanes: to(lanes, np.where((flushed(z(lanes)) if ftz else z(lanes)) >= 0, x(lanes), y(lanes)))
