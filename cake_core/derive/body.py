"""A role's body in the derived form: verbs become barrier statements on explicit ordinals, operations derive themselves."""

from __future__ import annotations

from dataclasses import field, fields, replace
from math import gcd

from cake_core.derive.accesses import operation_with
from cake_core.derive.distribution import Around, Fragments, choose, distribution, on_grid
from cake_core.derive.grouped import joined as joined_group
from cake_core.derive.guards import slots_first
from cake_core.derive.held import HeldSlots
from cake_core.derive.schedules import Schedule
from cake_core.derive.turns import Turning
from cake_core.derive.warps import NamedBarriers
from cake_core.diagnostics import CakeError, Sink
from cake_core.effects import Access, Effect, Fence, InGroup, Mode, Proxy, WaitGroup
from cake_core.frozen import frozen, thawed
from cake_core.ir import ranges
from cake_core.ir.build import add, assign, binary, mod, standing
from cake_core.ir.flow import walk
from cake_core.ir.nodes import (
    Assign,
    Binding,
    Block,
    Call,
    Declaration,
    Declare,
    Expr,
    For,
    Group,
    If,
    Int,
    Let,
    Name,
    Node,
    Op,
    Option,
    Role,
    Stmt,
    Var,
    While,
    Word,
    Words,
)
from cake_core.ir.places import names, place_of, root
from cake_core.ir.types import Scalar, Tile, element_of
from cake_core.ir.visit import own_expressions
from cake_core.primitive import DeriveContext, Distribution, Function, HandOff, Layout, PipelinePlan, Protocol, Signal
from cake_core.primitive.asking import all_of, answering, effects_of, one_of
from cake_core.primitive.distributions import joined
from cake_core.source import Span

#: Ordinals that a role counts for a pipeline: variables are called PIPELINE_CURSOR.
CURSORS = ("fill", "commit", "wait", "release")


@frozen
class Frame:
    """What all roles share."""

    registry: object
    arch: object
    cluster_axis: str | None
    cluster_size: int
    pair: bool  # the cluster's CTAs are paired
    declarations: dict[str, Declaration]  # buffers, with offsets and swizzles
    types: dict[str, Tile]  # tensors and buffers
    swizzles: dict[str, int]
    plans: dict[str, PipelinePlan]
    protocol: Protocol
    schedules: dict[str, Schedule]
    counters: dict[str, str]  # by schedule, the variable that counts its items of a CTA
    barriers: NamedBarriers
    turns: dict[str, Turning]
    mates: dict[str, frozenset[str]]  # by buffer, those that share bytes with it
    other_proxies: frozenset[str]  # buffers that something reads or writes through another proxy than threads do
    by_engine: frozenset[tuple[str, str]]  # (role, buffer): the role uses it with the tensor engine, or in tensor memory
    sink: Sink
    fresh: object


