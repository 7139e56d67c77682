"""Typed nodes, a derive context and a lowering context, small enough to read beside a golden."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest
from cake_core.ir.build import op, words
from cake_core.ir.nodes import Declaration, Expr, Index, Int, Name, TypeExpr
from cake_core.ir.ranges import Range, constant
from cake_core.ir.types import I32, Barriers, Level, Scalar
from cake_core.primitive import Form
from cake_core.ptx.builder import Builder, Instruction, Reg
from cake_core.ptx.module import EntryParam, Module


def integer(value: int | str, r: Range | None = None) -> Expr:
    """A typed integer: a literal, or a name with a range."""
    if isinstance(value, int):
        return Int(value, type=Scalar(I32, Level.CTA, constant(value)))
    return Name(value, type=Scalar(I32, Level.INSTANCE, r or Range(0, None)))


def barrier(name: str, slots: int | None = None, slot: Expr | None = None) -> Expr:
    array = Name(name, type=Barriers("mbarrier", slots))
    return array if slot is None else Index(array, (slot,), type=Barriers("mbarrier", None))


@dataclass
class Check:
    form: Form = Form.DERIVED
    arch: object = field(default_factory=lambda: SimpleNamespace(limit={"named_barriers": 16}.__getitem__, capabilities={"cluster", "mbarrier", "transaction_barrier"}))
    cluster_axis: str | None = "m"
    cluster_size: int = 2
    counts: dict[str, int] = field(default_factory=dict)

    def declaration(self, name: str) -> Declaration | None:
        if name not in self.counts:
            return None
        return Declaration(name, TypeExpr("mbarrier", ((Int(4),),)), words(count=self.counts[name]))


@dataclass
class Derive:
    role: str = "math"
    warps: int = 4
    instances: int = 2
    fences: tuple = (op("fence.proxy.async"),)
    asked: list = field(default_factory=list)

    def pending_fences(self):
        return self.fences

    def named_barrier(self, scope: str):
        self.asked.append(scope)
        return (integer(1), 32 * self.warps * (self.instances if scope == "role" else 1))


@dataclass
class Lower(Check):
    """Names stand for registers that the wrapping entry loads from its parameters."""

    b: Builder = field(default_factory=Builder)
    loaded: dict[str, Reg] = field(default_factory=dict)

    def load(self, name: str) -> Reg:
        if name not in self.loaded:
            self.loaded[name] = self.b.reg("b32")
        return self.loaded[name]

    def barrier(self, expr: Expr) -> Reg:
        return self.load(expr.id if isinstance(expr, Name) else expr.base.id)

    def value(self, expr: Expr):
        return expr.value if isinstance(expr, Int) else self.load(expr.id)

    def constant(self, expr: Expr) -> int:
        return expr.value


def module(cx: Lower) -> str:
    """The whole text of an entry around what was lowered."""
    m = Module("8.6", "sm_90a", "k", [EntryParam(n, f".b32 {n}") for n in cx.loaded], builder=cx.b)
    loads = [Instruction("ld.param.b32", (reg, f"[{n}]")) for n, reg in cx.loaded.items()]
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
    """Lower one statement, assemble the entry around it, return its lines."""

    def run(primitive, statement, **facts) -> list[str]:
        cx = Lower(**facts)
        primitive.lower(statement, cx)
        lines = [f"{i.name}:" if hasattr(i, "name") else str(i) for i in cx.b.body]
        assemble(module(cx))
        return lines

    return run


@pytest.fixture
def ir() -> SimpleNamespace:
    return SimpleNamespace(integer=integer, barrier=barrier, Check=Check, Derive=Derive)
