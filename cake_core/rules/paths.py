"""Paths: on every way from one event to another, something must stand. Decided on the event trees of all roles.

What is looked for travels along: an event that matches `from` is pending from where it runs, until what must be passed is
passed. Loops are followed to a fixpoint and may run zero times, unless their bounds are constants that say otherwise; of
branches both arms are ways, and branches of one condition in one block take the same arm. Over an arrival at a barrier, or a
meeting, what is pending goes to whoever waits there, whatever the slot: more ways than there are, never fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import Any

from cake_core.facts import Row, Rows
from cake_core.facts.schema import Arrive, Block, Branch, By, EngineArrive, Event, Loop, Meet, Wait, While, WithBytes, events, walk
from cake_core.frozen import frozen, thawed
from cake_core.ir.nodes import Expr, Int
from cake_core.ir.printer import expr_text
from cake_core.rules.matching import fits
from cake_core.rules.schema import Path
from cake_core.rules.terms import names_in

#: Conditions that are followed both ways at once; more are joined where they meet.
MAX_ASSUMED = 5
#: Trips of a loop with constant bounds that are followed one by one, and of all such loops around a statement together.
FEW = 3
FEW_IN_ALL = 27
START = "start"

RANK = {str(By.LEADER): 1, str(By.WARP_LEADERS): 2, str(By.ALL): 3}
#: Of what each writer has passed: they have not met since, those of each warp have, all have.
MET = {None: 1, "warp": 2, "named": 3, "cta": 3, "cluster": 3}


@frozen
class Pending:
    """`of`: the row that matched `from`, or START. `own`: it is this agent's, not handed over to it."""

    of: Row | str
    own: bool


@frozen
class Way:
    """`level`: the widest set of threads that passed what must be passed since, as in RANK, 0: none; where they have to meet behind it, how
    far they have, as in MET. `over`: what it was handed over by."""

    level: int
    over: tuple[str, ...] = ()


State = dict[Pending, Way]


@frozen
class Missed:
    """A way on which nothing was passed. `start` None: from the beginning; `end` None: to the end."""

    start: Row | None
    end: Row | None
    over: tuple[str, ...]


def missed(shape: Path, rows: Rows, where: Callable[[Row | None, Row | None], bool]) -> tuple[list[Missed], int]:
    """The ways that lack what must be passed, one a pair of events, in text order; and how many pairs there are on a way at all."""
    flow = _Flow(shape, rows, where)
    flow.run()
    if not flow.met:  # all was passed: without what is passed, is there any way at all?
        there = _Flow(replace(shape, must_pass=()), rows, where)
        there.run()
        return [], len(there.met)
    return sorted(flow.found.values(), key=_order), len(flow.met)


def _order(m: Missed) -> tuple[int, int]:
    return (m.end["order"] if m.end else 1 << 30, m.start["order"] if m.start else -1)


