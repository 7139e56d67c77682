"""The point of the kernel that is being lowered: what primitives see (`primitive.LowerContext`) and what the rooms share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field

from cake_core.architecture import Architecture
from cake_core.diagnostics import fail
from cake_core.frozen import thawed
from cake_core.ir.nodes import Declaration, Expr
from cake_core.ir.places import Place, root
from cake_core.ir.plan import Plan
from cake_core.lower import addresses, scalars, values
from cake_core.lower.inputs import Inputs
from cake_core.lower.stops import Label
from cake_core.lower.values import Fragment, Held
from cake_core.primitive import Distribution, Elements, Reduction
from cake_core.ptx.builder import Builder, Operand, Reg
from cake_core.source import Span

Bound = Operand | Fragment | Held


@thawed
class Context:
    """`names`: scalars, fragments and named values in scope. `mutable`: registers that change (variables, fragments), which
    a `let` must copy. `warps`, `lane`, `warp`, `thread`: of the instance at hand; before and after the roles, of the CTA."""

    b: Builder
    arch: Architecture
    registry: object
    plan: Plan
    inputs: Inputs
    declared: dict[str, Declaration]
    base: Reg | None
    names: dict[str, Bound]
    warps: int
    lane: Operand
    warp: Operand
    thread: Operand
    rank: Operand = 0  # of the CTA in its cluster
    distribution: Distribution | None = None
    mutable: set[Reg] = field(default_factory=set)
    loops: list[str] = field(default_factory=list)  # indices of the loops around, outermost first
    labels: list[Label] = field(default_factory=list)  # of the statements so far
    keeps: bool = False  # what is read now is used later: copies are taken of what may change

    @property
    def cluster_size(self) -> int:
        return self.plan.cluster

    @property
    def pair(self) -> bool:
        return self.plan.pair

    # --- scopes

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names bound inside end with it."""
        outside, self.names = self.names, dict(self.names)
        try:
            yield
        finally:
            self.names = outside

    @contextmanager
    def distributed(self, distribution: Distribution | None) -> Iterator[None]:
        outside, self.distribution = self.distribution, distribution
        try:
            yield
        finally:
            self.distribution = outside

    def scalar(self, name: str, span: Span | None) -> Operand:
        bound = self.names.get(name)
        if bound is None or isinstance(bound, Fragment | Held):
            what = "has no value here" if bound is None else "is a register tile, not a scalar"
            raise fail("derive/not-a-scalar", f"'{name}' {what}", span)
        return bound

    def move(self, register: Reg, value: Operand) -> None:
        if value == register:
            return
        if register.kind == "f32" and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        self.b.emit(f"mov.{register.kind}", register, value)

    def fixed(self, value: Operand) -> Operand:
        """`value` as it is now: a copy where its register changes later."""
        if isinstance(value, Reg) and value in self.mutable:
            copy = self.b.reg(value.kind)
            self.move(copy, value)
            return copy
        return value

    # --- scalars

    def value(self, expr: Expr) -> Operand:
        return scalars.value(self, expr)

    def predicate(self, expr: Expr) -> Reg | bool:
        return scalars.predicate(self, expr)

    def constant(self, expr: Expr) -> int:
        value = scalars.value(self, expr)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise fail(
            "derive/not-constant",
            "this must be known when the kernel is compiled",
            expr.span,
            fix="use a constant, or a role's instance number",
        )

    def zero(self) -> Reg:
        return self.inputs.zero()

    # --- shared memory

    def shared_base(self) -> Reg:
        assert self.base is not None, "the plan holds no shared memory"
        return self.base

    def barrier(self, expr: Expr) -> Operand:
        return addresses.barrier(self, expr)

    def place(self, expr: Expr) -> Place:
        return addresses.place(expr)

    def shared_address(self, expr: Expr) -> Operand:
        return addresses.shared_address(self, expr)

    def tensor_address(self, expr: Expr) -> tuple[Operand, int]:
        return addresses.tensor_address(self, expr)

    def element_address(self, expr: Expr, coordinates: Sequence[Operand]) -> Operand:
        return addresses.element_address(self, expr, coordinates)

    def panel(self, expr: Expr) -> tuple[int, int]:
        return addresses.panel(self, expr)

    def swizzle(self, buffer: str) -> int:
        if buffer not in self.plan.buffers:
            raise fail("derive/not-shared", f"'{buffer}' is no shared buffer")
        return self.plan.buffers[buffer].swizzle

    def declaration(self, name: str) -> Declaration | None:
        return self.declared.get(name)

    def reduction(self, name: str) -> Reduction | None:
        return self.registry.reductions.get(name)

    # --- tensors

    def mode(self, tensor: str) -> str:
        return self.inputs.tensor(tensor).mode

    def tensor_map(self, tensor: Expr, box: tuple[int, ...], swizzle: int) -> Reg:
        name = root(tensor)
        if name is None:
            raise fail("derive/not-a-tensor", "a tensor parameter is needed here", tensor.span)
        return self.inputs.tensor_map(name.id, tuple(box), swizzle)

    def coordinates(self, expr: Expr) -> tuple[Operand, ...]:
        return tuple(self.value(p.lo) for p in addresses.place(expr).parts)

    def global_pointer(self, tensor: str) -> Reg:
        return self.inputs.pointer(tensor)

    def global_address(self, expr: Expr) -> Operand:
        return addresses.global_address(self, expr)

    def extents(self, tensor: str) -> tuple[Operand, ...]:
        return tuple(self.value(d) for g in self.inputs.tensor(tensor).declared.groups for d in g)

    # --- register tiles

    def distribution_of(self, expr: Expr) -> Distribution | None:
        return values.distribution_of(self, expr)

    def registers(self, expr: Expr) -> tuple[Operand, ...]:
        return values.registers(self, expr)

    def broadcast(self, *exprs: Expr) -> tuple[tuple[Operand, ...], ...]:
        return values.broadcast(self, *exprs)

    def elements(self, *exprs: Expr) -> tuple[Elements, ...]:
        return values.together(self, *exprs)

    @contextmanager
    def keeping(self) -> Iterator[None]:
        outside, self.keeps = self.keeps, True
        try:
            yield
        finally:
            self.keeps = outside
