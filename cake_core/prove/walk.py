"""The run of one agent, in closed form: at every place of its text, under which condition it stands there and what it has done.

`walk` follows a role's text once. A variable, and a count of how often something was done (a *stream*), is a term over the iterations of the
loops around. A loop is closed by what its body does to each of them: adds the same as, or as much as a sum can say (`sums.py`); or
sets it anew, so that it holds what the iteration before left; or, for a value that decides where the loop goes on (a search
in a table), something opaque that equal texts share.
"""

from __future__ import annotations

from dataclasses import field, replace

from cake_core import smt
from cake_core.facts.ending import grows
from cake_core.facts.schema import Arrive, Block, Branch, By, Drain, Event, Facts, Loop, Set, While
from cake_core.facts.schema import walk as nodes
from cake_core.frozen import frozen, thawed
from cake_core.ir.nodes import Binary, Expr, Name
from cake_core.ir.printer import expr_text
from cake_core.ir.ranges import ANY, at_least
from cake_core.prove.agents import Agent, Constants, specialise
from cake_core.prove.loops import Closing, State, opaque
from cake_core.prove.numbers import ZERO, Env, Num, digest, literal
from cake_core.prove.received import Talk, Talks
from cake_core.prove.sums import Sums
from cake_core.prove.text import Counting, Key, Unanalysed, arrival_turns, changed, matters, meeting_ids, needed_names, specialised


@frozen
class Frame:
    """A loop around a place: its iteration, how many it has; its variable starts at `first` and grows by `stride` (None: by what is no constant).
    Of a `while` that goes on by what was received: the `talk`, and `again`, that what came in this iteration lets it go on."""

    loop: Loop | While
    index: smt.Term
    trips: smt.Term
    first: smt.Term = ZERO
    stride: int | None = None
    talk: Talk | None = None
    again: smt.Term | None = None

    @property
    def name(self) -> str:
        return self.loop.var if isinstance(self.loop, Loop) else "turn"


@frozen
class Site:
    """A place: about to execute `event` (None: the end). `acts` for this agent; `number` in the order of the agent's text."""

    agent: Agent
    number: int
    event: Event | None
    acts: tuple
    frames: tuple[Frame, ...]
    guard: smt.Term
    state: State
    env: Env

    def count(self, key: Key) -> smt.Term:
        return self.state.get(key, ZERO)


def _one_place(a: Site, b: Site) -> bool:
    """Whether a leader's arrivals follow each other with nothing between: no one is held up there, and whoever waits for one of them is
    no further if the other has come too."""
    if any(s.event is None or s.event.by is By.ALL or not all(isinstance(x, Arrive) for x in s.acts) for s in (a, b)):
        return False
    if len(a.frames) != len(b.frames) or not a.guard.eq(b.guard) or a.state.keys() - b.state.keys():
        return False
    return all(k[0] == "arrive" or k in a.state and t.eq(a.state[k]) for k, t in b.state.items())


@thawed
class Run:
    """All places of one agent, in the order of its text; the last one is its end."""

    agent: Agent
    sites: list[Site]
    counting: Counting
    loose: list[While] = field(default_factory=list)  # loops of which no one else knows how often they go round
    endless: list[While] = field(default_factory=list)  # loops that whatever is sent lets go on
    own: bool = False  # it goes by values that only this agent's instance has
    iterations: dict[str, smt.Term] = field(default_factory=dict)  # of the loops around its places, by name

    def __post_init__(self) -> None:
        met = {f.index.ast: f.index for s in self.sites for f in s.frames}
        self.iterations = dict(sorted((i.name, i) for i in met.values()))

    @property
    def places(self) -> list[Site]:
        """The first site of each place: a leader's arrivals in a row are one."""
        return [s for n, s in enumerate(self.sites) if n == 0 or s.number != self.sites[n - 1].number]

    @property
    def end(self) -> Site:
        return self.sites[-1]


def run_of(agent: Agent, facts: Facts, sums: Sums, talks: Talks) -> Run:
    walker = _Walker(agent, facts, sums, talks)
    state = walker.block((*agent.role.body, *facts.after), {}, (), (), record=True)
    walker.site(None, (), state, (), ())
    return Run(agent, walker.sites, walker.counting, list(walker.loose.values()), list(walker.endless.values()), walker.own)


