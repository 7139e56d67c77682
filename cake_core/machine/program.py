"""Blocks of facts as flat code, and the steps that its execution gives.

Code is a list of instructions over an environment; executing an event appends `Step`s, in which every place, barrier and count
is a number. Places and barriers are numbered by a `Places`, once for a scenario.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cake_core.effects import Fence, Free, GridOrder, Issuer, Mode, Proxy, Reserve
from cake_core.facts.schema import (
    Access,
    Arrive,
    AtOnce,
    Block,
    Branch,
    By,
    Commit,
    Drain,
    EngineArrive,
    Event,
    Facts,
    Init,
    Loop,
    Meet,
    Region,
    Set,
    Wait,
    While,
    WithBytes,
    WithCommit,
    WithGroup,
    events,
)
from cake_core.ir.nodes import Expr
from cake_core.ir.types import Level
from cake_core.machine.places import Location, Places
from cake_core.machine.steps import LANES, Do, Doer, Step, Touch
from cake_core.machine.values import Compiler, Env, Opaque, Unknown, Value

#: `n`: how many threads do it.
Emit = Callable[[Env, Doer, Step, int, list], None]


@dataclass(slots=True)
class Coder:
    """Compiles blocks of one role, or of those outside of roles. `code`: ("event", ..), ("set", ..), ("unless", ..), ("jump", ..); ("do", event,
    function of the environment) for who adds data."""

    facts: Facts
    compiler: Compiler
    places: Places
    messages: dict[int, dict[tuple, int]]  # elements of shared memory that hold known integers, by location and box
    code: list[tuple] = field(default_factory=list)
    loops: list[tuple[str, int]] = field(default_factory=list)
    collective: set[str] = field(default_factory=set)  # queues whose accesses all warps of an instance issue together
    in_flight: set[str] = field(default_factory=set)  # fragments that asynchronous operations touch
    node: int = 0  # the one at hand
    tensors: bool = False  # where asynchronous statements begin in tensors is a step too
    whole: bool = False  # statements that touch global memory or registers alone are steps too, which do nothing

    def block(self, block: Block) -> list[tuple]:
        self.mark(block)
        self._block(block)
        return self.code

    def mark(self, block: Block) -> None:
        """Note which queues and fragments need care in what is written from here on."""
        for e in events(block):
            for a in e.acts:
                if isinstance(a, Access) and not isinstance(a.completion, AtOnce):
                    if a.issuer is Issuer.WARPGROUP and isinstance(a.completion, WithGroup):
                        self.collective.add(a.completion.queue)
                    if a.region.memory == "registers":
                        self.in_flight.add(a.region.name)

    def write(self, e: Event) -> None:
        """Code of one event."""
        self.node = e.id
        self._event(e)

    def _block(self, block: Block) -> None:
        for node in block:
            self.node = node.id
            match node:
                case Event():
                    self._event(node)
                case Loop():
                    self._loop(node)
                case While():
                    self._while(node)
                case Branch():
                    self._branch(node)

    def _hidden(self) -> int:
        slots = self.compiler.names.slots
        return self.compiler.names.slot(f" {len(slots)}")

    def _loop(self, n: Loop) -> None:
        var, end, by = self.compiler.names.slot(n.var), self._hidden(), self._hidden()
        lo, hi, step = map(self._value, (n.lo, n.hi, n.step))
        self.code.append(("set", ((end, hi), (by, step), (var, lo))))
        start = len(self.code)
        self.code.append(())
        self.loops.append((n.var, var))
        self._block(n.body)
        self.loops.pop()
        self.code.append(("set", ((var, lambda env: env[var] + env[by]),)))
        self.code.append(("jump", start))
        self.code[start] = ("unless", lambda env: env[var] < env[end], len(self.code))

    def _while(self, n: While) -> None:
        turn = self._hidden()
        self.code.append(("set", ((turn, lambda env: 0),)))
        start = len(self.code)
        self.code.append(())
        self.loops.append(("turn", turn))
        holds = self._value(n.test)
        self._block(n.body)
        self.loops.pop()
        self.code.append(("set", ((turn, lambda env: env[turn] + 1),)))
        self.code.append(("jump", start))
        self.code[start] = ("unless", holds, len(self.code))

    def _branch(self, n: Branch) -> None:
        at, holds = len(self.code), self._value(n.test)
        self.code.append(())
        self._block(n.then)
        if n.other:
            out = len(self.code)
            self.code.append(())
            self.code[at] = ("unless", holds, len(self.code))
            self._block(n.other)
            self.code[out] = ("jump", len(self.code))
        else:
            self.code[at] = ("unless", holds, len(self.code))

    # --- events ----------------------------------------------------------------------------------------------------

    def _event(self, e: Event) -> None:
        emits: list[tuple[Issuer | None, Emit]] = []
        at_once: list[Access] = []
        copied: list[Access] = []
        for a in e.acts:
            match a:
                case Access(region=Region(memory="global"), completion=c) if not isinstance(c, WithBytes):
                    continue
                case Access(completion=AtOnce()):
                    at_once.append(a)
                case Access(completion=WithBytes()):
                    copied.append(a)
                case Access(completion=WithGroup(queue)):
                    emits.append((_issuer(a), self._asynchronous(Do.GROUP, a, queue, a.issuer is Issuer.WARPGROUP)))
                case Access(completion=WithCommit(engine)):
                    emits.append((_issuer(a), self._asynchronous(Do.ENGINE, a, engine, None)))
                case _:
                    emits.append((None, self._act(a)))
        for done in {a.completion: None for a in copied}:
            group = [a for a in copied if a.completion == done]
            emits.append((_issuer(group[0]), self._copy(group)))
        for a in e.acts if self.tensors else ():
            if isinstance(a, Access) and a.region.memory == "global" and not isinstance(a.completion, AtOnce):
                emits.insert(0, (_issuer(a), self._begins(a.region)))
        for issuer in dict.fromkeys(a.issuer for a in at_once):
            emits.insert(0, (issuer, self._now([a for a in at_once if a.issuer is issuer])))
        if self.whole and not emits and e.acts:
            emits.append((None, self._now([])))
        if emits:
            loops = tuple(self.loops)
            self.code.append(("event", e, tuple(emits), tuple(s for _, s in loops), tuple(n for n, _ in loops)))
        if e.sets:
            sets = []
            for s in e.sets:
                value = self._value(s.value) if s.value is not None else self._received(e, s)
                sets.append((self.compiler.names.slot(s.name), value))
            self.code.append(("by", e, tuple(sets)))

    def _value(self, e: Expr) -> Value:
        """The value of an expression of the node at hand; where nothing is known of it, one that is the same for all who must agree."""
        try:
            return self.compiler.value(e)
        except Opaque:
            each = getattr(e.type, "level", Level.INSTANCE) > Level.INSTANCE
            unknown, choose = self._unknown(f" {self._hidden()}", each), self.compiler.choose
            return lambda env: choose(unknown(env).origin)

    def _received(self, e: Event, s: Set) -> Value:
        """What comes from memory: a message as it was written, a number that a counter gives out, or anything."""
        unknown, cta = self._unknown(s.name), self.compiler.names.slot(" cta")
        if s.source is not None:
            region, held = self._region(s.source), self.messages

            def message(env: Env):
                (location, box), *_ = region(env, None, env[cta])
                found = held.get(location.id, {}).get(box)
                return unknown(env) if found is None else found

            return message
        counter = next((a.region.name for a in e.acts if isinstance(a, Access) and a.atomic and a.region.memory == "global"), None)
        if counter is None:
            return unknown
        turn, draw = self._hidden(), self.compiler.draw

        def number(env: Env) -> int:
            env[turn] = (env[turn] or 0) + 1
            return draw(counter, env[turn] - 1)

        return number

    def _constant(self, e: Expr) -> int | None:
        try:
            return self.compiler.constant(e)
        except Opaque:
            return None

    def _unknown(self, name: str, each_warp: bool = False) -> Value:
        """One value for all warps of an instance, or for each warp, at one execution of the node at hand."""
        node = self.node
        who = [self.compiler.names.slot(n) for n in (" cta", " role", " instance", *(["warp"] if each_warp else []))]
        loops = [s for _, s in self.loops]
        return lambda env: Unknown((node, name, *(env[s] for s in who), *(env[s] for s in loops)))

    def _region(self, r: Region) -> Callable[[Env, Doer, int], list[tuple[Location, tuple[int, ...]]]]:
        """The locations and boxes in the CTA of a rank."""
        slot = tuple(self._value(e) for e in r.slot)
        ends = [(self._value(x.lo), self._value(x.size)) for x in r.box]
        fixed = [self._constant(e) for x in r.box for e in (x.lo, x.size)]
        whole = None
        if None not in fixed:
            whole = tuple(v for lo, size in zip(fixed[::2], fixed[1::2], strict=True) for v in (lo, lo + size))
        places, private = self.places, r.memory == "registers"

        def at(env: Env, who: Doer, cta: int) -> list[tuple[Location, tuple[int, ...]]]:
            if whole is not None:
                box = whole
            else:
                box = []
                for lo, size in ends:
                    first = lo(env)
                    box += (first, first + size(env))
                box = tuple(box)
            index = tuple(int(s(env)) for s in slot)
            owner = (who.role, who.instance, who.warp) if private else None
            return [(x, box) for x in places.locations(r.memory, cta, r.name, index, owner)]

        return at

    def _touches(self, accesses: list[Access]) -> Callable[[Env, Doer], list[Touch]]:
        """What accesses touch; those of an engine that serves a pair of CTAs touch both."""
        made = []
        for a in accesses:
            if a.region.memory == "global" or (
                a.region.memory == "registers" and isinstance(a.completion, AtOnce) and a.region.name not in self.in_flight
            ):
                continue
            both = self.facts.pair and isinstance(a.completion, WithCommit)
            rank = None if a.cta is None else self._value(a.cta)
            value = None if a.value is None else self._value(a.value)
            parts = None if a.division is None else a.division.map
            when = None if a.when is None else self._value(a.when)
            made.append((self._region(a.region), rank, both, a.mode is Mode.WRITE, a.proxy, a.atomic, value, parts, a.scope, when))
        size = self.facts.cluster

        def touches(env: Env, who: Doer) -> list[Touch]:
            out = []
            for region, rank, both, write, proxy, atomic, value, parts, scope, when in made:
                if when is not None and not when(env):
                    continue
                left = None if value is None else int(value(env))
                cta = who.cta if rank is None else rank(env)
                for c in (cta & ~1, cta | 1) if both and size > 1 else (cta,):
                    out += [Touch(x, box, write, proxy, atomic, left, parts, scope) for x, box in region(env, who, c)]
            return out

        return touches

    def _now(self, accesses: list[Access]) -> Emit:
        touches, whole = self._touches(accesses), self.whole

        def emit(env: Env, who: Doer, step: Step, n: int, out: list[Step]) -> None:
            if (found := touches(env, who)) or whole:
                step.do, step.a = Do.ACCESS, found
                out.append(step)

        return emit

    def _asynchronous(self, do: Do, a: Access, name: str, together: bool | None) -> Emit:
        touches = self._touches([a])

        def emit(env: Env, who: Doer, step: Step, n: int, out: list[Step]) -> None:
            found = touches(env, who)
            if together and who.warp != 0:  # the first warp stands for all, but for what is private
                found = [t for t in found if t.location.memory == "registers"]
            step.do, step.a, step.b, step.c = do, found, name, together
            out.append(step)

        return emit

    def _copy(self, accesses: list[Access]) -> Emit:
        """One asynchronous copy: what it reads until all has arrived, and what arrives in each CTA that it goes to."""
        c, places = accesses[0].completion, self.places
        index = self._value(c.barrier.index)
        home = None if c.cta is None else self._value(c.cta)
        ranks = [None] if c.mask is None else [r for r in range(c.mask.bit_length()) if c.mask >> r & 1]
        reads = self._touches([a for a in accesses if a.mode is Mode.READ])
        writes = [
            (self._region(a.region), *(None if e is None else self._value(e) for e in (a.cta, a.value)), a.proxy, a.atomic, a.scope)
            for a in accesses
            if a.mode is Mode.WRITE and a.region.memory != "global"
        ]

        def emit(env: Env, who: Doer, step: Step, n: int, out: list[Step]) -> None:
            deliveries = []
            for rank in ranks:
                touched, to = [], who.cta if rank is None else rank
                for region, at, value, proxy, atomic, scope in writes:
                    to = to if at is None else at(env)
                    left = None if value is None else int(value(env))
                    touched += [Touch(x, box, True, proxy, atomic, left, scope=scope) for x, box in region(env, who, to)]
                barrier = places.barrier(to if home is None else home(env), c.barrier.name, index(env))
                deliveries.append((touched, barrier, n * c.bytes))
            step.do, step.a, step.b = Do.COPY, reads(env, who), deliveries
            out.append(step)

        return emit

    def _begins(self, r: Region) -> Emit:
        box = [(self._value(x.lo), self._value(x.size)) for x in r.box]
        return _plain(Do.TENSOR, lambda env, who, n: (r.name, tuple(int(lo(env)) for lo, _ in box), tuple(int(size(env)) for _, size in box)))

    def _act(self, a) -> Emit:
        places, value = self.places, self._value
        match a:
            case Init(name):
                return _plain(Do.INIT, lambda env, who, n: (places.array(who.cta, name), None, None))
            case Wait(ref, parity):
                index, wanted = value(ref.index), value(parity)
                return _plain(Do.WAIT, lambda env, who, n: (places.barrier(who.cta, ref.name, index(env)), wanted(env), None))
            case Arrive(ref, cta, expect):
                index, rank = value(ref.index), None if cta is None else value(cta)
                return _plain(
                    Do.ARRIVE,
                    lambda env, who, n: (places.barrier(who.cta if rank is None else rank(env), ref.name, index(env)), n, n * expect),
                )
            case EngineArrive(ref, engine, mask):
                index = value(ref.index)
                ranks = None if mask is None else [r for r in range(64) if mask >> r & 1]
                return _plain(
                    Do.ENGINE_ARRIVE,
                    lambda env, who, n: ([places.barrier(r, ref.name, index(env)) for r in ranks or (who.cta,)], engine, n),
                )
            case Commit(queue):
                return _plain(Do.COMMIT, lambda env, who, n: (queue, queue in self.collective, None))
            case Drain(queue, pending, reads_only):
                return _plain(Do.DRAIN, lambda env, who, n: (queue, pending, reads_only))
            case Meet(scope, id, threads, waits):
                return self._meet(scope, None if id is None else value(id), threads, waits)
            case Fence(kind):
                return _plain(Do.FENCE, lambda env, who, n: (kind, None, None))
            case Reserve(amount):
                return _plain(Do.RESERVE, lambda env, who, n: (amount, None, None))
            case GridOrder(waits):
                return _plain(Do.GRID, lambda env, who, n: (waits, None, None))
            case Free(amount):
                return _plain(Do.FREE, lambda env, who, n: (amount, None, None))
        raise AssertionError(a)

    def _meet(self, scope: str, id: Value | None, threads: int | None, waits: bool) -> Emit:
        cta_threads, cluster = LANES * self.facts.warps, self.facts.cluster
        match scope:
            case "warp":
                return _plain(Do.CONVERGE, lambda env, who, n: (None, None, None))
            case "named":
                return _plain(Do.MEET, lambda env, who, n: ((who.cta, id(env)), threads or cta_threads, waits))
            case "cta":
                return _plain(Do.MEET, lambda env, who, n: ((who.cta, 0), cta_threads, waits))
        return _plain(Do.MEET, lambda env, who, n: ((-1, 0), cta_threads * cluster, waits))


def _plain(do: Do, fields: Callable[[Env, Doer, int], tuple]) -> Emit:
    def emit(env: Env, who: Doer, step: Step, n: int, out: list[Step]) -> None:
        step.do = do
        step.a, step.b, step.c = fields(env, who, n)
        out.append(step)

    return emit


def _issuer(a: Access) -> Issuer | None:
    """Whom an asynchronous access leaves out: what goes through the generic proxy chooses its lane, an engine gets one from each thread."""
    return None if a.issuer is Issuer.LEADER and a.proxy is not Proxy.GENERIC else a.issuer


def executes(e: Event, who: Doer) -> bool:
    """Whether any of the threads executes the event."""
    if e.warp is not None and not who.warp <= e.warp < who.warp + who.warps:
        return False
    return e.by is not By.LEADER or who.warp == 0


def steps_of(instruction: tuple, env: Env, who: Doer) -> list[Step]:
    """The steps of an ("event", ..) instruction by `who`, which executes it."""
    _, e, emits, slots, names = instruction
    iteration = tuple(env[s] for s in slots)
    n = {By.ALL: LANES * who.warps, By.WARP_LEADERS: who.warps, By.LEADER: 1}[e.by]
    out: list[Step] = []
    for issuer, emit in emits:
        alone = issuer is Issuer.LEADER and n > 1
        if not alone or who.warp == 0:
            step = Step(Do.ACCESS, e.by is By.ALL and not alone, None, None, None, e, iteration, names)
            emit(env, who, step, 1 if alone else n, out)
    return out
