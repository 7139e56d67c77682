"""The types of expressions.

Scalars carry how far they are the same among threads (their `level`) and an interval with a congruence
(`Range`), tiles carry their space and the bracket groups that are still to be indexed.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from cake_core.frozen import frozen
from cake_core.ir.ranges import ANY, Range

if TYPE_CHECKING:
    from cake_core.ir.nodes import TypeExpr


@frozen
class Elem:
    """An element type. `kind` is `int`, `uint`, `float`, `bool` or, of several numbers in one element, `pack`; `bits` its size in memory."""

    name: str
    kind: str
    bits: int

    @property
    def bytes(self) -> int:
        return self.bits // 8

    def __str__(self) -> str:
        return self.name


ELEMENTS = {
    e.name: e
    for e in (
        Elem("f32", "float", 32),
        Elem("f16", "float", 16),
        Elem("bf16", "float", 16),
        Elem("e4m3", "float", 8),
        Elem("e5m2", "float", 8),
        Elem("ue8m0", "float", 8),  # a power of two: the scale of a block
        Elem("e2m1x2", "pack", 8),  # two floats of 4 bits, the first in the low half: only the engine of a product takes them apart
        Elem("i32", "int", 32),
        Elem("u32", "uint", 32),
        Elem("bool", "bool", 8),
    )
}
F32, F16, BF16, I32, U32, BOOL = (ELEMENTS[n] for n in ("f32", "f16", "bf16", "i32", "u32", "bool"))


@frozen
class State(Elem):
    """What a fragment of a type that a plugin defines holds for one row (S13): `topk(10, f32, i32)` is type `topk` with args (10, f32, i32)."""

    type: str = ""
    args: tuple[int | Elem, ...] = ()

    @staticmethod
    def of(type_: str, args: tuple[int | Elem, ...]) -> State:
        return State(f"{type_}({', '.join(map(str, args))})", "state", 32, type_, args)


def element_of(declared: TypeExpr) -> Elem:
    """The elements of a declared buffer or fragment, whose arguments are numbers and names of element types."""
    if not declared.args:
        return ELEMENTS[declared.name]
    return State.of(declared.name, tuple(ELEMENTS[a.id] if hasattr(a, "id") else a.value for a in declared.args))


class Level(IntEnum):
    """Among which threads a value is the same."""

    CTA = 0
    INSTANCE = 1
    WARP = 2
    LANE = 3


@frozen
class Scalar:
    elem: Elem
    level: Level = Level.CTA
    range: Range = ANY

    def __str__(self) -> str:
        return self.elem.name


Dim = "int | Expr"


@frozen
class Tile:
    """Memory or registers with a shape: a tensor parameter, a buffer, or a part of one.

    `groups` are the bracket groups that an index has not consumed yet: `bf16[4][128, 64]` has `((4,), (128, 64))`,
    `a[s]` has `((128, 64),)`. All groups but the last are slots. Dimensions of tensors may be expressions.
    `transposed` is set by `.T`. `axis` and `part` as in `Value`, for register tiles.
    """

    space: str  # "global" for parameters, otherwise the name of a registered space: "shared", "frag", ...
    elem: Elem
    groups: tuple[tuple, ...]
    transposed: bool = False
    axis: str | None = None
    part: str | None = None

    @property
    def shape(self) -> tuple:
        return self.groups[-1]

    @property
    def slots(self) -> tuple:
        return tuple(d for g in self.groups[:-1] for d in g)

    def __str__(self) -> str:
        groups = "".join("[" + ", ".join(map(dim_text, g)) + "]" for g in self.groups)
        return f"{self.space} {self.elem}{groups}"


@frozen
class Value:
    """A register tile that an expression computes: `bf16(acc[:, 0 +: 64])`, `load(X[..])`. Shape is constant.

    `axis` "row" or "col": one-dimensional, lying along the rows or columns of a two-dimensional layout. `part`: the
    operation that the lanes of a row still have to be combined by (a lane-partial tile, S6), else None. A mask has elements of bool.
    `spread`, of a name that a `let` binds: its elements lie over the threads; otherwise every thread holds all of them.
    """

    elem: Elem
    shape: tuple[int, ...]
    axis: str | None = None
    part: str | None = None
    spread: bool = False

    def __str__(self) -> str:
        along = f" over {self.axis}" if self.axis else ""
        partial = f" part {self.part}" if self.part else ""
        return f"{self.elem}[{', '.join(map(str, self.shape))}]{along}{partial} value"


@frozen
class Values:
    """Several results of one function, bound by a tuple assignment."""

    items: tuple[Scalar | Value, ...]

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.items)) + ")"


@frozen
class Product:
    """`a @ b`: only an operation takes it."""

    left: Tile
    right: Tile

    def __str__(self) -> str:
        return f"product of {self.left} and {self.right}"


@frozen
class Barriers:
    """A declared barrier array; indexed it is one barrier (`slots` None)."""

    kind: str
    slots: int | None

    def __str__(self) -> str:
        return self.kind


@frozen
class Named:
    """A name that verbs take and expressions do not: `kind` is pipeline, role, tiles, turn, inline, axis."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} '{self.name}'"


@frozen
class Unknown:
    """The type of a node whose error was reported already: silences what follows from it."""

    def __str__(self) -> str:
        return "unknown"


Type = Scalar | Tile | Value | Values | Product | Barriers | Named | Unknown


def dim_text(dim) -> str:
    if isinstance(dim, int):
        return str(dim)
    from cake_core.ir.printer import expr_text

    return expr_text(dim)
