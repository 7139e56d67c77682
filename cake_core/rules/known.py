"""What an agent surely knows to be over: the predicate `happens_before`, read off the text.

Ahead of every place stands how far an access is known to be over there, on every way: not at all, by the threads of this agent
that ran it, or by all of them and to all of them. Threads learn of each other where they meet: each one that waits at a barrier of
threads learns what whoever arrives there has done at each of its arrivals. A loop may run zero times, a branch may take either arm.
Nothing is taken from barriers that count arrivals in memory, of which a wait may be for a phase that no one had to arrive for.
"""

from __future__ import annotations

from dataclasses import field
from enum import IntEnum

from cake_core.facts import Row, Rows
from cake_core.facts.schema import AtOnce, Block, Branch, By, Event, Facts, Loop, Meet, RoleFacts, While, events
from cake_core.frozen import thawed
from cake_core.ir.nodes import Int
from cake_core.ir.printer import expr_text
from cake_core.rules.paths import trips
from cake_core.rules.predicates import PROVED, Answer, Conditions, Standing, unknown


class Over(IntEnum):
    NOT = 0
    OWN = 1  # to each of the agent's threads, what it ran itself
    ALL = 2  # to every thread, what any of them ran


def happens_before(rows: Rows, a: Row, b: Row, given: Conditions = ()) -> Answer:
    """`a` is complete, and known to be, when `b` starts: in one CTA, in the same rounds of the loops around."""
    if given:
        return unknown("order under conditions")
    mine = a.site.event.acts if a.site.act is None else (a.site.act,)
    if not all(isinstance(getattr(act, "completion", AtOnce()), AtOnce) for act in mine):
        return unknown("what is known of asynchronous accesses")
    flow = _Flow(rows, a, b)
    if flow.several and b["apart"] != "nobody":
        return unknown(f"what one instance of '{a['role']}' knows of another")
    if flow.run():
        return PROVED
    if a["role"] != b["role"] and rows["wait"]:
        return unknown(f"what '{b['role']}' learns of '{a['op']}' from barriers in memory")
    return Answer(Standing.VIOLATED, f"'{b['op']}' may start before '{a['op']}' is known to be over")


@thawed
class _Flow:
    rows: Rows
    a: Row
    b: Row
    puts: dict[tuple, dict[str, Over]] = field(default_factory=dict)  # at a meeting, by role: the least that is over when it arrives
    users: dict[tuple, set[str]] = field(default_factory=dict)  # roles that are surely meant at a meeting
    there: Over = Over.ALL  # when `b` starts
    changed: bool = False

    @property
    def facts(self) -> Facts:
        return self.rows.facts

    @property
    def several(self) -> bool:
        """Whether several instances run the access."""
        return self.a["role"] is not None and self.facts.role(self.a["role"]).plan.instances > 1

    def run(self) -> bool:
        for role in self.facts.roles:
            for m in (m for e in events(role.body) for m in e.acts if isinstance(m, Meet)):
                self.puts.setdefault(_key(m), {})
                if m.scope != "named" or isinstance(m.id, Int):
                    self.users.setdefault(_key(m), set()).add(role.name)
        self.changed = True
        while self.changed:  # downwards from all that could be
            self.changed = False
            entered = self.block(self.facts.before, Over.NOT, None)
            left = [self.block(r.body, entered, r) for r in self.facts.roles]
            self.block(self.facts.after, min(left, default=entered), None)
        return self.there is Over.ALL or self.there is Over.OWN and self._alone()

    def _alone(self) -> bool:
        """Whether one thread runs both."""
        x, y = self.a, self.b
        return x["role"] == y["role"] and x["by"] == y["by"] != By.ALL and x["warp"] == y["warp"]

    # --- along a block ---------------------------------------------------------------------------------------------

    def block(self, block: Block, over: Over, role: RoleFacts | None) -> Over:
        for node in block:
            match node:
                case Event():
                    over = self.event(node, over, role)
                case Branch():
                    over = min(self.block(node.then, over, role), self.block(node.other, over, role))
                case Loop() | While():
                    behind = self.block(node.body, over, role)
                    over = behind if (trips(node) or 0) > 0 else over
        return over

    def event(self, e: Event, over: Over, role: RoleFacts | None) -> Over:
        """A fact that is of no act (an attribute, an assignment, the statement itself) starts with its statement and is over with it."""
        if e is self.b.site.event and self.b.site.act is None:
            self.there = min(self.there, over)
        for act in e.acts:
            if e is self.b.site.event and act is self.b.site.act:
                self.there = min(self.there, over)
            if e is self.a.site.event and act is self.a.site.act:
                over = max(over, Over.OWN)
            if isinstance(act, Meet):
                over = self.met(act, e, over, role)
        if e is self.a.site.event and self.a.site.act is None:
            over = max(over, Over.OWN)
        return over

    # --- from thread to thread -------------------------------------------------------------------------------------

    def met(self, m: Meet, e: Event, over: Over, role: RoleFacts | None) -> Over:
        everyone = e.by is By.ALL and e.warp is None and self.rows.find("event", str(e.id))["apart"] in ("nobody", "instances")
        if m.scope == "warp":
            return Over.ALL if over is Over.OWN and everyone and role is not None and role.plan.warps == 1 else over
        if role is None:  # outside of the roles every thread of the CTA is there
            return Over.ALL if over is Over.OWN and everyone and m.waits and m.scope in ("cta", "cluster") else over
        told = over if over is Over.ALL or everyone else Over.NOT
        maybe = [_key(m)] if m.scope != "named" or isinstance(m.id, Int) else [k for k in self.puts if k[0] == "named"]
        for key in maybe:
            if told < self.puts[key].get(role.name, Over.ALL):
                self.puts[key][role.name] = told
                self.changed = True
        met = m.waits and everyone and (over is Over.OWN or self._learned(m, role))
        return Over.ALL if met else over

    def _learned(self, m: Meet, role: RoleFacts) -> bool:
        """Whether another role that meets here knows of the access whenever it arrives; of several instances each knows of its own."""
        key, whole = _key(m), m.scope in ("cta", "cluster")
        for other in self.users.get(key, set()) - {role.name}:
            over = self.puts[key].get(other, Over.ALL)
            if (over is Over.ALL or over is Over.OWN and other == self.a["role"]) and (whole or not self.several):
                return True
        return False


def _key(m: Meet) -> tuple:
    return (m.scope,) if m.scope != "named" else (m.scope, expr_text(m.id))
