"""Statements of a typed derived kernel as code for the event machine's agents: their events as facts have them, and between these what
they do to data.

One environment holds what control and data depend on, so that a loop ends where its data say and a wait has the parity that was computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from cake_core.diagnostics import CakeError, fail
from cake_core.effects import Access, Issuer, Now
from cake_core.facts.executing import executing
from cake_core.facts.extract import Scope
from cake_core.facts.schema import By, Event, Facts
from cake_core.frozen import thawed
from cake_core.ir.nodes import Assign, Binding, Block, Call, Declare, Expr, For, If, Int, Let, Name, Node, Op, Stmt, Tuple, Var, While
from cake_core.ir.places import root
from cake_core.ir.plan import layout_words
from cake_core.ir.types import State, Tile, Value, element_of
from cake_core.machine.places import Places
from cake_core.machine.program import Coder
from cake_core.primitive import Distribution
from cake_core.primitive.asking import effects_of
from cake_core.simulate.context import Context
from cake_core.simulate.expressions import Bound, Fragment, Unwritten, on_registers, single
from cake_core.simulate.room import Room, asked, not_simulated, simulated
from cake_core.simulate.site import Site

if TYPE_CHECKING:
    from cake_core.simulate.expressions import Env

#: What an event is called that is no operation.
WORDS = {Let: "let", Var: "var", Assign: "=", For: "for", While: "while", If: "if"}


@thawed(eq=False)
class Here:
    """Expressions of facts, which name places as the statement at hand does: what the machine's coder asks."""

    room: Room
    site: Site | None = None

    @property
    def names(self):
        return self.room.slots

    def value(self, e: Expr) -> Callable[[Env], int]:
        of = self.site.expressions.of(e)
        return lambda env: single(of(env))

    def constant(self, e: Expr) -> int | None:
        return e.value if isinstance(e, Int) else None


#: Called with the label of a statement that is about to be executed, with where it stands and the environment.
Watch = Callable[[str, Site, list], None]


