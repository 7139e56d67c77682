"""Typed tiles, a derive context and a lowering context, small enough to read beside a golden."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from cake_core.ir.build import words
from cake_core.ir.nodes import All, Declaration, Expr, Index, Int, Name, Slice, TypeExpr
from cake_core.ir.places import root
from cake_core.ir.ranges import Range, constant
from cake_core.ir.types import BF16, I32, Barriers, Elem, Level, Scalar, Tile
from cake_core.primitive import Form, HandOff
from cake_core.ptx.builder import Builder, Instruction, Reg
from cake_core.ptx.module import EntryParam, Module


def integer(value: int | str, r: Range | None = None) -> Expr:
    if isinstance(value, int):
        return Int(value, type=Scalar(I32, Level.CTA, constant(value)))
    return Name(value, type=Scalar(I32, Level.INSTANCE, r or Range(0, None)))


def multiple(name: str, of: int) -> Expr:
    """A name whose value is a multiple of `of`."""
    return integer(name, Range(0, None, of, 0))


def shared(name: str, *groups: tuple[int, ...], elem: Elem = BF16) -> Name:
    return Name(name, type=Tile("shared", elem, groups))


def tensor(name: str, *dims, elem: Elem = BF16) -> Name:
    return Name(name, type=Tile("global", elem, (tuple(integer(d) if isinstance(d, str) else d for d in dims),)))


ALL = All()


def part(lo: int | str | Expr, size: int) -> Slice:
    """A name starts at a multiple of the size."""
    return Slice(multiple(lo, size) if isinstance(lo, str) else lo if isinstance(lo, Expr) else integer(lo), integer(size))


def at(base: Expr, *indices) -> Index:
    """`base[indices]` with its type, as elaboration gives it."""
    given = tuple(integer(i) if isinstance(i, int | str) else i for i in indices)
    tile: Tile = base.type
    if len(tile.groups) > 1:
        return Index(base, given, type=Tile(tile.space, tile.elem, tile.groups[1:]))
    sizes = tuple(
        d if isinstance(i, All) else i.size.value for i, d in zip(given, tile.groups[0], strict=True) if isinstance(i, All | Slice)
    )
    return Index(base, given, type=Tile(tile.space, tile.elem, (sizes,)))


def barrier(name: str, slot: str = "s") -> Index:
    return Index(Name(name, type=Barriers("mbarrier", 4)), (integer(slot),), type=Barriers("mbarrier", None))


@dataclass
class Context:
    """Check, derive and lower in one. Names stand for registers that the wrapping entry loads from its parameters."""

    form: Form = Form.DERIVED
    arch: object = None
    cluster_axis: str | None = "m"
    cluster_size: int = 2
    swizzles: dict[str, int] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)
    in_pipeline: bool = True
    b: Builder = field(default_factory=Builder)
    loaded: dict[str, Reg] = field(default_factory=dict)
    maps: list = field(default_factory=list)

    def declaration(self, name: str) -> Declaration:
        return Declaration(name, TypeExpr("bf16"), words(swizzle=self.swizzles.get(name), at=self.offsets.get(name)))

    def hand_off(self, place: Expr) -> HandOff | None:
        return HandOff("ab", barrier("ab_full"), integer("s")) if self.in_pipeline else None

    def swizzle(self, name: str) -> int:
        return self.swizzles.get(name, 0)

    def load(self, name: str, kind: str = "b32") -> Reg:
        if name not in self.loaded:
            self.loaded[name] = self.b.reg(kind)
        return self.loaded[name]

    def tensor_map(self, tensor: Expr, box, swizzle: int) -> Reg:
        self.maps.append((tensor.id, box, swizzle))
        return self.load(f"map_{tensor.id}", "b64")

    def coordinates(self, expr: Index):
        return tuple(self.value(i.lo if isinstance(i, Slice) else i) for i in expr.indices)

    def shared_address(self, expr: Expr) -> Reg:
        return self.load(root(expr).id)

    def barrier(self, expr: Index) -> Reg:
        return self.load(expr.base.id)

    def value(self, expr: Expr):
        return expr.value if isinstance(expr, Int) else self.load(expr.id)

    def constant(self, expr: Expr) -> int:
        return expr.value


def module(cx: Context) -> str:
    """The whole text of an entry around what was lowered."""
    m = Module("8.6", "sm_90a", "k", [EntryParam(n, f".{r.kind} {n}") for n, r in cx.loaded.items()], builder=cx.b)
    loads = [Instruction(f"ld.param.{r.kind}", (r, f"[{n}]")) for n, r in cx.loaded.items()]
    m.builder.body = [*loads, *cx.b.body, Instruction("ret")]
    return m.print()[0]


@pytest.fixture(scope="session")
def assemble(tmp_path_factory):
    """Assembles a PTX text with the real assembler; skips where none is installed."""
    nvidia = pytest.importorskip("nvidia", reason="no assembler wheel")
    found = [p for root in nvidia.__path__ for p in Path(root).glob("cu*/bin/ptxas")]
    if not found:
        pytest.skip("no assembler wheel")

    def run(ptx: str) -> None:
        folder = tmp_path_factory.mktemp("ptx")
        (folder / "k.ptx").write_text(ptx)
        done = subprocess.run([found[0], "-arch=sm_90a", "k.ptx", "-o", "k.cubin"], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, f"{done.stderr}\n{ptx}"

    return run


@pytest.fixture
def lowered(assemble):
    """Lower one statement, assemble the entry around it, return its lines and the tensor maps asked for."""

    def run(primitive, statement, **facts):
        cx = Context(**facts)
        primitive.lower(statement, cx)
        lines = [str(i) for i in cx.b.body]
        assemble(module(cx))
        return lines, cx.maps

    return run


@pytest.fixture
def ir() -> SimpleNamespace:
    return SimpleNamespace(
        integer=integer, multiple=multiple, shared=shared, tensor=tensor, part=part, at=at, barrier=barrier, Context=Context, ALL=ALL
    )
