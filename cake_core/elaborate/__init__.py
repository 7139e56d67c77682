"""Elaboration: names, constants, types. The same nodes come back, typed; schedule form and derived form alike."""

from __future__ import annotations

from dataclasses import replace

from cake_core.architecture import Architecture
from cake_core.diagnostics import Sink, fail
from cake_core.elaborate.expressions import Expressions
from cake_core.elaborate.operations import Operations
from cake_core.elaborate.requires import ranges_of
from cake_core.elaborate.scope import Scope, Symbol, suggestion
from cake_core.elaborate.statements import Statements
from cake_core.elaborate.typing import literal
from cake_core.ir import ranges
from cake_core.ir.nodes import Assume, Bool, Cluster, Const, Declaration, Expr, Float, Int, Kernel, Name, Param, Require, Role, Target
from cake_core.ir.types import BOOL, ELEMENTS, I32, Level, Named, Scalar, Tile
from cake_core.primitive import Form, ThreadGroup

__all__ = ["constants", "elaborate"]

Number = int | float | bool


def elaborate(kernel: Kernel, registry, arch: Architecture | None, *, derived: bool, overrides: dict[str, Number] | None = None) -> Kernel:
    """The kernel with types, constants folded and `const` clauses gone.

    `overrides` replaces consts by name. `arch` None skips what depends on the target. Raises CakeError with all findings.
    """
    return Elaborator(registry, arch, Form.DERIVED if derived else Form.SCHEDULE).kernel(kernel, overrides or {})


