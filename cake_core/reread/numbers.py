"""Integer instructions on numbers: registers hold bits as numbers from 0 on, predicates hold truth values, None is what is not known.

Written from the PTX ISA, Integer Arithmetic, Comparison and Selection, Logic and Shift, and Data Movement and Conversion Instructions. A float
is never known.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

#: What one instruction computes from the values of its sources; it is asked only where all of them are known.
Function = Callable[..., "int | bool | None"]

_COMPARE = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip
#: What a generic address of a parameter has beside the one in its own space.
GENERIC = 1 << 60
_JOIN = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}

#: Instructions of the base language by the first word of their opcode: they move and compute numbers and do nothing to barriers.
PLAIN = frozenset(
    """abs add addc and bfe bfi bfind bmsk brev clz cnot copysign cos createpolicy cvt cvta discard div dp2a dp4a ex2 fma fns getctarank isspacep ld
    ldu lg2 lop3 mad mad24 max min mov mul mul24 neg not or popc prefetch prefetchu prmt rcp red rem rsqrt sad selp set setp shf shfl shl
    shr sin slct sqrt st sub subc szext tanh testp vote xor activemask nanosleep pmevent atom match applypriority istypep""".split()  # noqa: SIM905
)
#: Those of them that have no result in front.
NO_RESULT = frozenset(("st", "red", "discard", "prefetch", "prefetchu", "nanosleep", "pmevent", "applypriority"))


def bits_of(word: str) -> int | None:
    """The width of an integer type, None of any other word."""
    return int(word[1:]) if word[:1] in ("b", "s", "u") and word[1:] in ("8", "16", "32", "64") else None


def types_of(words: tuple[str, ...]) -> list[str]:
    return [w for w in words[1:] if bits_of(w) or w == "pred"]


def function_of(words: tuple[str, ...]) -> tuple[Function, int] | None:
    """What an opcode computes, and how wide an immediate source is; None where it is not known here, or of floats."""
    root, types = words[0], types_of(words)
    if not types or any(w[0] == "f" and w[1:].isdigit() or w in ("bf16", "f16x2", "bf16x2", "tf32") for w in words[1:]):
        return None
    kind = types[-1]
    if kind == "pred":
        return {"not": (operator.not_, 1), "mov": (_same, 1)}.get(root)
    width = bits_of(kind)
    made = _MAKERS.get(root)
    return None if made is None else _with(made(words, kind, width), width)


def _with(function: Function | None, width: int) -> tuple[Function, int] | None:
    return None if function is None else (function, width)


def _same(a):
    return a


def _signed(width: int) -> Callable[[int], int]:
    top = 1 << width - 1
    return lambda a: (a ^ top) - top


def _arithmetic(act: Callable[[int, int], int]):
    def make(words: tuple[str, ...], kind: str, width: int) -> Function | None:
        if len(words) != 2:  # carries and saturation
            return None
        mask = (1 << width) - 1
        return lambda a, b: act(a, b) & mask

    return make


def _multiply(words: tuple[str, ...], kind: str, width: int) -> Function | None:
    mask, wide = (1 << width) - 1, (1 << 2 * width) - 1
    value = _signed(width) if kind[0] == "s" else _same
    match words[1]:
        case "lo":
            return lambda a, b: a * b & mask
        case "wide":
            return lambda a, b: value(a) * value(b) & wide
        case "hi":
            return lambda a, b: value(a) * value(b) >> width & mask
    return None


def _multiply_add(words: tuple[str, ...], kind: str, width: int) -> Function | None:
    product, mask = _multiply(words, kind, width), (1 << (2 * width if words[1] == "wide" else width)) - 1
    return None if product is None else lambda a, b, c: product(a, b) + c & mask


def _choose(which: Callable[[int, int], int]):
    def make(words: tuple[str, ...], kind: str, width: int) -> Function | None:
        if len(words) != 2:
            return None
        if kind[0] != "s":
            return which
        value, mask = _signed(width), (1 << width) - 1
        return lambda a, b: which(value(a), value(b)) & mask

    return make


def _divide(remainder: bool):
    def make(words: tuple[str, ...], kind: str, width: int) -> Function:
        value, mask = (_signed(width) if kind[0] == "s" else _same), (1 << width) - 1

        def divide(a: int, b: int) -> int | None:
            if not b:  # "unspecified, machine-specific value"
                return None
            x, y = value(a), value(b)
            q = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            return (x - q * y if remainder else q) & mask

        return divide

    return make


def _shift(left: bool):
    def make(words: tuple[str, ...], kind: str, width: int) -> Function:
        value, mask = (_signed(width) if kind[0] == "s" else _same), (1 << width) - 1
        if left:
            return lambda a, b: a << min(b, width) & mask
        return lambda a, b: value(a) >> min(b, width) & mask

    return make


def _unary(act: Callable[[int], int]):
    def make(words: tuple[str, ...], kind: str, width: int) -> Function:
        value, mask = (_signed(width) if kind[0] == "s" else _same), (1 << width) - 1
        return lambda a: act(value(a)) & mask

    return make


def _convert(words: tuple[str, ...], kind: str, width: int) -> Function | None:
    types = types_of(words)
    if len(words) != 3 or len(types) != 2:
        return None
    mask, value = (1 << bits_of(types[0])) - 1, _signed(width) if kind[0] == "s" else _same
    return lambda a: value(a) & mask


def _address(words: tuple[str, ...], kind: str, width: int) -> Function:
    """Of a parameter the generic address is another number, so that one that was not converted shows; all other spaces are taken for one."""
    return (lambda a: a | GENERIC) if words[1] == "param" else _same


def _compare(words: tuple[str, ...], kind: str, width: int) -> Function | None:
    act = _COMPARE.get(words[1])
    if act is None:
        return None
    signed = kind[0] == "s" and words[1] not in ("eq", "ne")
    top = 1 << width - 1
    if len(words) == 4:
        join = _JOIN.get(words[2])
        if join is None:
            return None
        return (lambda a, b, c: join(act(a ^ top, b ^ top), bool(c))) if signed else (lambda a, b, c: join(act(a, b), bool(c)))
    return (lambda a, b: act(a ^ top, b ^ top)) if signed else act


_MAKERS: dict[str, Callable[[tuple[str, ...], str, int], Function | None]] = {
    "add": _arithmetic(operator.add),
    "sub": _arithmetic(operator.sub),
    "and": _arithmetic(operator.and_),
    "or": _arithmetic(operator.or_),
    "xor": _arithmetic(operator.xor),
    "mul": _multiply,
    "mad": _multiply_add,
    "min": _choose(min),
    "max": _choose(max),
    "div": _divide(False),
    "rem": _divide(True),
    "shl": _shift(True),
    "shr": _shift(False),
    "not": _unary(operator.invert),
    "neg": _unary(operator.neg),
    "abs": _unary(abs),
    "mov": lambda words, kind, width: _same,
    "cvta": _address,
    "cvt": _convert,
    "setp": _compare,
}