@thawed
class Body(DeriveContext):
    """Derives one role; a `DeriveContext` for its operations."""

    frame: Frame
    of: Role
    warps: int
    instances: int
    fragments: Fragments
    layouts: dict[str, Layout]
    held: HeldSlots
    distribution: Distribution | None = None
    unfenced: list[Span] = field(default_factory=list)
    walked: set[str] = field(default_factory=set)  # schedules whose items the role has gone over
    written: frozenset[str] = frozenset()  # buffers that the role's threads write and something sees through another proxy
    landing: frozenset[str] = frozenset()  # queues whose groups write such buffers: the writes are there when they have been waited for

    # --- DeriveContext

    @property
    def arch(self):
        return self.frame.arch

    @property
    def cluster_axis(self) -> str | None:
        return self.frame.cluster_axis

    @property
    def cluster_size(self) -> int:
        return self.frame.cluster_size

    @property
    def pair(self) -> bool:
        return self.frame.pair

    @property
    def role(self) -> str:
        return self.of.name

    def hand_off(self, place: Expr) -> HandOff | None:
        name = root(place)
        for plan in self.frame.plans.values():
            if name is not None and name.id in plan.buffers:
                slots = place_of(place, self.frame.types[name.id]).slots
                slot = slots[0] if slots else Int(0)
                at = plan.full_at[0] if len(plan.full_at) == 1 else None
                return HandOff(plan.name, self.frame.protocol.full(plan, slot), slot, at)
        return None

    def swizzle(self, buffer: str) -> int:
        return self.frame.swizzles.get(buffer, 0)

    def named_barrier(self, scope: str) -> tuple[Expr, int]:
        first = self.frame.barriers.first(self.role, scope, self.instances if scope == "instance" else 1)
        if scope == "role":
            return Int(first), 32 * self.warps * self.instances
        return add(first, f"{self.role}.i") if self.instances > 1 else Int(first), 32 * self.warps

    def pending_fences(self) -> tuple[Stmt, ...]:
        if not self.unfenced:
            return ()
        at, self.unfenced = self.unfenced[-1], []
        return (operation_with(self.frame.registry, self.arch, Fence, lambda e: e.kind == "proxy_async", "a proxy fence", at),)

    def layout(self, fragment: str) -> Layout | None:
        return self.layouts.get(fragment)

    def declaration(self, name: str) -> Declaration | None:
        return self.frame.declarations.get(name)

    def alignment(self, expr: Expr) -> int:
        name = root(expr)
        declared = self.frame.types[name.id]
        stride, total = ranges.constant(declared.elem.bytes), ranges.constant(0)
        for part, extent in reversed(list(zip(place_of(expr, declared).parts, declared.shape, strict=True))):
            total = ranges.add(total, ranges.mul(_range(part.lo), stride))
            stride = ranges.mul(stride, ranges.constant(extent) if isinstance(extent, int) else _range(extent))
        return gcd(16, total.mod, total.rem)

    # --- the body

    def derive(self) -> Role:
        cursors = []
        for name, plan in self.frame.plans.items():
            used = {s.name for s in walk(self.of.body) if isinstance(s, Op) and s.operands and s.operands[0] == Name(name)}
            for verbs, cursor in ((("acquire",), "fill"), (("wait",), "wait"), (("release", "drain"), "release")):
                if used & set(verbs):
                    cursors.append(f"{plan.name}_{cursor}")
            if "commit" in used and plan.commits[self.role] is not Signal.BYTES:
                cursors.append(f"{plan.name}_commit")
        cursors += self._item_counters().values()
        effects = [e for s in walk(self.of.body) for e in effects_of(s, self.frame.registry)]
        self.written = frozenset(root(e.place).id for e in effects if self._crosses(e))
        self.landing = frozenset(e.completion.queue for e in effects if self._crosses(e) and isinstance(e.completion, InGroup))
        body = (*self.block(self.of.body), *(t for p in self.frame.plans.values() if f"{p.name}_fill" in cursors for t in self._last_releases(p)))
        start = tuple(Var((Binding(c, Int(0)),), span=self.of.span) for c in cursors)
        start += tuple(standing(s, self.of.span) for t in self.frame.turns.values() if t.plan.role == self.role for s in t.start())
        return replace(self.of, body=(*start, *body))

    def _last_releases(self, plan: PipelinePlan) -> Block:
        """A role that fills what the engine reads ends when the engine has arrived for its last slots: nothing may arrive at a
        barrier of a CTA that has left (S17). Acquiring as many slots as there are waits for all of them."""
        if Signal.ENGINE not in plan.releases.values():
            return ()
        cursor = f"{plan.name}_fill"
        once = (*self.frame.protocol.acquire(plan, mod(cursor, plan.slots), Name(cursor)), assign(cursor, add(cursor, 1)))
        return (standing(For((self.frame.fresh(f"{plan.name}_last"),), Int(0), Int(plan.slots), Words(), once), self.of.span),)

    def _item_counters(self) -> dict[str, str]:
        """By schedule, the variables that the role needs."""
        used = {n.id for t in walk(self.of.body) for e in own_expressions(t) for n in names(e)}
        return {name: counter for name, counter in self.frame.counters.items() if f"{name}.n" in used}

    def block(self, block: Block) -> Block:
        out: list[Stmt] = []
        outside = self.fragments
        for n, s in enumerate(block):
            with self.frame.sink.collecting(role=self.role, span=s.span):
                for d in slots_first(s, self._stmt(s), block[n + 1 :]):
                    _append(out, d)
        self.fragments = outside
        return tuple(out)

    def _let(self, s: Let) -> Let:
        """Each name, with how its register tile lies."""
        bindings = []
        for b in s.bindings:
            self.distribution = lies = self.fragments.of(b.value)
            bindings.append(self._functions(b))
            self.fragments = self.fragments.bound(b.name, b.value, lies)
        return replace(s, bindings=tuple(bindings))

    def _loop(self, block: Block) -> Block:
        """A loop's body. What one iteration leaves without a fence, the first rendezvous of the next one must fence; and
        where the loop does not run at all, so must the first one behind it."""
        before = self.unfenced
        self.unfenced = list(before)
        out = self.block(block)
        if self.unfenced != before and self.unfenced:
            self.unfenced = [*before, *self.unfenced]
            out = self.block(block)
        self.unfenced = [*before, *(x for x in self.unfenced if x not in before)]
        return out

    def _branches(self, then: Block, other: Block | None) -> tuple[Block, Block | None]:
        before = self.unfenced
        self.unfenced = list(before)
        first = self.block(then)
        left, self.unfenced = self.unfenced, list(before)
        second = self.block(other) if other is not None else None
        self.unfenced = [*left, *(x for x in self.unfenced if x not in left)]
        return first, second

    def _stmt(self, s: Stmt) -> Block:
        self.distribution = None
        match s:
            case Op(name, (Name(p), *_)) if p in self.frame.plans and name in _VERBS:
                return tuple(standing(d, s.span) for d in _VERBS[name](self, s, self.frame.plans[p]))
            case Op("take" | "pass", (Name(t),)) if t in self.frame.turns:
                turning = self.frame.turns[t]
                return tuple(standing(d, s.span) for d in (turning.take() if s.name == "take" else turning.pass_on()))
            case Op():
                return self._operation(s)
            case For(hi=None):
                return self._items(s)
            case For() | While():
                return (replace(self._functions(s), body=self._loop(s.body)),)
            case Group():
                return joined_group(s, self.block(s.body), self.frame.registry, self.arch)
            case If():
                head = self._functions(s)
                then, other = self._branches(s.then, s.other)
                return (replace(head, then=then, other=other),)
            case Let():
                return (self._let(s),)
            case Declare():
                return (replace(s, declarations=tuple(self._fragment(d) for d in s.declarations)),)
            case Assign(target, value):
                self.distribution = self.fragments.of(target) if isinstance(target.type, Tile) else self.fragments.of(value)
                return (replace(self._functions(s), target=self._names(target)),)
            case _:
                return (self._functions(s),)

    def _operation(self, s: Op) -> Block:
        operation = self.frame.registry.operations[s.name]
        self.distribution = self.fragments.of(s.value) if s.value is not None else None
        s = self._functions(s)
        with answering(operation, "derive", s.span):
            out = all_of(operation.derive(s, self), Stmt, "statement")
        for e in effects_of(s, self.frame.registry):
            if isinstance(e, WaitGroup) and e.queue in self.landing or self._crosses(e) and not isinstance(e.completion, InGroup):
                self.unfenced.append(s.span)
        return out

    def _crosses(self, e: Effect) -> bool:
        """A generic write of a buffer that something sees through another proxy."""
        if not isinstance(e, Access) or e.mode is not Mode.WRITE or e.proxy is not Proxy.GENERIC:
            return False
        name = root(e.place)
        return name is not None and name.id in self.frame.other_proxies

    def _fragment(self, d: Declaration) -> Declaration:
        layout = self.layouts[d.name]
        d = on_grid(d, layout, self.of)
        return replace(d, words=replace(d.words, items=(*d.words.items, Word("layout", Name(layout.name)))))

    def _items(self, s: For) -> Block:
        schedule = self.frame.schedules[s.lo.id]
        body = self._loop(s.body) if schedule.persistent else self.block(s.body)
        if counter := self._item_counters().get(s.lo.id):
            body = (*body, assign(counter, add(counter, 1), s.span))
        carried = tuple(self._functions(b) for b in schedule.carried_as(s.pattern))
        out = schedule.loop(s.pattern, carried, body, s.span)
        if s.lo.id in self.walked:  # its variables are there, and start again
            out = tuple(x for d in out for x in ((assign(b.name, b.value, d.span) for b in d.bindings) if isinstance(d, Var) else (d,)))
        self.walked.add(s.lo.id)
        return out

    # --- expressions: functions derive themselves, `t.n` is the item counter, `t.next.D` of the next item

    def _functions(self, node):
        """`node` with the calls in its expressions derived, nested statements left alone."""
        if isinstance(node, tuple):
            return tuple(x if isinstance(x, Stmt) else self._functions(x) for x in node)
        if not isinstance(node, Node):
            return node
        if isinstance(node, Call) and (function := self.frame.registry.functions.get(node.name)) is not None:
            return self._call(node, function)
        changes = {}
        for f in fields(node):
            old = getattr(node, f.name)
            if f.name not in ("span", "type", "label") and isinstance(old, Node | tuple) and not isinstance(old, Stmt):
                new = self._functions(old)
                if new is not old:
                    changes[f.name] = new
        return self._names(replace(node, **changes) if changes else node)

    def _call(self, call: Call, function: Function) -> Call:
        """A call derived by its function; where its arguments say how the result lies, it lies so."""
        before = self.distribution
        self.distribution = function.lies(call, self.fragments.of) or before
        try:
            args = self._arguments(call, function.arguments)
            with answering(function, "derive", call.span):
                return one_of(function.derive(replace(call, args=args), self), Expr, "expression")
        finally:
            self.distribution = before

    def _arguments(self, call: Call, lie: str) -> tuple[Expr, ...]:
        before = self.distribution
        if lie == "whole":
            self.distribution = None
        elif lie == "own":
            self.distribution = joined(map(self.fragments.of, call.positional))
        try:
            return tuple(replace(a, value=self._functions(a.value)) if isinstance(a, Option) else self._functions(a) for a in call.args)
        finally:
            self.distribution = before

    def _names(self, node):
        if node == Name("pair.i"):
            return replace(node, id=f"cluster.{self.cluster_axis}")
        if isinstance(node, Name) and (schedule := self.frame.schedules.get(node.id.partition(".")[0])) is not None:
            counted = node.id == f"{schedule.name}.n"
            new = self.frame.counters[schedule.name] if counted else schedule.next(node.id)
            return node if new is None else replace(node, id=new)
        return node

    # --- verbs

    def _slot(self, plan: PipelinePlan, cursor: str, s: Op) -> tuple[Let, Name]:
        """The slot of the ordinal in `cursor`, named before the cursor moves: by the author's name, or by one of ours."""
        named = s.words.get("as")
        name = named.id if named is not None else f"{cursor}_slot"
        return Let((Binding(name, mod(cursor, plan.slots)),)), Name(name)

    def _acquire(self, s: Op, plan: PipelinePlan) -> Block:
        cursor = f"{plan.name}_fill"
        let, slot = self._slot(plan, cursor, s)
        protocol = self.frame.protocol
        taken = protocol.acquire(plan, slot, Name(cursor))
        return (let, *taken, *self._engine_fence("tensor_after", plan, s), *_advance(cursor, s), *protocol.announce(plan, slot, plan.bytes.get(self.role, 0)))

    def _commit(self, s: Op, plan: PipelinePlan) -> Block:
        how = plan.commits[self.role]
        if how is Signal.BYTES:
            return ()
        cursor = f"{plan.name}_commit"
        before = self._engine_fence("tensor_before", plan, s) if how is not Signal.ENGINE else ()
        handed = self.frame.protocol.commit(plan, mod(cursor, plan.slots), how, plan.engines.get(self.role, ""))
        return (*self.pending_fences(), *before, *handed, *_advance(cursor, s))

    def _wait(self, s: Op, plan: PipelinePlan) -> Block:
        cursor = f"{plan.name}_wait"
        let, slot = self._slot(plan, cursor, s)
        waited = self.frame.protocol.wait(plan, slot, Name(cursor))
        return (let, *waited, *self._engine_fence("tensor_after", plan, s), *_advance(cursor, s))

    def _release(self, s: Op, plan: PipelinePlan) -> Block:
        cursor = f"{plan.name}_release"
        how = plan.releases[self.role]
        before = self._engine_fence("tensor_before", plan, s) if how is not Signal.ENGINE else ()
        handed = self.frame.protocol.release(plan, mod(cursor, plan.slots), how, plan.engines.get(self.role, ""))
        return (*self._own_writes(plan), *before, *handed, *_advance(cursor, s))

    def _own_writes(self, plan: PipelinePlan) -> tuple[Stmt, ...]:
        """A fence where a consumer writes to the bytes of the slots itself: the copy that fills them again comes behind."""
        return self.pending_fences() if self._bytes_of(plan) & self.written else ()

    def _bytes_of(self, plan: PipelinePlan) -> set[str]:
        """The buffers of a pipeline, and those that share bytes with them."""
        return {*plan.buffers, *(m for b in plan.buffers for m in self.frame.mates.get(b, ()))}

    def _engine_fence(self, kind: str, plan: PipelinePlan, s: Op) -> Block:
        """What orders this role's use of the tensor engine, or of tensor memory, with a hand-off of `plan` (PTX ISA, Tensor
        memory consistency, thread synchronisation). An engine's own commit needs none."""
        if not any((self.role, buffer) in self.frame.by_engine for buffer in self._bytes_of(plan)):
            return ()
        return (operation_with(self.frame.registry, self.arch, Fence, lambda e: e.kind == kind, "a fence of the tensor engine", s.span),)

    def _drain(self, s: Op, plan: PipelinePlan) -> Block:
        """As many releases as slots may be held here: none, a known number, at most one, or a loop."""
        lo, hi = self.held.at_drain.get(id(s), (0, plan.slots))
        fences = self._own_writes(plan) if hi else ()
        once = self._release(s, plan)
        if lo == hi:
            return (*fences, *once * hi)
        behind = binary("<", f"{plan.name}_release", f"{plan.name}_wait")
        return (*fences, If(behind, once) if hi == 1 else While(behind, Words(), once))