class Elaborator(Expressions, Operations, Statements):
    """One run over one kernel. The mix-ins hold the rules; this class holds the state and the kernel's frame."""

    def __init__(self, registry, arch: Architecture | None, form: Form):
        self.registry, self.arch, self.form = registry, arch, form
        self.sink = Sink()
        self.scope = Scope()
        self.groups = {"warp": ThreadGroup(name="warp", warps=1), **registry.groups}
        self.groups |= {f"{n}s": g for n, g in self.groups.items()}  # `1 warp`, `8 warps`
        self.declarations: dict[str, Declaration] = {}
        self.pipeline_of: dict[str, str] = {}
        self.role_names: tuple[str, ...] = ()
        self.role: Role | None = None
        self.inside: list = []
        self.tiles_name: str | None = None
        self.item_count: str | None = None
        self.cluster_axis: str | None = None
        self.cluster_size = 1

    # --- CheckContext

    def declaration(self, name: str) -> Declaration | None:
        return self.declarations.get(name)

    @property
    def warps(self) -> int:
        """Warps of one instance of the role at hand."""
        return self.role.count.value * self.groups[self.role.group].warps if self.role else 0

    @property
    def instances(self) -> int:
        return self.role.instances.value if self.role and isinstance(self.role.instances, Int) else 1

    @property
    def group(self) -> str | None:
        """Thread group in which the role at hand counts."""
        return self.groups[self.role.group].name if self.role else None

    # --- built-in names

    def builtins(self) -> dict[str, object]:
        """Names that no declaration binds: their types, or a literal where the value is known."""
        count = ranges.Range(1, 2**31 - 1)
        names: dict[str, object] = {}
        if self.form is Form.DERIVED:
            names |= {
                "leader": Scalar(BOOL, Level.LANE),
                "warp.leader": Scalar(BOOL, Level.LANE),
                "cluster.id": Scalar(I32, Level.CTA, ranges.at_least(0)),
                "cluster.count": Scalar(I32, Level.CTA, count),
            }
            if self.cluster_axis:
                names[f"cluster.{self.cluster_axis}"] = Scalar(I32, Level.CTA, ranges.Range(0, self.cluster_size - 1))
        if self.role is not None:
            names["warp"] = Scalar(I32, Level.WARP, ranges.Range(0, self.warps - 1))
            names[f"{self.role.name}.i"] = Scalar(I32, Level.INSTANCE, ranges.Range(0, self.instances - 1)) if self.instances > 1 else Int(0, type=Scalar(I32, Level.CTA, ranges.constant(0)))
        if self.item_count:
            names[self.item_count] = Scalar(I32, Level.CTA, ranges.at_least(0))
        return names

    def is_builtin_count(self, e: Expr) -> bool:
        return isinstance(e, Name) and e.id == "cluster.count"

    # --- the kernel's frame

    def kernel(self, k: Kernel, overrides: dict[str, Number]) -> Kernel:
        with self.sink.collecting():
            self._target(k)
        clauses = []
        with self.sink.collecting():
            self._consts(k, overrides)
        with self.sink.collecting():
            if k.cluster is not None:
                clauses.append(self._cluster(k.cluster))
        self._scalars(k)
        requires = self._conditions(k, Require)
        self._ranges(k, requires)
        params = tuple(p for p in map(self._param, k.params) if p is not None)
        requires = self._conditions(k, Require)  # again, now that tensors and ranges are known
        assumes = self._conditions(k, Assume)
        if assumes:
            self.sink.error("type/not-implemented", "'assume' is not implemented yet", assumes[0].span)
        self._collect_roles(k)
        body = self.statements(k.body)
        self.sink.stop_if_errors()
        if requires:
            clauses.insert(0, Require(requires, span=requires[0].span))
        clauses.insert(len(clauses) - (k.cluster is not None), Target(k.targets, span=next((c.span for c in k.clause(Target)), k.span)))
        return replace(k, params=params, clauses=tuple(clauses), body=body)

    def _target(self, k: Kernel) -> None:
        if not k.targets:
            raise fail("type/no-target", f"kernel '{k.name}' names no target", k.span, fix="add a line `target ARCH`")
        if self.arch is not None and self.arch.name not in k.targets:
            raise fail("type/wrong-target", f"kernel '{k.name}' is not written for {self.arch.name}", k.clause(Target)[0].span, why=f"its targets are {', '.join(k.targets)}")

    def _consts(self, k: Kernel, overrides: dict[str, Number]) -> None:
        known = [b.name for c in k.clause(Const) for b in c.bindings]
        for name in overrides:
            if name not in known:
                raise fail("type/unknown-const", f"kernel '{k.name}' has no const '{name}'", k.span, fix=suggestion(name, known, "consts"))
        for b in (b for c in k.clause(Const) for b in c.bindings):
            with self.sink.collecting():
                value = literal(overrides[b.name], b.value) if b.name in overrides else self.expr(b.value)
                if not isinstance(value, Int | Float | Bool):
                    raise fail("type/not-constant", f"const '{b.name}' is not a constant", b.value.span)
                self.scope.bind(b.name, Symbol("const", value.type, b.span, value=value))

    def _cluster(self, c: Cluster) -> Cluster:
        size = self.constant_int(c.axis.value, "the cluster's size")
        if c.words.items or c.words.flag:
            raise fail("type/not-implemented", "words on 'cluster' are not implemented yet", c.span)
        if size.value < 1:
            raise fail("type/cluster", f"a cluster of {size.value} CTAs", c.span)
        if self.arch is not None and size.value > 1:
            if "cluster" not in self.arch.capabilities:
                raise fail("type/missing-capability", f"'cluster' needs 'cluster', which {self.arch.name} does not offer", c.span, resource="cluster")
            if size.value > self.arch.limit("cluster_ctas"):
                raise fail("type/cluster", f"a cluster of {size.value} CTAs; {self.arch.name} takes {self.arch.limit('cluster_ctas')}", c.span, why=self.arch.limits["cluster_ctas"].source)
        self.cluster_axis, self.cluster_size = c.axis.name, size.value
        return replace(c, axis=replace(c.axis, value=size))

    def _conditions(self, k: Kernel, kind: type) -> tuple[Expr, ...]:
        out = []
        for e in (e for c in k.clause(kind) for e in c.exprs):
            if kind is Assume:
                out.append(e)
                continue
            with self.sink.collecting():
                typed = self.condition(e, "a `require`")
                if typed == Bool(False):
                    raise fail("type/require", "this `require` can never hold", e.span)
                if typed != Bool(True):
                    out.append(typed)
        return tuple(out)

    def _scalars(self, k: Kernel) -> None:
        for p in k.params:
            with self.sink.collecting():
                if p.mode is None:
                    elem = self.element(p.declared)
                    if p.declared.groups:
                        raise fail("type/mode", f"tensor '{p.name}' needs a mode", p.span, fix="write `in`, `out` or `inout`")
                    if elem.name not in ("i32", "f32"):
                        raise fail("type/element", f"a scalar parameter is i32 or f32, not {elem}", p.span)
                    self.scope.bind(p.name, Symbol("parameter", Scalar(elem), p.span, node=p))

    def _ranges(self, k: Kernel, requires: tuple[Expr, ...]) -> None:
        found = ranges_of(requires)
        for p in k.params:
            symbol = self.scope.names.get(p.name)
            if symbol is not None and symbol.kind == "parameter" and symbol.type.elem == ELEMENTS["i32"]:
                self.scope.names[p.name] = replace(symbol, type=Scalar(I32, Level.CTA, found.get(p.name, ranges.ANY)))

    def _param(self, p: Param) -> Param | None:
        if p.mode is None:
            return p
        with self.sink.collecting():
            elem = self.element(p.declared)
            if len(p.declared.groups) != 1:
                raise fail("type/dimension", f"tensor '{p.name}' takes one group of dimensions", p.declared.span)
            dims = tuple(self.integer(e, f"a dimension of '{p.name}'") for e in p.declared.groups[0])
            if not 1 <= len(dims) <= 5:
                raise fail("type/dimension", f"tensor '{p.name}' has {len(dims)} dimensions", p.declared.span, why="one to five are possible")
            declared = replace(p.declared, groups=(dims,))
            out = replace(p, declared=declared)
            shape = tuple(d.value if isinstance(d, Int) else d for d in dims)
            self.scope.bind(p.name, Symbol("tensor", Tile("global", elem, (shape,)), p.span, node=out))
            return out
        return None

    def _collect_roles(self, k: Kernel) -> None:
        names: list[str] = []
        for r in k.roles:
            with self.sink.collecting():
                if r.name in names:
                    raise fail("type/redefined", f"role '{r.name}' stands twice", r.span)
                names.append(r.name)
                self.scope.bind(r.name, Symbol("role", Named("role", r.name), r.span, node=r))
        self.role_names = tuple(names)
        if not names:
            self.sink.error("type/no-role", f"kernel '{k.name}' has no role", k.span)


def constants(kernel: Kernel, registry, arch: Architecture | None, *, derived: bool, overrides: dict[str, Number] | None = None) -> dict[str, Number]:
    """The kernel's consts by name, folded, `overrides` applied: what a manifest records. Raises CakeError."""
    e = Elaborator(registry, arch, Form.DERIVED if derived else Form.SCHEDULE)
    e._consts(kernel, overrides or {})
    e.sink.stop_if_errors()
    return {n: s.value.value for n, s in e.scope.names.items() if s.kind == "const"}