class Writer:
    """Writes the code of one role, or of what stands outside of roles. `warps`: of an instance; `sites`: of asynchronous operations, by the number
    of their event."""

    def __init__(self, room: Room, facts: Facts, places: Places, scope: Scope, warps: int, body: tuple) -> None:
        self.room, self.scope, self.warps = room, scope, warps
        self.here = Here(room)
        self.coder = Coder(facts, self.here, places, {})
        self.coder.mark(body)
        self.code = self.coder.code
        self.sites: dict[int, Site] = {}
        self.numbers = [0]
        self.watch: Watch | None = None

    def write(self, body: Block, names: dict[str, Bound]) -> None:
        """`names`: what is bound around; bound names are added to it."""
        for s in body:
            self.statement(s, names, By.ALL, None)

    def block(self, body: Block, names: dict[str, Bound], by: By, warp: int | None) -> None:
        inner = dict(names)
        for s in body:
            self.statement(s, inner, by, warp)

    def statement(self, s: Stmt, names: dict[str, Bound], by: By, warp: int | None) -> None:
        if s.label is not None and self.watch is not None:
            self._stop(s, names, by, warp)
        match s:
            case Declare():
                self._declare(s, names)
            case For():
                self._for(s, names, by, warp)
            case While():
                self._while(s, names, by, warp)
            case If():
                self._if(s, names, by, warp)
            case Let() | Var():
                self._bind(s, names, by, warp)
            case Assign():
                self._assign(s, names, by, warp)
            case Op(name="launch"):
                pass
            case Op():
                self._operation(s, names, by, warp)
            case _:
                raise fail("runtime/not-simulated", f"'{type(s).__name__.lower()}' is not simulated", s.span)

    def _stop(self, s: Stmt, names: dict[str, Bound], by: By, warp: int | None) -> None:
        """Show the instance's first warp to who watches, in front of a statement."""
        site = Site(self.room, dict(names), tuple(self.coder.loops), Event(0, s.label, by, warp, (), (), s.span))
        who, label, watch = Event(0, s.label, By.LEADER, warp, (), (), s.span), s.label, self.watch
        self.code.append(("do", who, lambda env: watch(label, site, env)))

    # --- events ----------------------------------------------------------------------------------------------------

    def _site(self, s: Stmt, names: dict[str, Bound], by: By, warp: int | None) -> Site:
        """A statement with its event, whose steps are written."""
        self.numbers[0] += 1
        site = Site(self.room, dict(names), tuple(self.coder.loops))
        self.here.site = site
        acts = self.scope.acts(_head(s), by, warp)
        op = s.name if isinstance(s, Op) else next((WORDS[k] for k in WORDS if isinstance(s, k)), "")
        site.event = Event(self.numbers[0], op, by, warp, acts, (), s.span)
        site.fragments = tuple(dict.fromkeys(self._fragments(_head(s), names)))
        self.coder.write(site.event)
        return site

    def _fragments(self, node: Any, names: dict[str, Bound]) -> Iterator[int]:
        """Slots of the fragments that are read or written in a statement; a function that only asks how a tile lies accesses none."""
        match node:
            case Name(id):
                if (bound := names.get(id)) is not None and bound.fragment:
                    yield bound.slot
            case Call() if (function := self.room.registry.functions.get(node.name)) is not None and not function.reads:
                return
            case tuple():
                for x in node:
                    yield from self._fragments(x, names)
            case Node():
                for f in fields(node):
                    if f.name not in ("span", "type", "label", "function"):
                        yield from self._fragments(getattr(node, f.name), names)

    def _do(self, site: Site, act: Callable[[Env], None], alone: bool = False) -> None:
        event = site.event
        if alone and event.by is By.ALL:
            event = Event(event.id, event.op, By.LEADER, event.warp, (), (), event.span)

        def run(env: Env) -> None:
            try:
                act(env)
            except Unwritten as e:
                raise _unfilled(event, str(e)) from None
            for slot in site.fragments:
                env[slot].touched = True

        self.code.append(("do", event, run))

    # --- control ---------------------------------------------------------------------------------------------------

    def _for(self, s: For, names: dict[str, Bound], by: By, warp: int | None) -> None:
        self._site(s, names, by, warp)
        lo, hi, step = (self.here.value(e) for e in (s.lo, s.hi, s.words.get("step") or Int(1)))
        var, end, by_ = self.room.hidden(), self.room.hidden(), self.room.hidden()
        self.code.append(("set", ((end, hi), (by_, step), (var, lo))))
        start = len(self.code)
        self.code.append(())
        self.coder.loops.append((s.pattern[0], var))
        self.block(s.body, names | {s.pattern[0]: Bound(var)}, by, warp)
        self.coder.loops.pop()
        self.code.append(("set", ((var, lambda env: env[var] + env[by_]),)))
        self.code.append(("jump", start))
        self.code[start] = ("unless", lambda env: env[var] < env[end], len(self.code))

    def _while(self, s: While, names: dict[str, Bound], by: By, warp: int | None) -> None:
        turn = self.room.hidden()
        self.code.append(("set", ((turn, lambda env: 0),)))
        start = len(self.code)
        site = self._site(s, names, by, warp)
        test = site.expressions.of(s.test)
        at = len(self.code)
        self.code.append(())
        self.coder.loops.append(("turn", turn))
        self.block(s.body, names, by, warp)
        self.coder.loops.pop()
        self.code.append(("set", ((turn, lambda env: env[turn] + 1),)))
        self.code.append(("jump", start))
        self.code[at] = ("unless", lambda env: holds(test(env), s.test), len(self.code))

    def _if(self, s: If, names: dict[str, Bound], by: By, warp: int | None) -> None:
        site = self._site(s, names, by, warp)
        by, warp, rest = executing(s, by, warp)
        tests = tuple((site.expressions.of(e), e) for e in rest)
        at = len(self.code)
        if tests:
            self.code.append(())
        self.block(s.then, names, by, warp)
        if tests:
            test = lambda env: all(holds(t(env), e) for t, e in tests)
            if s.other:
                out = len(self.code)
                self.code.append(())
                self.code[at] = ("unless", test, len(self.code))
                self.block(s.other, names, by, warp)
                self.code[out] = ("jump", len(self.code))
            else:
                self.code[at] = ("unless", test, len(self.code))

    # --- names -----------------------------------------------------------------------------------------------------

    def _bind(self, s: Let | Var, names: dict[str, Bound], by: By, warp: int | None) -> None:
        for b in s.bindings:
            self._binding(type(s)((b,), span=s.span), b, names, by, warp)

    def _binding(self, s: Let | Var, b: Binding, names: dict[str, Bound], by: By, warp: int | None) -> None:
        site = self._site(s, names, by, warp)
        slot, t = self.room.hidden(), b.value.type
        lies = tile = None
        if isinstance(t, Value | Tile):
            lies, tile = site.how(b.value), Tile("frag", t.elem, (tuple(t.shape),), axis=t.axis, part=t.part)
            site.lies = lies
        value = site.expressions.of(b.value)

        def bind(env: Env) -> None:
            env[slot] = value(env)

        self._do(site, bind)
        names[b.name] = Bound(slot, lies, tile)

    def _assign(self, s: Assign, names: dict[str, Bound], by: By, warp: int | None) -> None:
        site = self._site(s, names, by, warp)
        targets = s.target.items if isinstance(s.target, Tuple) else (s.target,)
        if on_registers(targets[0]):
            site.lies = site.how(targets[0])
        value = self._empty(s) if _is_empty(s.value) else _copied(s.value, names) or site.expressions.of(s.value)
        puts = [self._put(site, t, names) for t in targets]

        def assign(env: Env) -> None:
            found = value(env)
            for put, x in zip(puts, found if isinstance(s.target, Tuple) else (found,), strict=True):
                put(env, x)

        self._do(site, assign)

    @staticmethod
    def _put(site: Site, target: Expr, names: dict[str, Bound]) -> Callable[[Env, Any], None]:
        if on_registers(target):
            return site.spot(target).assign
        slot = names[target.id].slot

        def put(env: Env, x: Any) -> None:
            env[slot] = x

        return put

    def _empty(self, s: Assign) -> Callable[[Env], Any]:
        """A state of nothing, as arrays of its fields, one row each."""
        import numpy as np

        from cake_core.primitive.simulated import dtype_of

        t: Tile = s.target.type
        kind, rows = self.room.registry.reductions[t.elem.type], t.shape[0]
        empty = kind.empty(t.elem.args)
        fields = {
            name: np.array([kind.field(name, t.elem.args, empty)] * rows, dtype_of(elem)) for name, (elem, _) in kind.fields(t.elem.args).items()
        }
        return lambda env: fields

    def _declare(self, s: Declare, names: dict[str, Bound]) -> None:
        space = self.room.registry.spaces.get(s.space)
        if space is None or space.memory != "registers":
            return  # in the plan
        for d in s.declarations:
            elem = element_of(d.declared)
            *slots, shape = (tuple(e.value for e in g) for g in d.declared.groups)
            count = 1
            for n in (n for g in slots for n in g):
                count *= n
            layout, words = self.room.registry.layouts[d.words.get("layout").id], layout_words(d)
            axis = words.get("over") if isinstance(words.get("over"), str) else None
            lies = Distribution(layout, shape, self.warps, words, layout.offsets(shape, self.warps, words))
            slot = self.room.hidden()
            names[d.name] = Bound(slot, lies, Tile("frag", elem, (*map(tuple, slots), shape), axis=axis), True)
            self._declared(d.name, slot, count, s)

    def _declared(self, name: str, slot: int, count: int, s: Declare) -> None:
        def declare(env: Env) -> None:
            env[slot] = Fragment(name, [None] * count)

        self.code.append(("do", Event(0, "frag", By.ALL, None, (), (), s.span), declare))

    # --- operations ------------------------------------------------------------------------------------------------

    def _operation(self, s: Op, names: dict[str, Bound], by: By, warp: int | None) -> None:
        operation = self.room.registry.operations.get(s.name)
        if operation is None:
            raise fail("plugin/no-operation", f"no plugin offers the operation '{s.name}'", s.span)
        site = self._site(s, names, by, warp)
        touched = [e for e in effects_of(s, self.room.registry) if isinstance(e, Access)]
        if not simulated(operation):
            if touched:
                raise not_simulated(operation, s.span)
            return
        if s.value is not None and on_registers(s.value):
            site.lies = site.how(s.value)
        if (name := s.words.get("as")) is not None and isinstance(name, Name):
            names[name.id] = Bound(self.room.hidden())
            site.names[name.id] = names[name.id]

        def run(env: Env, to: int | None = None, later: list | None = None, over: tuple | None = None) -> None:
            try:
                asked(operation, s, Context(site, env, to, later, over))
            except Unwritten as e:
                raise _unfilled(site.event, str(e)) from None

        site.run = run
        memory = [e for e in touched if not (root(e.place) is not None and root(e.place).id in names)]
        if any(not isinstance(e.completion, Now) for e in touched):
            self.sites[site.event.id] = site
        else:
            site.leads = bool(memory) and all(e.issuer is Issuer.LEADER for e in memory)
            self._do(site, run, alone=site.leads)


