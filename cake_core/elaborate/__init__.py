"""Elaboration: names, constants, types. The same nodes come back, typed; schedule form and derived form alike."""

from __future__ import annotations

from dataclasses import replace
from math import isnan

from cake_core.architecture import Architecture
from cake_core.diagnostics import Sink, fail
from cake_core.elaborate.contracts import Contracts
from cake_core.elaborate.expressions import Expressions
from cake_core.elaborate.grouped import Grouped
from cake_core.elaborate.guards import Guards
from cake_core.elaborate.operations import Operations
from cake_core.elaborate.outside import Outside
from cake_core.elaborate.pairs import PAIR, Pairs
from cake_core.elaborate.reach import Reach, holds
from cake_core.elaborate.requires import ranges_of
from cake_core.elaborate.scope import Scope, Symbol, reported, suggestion
from cake_core.elaborate.statements import Statements
from cake_core.elaborate.tiles import TileSchedules
from cake_core.elaborate.turns import Turns
from cake_core.elaborate.typing import literal, range_of
from cake_core.ir import ranges
from cake_core.ir.nodes import Binding, Bool, Cluster, Const, Declaration, Expr, Float, Int, Kernel, Param, Require, Role, Target, Tiles
from cake_core.ir.places import names
from cake_core.ir.plan import warp_grid
from cake_core.ir.types import BOOL, I32, Level, Named, Scalar, Tile, Unknown
from cake_core.primitive import Form, Reduction
from cake_core.primitive.groups import Groups
from cake_core.source import Span

__all__ = ["constants", "elaborate"]

Number = int | float | bool

#: What `cluster.` is followed by already.
CLUSTER_NAMES = ("id", "count")


def elaborate(kernel: Kernel, registry, arch: Architecture | None, *, derived: bool, overrides: dict[str, Number] | None = None) -> Kernel:
    """The kernel with types, constants folded and `const` clauses gone.

    `overrides` replaces consts by name. `arch` None skips what depends on the target. Raises CakeError with all findings.
    """
    return Elaborator(registry, arch, Form.DERIVED if derived else Form.SCHEDULE).kernel(kernel, overrides or {})