_VERBS = {"acquire": Body._acquire, "commit": Body._commit, "wait": Body._wait, "release": Body._release, "drain": Body._drain}


def _advance(cursor: str, s: Op) -> Block:
    return (assign(cursor, add(cursor, 1), s.span),)


def _append(out: list[Stmt], s: Stmt) -> None:
    """Add a statement; neighbouring blocks of the same leader are one block."""
    if out and isinstance(s, If) and isinstance(out[-1], If) and isinstance(s.test, Name) and s.test == out[-1].test and s.other is out[-1].other is None:
        out[-1] = replace(out[-1], then=(*out[-1].then, *s.then))
    else:
        out.append(s)


def _range(e: Expr) -> ranges.Range:
    return e.type.range if isinstance(e.type, Scalar) else ranges.ANY


def body_of(role: Role, frame: Frame, warps: int, instances: int, demanded, held: HeldSlots) -> Role:
    """`role` in the derived form, header words not yet placed."""
    layouts, whole, types = {}, {}, {}
    declared = [d for s in walk(role.body) if isinstance(s, Declare) for d in s.declarations]
    for d in sorted(declared, key=lambda d: d.words.get("over") is not None):  # tiles along an axis last: they lie as others do
        with frame.sink.collecting(role=role.name):
            around = Around(role, warps, tuple(layouts[n] for n, t in types.items() if len(t.shape) == 2))
            layouts[d.name] = choose(frame.registry, d, demanded, around)
            whole[d.name] = distribution(layouts[d.name], on_grid(d, layouts[d.name], role), warps, role.name)
            types[d.name] = _fragment_type(d)
    if len(whole) < len(declared):
        raise CakeError()  # reported above
    return Body(frame, role, warps, instances, Fragments(frame.registry, whole, types), layouts, held).derive()


def _fragment_type(d: Declaration) -> Tile:
    return Tile("frag", element_of(d.declared), tuple(tuple(e.value for e in g) for g in d.declared.groups))
