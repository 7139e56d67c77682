"""Protocols: what happens to a resource follows an automaton on every way. Decided on the event trees of all roles.

Before the roles, and behind them, there is one order. Roles run side by side, so each goes on from where the code before them
ended; where several roles move the automaton to other states their order would decide, and it is not known here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from cake_core.facts import Row, Rows
from cake_core.facts.schema import Block, Branch, Event, Loop, While
from cake_core.frozen import frozen, thawed
from cake_core.rules.automaton import Automaton, automaton
from cake_core.rules.matching import fits
from cake_core.rules.paths import FEW, FEW_IN_ALL, trips
from cake_core.rules.schema import Protocol


@frozen
class Broken:
    """`event` None: the kernel ends too early. `name`: what came; `expected`: what may come there."""

    event: Row | None
    name: str
    expected: str


def broken(shape: Protocol, rows: Rows, resource: Row, where: Callable[[Row, Row], bool]) -> tuple[list[Broken], str]:
    """What does not follow the automaton, in text order; and why it is not decided, if it is not."""
    run = _Run(shape, rows, resource, where, automaton(shape.automaton))
    run.run()
    return sorted(run.found.values(), key=lambda b: b.event["order"] if b.event else 1 << 30), run.undecided


States = frozenset[int]


@thawed
class _Run:
    shape: Protocol
    rows: Rows
    resource: Row
    where: Callable[[Row, Row], bool]
    machine: Automaton
    found: dict[tuple, Broken] = field(default_factory=dict)
    undecided: str = ""
    copies: int = 1  # of the statement at hand, in loops that are followed trip by trip
    named: dict[str, list[tuple[str, Row]]] = field(default_factory=dict)  # events of the automaton by event of the text

    def __post_init__(self) -> None:
        for name, pattern in self.shape.events:
            for row in self.rows[pattern.relation]:
                if fits(row, pattern, self.resource):
                    event = self.rows.find("event", row.id if row.relation == "event" else row["event"])
                    if self.where(self.resource, event):
                        self.named.setdefault(event.id, []).append((name, row))
        for of in self.named.values():
            of.sort(key=lambda x: [int(n) for n in x[1].id.split(".")])

    def run(self) -> None:
        facts = self.rows.facts
        entered = self.block(facts.before, frozenset({0}))
        outs = {role.name: self.block(role.body, entered) for role in facts.roles}
        movers = [name for name, out in outs.items() if out != entered]
        if len(movers) > 1:
            self.undecided = f"roles {', '.join(repr(m) for m in movers)} all change what may come next, and their order is not known here"
        left = outs[movers[0]] if len(movers) == 1 else entered.union(*outs.values())
        left = self.block(facts.after, left)
        if open_ := left - self.machine.accepting:
            state = min(open_)
            self.found.setdefault(("end", state), Broken(None, "the end", self.machine.expected(state)))

    def block(self, block: Block, states: States) -> States:
        for node in block:
            match node:
                case Event():
                    for name, row in self.named.get(str(node.id), ()):
                        states = self.step(states, name, row)
                case Branch():
                    states = self.block(node.then, states) | self.block(node.other, states)
                case Loop() | While():
                    states = self.loop(node, states)
        return states

    def loop(self, node: Loop | While, states: States) -> States:
        times = trips(node)
        if times is not None and times <= FEW and self.copies * times <= FEW_IN_ALL:
            self.copies *= max(times, 1)
            for _ in range(times):
                states = self.block(node.body, states)
            self.copies //= max(times, 1)
            return states
        entry = states
        while True:
            out = self.block(node.body, entry)
            if out <= entry:
                return entry if times is None else out
            entry |= out

    def step(self, states: States, name: str, row: Row) -> States:
        after = set()
        for s in states:
            if (to := self.machine.steps[s].get(name)) is None:
                self.found.setdefault(
                    (row.id, s),
                    Broken(self.rows.find("event", row.id if row.relation == "event" else row["event"]), name, self.machine.expected(s)),
                )
                after.add(s)  # goes on as if it had not come: one finding a fault
            else:
                after.add(to)
        return frozenset(after)