@thawed
class _Flow:
    shape: Path
    rows: Rows
    where: Callable[[Row | None, Row | None], bool]
    channels: dict[tuple, State] = field(default_factory=dict)
    found: dict[tuple, Missed] = field(default_factory=dict)
    met: set[tuple] = field(default_factory=set)
    acts: dict[int, list[Row]] = field(default_factory=dict)  # rows by event, in the order of its acts
    parts: dict[Row, tuple[bool, bool, bool]] = field(default_factory=dict)  # whether a row ends a way, is what must be passed, begins one
    changed: bool = False
    copies: int = 1  # of the statement at hand, in loops that are followed trip by trip
    came: dict[tuple, dict[str, bool]] = field(default_factory=dict)  # by named barrier and role: whether it has passed when it comes there
    known: dict[tuple, dict[str, bool]] = field(default_factory=dict)  # the same, as the round before left it
    decided: dict[tuple, bool] = field(default_factory=dict)
    own_part: dict[Row, bool] = field(default_factory=dict)  # whether an access says which instance's memory it is of

    def __post_init__(self) -> None:
        self.acts = self.remember("acts", self.rows, self.by_event)

    def by_event(self) -> dict[int, list[Row]]:
        out: dict[int, list[Row]] = {}
        for table in self.rows.tables.values():
            for row in table:
                if row.site is not None:
                    out.setdefault(row.site.event.id, []).append(row)
        for of in out.values():
            of.sort(key=lambda r: (r.relation != "event", [int(x) for x in r.id.split(".")]))
        return out

    def run(self) -> None:
        facts = self.rows.facts
        start: State = {Pending(START, True): Way(0)} if self.shape.start.relation == START else {}
        self.changed = True
        while self.changed:
            self.changed, self.known, self.came = False, self.came, {}
            self.found, self.met = {}, set()
            entered = self.block(facts.before, start, {})
            outs = [self.block(role.body, entered, {}) for role in facts.roles]
            if not facts.roles or sum(r.plan.instances * r.plan.warps for r in facts.roles) < facts.warps:
                outs.append(entered)  # idle warps go straight to the end
            left: State = {}
            for out in outs:
                left = _join(left, out)
            left = self.block(facts.after, left, {})
            if self.shape.end.relation == "end":
                for pending, way in left.items():
                    self.reached(pending, way, None)
            self.changed = self.changed or self.came != self.known

    # --- along a block ---------------------------------------------------------------------------------------------

    def block(self, block: Block, state: State, assumed: dict[Expr, bool]) -> State:
        test = next((t for t in self.asked_twice(block) if t not in assumed), None) if len(assumed) < MAX_ASSUMED else None
        if test is not None:
            return _join(self.block(block, state, {**assumed, test: True}), self.block(block, state, {**assumed, test: False}))
        for node in block:
            match node:
                case Event():
                    state = self.event(node, state)
                case Branch():
                    held = assumed.get(node.test) if assumed else None
                    arms = [a for a, take in ((node.then, held is not False), (node.other, held is not True)) if take]
                    outs = [self.block(a, state, assumed) for a in arms]
                    state = outs[0] if len(outs) == 1 else _join(*outs)
                case Loop() | While():
                    state = self.loop(node, state, {t: v for t, v in assumed.items() if not names_in(t) & self.set_in(node)})
        return state

    def asked_twice(self, block: Block) -> tuple[Expr, ...]:
        """Conditions of several branches inside the block whose names nothing in it sets."""
        return self.remember("asked twice", block, lambda: _asked_twice(block, self.set_in))

    def set_in(self, node) -> frozenset[str]:
        return self.remember("set in", node, lambda: _set_in(node))

    def remember(self, what: str, part, find: Callable[[], Any]) -> Any:
        """What is so of a part of the text, whichever rule asks."""
        key = what, id(part)
        if key not in self.rows.remembered:
            self.rows.remembered[key] = find()
        return self.rows.remembered[key]

    def loop(self, node: Loop | While, state: State, assumed: dict[Expr, bool]) -> State:
        times = trips(node)
        if times is not None and times <= FEW and self.copies * times <= FEW_IN_ALL:
            self.copies *= max(times, 1)
            for _ in range(times):
                state = self.block(node.body, state, assumed)
            self.copies //= max(times, 1)
            return state
        entry = state
        while True:
            out = self.block(node.body, entry, assumed)
            again = _join(entry, out)
            if again == entry:
                return entry if times is None else out
            entry = again

    def event(self, e: Event, state: State) -> State:
        state = dict(state)
        for row in self.acts.get(e.id, ()):
            if (part := self.parts.get(row)) is None:
                part = self.parts[row] = self.part(row)
            ends, passes, starts = part
            if ends:
                for pending, way in state.items():
                    self.reached(pending, way, row)
            if passes:
                state = self.passed(row, state)
            if self.shape.met and isinstance(act := row.site.act, Meet) and act.waits and row["by"] == By.ALL and row["warp"] is None:
                state = {p: replace(way, level=max(way.level, MET[act.scope])) if way.level else way for p, way in state.items()}
            if starts:
                state[Pending(row, True)] = Way(0)
            if self.shape.hand_offs:
                self.handed(row, state)
        return state

    def part(self, row: Row) -> tuple[bool, bool, bool]:
        return fits(row, self.shape.end), any(fits(row, p) for p in self.shape.must_pass), fits(row, self.shape.start)

    def passed(self, row: Row, state: State) -> State:
        match self.shape.of:
            case "anyone":
                return {}
            case "writer" if self.shape.met:
                return {p: replace(way, level=max(way.level, 1)) if p.own and _covers(row, p.of) else way for p, way in state.items()}
            case "writer":
                return {p: way for p, way in state.items() if not (p.own and _covers(row, p.of))}
        level = RANK[row["by"]] if row["warp"] is None else 1
        return {p: Way(max(way.level, level), way.over) for p, way in state.items()}

    def reached(self, pending: Pending, way: Way, end: Row | None) -> None:
        start = pending.of if isinstance(pending.of, Row) else None
        key = (pending.of, end)
        if key not in self.decided:
            self.decided[key] = self.where(start, end)
        if not self.decided[key]:
            return
        self.met.add(key)
        needed = RANK[str(By.ALL)] if end is None else RANK[end["by"]]
        if self.shape.met:
            enough = way.level >= self.needs_met(pending.of, end)
        else:
            enough = self.shape.of == "issuer" and way.level >= needed
        if not enough:
            self.found.setdefault(key, Missed(start, end, way.over))

    def needs_met(self, of: Row | str, end: Row | None) -> int:
        """How far those that passed must have met, so that `end` is behind what each of them has done: not at all, where each of them runs it."""
        if end is None or RANK[end["by"]] >= (RANK[str(By.ALL)] if isinstance(of, str) else RANK[of["by"]]) and end["warp"] is None:
            return MET[None]
        role = self.rows.find("role", end["role"]) if end["role"] is not None else None
        warps = [end["warp"], None if isinstance(of, str) else of["warp"]]
        one = role is not None and role["warps"] == 1 or warps[0] is not None and warps[0] == warps[1]
        return MET["warp"] if one or end["warp"] is None and end["by"] == By.WARP_LEADERS else MET["cta"]

    # --- from agent to agent ---------------------------------------------------------------------------------------

    def handed(self, row: Row, state: State) -> None:
        act = row.site.act
        match act:
            case Arrive() | EngineArrive():
                self.put(("barrier", act.barrier.name), f"'{act.barrier.name}'", state)
            case Wait():
                self.take(("barrier", act.barrier.name), row, state)
            case Meet() if act.scope != "warp" and row["part"] == "role":  # outside, all threads are one way already
                number = expr_text(act.id) if act.id is not None else ""
                self.put((act.scope, number), f"named barrier {number}" if number else f"a barrier of the {act.scope}", state)
                if act.waits:
                    self.take((act.scope, number), row, state)
                if act.scope == "named" and self.for_all():
                    self.meets(number, row, state)
        completion = getattr(act, "completion", None)
        if isinstance(completion, WithBytes) and Pending(row, True) in state:
            self.put(("barrier", completion.barrier.name), f"'{completion.barrier.name}'", {Pending(row, True): Way(0)})

    def put(self, key: tuple, name: str, state: State) -> None:
        there = self.channels.get(key, {})
        given = {
            Pending(p.of, False): Way(w.level, w.over if name in w.over else (*w.over, name)[-4:]) for p, w in state.items() if p.of is not START
        }
        joined = _join(there, given)
        if joined != there:
            self.channels[key] = joined
            self.changed = True

    def for_all(self) -> bool:
        """Whether what must be passed from the start on is done for the whole grid by whoever passes it (PTX ISA, griddepcontrol.wait)."""
        return self.shape.of == "issuer" and self.shape.start.relation == START and all(p.relation == "grid_order" for p in self.shape.must_pass)

    def meets(self, number: str, row: Row, state: State) -> None:
        """Each generation of a named barrier has threads of all roles that use it. So where one that has passed what must be passed comes, those
        that wait there are behind that too."""
        start = Pending(START, True)
        passed = start not in state or state[start].level > 0
        here = self.came.setdefault(number, {})
        here[row["role"]] = here.get(row["role"], True) and passed
        if row.site.act.waits and start in state and any(p for r, p in self.known.get(number, {}).items() if r != row["role"]):
            state[start] = replace(state[start], level=max(state[start].level, RANK[row["by"]] if row["warp"] is None else 0))

    def returned(self, of: Row, row: Row) -> bool:
        """Whether what is handed to an agent is its own and nobody else's: of that it knows itself how far it has come. Another instance's,
        or another CTA's, is of other memory where the instance says which, or the memory is the CTA's own."""
        if of["role"] is None or of["role"] != row["role"]:
            return False
        if self.rows.find("role", of["role"])["instances"] == 1:
            return of.relation != "access" or of["cta"] is None
        if of not in self.own_part:
            self.own_part[of] = of.relation == "access" and of["cta"] is None and f"{of['role']}.i" in names_in((of["slot"], of["lo"]))
        return self.own_part[of]

    def take(self, key: tuple, row: Row, state: State) -> None:
        for pending, way in self.channels.get(key, {}).items():
            if self.returned(pending.of, row):
                continue
            state[pending] = _lower(state[pending], way) if pending in state else way


