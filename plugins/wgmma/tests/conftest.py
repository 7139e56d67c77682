"""Typed tiles and one context for check, derive and lower, small enough to read beside a golden."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from types import SimpleNamespace

import pytest
from cake_core.ir.build import op, words
from cake_core.ir.nodes import All, Attr, Binary, Declaration, Expr, Index, Int, Name, Op, Slice, TypeExpr
from cake_core.ir.places import root
from cake_core.ir.ranges import Range, constant
from cake_core.ir.types import BF16, F32, I32, Elem, Level, Product, Scalar, Tile
from cake_core.primitive import Form
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


def frag(name: str, *shape: int, elem: Elem = F32) -> Name:
    return Name(name, type=Tile("frag", elem, (shape,)))


ALL = All()


def part(lo: int | str | Expr, size: int) -> Slice:
    return Slice(lo if isinstance(lo, Expr) else integer(lo), integer(size))


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


def T(tile: Expr) -> Attr:
    return Attr(tile, "T", type=Tile(tile.type.space, tile.type.elem, tile.type.groups, transposed=True))


def wgmma(d: Expr, a: Expr, b: Expr, arrow: str = "+=") -> Op:
    return op("wgmma", d, arrow=arrow, value=Binary("@", a, b, type=Product(a.type, b.type)))


@dataclass
class Context:
    """Names of shared tiles stand for registers with their addresses, which the wrapping entry loads from its parameters."""

    form: Form = Form.DERIVED
    arch: object = None
    cluster_axis: str | None = None
    cluster_size: int = 1
    warps: int = 4
    group: str | None = "warpgroup"
    swizzles: dict[str, int] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)
    layout: str | None = "mma"
    b: Builder = field(default_factory=Builder)
    loaded: dict[str, Reg] = field(default_factory=dict)
    fragments: dict[str, tuple[Reg, ...]] = field(default_factory=dict)

    def declaration(self, name: str) -> Declaration:
        layout = Name(self.layout) if self.layout else None
        return Declaration(name, TypeExpr("bf16"), words(swizzle=self.swizzles.get(name), at=self.offsets.get(name), layout=layout))

    def shared_address(self, expr: Expr) -> Reg:
        name = root(expr).id
        if name not in self.loaded:
            self.loaded[name] = self.b.reg("b32")
        return self.loaded[name]

    def panel(self, expr: Expr) -> tuple[int, int]:
        declared, swizzle = root(expr).type, self.swizzles[root(expr).id]
        return swizzle // declared.elem.bytes, prod(declared.shape[:-1]) * swizzle

    def registers(self, expr: Expr) -> tuple[Reg, ...]:
        name, elem = root(expr).id, expr.type.elem
        if name not in self.fragments:
            n = prod(expr.type.shape) * elem.bits // 32 // 128
            self.fragments[name] = self.b.regs("f32" if elem.bits == 32 else "b32", n)
        return self.fragments[name]

    def constant(self, expr: Expr) -> int:
        return expr.value


def module(cx: Context) -> str:
    """The whole text of an entry: fragments and addresses loaded, what was lowered as one group, results stored."""
    m = Module(
        "8.6",
        "sm_90a",
        "k",
        [EntryParam("out", ".b64 out"), *(EntryParam(n, f".b32 {n}") for n in cx.loaded)],
        (".reqntid 128",),
        builder=cx.b,
    )
    loads = [Instruction("ld.param.b32", (reg, f"[{n}]")) for n, reg in cx.loaded.items()]
    out = cx.b.reg("b64")
    loads.append(Instruction("ld.param.b64", (out, "[out]")))
    held = [r for f in cx.fragments.values() for r in f]
    loads += [Instruction(f"ld.global.{r.kind}", (r, f"[{out}+{4 * i}]")) for i, r in enumerate(held)]
    group = ["wgmma.fence.sync.aligned", *cx.b.body, "wgmma.commit_group.sync.aligned", "wgmma.wait_group.sync.aligned 0"]
    stores = [Instruction(f"st.global.{r.kind}", (f"[{out}+{4 * i}]", r)) for i, r in enumerate(held)]
    cx.b.body = [*loads, *(Instruction(i) if isinstance(i, str) else i for i in group), *stores, Instruction("ret")]
    return m.print()[0]


@pytest.fixture(scope="session")
def assemble(tmp_path_factory):
    """Assembles a PTX text with the real assembler, advisories being errors; skips where none is installed."""
    nvidia = pytest.importorskip("nvidia", reason="no assembler wheel")
    found = [p for root in nvidia.__path__ for p in Path(root).glob("cu*/bin/ptxas")]
    if not found:
        pytest.skip("no assembler wheel")

    def run(ptx: str) -> None:
        folder = tmp_path_factory.mktemp("ptx")
        (folder / "k.ptx").write_text(ptx)
        done = subprocess.run([found[0], "-arch=sm_90a", "k.ptx", "-o", "k.cubin"], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0 and not done.stdout + done.stderr, f"{done.stdout}{done.stderr}\n{ptx}"

    return run


@pytest.fixture
def lowered(assemble):
    """Lower one statement, assemble the entry around it, return its instructions."""

    def run(primitive, statement, **facts) -> list[Instruction]:
        cx = Context(**facts)
        primitive.lower(statement, cx)
        out = list(cx.b.body)
        assemble(module(cx))
        return out

    return run


@pytest.fixture
def ir() -> SimpleNamespace:
    return SimpleNamespace(
        integer=integer, multiple=multiple, shared=shared, frag=frag, part=part, at=at, T=T, wgmma=wgmma, Context=Context, ALL=ALL
    )