class Elaborator(Expressions, Operations, Outside, Contracts, Pairs, Guards, Grouped, Reach, TileSchedules, Turns, Statements):
    """One run over one kernel. The mix-ins hold the rules; this class holds the state and the kernel's frame."""

    def __init__(self, registry, arch: Architecture | None, form: Form):
        self.registry, self.arch, self.form = registry, arch, form
        self.sink = Sink()
        self.scope = Scope()
        self.groups = Groups(registry.groups)
        self.declarations: dict[str, Declaration] = {}
        self.pipeline_of: dict[str, str] = {}
        self.role_names: tuple[str, ...] = ()
        self.roles: tuple[Role, ...] = ()  # as written
        self.role: Role | None = None
        self.inside: list = []
        self.fragments: dict[str, Span] = {}  # of the role at hand
        self.var_levels: dict[tuple[str, Span], Level] = {}  # of variables that are assigned what differs among threads
        self.schedules: list[Tiles] = []
        self.item_count: str | None = None
        self.items_ahead: tuple[str, ...] = ()
        self.shrinking: frozenset[str] = frozenset()  # variables of the role at hand that may fall
        self.launched: Span | None = None
        self.taken, self.free = {}, set()
        self.unrolled = 0  # statements that the unrolled loops so far become
        self.cluster_axis: str | None = None
        self.cluster_size = 1

    # --- CheckContext

    def declaration(self, name: str) -> Declaration | None:
        return self.declarations.get(name)

    def mode(self, tensor: str) -> str | None:
        symbol = self.scope.find(tensor)
        return symbol.node.mode if symbol is not None and symbol.kind == "tensor" else None

    def reduction(self, name: str) -> Reduction | None:
        return self.registry.reductions.get(name)

    @property
    def warps(self) -> int:
        """Warps of one instance of the role at hand."""
        return self.role.count.value * self.groups[self.role.group].warps if self.role else 0

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the grid of those warps."""
        return warp_grid(self.role.words, self.warps) if self.role else (0, 1)

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
        known: dict[str, object] = {}
        if self.form is Form.DERIVED:
            known |= {
                "leader": Scalar(BOOL, Level.LANE),
                "warp.leader": Scalar(BOOL, Level.LANE),
                "cluster.id": Scalar(I32, Level.CTA, ranges.at_least(0)),
                "cluster.count": Scalar(I32, Level.CTA, count),
            }
            if self.cluster_axis:
                known[f"cluster.{self.cluster_axis}"] = Scalar(I32, Level.CTA, ranges.Range(0, self.cluster_size - 1))
        if self.pair and self.form is Form.SCHEDULE:
            known["pair.i"] = Scalar(I32, Level.CTA, ranges.Range(0, PAIR - 1))
        if self.role is None and self.form is Form.DERIVED:
            known["warp"] = Scalar(I32, Level.WARP, ranges.at_least(0))  # of the CTA
        if self.role is not None:
            known["warp"] = Scalar(I32, Level.WARP, ranges.Range(0, self.warps - 1))
            known[f"{self.role.name}.i"] = Scalar(I32, Level.INSTANCE, ranges.Range(0, self.instances - 1)) if self.instances > 1 else Int(0, type=Scalar(I32, Level.CTA, ranges.constant(0)))
        if self.item_count:
            known |= {n: Scalar(I32, Level.CTA, ranges.at_least(0)) for n in (self.item_count, *self.items_ahead)}
        return known

    # --- the kernel's frame

    def kernel(self, k: Kernel, overrides: dict[str, Number]) -> Kernel:
        with self.sink.collecting():
            self._target(k)
        clauses = []
        self._scalars(k)
        self._consts(k, overrides)
        with self.sink.collecting(span=k.cluster.span if k.cluster else None):
            if k.cluster is not None:
                clauses.append(self._cluster(k))
        self.few_contracts(k)
        self._ranges(k)
        params = tuple(p for p in map(self._param, k.params) if p is not None)
        requires = self._requires(k)
        assumes = self._assumes(k)
        self._collect_roles(k)
        body = self.statements(k.body)
        if self.form is Form.DERIVED and self.launched is None and not self.sink.errors:
            self.sink.error("type/no-launch", f"kernel '{k.name}' has no 'launch' line", k.span, why="it says how many clusters are started", fix="write `launch ITEMS` before the roles")
        self.sink.items.sort(key=lambda d: (d.span.line, d.span.column) if d.span else (0, 0))
        self.sink.stop_if_errors()
        if requires:
            clauses.insert(0, Require(requires, span=requires[0].span))
        clauses[bool(requires) : bool(requires)] = assumes
        clauses.insert(len(clauses) - (k.cluster is not None), Target(k.targets, span=next((c.span for c in k.clause(Target)), k.span)))
        return replace(k, params=params, clauses=tuple(clauses), body=body)

    def _target(self, k: Kernel) -> None:
        if not k.targets:
            raise fail("type/no-target", f"kernel '{k.name}' names no target", k.span, fix="add a line `target ARCH`; 'cake plugins' lists the architectures")
        if self.arch is not None and self.arch.name not in k.targets:
            raise fail("type/wrong-target", f"kernel '{k.name}' is not written for {self.arch.name}", k.clause(Target)[0].span, why=f"its targets are {', '.join(k.targets)}")

    def _consts(self, k: Kernel, overrides: dict[str, Number]) -> None:
        bindings = [b for c in k.clause(Const) for b in c.bindings]
        names = [b.name for b in bindings]
        for name in overrides:
            if name not in names:
                self.sink.error("type/unknown-const", f"kernel '{k.name}' has no const '{name}'", k.span, fix=suggestion(name, names, "consts"))
        for n, b in enumerate(bindings):
            self.later = frozenset(names[n:])
            known = Symbol("const", Unknown(), b.span)
            with self.sink.collecting():
                value = self._const(b, overrides)
                known = replace(known, type=value.type, value=value)
            with self.sink.collecting():
                self.scope.bind(b.name, known)
        self.later = frozenset()

    def _const(self, b: Binding, overrides: dict[str, Number]) -> Expr:
        value = self.expr(b.value)
        if isinstance(value.type, Unknown):
            raise reported()
        if not isinstance(value, Int | Float | Bool):
            raise fail("type/not-constant", f"const '{b.name}' is not a constant", b.value.span, why="its value must be known when the kernel is compiled")
        return self.expr(_override(b, value, overrides[b.name])) if b.name in overrides else value

    def _cluster(self, k: Kernel) -> Cluster:
        c = k.cluster
        self.cluster_axis = c.axis.name  # the name is known whatever is wrong with the size
        if len(k.clause(Cluster)) > 1:
            raise fail("type/repeated", "'cluster' stands twice", k.clause(Cluster)[1].span, related=self.at("the other one", c.span), why="a kernel has one cluster shape, along one axis")
        if c.axis.name in CLUSTER_NAMES:
            raise fail("type/cluster", f"'{c.axis.name}' can't be an axis", c.axis.span, why=f"`cluster.{c.axis.name}` has a meaning already")
        size = self.constant_int(c.axis.value, "the cluster's size")
        if size.value < 1:
            raise fail("type/cluster", f"a cluster of {size.value} CTAs", c.axis.span, why="it has one at least")
        if self.arch is not None and size.value > 1:
            if "cluster" not in self.arch.capabilities:
                raise fail("type/missing-capability", f"several CTAs need 'cluster', which {self.arch.name} does not offer", c.span, resource="cluster", fix="leave the clause out, or build for an architecture that offers it")
            if size.value > self.arch.limit("cluster_ctas"):
                raise fail("type/cluster", f"a cluster of {size.value} CTAs; {self.arch.name} takes {self.arch.limit('cluster_ctas')}", c.axis.span, why=self.arch.limits["cluster_ctas"].source)
        self.cluster_size = size.value
        return replace(c, axis=replace(c.axis, value=size), words=self.pair_words(c, size.value))

    def _requires(self, k: Kernel) -> tuple[Expr, ...]:
        """The conditions of all `require`s, typed; those that always hold are left out."""
        out = []
        written = [e for c in k.clause(Require) for e in c.exprs]
        for n, e in enumerate(written):
            with self.sink.collecting():
                self.stated_once(e, written[:n], "require")
                typed = self.condition(e, "'require'")
                if isinstance(typed.type, Unknown):
                    raise reported()
                self.no_reads(typed, "type/require", "what `require` asks for", "the host checks it before a launch, and knows the scalars", "write it as an `assume`")
                if holds(typed, {}) is False:
                    raise fail("type/require", "this `require` can never hold", e.span)
                if typed != Bool(True) and typed not in out:  # two may say the same once constants are known
                    out.append(typed)
        return tuple(out)

    def _scalars(self, k: Kernel) -> None:
        for p in k.params:
            with self.sink.collecting():
                if p.mode is None:
                    self.scope.bind(p.name, Symbol("parameter", Unknown(), p.span, node=p))
                    elem = self.element(p.declared)
                    if p.declared.groups:
                        raise fail("type/mode", f"tensor '{p.name}' needs a mode", p.span, fix="write `in`, `out`, `inout` or `workspace`")
                    if elem.name not in ("i32", "f32"):
                        raise fail("type/element", f"a scalar parameter is i32 or f32, not {elem}", p.declared.span)
                    self.scope.names[p.name] = Symbol("parameter", Scalar(elem), p.span, node=p)

    def _ranges(self, k: Kernel) -> None:
        """Give the parameters the ranges that the `require`s state. What is wrong with a `require` is said later."""
        outer, self.sink = self.sink, Sink()
        requires = self._requires(k)
        self.sink = outer
        for p in k.params:
            symbol = self.scope.names.get(p.name)
            if symbol is not None and symbol.kind == "parameter" and symbol.type == Scalar(I32):
                found = ranges_of(requires).get(p.name, ranges.ANY)
                if found.empty:
                    at = next(e.span for c in k.clause(Require) for e in c.exprs if p.name in (n.id for n in names(e)))
                    self.sink.error("type/require", f"no value of '{p.name}' satisfies all `require`s", at, resource=p.name)
                    found = ranges.ANY  # said once
                self.scope.names[p.name] = replace(symbol, type=Scalar(I32, Level.CTA, found))

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
            for d in dims:
                if isinstance(d.type, Unknown):
                    raise reported()
                self.no_reads(d, "type/dimension", f"a dimension of '{p.name}'", "the host knows the scalars")
                if isinstance(d, Int) and d.value < 1:
                    raise fail("type/dimension", f"'{p.name}' has a dimension of {d.value}", d.span, why="dimensions are positive")
                if (hi := range_of(d).hi) is not None and hi < 1:
                    raise fail("type/dimension", f"'{p.name}' has a dimension that is never positive", d.span, why="no value of the parameters gives it an element")
            declared = replace(p.declared, groups=(dims,))
            out = replace(p, declared=declared)
            shape = tuple(d.value if isinstance(d, Int) else d for d in dims)
            self.scope.bind(p.name, Symbol("tensor", Tile("global", elem, (shape,)), p.span, node=out))
            return out
        self.scope.names.setdefault(p.name, Symbol("tensor", Unknown(), p.span, node=p))
        return None

    def _collect_roles(self, k: Kernel) -> None:
        for r in k.roles:
            with self.sink.collecting():
                self.scope.bind(r.name, Symbol("role", Named("role", r.name), r.span, node=r))
        self.role_names, self.roles = tuple(r.name for r in k.roles), k.roles
        most = self.arch.limit("threads_per_block") // 32 if self.arch is not None else len(k.roles)
        if len(k.roles) > most:
            self.sink.error("type/role-size", f"kernel '{k.name}' has {len(k.roles)} roles", k.roles[most].span, why=f"{self.arch.name} takes {most} warps a CTA, and a role has one at least")
            self.sink.stop_if_errors()
        if not k.roles:
            self.sink.error("type/no-role", f"kernel '{k.name}' has no role", k.span, why="roles say what the warps of a CTA do", fix="add `role main: 4 warps { .. }`")


def constants(kernel: Kernel, registry, arch: Architecture | None, *, derived: bool, overrides: dict[str, Number] | None = None) -> dict[str, Number]:
    """The kernel's consts by name, folded, `overrides` applied: what a manifest records. Raises CakeError."""
    e = Elaborator(registry, arch, Form.DERIVED if derived else Form.SCHEDULE)
    e._scalars(kernel)
    e._consts(kernel, overrides or {})
    e.sink.stop_if_errors()
    return {n: s.value.value for n, s in e.scope.names.items() if s.kind == "const"}


def _override(b: Binding, declared: Expr, value: Number) -> Expr:
    """The value that was set for a const, of the type that the text gives it. Raises CakeError."""
    kinds = {Bool: "true or false", Int: "an integer", Float: "a float"}
    if isinstance(declared, Float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    given = literal(value, declared)
    if type(given) is not type(declared) or isinstance(value, float) and isnan(value):
        raise fail("type/const-value", f"const '{b.name}' is {kinds[type(declared)]}, and {str(value).lower()} is set for it", b.span, fix="set a value of the type that the text gives it")
    return given