def trips(node: Loop | While) -> int | None:
    """How often a loop runs, where its bounds are constants; None: any number of times."""
    if isinstance(node, Loop) and isinstance(node.lo, Int) and isinstance(node.hi, Int) and isinstance(node.step, Int) and node.step.value > 0:
        return max(0, -(-(node.hi.value - node.lo.value) // node.step.value))
    return None


def _join(a: State, b: State) -> State:
    out = dict(a)
    for pending, way in b.items():
        out[pending] = _lower(out[pending], way) if pending in out else way
    return out


def _lower(a: Way, b: Way) -> Way:
    return b if b.level < a.level else a


def _covers(passed: Row, of: Row | str) -> bool:
    """Whether all threads that executed `of` execute `passed`, in the same agent."""
    by, warp = (str(By.ALL), None) if isinstance(of, str) else (of["by"], of["warp"])
    if passed["warp"] is not None and passed["warp"] != warp and not (by == By.LEADER and passed["warp"] == 0):
        return False
    return RANK[passed["by"]] >= RANK[by]


def _asked_twice(block: Block, set_in: Callable[[Any], frozenset[str]]) -> tuple[Expr, ...]:
    tests: dict[Expr, int] = {}
    for node in walk(block):
        if isinstance(node, Branch):
            tests[node.test] = tests.get(node.test, 0) + 1
    repeated = [t for t, n in tests.items() if n > 1]
    changing = frozenset().union(*map(set_in, block)) if repeated else frozenset()
    return tuple(t for t in repeated if not names_in(t) & changing)


def _set_in(node) -> frozenset[str]:
    """Names that get values inside a node: variables, and indices of its loops."""
    inside = (node,)
    loops = {n.var for n in walk(inside) if isinstance(n, Loop)}
    return frozenset(loops | {s.name for e in events(inside) for s in e.sets})
