"""Forms of mma.sync: shapes, types, and the words of the instruction (PTX ISA, mma: Syntax, and the tables of shapes of its description)."""

from __future__ import annotations

import re

from cake_core.frozen import frozen
from cake_core.ptx.emulated import Coder
from cake_core.ptx.numbers import BITS
from cake_core.ptx.reader import Statement

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_F8, _F6, _F4 = ("e4m3", "e5m2"), ("e3m2", "e2m3"), ("e2m1",)
_SMALL = (*_F8, *_F6, *_F4)
_F32, _EITHER = ("f32",), ("f16", "f32")

#: (M, K) and the types of a result, by the type of the factors; N is 8.
SHAPES: dict[str, tuple[set[tuple[int, int]], tuple[str, ...]]] = {
    "f16": ({(16, 8), (16, 16)}, _EITHER),
    "bf16": ({(16, 8), (16, 16)}, _F32),
    "tf32": ({(16, 4), (16, 8)}, _F32),
    "f64": ({(8, 4), (16, 4), (16, 8), (16, 16)}, ("f64",)),
    **dict.fromkeys(_F8, ({(16, 16), (16, 32)}, _EITHER)),
    **dict.fromkeys(("s8", "u8"), ({(8, 16), (16, 16), (16, 32)}, ("s32",))),
    **dict.fromkeys(("s4", "u4"), ({(8, 32), (16, 32), (16, 64)}, ("s32",))),
    "b1": ({(8, 128), (16, 128), (16, 256)}, ("s32",)),
}
#: Factors that may differ.
FAMILIES = (_F8, ("s8", "u8"), ("s4", "u4"))
#: By kind: types of the factors, K, and the types of a result (PTX ISA, mma with `.kind`).
KINDS: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    "f8f6f4": (_SMALL, 32, _EITHER),
    "mxf8f6f4": (_SMALL, 32, _F32),
    "mxf4": (_F4, 64, _F32),
    "mxf4nvf4": (_F4, 64, _F32),
}
#: Scales a row, and their types, by kind (PTX ISA, Block Scaling for mma.sync: Valid combinations of .scale_vec_size and .kind).
SCALES: dict[str, set[tuple[int, str]]] = {
    "mxf8f6f4": {(1, "ue8m0")},
    "mxf4": {(2, "ue8m0")},
    "mxf4nvf4": {(2, "ue8m0"), (4, "ue8m0"), (4, "ue4m3")},
}
#: Scales a row where no size is written.
DEFAULT = {"mxf8f6f4": 1, "mxf4": 2}


@frozen
class Form:
    """`m`, `k`; words of PTX for the types; `wide`: elements of 4 and 6 bits have a byte each. `scales` a row and their type `scale`: 0 and '' without.
    `bits`: `and` or `xor` of b1."""

    m: int
    k: int
    d: str
    a: str
    b: str
    c: str
    wide: bool = False
    scales: int = 0
    scale: str = ""
    bits: str = ""
    satfinite: bool = False

    @property
    def word(self) -> str:
        """The type of a register of a factor."""
        return "f64" if self.a == "f64" else "b32"

    @property
    def words(self) -> int:
        """Registers that hold a row of a factor: 4 lanes of one or more."""
        bits = 8 if self.wide else BITS[self.a]
        return self.k * bits // (64 if self.a == "f64" else 32)


def form_of(s: Statement, c: Coder) -> Form:
    """Raises `unsupported`."""
    words = list(s.words[1:])
    for word in ("sync", "aligned", "row", "col"):
        if word not in words:
            raise c.unsupported("sparse products (`.sp`)" if any(w.startswith("sp") for w in words) else f"a form without `.{word}`")
        words.remove(word)
    if "row" in words or "col" in words:
        raise c.unsupported("other layouts than `.row.col`")
    kind = _taken(words, "kind::")
    vector = _taken(words, "scale_vec::")
    scaled, satfinite = "block_scale" in words, "satfinite" in words
    words = [w for w in words if w not in ("block_scale", "satfinite")]
    shape = _SHAPE.fullmatch(words[0]) if words else None
    if shape is None or len(words) < 5:
        raise c.unsupported(f"the words of '{s.opcode}'")
    m, n, k = (int(x) for x in shape.groups())
    d, a, b, acc, *rest = words[1:]
    if n != 8:
        raise c.unsupported(f"the shape {words[0]}")
    if kind:
        return _of_kind(c, kind, vector, scaled, (m, k), (d, a, b, acc), rest)
    if scaled or vector:
        raise c.unsupported("block scales without a kind")
    if a not in SHAPES or (a != b and not any(a in f and b in f for f in FAMILIES)):
        raise c.unsupported(f"factors of {a} and {b}")
    shapes, results = SHAPES[a]
    if (m, k) not in shapes or d not in results or acc not in results:
        raise c.unsupported(f"the shape {words[0]} of {a} and {b} with {d} and {acc}")
    if (a, k) == ("f16", 8) and d != acc:
        raise c.unsupported(f"m16n8k8 of f16 with {d} and {acc}, which have to be one")
    bits = ""
    if a == "b1":
        if len(rest) != 2 or rest[0] not in ("and", "xor") or rest[1] != "popc":
            raise c.unsupported(f"the operation '{'.'.join(rest)}' on bits")
        bits, rest = rest[0], []
    if rest or (satfinite and (d != "s32" or a == "b1")):
        raise c.unsupported(f"the words of '{s.opcode}'")
    return Form(m, k, d, a, b, acc, bits=bits, satfinite=satfinite)


def _of_kind(c: Coder, kind: str, vector: str, scaled: bool, shape: tuple[int, int], types: tuple[str, ...], rest: list[str]) -> Form:
    if kind not in KINDS:
        raise c.unsupported(f"the kind '{kind}'")
    factors, k, results = KINDS[kind]
    d, a, b, acc = types
    if shape != (16, k) or a not in factors or b not in factors or d not in results or acc not in results:
        raise c.unsupported(f"m{shape[0]}n8k{shape[1]} of {a} and {b} with {d} and {acc} in kind {kind}")
    wide = k == 32
    if kind == "f8f6f4":
        if scaled or vector or rest:
            raise c.unsupported("block scales of kind f8f6f4")
        return Form(*shape, d, a, b, acc, wide=True)
    count = int(vector.removesuffix("X")) if vector.removesuffix("X").isdecimal() else DEFAULT.get(kind, 0)
    if not scaled or len(rest) != 1 or (count, rest[0]) not in SCALES[kind]:
        raise c.unsupported(f"{count} scales a row of {'.'.join(rest) or 'no type'} in kind {kind}")
    return Form(*shape, d, a, b, acc, wide=wide, scales=count, scale=rest[0])


def _taken(words: list[str], prefix: str) -> str:
    """What stands behind a prefix, and the word is gone."""
    for word in words:
        if word.startswith(prefix):
            words.remove(word)
            return word.removeprefix(prefix)
    return ""
