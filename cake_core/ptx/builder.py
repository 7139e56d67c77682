"""A typed builder for PTX text: registers have a class, instructions are data, every line knows its source span.

The core uses it for integer index arithmetic, predicates and control flow; primitives use it for their instructions.
An operand is a Reg, a Python int or float (an immediate), Addr, Vec or Sym. `emit` refuses a register whose class
does not fit the type suffix of the opcode (PTX ISA, Type Checking Rules: .bX fits any type of the same size).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field

from cake_core.frozen import frozen, thawed
from cake_core.source import Span

#: Register classes and the prefix of their names. Integers live in bX registers, floats in f32, those of 64 bits in b64.
PREFIX = {"pred": "%p", "b16": "%h", "b32": "%r", "b64": "%d", "f32": "%f"}

#: Type suffix of an opcode to the classes of register that it takes.
FITS = {
    "pred": {"pred"},
    **{t: {"b16"} for t in ("b16", "u16", "s16", "f16", "bf16")},
    **{t: {"b32"} for t in ("u32", "s32", "f16x2", "bf16x2")},
    "b32": {"b32", "f32"},
    "f32": {"f32"},
    **{t: {"b64"} for t in ("b64", "u64", "s64", "f64")},
}
WIDER = {"u16": "b32", "s16": "b32", "u32": "b64", "s32": "b64"}


@frozen
class Reg:
    name: str
    kind: str

    def __str__(self) -> str:
        return self.name


@frozen
class Addr:
    """`[base + offset]`; a negative offset is written as one that is added (PTX ISA, Addresses as Operands)."""

    base: Operand
    offset: int = 0

    def __str__(self) -> str:
        if not self.offset:
            return f"[{self.base}]"
        return f"[{self.base}+{self.offset}]"


@frozen
class Vec:
    """`{a, b, ..}`."""

    items: tuple[Operand, ...]

    def __str__(self) -> str:
        return "{" + ", ".join(map(operand_text, self.items)) + "}"


@frozen
class Sym:
    """A name that is no register of ours: a parameter, a special register, the sink `_`, a bracketed compound operand."""

    text: str

    def __str__(self) -> str:
        return self.text


Operand = Reg | int | float | Addr | Vec | Sym


def operand_text(x: Operand) -> str:
    """PTX text of an operand; floats as exact 0f hexadecimal."""
    if isinstance(x, bool):
        return str(int(x))
    if isinstance(x, float):
        return "0f" + struct.pack(">f", x).hex().upper()
    return str(x)


@frozen
class Instruction:
    opcode: str
    operands: tuple[Operand, ...] = ()
    guard: Reg | None = None
    negate: bool = False
    span: Span | None = None

    def __str__(self) -> str:
        guard = f"@{'!' if self.negate else ''}{self.guard} " if self.guard else ""
        operands = " " + ", ".join(map(operand_text, self.operands)) if self.operands else ""
        return f"{guard}{self.opcode}{operands};"


@frozen
class Label:
    name: str
    span: Span | None = None


@frozen
class Comment:
    text: str
    span: Span | None = None


class PtxTypeError(Exception):
    """A primitive or the lowering built an ill-typed instruction: a bug of its author, reported as `plugin/ptx-type`."""


def result_kind(opcode: str) -> str:
    """Register class of the destination of `opcode`, from its suffixes."""
    parts = opcode.split(".")
    if parts[0] == "setp":
        return "pred"
    types = [p for p in parts[1:] if p in FITS]
    if not types:
        raise PtxTypeError(f"'{opcode}' has no type suffix")
    if parts[0] == "cvt":
        kind = types[0]
    elif parts[0] == "mul" and "wide" in parts or parts[0] == "mad" and "wide" in parts:
        return WIDER[types[-1]]
    else:
        kind = types[-1]
    return {"f32": "f32", "pred": "pred"}.get(kind) or next(k for k in ("b16", "b32", "b64") if k in FITS[kind])


def _check(opcode: str, operands: tuple[Operand, ...]) -> None:
    """The classes of the plain arithmetic and move families; compound instructions check their own operands."""
    parts = opcode.split(".")
    root = parts[0]
    types = [p for p in parts[1:] if p in FITS]
    if root not in _ARITHMETIC or not types or not operands:
        return
    last = FITS[types[-1]]
    if root == "setp":
        wanted = [{"pred"}, last, last]
    elif root == "selp":
        wanted = [last, last, last, {"pred"}]
    elif root in ("shl", "shr"):
        wanted = [last, last, {"b32"}]
    elif root == "cvt":
        wanted = [FITS[types[0]]] + [FITS[types[1]]] * (len(operands) - 1) if len(types) > 1 else []
    elif root in ("mul", "mad") and "wide" in parts:
        wide = {WIDER[types[-1]]}
        wanted = [wide, last, last, wide]
    else:
        wanted = [last] * len(operands)
    for operand, classes in zip(operands, wanted, strict=False):
        if isinstance(operand, Reg) and operand.kind not in classes:
            raise PtxTypeError(f"'{opcode}' takes {'/'.join(sorted(classes))}, got {operand.name} of class {operand.kind}")


_ARITHMETIC = set("add sub mul mad fma min max and or xor not neg abs shl shr div rem setp selp cvt rcp rsqrt sqrt ex2 lg2".split())


@thawed
class Builder:
    """Builds one entry's body. `span` is the source of what is emitted next."""

    body: list[Instruction | Label | Comment] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    span: Span | None = None

    # --- names

    def reg(self, kind: str) -> Reg:
        n = self.counts.get(kind, 0)
        self.counts[kind] = n + 1
        return Reg(f"{PREFIX[kind]}{n}", kind)

    def regs(self, kind: str, n: int) -> tuple[Reg, ...]:
        return tuple(self.reg(kind) for _ in range(n))

    def label(self, hint: str) -> str:
        n = self.labels.get(hint, 0)
        self.labels[hint] = n + 1
        return f"${hint}_{n}"

    # --- instructions

    def emit(self, opcode: str, *operands: Operand, guard: Reg | None = None, negate: bool = False) -> None:
        _check(opcode, operands)
        self.body.append(Instruction(opcode, operands, guard, negate, self.span))

    def op(self, opcode: str, *operands: Operand) -> Reg:
        """Emit with a fresh destination register, whose class follows from the opcode."""
        d = self.reg(result_kind(opcode))
        self.emit(opcode, d, *operands)
        return d

    def place(self, label: str) -> None:
        self.body.append(Label(label, self.span))

    def comment(self, text: str) -> None:
        self.body.append(Comment(text, self.span))

    def branch(self, label: str, guard: Reg | None = None, negate: bool = False) -> None:
        self.emit("bra", Sym(label), guard=guard, negate=negate)

    @contextmanager
    def at(self, span: Span) -> Iterator[None]:
        """Statements emitted inside belong to `span`."""
        before, self.span = self.span, span
        try:
            yield
        finally:
            self.span = before

    @contextmanager
    def unless_skipped(self, guard: Reg | bool, hint: str = "if") -> Iterator[None]:
        """Run the inside only where `guard` holds."""
        if guard is False:
            kept = len(self.body)
            yield
            del self.body[kept:]
        elif guard is True:
            yield
        else:
            end = self.label(hint)
            self.branch(end, guard=guard, negate=True)
            yield
            self.place(end)

    # --- 32-bit integer arithmetic with immediates folded

    def mov(self, value: Operand, kind: str = "b32") -> Reg:
        d = self.reg(kind)
        self.emit(f"mov.{kind}", d, value)
        return d

    def add(self, a: Operand, b: Operand) -> Operand:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0:
            return b
        if b == 0:
            return a
        if isinstance(a, int):
            a, b = b, a
        return self.op("add.s32", a, b)

    def sub(self, a: Operand, b: Operand) -> Operand:
        if isinstance(b, int):
            return self.add(a, -b)
        return self.op("sub.s32", a, b)

    def mul(self, a: Operand, b: Operand) -> Operand:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if isinstance(a, int):
            a, b = b, a
        if b == 0:
            return 0
        if b == 1:
            return a
        if isinstance(b, int) and b > 0 and b & (b - 1) == 0:
            return self.op("shl.b32", a, b.bit_length() - 1)
        return self.op("mul.lo.s32", a, b)

    def shl(self, a: Operand, n: int) -> Operand:
        return a << n if isinstance(a, int) else (self.op("shl.b32", a, n) if n else a)

    def shr(self, a: Operand, n: int) -> Operand:
        return a >> n if isinstance(a, int) else (self.op("shr.u32", a, n) if n else a)

    def land(self, a: Operand, b: Operand) -> Operand:
        return a & b if isinstance(a, int) and isinstance(b, int) else self.op("and.b32", a, b)

    def xor(self, a: Operand, b: Operand) -> Operand:
        if isinstance(a, int) and isinstance(b, int):
            return a ^ b
        return a if b == 0 else self.op("xor.b32", a, b)

    def floordiv(self, a: Operand, b: Operand, nonneg: bool) -> Operand:
        """Floor division by a positive `b`. `nonneg`: the dividend is known not to be negative."""
        if isinstance(a, int) and isinstance(b, int):
            return a // b
        if b == 1:
            return a
        if isinstance(b, int) and b > 0 and b & (b - 1) == 0:
            return self.op("shr.s32", a, b.bit_length() - 1)  # arithmetic: floors
        if nonneg:
            return self.op("div.u32", a, b)
        return self._floor(a, b)[0]

    def mod(self, a: Operand, b: Operand, nonneg: bool) -> Operand:
        """Remainder with the sign of the positive divisor `b`."""
        if isinstance(a, int) and isinstance(b, int):
            return a % b
        if b == 1:
            return 0
        if isinstance(b, int) and b > 0 and b & (b - 1) == 0:
            return self.op("and.b32", a, b - 1)
        if nonneg:
            return self.op("rem.u32", a, b)
        return self._floor(a, b)[1]

    def _floor(self, a: Operand, b: Operand) -> tuple[Reg, Reg]:
        q, r = self.op("div.s32", a, b), self.op("rem.s32", a, b)
        negative = self.op("setp.lt.s32", r, 0)
        fix = self.op("selp.b32", 1, 0, negative)
        back = self.op("selp.b32", b, 0, negative)
        return self.op("sub.s32", q, fix), self.op("add.s32", r, back)

    def compare(self, op: str, a: Operand, b: Operand, kind: str = "s32") -> Reg | bool:
        name = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}[op]
        if isinstance(a, int) and isinstance(b, int):
            return {"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b, "eq": a == b, "ne": a != b}[name]
        if isinstance(a, int | float):  # an immediate may not stand first
            a, b = b, a
            name = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}.get(name, name)
        return self.op(f"setp.{name}.{kind}", a, b)
