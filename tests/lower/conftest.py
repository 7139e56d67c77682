"""Texts of the derived form lowered, and a machine of one thread that runs what comes out.

The machine is the oracle of these tests: it knows the integer, predicate and float instructions that the core itself writes, and
control flow. Three test operations make a run visible: `trace` records values, `touch` and `pinned` record where they ran.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from cake_core.assemble import find_assembler
from cake_core.elaborate import elaborate
from cake_core.effects import Access, Mode
from cake_core.ir.nodes import Call, Op
from cake_core.ir.types import Scalar
from cake_core.lower import Lowered, lower
from cake_core.plugins import load_registry
from cake_core.primitive import Function, Operation, Parameter, RoleWord
from cake_core.source import Source
from cake_core.syntax import parse

# --- test operations -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Trace(Operation):
    """`trace x`: records a scalar."""

    def lower(self, op: Op, cx) -> None:
        (x,) = op.operands
        is_bool = isinstance(x.type, Scalar) and x.type.elem.kind == "bool"
        value = cx.predicate(x) if is_bool else cx.value(x)
        cx.b.emit("test.trace", value)


@dataclass(frozen=True, kw_only=True)
class Pinned(Operation):
    """`pinned x`: records a constant; its operand must be one in each instance."""

    def lower(self, op: Op, cx) -> None:
        cx.b.emit("test.trace", cx.constant(op.operands[0]))


@dataclass(frozen=True, kw_only=True)
class Place(Operation):
    """`where`: records the warp in the instance and the thread in the instance."""

    def lower(self, op: Op, cx) -> None:
        cx.b.emit("test.trace", cx.warp)
        cx.b.emit("test.trace", cx.thread)
        cx.b.emit("test.trace", cx.lane)


@dataclass(frozen=True, kw_only=True)
class Address(Operation):
    """`address x`: records where a tile starts. `address x i, j`: where an element of it lies."""

    def lower(self, op: Op, cx) -> None:
        tile, *coordinates = op.operands
        at = cx.element_address(tile, [cx.value(c) for c in coordinates]) if coordinates else cx.shared_address(tile)
        cx.b.emit("test.trace", at)


@dataclass(frozen=True, kw_only=True)
class Panel(Operation):
    """`panel x`: records columns a panel and bytes from one to the next."""

    def lower(self, op: Op, cx) -> None:
        for number in cx.panel(op.operands[0]):
            cx.b.emit("test.trace", number)


@dataclass(frozen=True, kw_only=True)
class Number(Operation):
    """`number x`: writes 0, 1, .. into the registers of a fragment."""

    def lower(self, op: Op, cx) -> None:
        for i, register in enumerate(cx.registers(op.operands[0])):
            cx.b.emit(f"mov.{register.kind}", register, float(i) if register.kind == "f32" else i)


@dataclass(frozen=True, kw_only=True)
class Dump(Operation):
    """`dump 0 <- value`: records the registers of a value; `seen` collects the distributions."""

    seen: list

    def lower(self, op: Op, cx) -> None:
        self.seen.append(cx.distribution)
        for register in cx.registers(op.value):
            cx.b.emit("test.trace", register)


@dataclass(frozen=True, kw_only=True)
class Budget(RoleWord):
    def lower(self, value: int, entry_registers: int, cx) -> None:
        cx.b.emit("test.budget", value)


@dataclass(frozen=True, kw_only=True)
class Peek(Function):
    """`peek(x)`: x, read from memory as far as the core knows."""

    def result(self, call: Call, cx) -> Scalar:
        return call.positional[0].type

    def effects(self, call: Call):
        return (Access(call.positional[0], Mode.READ),)

    def lower(self, call: Call, cx):
        x = cx.value(call.positional[0])
        cx.b.emit("test.trace", x)
        return (x,)


ANY = (Parameter("x", "any"),)
OPERATIONS = (
    Trace(name="trace", operands=ANY),
    Pinned(name="pinned", operands=ANY, immediate=(0,)),
    Place(name="where"),
    Address(name="address.tile", operands=ANY),
    Address(name="address.row", operands=ANY * 2),
    Address(name="address.element", operands=ANY * 3),
    Panel(name="panel", operands=ANY),
    Number(name="number", operands=ANY),
    Dump(name="dump", operands=ANY, arrows=("<-",), value=Parameter("value", "any"), seen=[]),
)


@pytest.fixture(scope="session")
def registry():
    loaded = load_registry()
    return replace(
        loaded,
        operations={**loaded.operations, **{o.name: o for o in OPERATIONS}},
        functions={**loaded.functions, "peek": Peek(name="peek")},
        role_words={**loaded.role_words, "budget": Budget(name="budget")},
    )


HEAD = "cake 1 derived\nkernel k({params})\n  require {require}\n  target sm90\n"


@pytest.fixture
def seen(registry) -> list:
    """Distributions under which `dump` statements of this test were lowered."""
    found = registry.operations["dump"].seen
    found.clear()
    return found


@pytest.fixture(scope="session")
def lowered(registry) -> Callable[..., Lowered]:
    """`lowered(text)`: a whole derived text."""

    def run(text: str) -> Lowered:
        arch = registry.architectures["sm90"]
        kernel = parse(Source("t.cake", text)).kernels[0]
        return lower(elaborate(kernel, registry, arch, derived=True, overrides={}), registry, arch)

    return run


@pytest.fixture(scope="session")
def role(lowered) -> Callable[..., Lowered]:
    """`role(body, params, require)`: the body of one role of one warp."""

    def run(body: str, params: str = "N: i32", require: str = "1 == 1", count: str = "1 warp", before: str = "") -> Lowered:
        return lowered(
            HEAD.format(params=params, require=require) + f"{{\n  launch 1\n  {before}\n  role r: {count} at 0 {{\n{body}\n  }}\n}}\n"
        )

    return run


# --- the machine ---------------------------------------------------------------------------------------------------


def signed(x: int) -> int:
    x &= 0xFFFFFFFF
    return x - (1 << 32) if x >> 31 else x


def f32(x: float) -> float:
    return struct.unpack("f", struct.pack("f", x))[0]


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


SIGNED = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": truncated,
    "rem": lambda a, b: a - truncated(a, b) * b,
    "min": min,
    "max": max,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "mov": lambda a: a,
    "cvta": lambda a: a,
    "not": lambda a: ~a,
    "neg": lambda a: -a,
    "fma": lambda a, b, c: a * b + c,
}
COMPARE = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


@dataclass
class Machine:
    """Runs the text of an entry for one thread. `trace` holds what the test operations recorded."""

    params: dict[str, int | float] = field(default_factory=dict)
    special: dict[str, int] = field(default_factory=dict)
    registers: dict[str, object] = field(default_factory=dict)
    trace: list = field(default_factory=list)
    budgets: list[int] = field(default_factory=list)
    steps: int = 0

    def run(self, ptx: str) -> Machine:
        lines = [line.strip() for line in ptx.splitlines()]
        body = [line for line in lines[lines.index("{") + 1 : -1] if line and not line.startswith(("//", ".reg"))]
        labels = {line[:-1]: i for i, line in enumerate(body) if line.endswith(":")}
        at = 0
        while at < len(body):
            self.steps += 1
            assert self.steps < 200_000, "the program does not end"
            line, at = body[at], at + 1
            if line.endswith(":"):
                continue
            line = line.removesuffix(";")
            if line.startswith("@"):
                guard, line = line[1:].split(" ", 1)
                holds = self.registers[guard.lstrip("!")]
                if holds == guard.startswith("!"):
                    continue
            opcode, _, rest = line.partition(" ")
            operands = [o.strip() for o in rest.split(",")] if rest else []
            if opcode == "ret":
                return self
            if opcode == "bra":
                at = labels[operands[0]]
            else:
                self.step(opcode, operands)
        raise AssertionError("the program runs past its end")

    def read(self, operand: str):
        if operand in self.registers:
            return self.registers[operand]
        if operand.startswith("0f"):
            return struct.unpack(">f", bytes.fromhex(operand[2:]))[0]
        if operand.startswith("%") or operand == "shared_memory":
            return self.special[operand]
        return int(operand)

    def step(self, opcode: str, operands: list[str]) -> None:
        name, *suffixes = opcode.split(".")
        if opcode == "test.trace":
            value = self.read(operands[0])
            self.trace.append(signed(value) if isinstance(value, int) and not isinstance(value, bool) else value)
        elif opcode == "test.budget":
            self.budgets.append(int(operands[0]))
        elif opcode == "elect.sync":  # the machine's one thread is lane `%tid.x` of its warp, and lane 0 is elected
            self.registers[operands[0].partition("|")[2]] = self.special["%tid.x"] % 32 == 0
        elif name == "ld":
            self.registers[operands[0]] = self.params[operands[1].strip("[]")]
        elif name == "setp":
            a, b = (self.value(o, suffixes[-1]) for o in operands[1:])
            self.registers[operands[0]] = a != b if suffixes[0] == "neu" else COMPARE[suffixes[0]](a, b)
        elif name == "selp":
            self.registers[operands[0]] = self.value(operands[1] if self.read(operands[3]) else operands[2], suffixes[-1])
        elif name in SIGNED:
            result = SIGNED[name](*(self.value(o, suffixes[-1]) for o in operands[1:]))
            kind = suffixes[-1]
            self.registers[operands[0]] = bool(result & 1) if kind == "pred" else f32(result) if kind == "f32" else result & 0xFFFFFFFF
        else:
            raise AssertionError(f"the machine does not know '{opcode}'")

    def value(self, operand: str, kind: str):
        x = self.read(operand)
        if kind in ("f32", "pred"):
            return x
        return x & 0xFFFFFFFF if kind.startswith("u") or kind.startswith("b") else signed(x)


@pytest.fixture(scope="session")
def machine() -> type[Machine]:
    return Machine


@pytest.fixture(scope="session")
def run() -> Callable[..., Machine]:
    """`run(lowered, warp=0, lane=0, N=5, ..)`: one thread; scalars by name."""

    def go(low: Lowered, warp: int = 0, lane: int = 0, cluster: tuple[int, int, int] = (0, 0, 1), **scalars) -> Machine:
        rank, index, count = cluster
        special = {
            "%tid.x": 32 * warp + lane,
            "%ctaid.x": index,
            "%nctaid.x": count,
            "%cluster_ctarank": rank,
            "%clusterid.x": index,
            "%nclusterid.x": count,
            "shared_memory": 1 << 14,
        }
        return Machine({f"arg_{k}": v for k, v in scalars.items()}, special).run(low.ptx)

    return go


@pytest.fixture(scope="session")
def trace(role, run) -> Callable[..., list]:
    """`trace(body, N=5)`: what thread 0 records; parameters are i32, or f32 where a float is given."""

    def go(body: str, require: str | None = None, **scalars) -> list:
        params = ", ".join(f"{n}: {'f32' if isinstance(v, float) else 'i32'}" for n, v in scalars.items()) or "N: i32"
        return run(role(body, params, require or "1 == 1"), **(scalars or {"N": 0})).trace

    return go


@pytest.fixture(scope="session")
def ptxas(tmp_path_factory) -> Callable[[str], str]:
    """Assemble a text; what the assembler reports."""
    path = find_assembler().path
    folder = tmp_path_factory.mktemp("ptx")

    def go(ptx: str) -> str:
        (folder / "k.ptx").write_text(ptx)
        done = subprocess.run(
            [path, "-arch=sm_90a", "-v", "k.ptx", "-o", "k.cubin"], cwd=folder, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    return go