def _copied(e: Expr, names: dict[str, Bound]) -> Callable[[Env], Any] | None:
    """A whole fragment that is copied as it is, filled or not; None for any other value."""
    bound = names.get(e.id) if isinstance(e, Name) and isinstance(e.type, Tile) else None
    if bound is None or len(bound.type.groups) != 1:
        return None

    def held(env: Env) -> Any:
        x = env[bound.slot]
        return x.arrays[0] if isinstance(x, Fragment) else x

    return held


def _unfilled(event: Event, name: str) -> CakeError:
    """The finding of a fragment that is read and that nothing has filled."""
    told = f"'{event.op}' reads fragment '{name}', which nothing has filled"
    return fail("runtime/uninitialised-read", told, event.span, resource=name, fix="assign it first, on every path")


def _head(s: Stmt) -> Stmt:
    """A statement without the blocks inside of it."""
    match s:
        case For() | While():
            return replace(s, body=())
        case If():
            return replace(s, then=(), other=None)
    return s


def _is_empty(e: Expr) -> bool:
    return isinstance(e, Name) and e.id == "empty" and isinstance(getattr(e.type, "elem", None), State)


def holds(x: Any, test: Expr) -> bool:
    """A condition of who executes together, who must agree. Raises CakeError where they do not."""
    if getattr(x, "size", 1) > 1:
        if bool(x.all()) != bool(x.any()):
            why = "lanes of a warp would go different ways"
            raise fail("runtime/not-simulated", "a condition that differs among threads that execute together is not simulated", test.span, why=why)
        return bool(x.flat[0])
    return bool(x)