@thawed
class _Walker:
    agent: Agent
    facts: Facts
    sums: Sums
    talks: Talks
    sites: list[Site] = field(default_factory=list)
    loose: dict[int, While] = field(default_factory=dict)
    endless: dict[int, While] = field(default_factory=dict)
    own: bool = False
    constants: Constants = field(init=False)
    needed: frozenset[str] = field(init=False)  # names whose values decide something
    counting: Counting = field(init=False)

    def __post_init__(self) -> None:
        self.constants = self.agent.constants(self.facts)
        block = (*self.agent.role.body, *self.facts.after)
        self.counting = Counting(meeting_ids(block, self.constants), arrival_turns(block), self.agent.apart)
        self.needed = needed_names((*self.agent.role.body, *self.facts.after))

    # --- places ----------------------------------------------------------------------------------------------------

    def block(self, block: Block, state: State, frames: tuple[Frame, ...], guards: tuple, record: bool) -> State:
        for node in block:
            match node:
                case Event():
                    state = self._event(node, state, frames, guards, record)
                case Loop():
                    state = self._loop(node, state, frames, guards, record)
                case Branch():
                    state = self._branch(node, state, frames, guards, record)
                case While():
                    state = self._while(node, state, frames, guards, record)
        return state

    def env(self, state: State, frames: tuple[Frame, ...]) -> Env:
        out = {key[1]: Num(term) for key, term in state.items() if key[0] == "var"}
        for f in frames:
            if isinstance(f.loop, Loop):
                out[f.loop.var] = self._index(f)
        return out

    def _index(self, f: Frame) -> Num:
        if f.stride is None:
            return self.sums.numbers.unknown(f"index {f.index.name}", f.loop.var, ANY)
        first = literal(f.first)
        return Num(smt.simplify(f.first + f.index * f.stride), at_least(first) if first is not None and f.stride > 0 else ANY)

    def site(self, event: Event | None, acts: tuple, state: State, frames: tuple[Frame, ...], guards: tuple) -> None:
        guard = smt.And(guards) if guards else smt.BoolVal(True)
        number = self.sites[-1].number + 1 if self.sites else 0
        found = Site(self.agent, number, event, acts, frames, guard, dict(state), self.env(state, frames))
        if self.sites and _one_place(self.sites[-1], found):
            found = replace(found, number=number - 1)
        self.sites.append(found)

    # --- events ----------------------------------------------------------------------------------------------------

    def _event(self, e: Event, state: State, frames, guards, record: bool) -> State:
        if self.agent.runs(e):
            acts = specialised(e, self.constants)
            counted, drains = self.counting.streams(e), self.counting.drains(e)
            if counted or drains:
                if record:
                    self.site(e, acts, state, frames, guards)
                state = dict(state)
                for key in counted:
                    state[key] = smt.simplify(state.get(key, ZERO) + 1)
                for drain in drains:
                    self._drain(drain, state)
        if any(s.name in self.needed for s in e.sets):
            state = dict(state)
            for s in e.sets:
                if s.name in self.needed:
                    state["var", s.name] = self._value(s, e, self.env(state, frames), frames)
        if frames and (talk := frames[-1].talk) is not None and e.id in talk.sends:
            if record and talk.test is not None and self._always(frames[-1], state, guards):
                self.endless[frames[-1].loop.id] = frames[-1].loop
            state = dict(state) | {("var", v): self._message(text, frames[-1]) for v, text in talk.sends[e.id].items() if v in self.needed}
        return state

    def _always(self, f: Frame, state: State, guards: tuple) -> bool:
        """Whether what is about to be sent surely lets a loop go on: then it never ends."""
        again = smt.simplify(self._asked(f.loop, state, ()))
        return not f.again.eq(again) and self.sums.holds(again, *guards)

    def _drain(self, a: Drain, state: State) -> None:
        """All but `pending` of the groups closed so far are complete. `closed` is how many there were at the last drain: no more can
        have been complete by it."""
        closed = state.get(("commit", a.queue), ZERO)
        left = smt.simplify(closed - a.pending)
        for kind in ("read", "retired")[: 1 if a.reads_only else 2]:
            before, then = state.get((kind, a.queue), ZERO), state.get(("closed", kind, a.queue))
            grown = literal(smt.simplify(left - then)) if then is not None else None
            state[kind, a.queue] = left if a.pending == 0 or grown is not None and grown >= 0 else smt.simplify(smt.If(before >= left, before, left))
            state["closed", kind, a.queue] = closed

    def _value(self, s: Set, e: Event, env: Env, frames) -> smt.Term:
        if s.value is None:
            if frames and (talk := frames[-1].talk) is not None and (sent := talk.hears.get((e.id, s.name))) is not None:
                return self._message(sent.text(self.agent.cta), frames[-1])
            self.own = True
            who = self.agent.key if s.each else self.agent.place
            its = " ".join(f.index.name for f in frames)
            return self.sums.numbers.unknown(f"{who} event {e.id} {s.name} {its}", s.name, s.range).term
        return smt.simplify(self.sums.numbers.number(specialise(s.value, self.constants), env).term)

    def _message(self, sent: str, f: Frame) -> smt.Term:
        """What was sent in the trip that a loop is in. What each CTA sends to itself is its own."""
        self.own |= self.facts.cluster > 1 and "@" in sent
        return self.sums.numbers.unknown(f"what {sent} sent in trip {f.index.name}", sent, ANY).term

    # --- branches --------------------------------------------------------------------------------------------------

    def _branch(self, b: Branch, state: State, frames, guards, record: bool) -> State:
        if not any(matters(n, self.agent, self.needed, self.counting) for n in nodes((*b.then, *b.other))):
            return state
        test = smt.simplify(self._test(specialise(b.test, self.constants), self.env(state, frames), frames))
        if smt.is_true(test):
            return self.block(b.then, state, frames, guards, record)
        if smt.is_false(test):
            return self.block(b.other, state, frames, guards, record)
        then = self.block(b.then, state, frames, (*guards, test), record)
        other = self.block(b.other, state, frames, (*guards, smt.Not(test)), record)
        keys = dict.fromkeys((*then, *other))
        return {k: choose(test, then.get(k, ZERO), other.get(k, ZERO)) for k in keys if k[0] != "closed" or k in then and k in other}

    def _test(self, e: Expr, env: Env, frames: tuple[Frame, ...]) -> smt.Term:
        """A condition; whether there is a next iteration is said of the iteration, where the index is opaque."""
        match e:
            case Binary("and", a, b):
                return smt.And(self._test(a, env, frames), self._test(b, env, frames))
            case Binary("<", Binary("+", Name(var), step), hi):
                for f in frames:
                    if f.name == var and f.stride is None and self._same(f.loop.step, step) and self._same(f.loop.hi, hi):
                        return f.index + 1 < f.trips
        test = self.sums.numbers.condition(e, env)
        for f in frames:
            if f.again is not None and test.eq(f.again):
                return f.index + 1 < f.trips
        return test

    def _same(self, a: Expr, b: Expr) -> bool:
        return expr_text(specialise(a, self.constants)) == expr_text(b)

    def _while(self, w: While, state: State, frames, guards, record: bool) -> State:
        inside = [n for n in nodes(w.body) if isinstance(n, Event)]
        if any(self.agent.runs(e) and self.counting.streams(e) for e in inside):
            return self._turns(w, state, frames, guards, record)
        return self._alone(w, inside, state, frames)

    def _alone(self, w: While, inside: list[Event], state: State, frames) -> State:
        """A `while` in which nothing happens that others see leaves opaque values, the same for the same text from the same values."""
        keys = [("var", s.name) for e in inside for s in e.sets if s.name in self.needed]
        if not keys:
            return state
        keys = list(dict.fromkeys(keys))
        heads = {k: smt.Int(f"h!while.{k[1]}!") for k in keys}
        body = self.block(w.body, state | heads, frames, (), record=False)
        test = self.sums.numbers.condition(specialise(w.test, self.constants), self.env(state | heads, frames))
        return state | opaque(f"while {test.sexpr()}", keys, heads, body, state, self.sums)

    def _turns(self, w: While, state: State, frames, guards, record: bool) -> State:
        """A `while` in which something happens that others see: a loop of an unknown number of trips, which those who go on by the same
        messages share."""
        if (counted := self._counted(w, state, frames)) is not None:
            return self._iterate(w, counted, state, frames, guards, record)
        first = smt.simplify(self._asked(w, state, frames))
        talk = self.talks.of(self.agent.role, w, self.agent.cta) if not frames and smt.is_true(first) else None
        if talk is not None and self.talks.agreed(talk, w, self.agent.cta):
            return self._iterate(w, self._agreed(w, talk, state), state, frames, guards, record)
        self.loose[w.id], self.own = w, True
        frame = self._loose(w, frames)
        at_head, behind = self._closed(w, frame, state, frames)
        inside = smt.And(frame.index >= 0, frame.index < frame.trips, self._asked(w, at_head, (*frames, frame)))
        if not frames:
            last = {k: smt.substitute(t, (frame.index, frame.trips - 1)) for k, t in at_head.items()}
            self.sums.numbers.known += [
                smt.Implies(frame.trips == 0, smt.Not(first)),
                smt.Implies(frame.trips > 0, smt.And(first, self._asked(w, last, frames), smt.Not(self._asked(w, behind, frames)))),
            ]
        if record:
            self.block(w.body, at_head, (*frames, frame), (*guards, inside), record=True)
        return behind

    def _counted(self, w: While, state: State, frames) -> Frame | None:
        """`while x < e { .. x = x + c .. }`, e the same in each trip: a loop from x to e; None where it is another one."""
        if (c := grows(w, w.test)) is None:
            return None
        env, test = self.env(state, frames), specialise(w.test, self.constants)
        lo, hi = (self.sums.numbers.number(e, env).term for e in (test.left, test.right))
        hi = smt.simplify(hi + 1) if test.op == "<=" else hi
        key = f"while {lo.sexpr()} .. {hi.sexpr()} step {c} within {' '.join(f.index.name for f in frames)}"
        trips = smt.simplify(smt.If(hi > lo, (hi - lo + (c - 1)) / c if c > 1 else hi - lo, ZERO))
        return Frame(w, smt.Int(f"it!{digest(key)}"), trips)

    def _asked(self, w: While, state: State, frames) -> smt.Term:
        return self.sums.numbers.condition(specialise(w.test, self.constants), self.env(state, frames))

    def _agreed(self, w: While, talk: Talk, state: State) -> Frame:
        """The loop of all who go on by the same messages: at least one trip, and another one while what came says so."""
        n = self.sums.numbers
        index = smt.Int(f"it!{digest(talk.test)}")
        frame = Frame(w, index, n.unknown(f"trips {talk.test}", f"trips of the loops on {talk.test}", at_least(1)).term)
        meant = {("var", v): self._message(text, frame) for v, text in talk.meant(self.agent.cta).items()}
        return replace(frame, talk=talk, again=self._asked(w, state | meant, ()))

    def _loose(self, w: While, frames) -> Frame:
        key = f"while {w.id} of {self.agent.place} within {' '.join(f.index.name for f in frames)}"
        trips = self.sums.numbers.unknown(f"trips {key}", f"trips of the loop in line {w.span.line}", at_least(0)).term
        return Frame(w, smt.Int(f"it!{digest(key)}"), trips)

    # --- loops -----------------------------------------------------------------------------------------------------

    def _loop(self, l: Loop, state: State, frames, guards, record: bool) -> State:
        if not any(matters(n, self.agent, self.needed, self.counting) for n in nodes(l.body)):
            return state
        frame = self._frame(l, state, frames)
        if not frames and (talk := self.talks.of(self.agent.role, l, self.agent.cta)) is not None:
            frame = replace(frame, talk=replace(talk, hears={k: s for k, s in talk.hears.items() if k[1] in self.needed}))
        return self._iterate(l, frame, state, frames, guards, record)

    def _iterate(self, l: Loop | While, frame: Frame, state: State, frames, guards, record: bool) -> State:
        """A loop of which it is known how often it goes round."""
        at_head, behind = self._closed(l, frame, state, frames)
        if record:
            inside = smt.And(frame.index >= 0, frame.index < frame.trips)
            self.block(l.body, at_head, (*frames, frame), (*guards, inside), record=True)
        return behind

    def _frame(self, l: Loop, state: State, frames) -> Frame:
        env = self.env(state, frames)
        n = self.sums.numbers
        lo, hi, step = (n.number(specialise(x, self.constants), env) for x in (l.lo, l.hi, l.step))
        way = f"{lo.term.sexpr()} step {step.term.sexpr()}"  # where it ends is no matter of what its n-th iteration is
        key = f"{way} .. {hi.term.sexpr()}"
        within = " ".join(f.index.name for f in frames)
        index = smt.Int(f"it!{digest(f'{within} {way}')}")
        stride = literal(step.term)
        if stride is not None and stride >= 1:
            count = (hi.term - lo.term + (stride - 1)) / stride if stride > 1 else hi.term - lo.term
            exact = smt.simplify(smt.If(hi.term > lo.term, count, ZERO))
            trips = n.named(f"trips {key}", f"trips of the loop over {l.var}", Num(exact, at_least(0))).term
        else:
            trips = n.unknown(f"trips {key}", f"trips of the loop over {l.var}", at_least(0)).term
            n.known.append((trips > 0) == (lo.term < hi.term))
            n.is_exactly(n.unknown(f"index {index.name}", l.var, ANY).term, lo.term + index * step.term)
            if step.range.positive and not trips.args:
                n.exact.append((trips, smt.If(lo.term < hi.term, (hi.term - lo.term + step.term - 1) / step.term, ZERO)))
                n.goes(way, hi.term, step.term, trips)
        return Frame(l, index, trips, lo.term, stride)

    def _closed(self, l: Loop | While, frame: Frame, entry: State, frames) -> tuple[State, State]:
        """The state at the head of iteration `frame.index`, and behind the loop. Variables are closed first: what is counted may
        depend on them, and not the other way round."""
        entry = {k: t for k, t in entry.items() if k[0] != "closed"}
        moved = dict.fromkeys(changed(l.body, self.agent, self.needed, self.counting))
        inner = (*frames, frame)
        at, behind = dict(entry), dict(entry)
        left = [k for k in moved if k[0] == "var" and k in entry]  # other names live in the body alone
        while left:
            heads = {k: smt.Int(f"h!{frame.index.name}.{k[1]}!") for k in left}
            body = self.block(l.body, {**at, **heads}, inner, (), record=False)
            closing = Closing(self.sums, frame.index, frame.trips, entry, heads, body)
            first, last, still = closing.close()
            if len(still) == len(left):  # values that decide each other, such as a search through a table
                knot = closing.knot()
                values = opaque(f"loop {frame.index.name}", knot, heads, body, entry, self.sums, frame.index.name)
                first = {k: smt.If(frame.index == 0, entry[k], values[k]) for k in knot}
                last = {k: smt.If(frame.trips == 0, entry[k], smt.substitute(values[k], (frame.index, frame.trips))) for k in knot}
                still = [k for k in left if k not in knot]
            at |= first
            behind |= last
            left = still
        counts = [k for k in moved if k[0] != "var"]
        if counts:
            heads = {k: smt.Int(f"h!{frame.index.name}.{number}!") for number, k in enumerate(counts)}
            body = self.block(l.body, {**at, **heads}, inner, (), record=False)
            first, last, left = Closing(self.sums, frame.index, frame.trips, entry, heads, body).close()
            if left:
                where = f"the loop over '{l.var}'" if isinstance(l, Loop) else "this `while`"
                raise Unanalysed(f"how often '{left[0][1]}' is reached in {where}", l.span)
            at |= first
            behind |= last
        return at, behind


def choose(test: smt.Term, a: smt.Term, b: smt.Term) -> smt.Term:
    return a if a.eq(b) else smt.simplify(smt.If(test, a, b))
