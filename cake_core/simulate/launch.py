"""A launch, simulated: the clusters of a grid one after another, each run by the event machine with data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from random import Random
from typing import Any

import numpy as np

from cake_core.architecture import Architecture
from cake_core.facts import facts_of
from cake_core.facts.extract import Reader
from cake_core.facts.schema import Access, Facts, events
from cake_core.frozen import frozen, thawed
from cake_core.ir.nodes import Kernel, Role
from cake_core.ir.plan import read_plan
from cake_core.machine import Fault, Scenario
from cake_core.machine.clocks import Layout, layout_of
from cake_core.machine.places import OutOfRange, Places
from cake_core.machine.program import steps_of
from cake_core.machine.schedule import Order, Schedule
from cake_core.machine.steps import Do, Doer
from cake_core.machine.threads import Agent, Cluster, groups_of, numbered
from cake_core.machine.timed import Timed
from cake_core.primitive.groups import warps_of
from cake_core.simulate.apart import tells_warps_apart
from cake_core.simulate.carrier import Job, Mover
from cake_core.simulate.code import Watch, Writer
from cake_core.simulate.context import Actor
from cake_core.simulate.expressions import ACTOR, WARPS
from cake_core.simulate.ledger import Ledger
from cake_core.simulate.memory import Block, Memory
from cake_core.simulate.room import Room
from cake_core.simulate.site import Site
from cake_core.trace import Trace

#: A rank behind that of all agents, and steps of one agent at most.
LATE, MOST = 1 << 30, 5_000_000
#: Clusters of a persistent kernel at most, and items that each of them takes if there are enough.
CLUSTERS, TURNS = 4, 3
SCHEDULES = ("adversarial", "round-robin", "random")


@frozen
class Plot:
    """How a launch is scheduled: one of SCHEDULES, `seed` of a random one."""

    name: str = "adversarial"
    seed: int = 0


@thawed(eq=False)
class Warps(Agent):
    """An agent that has data. `sites`: its asynchronous operations, by the number of their event. `run`: the schedule that it takes part in."""

    sites: dict[int, Site] = field(default_factory=dict)
    run: Schedule | None = None

    def _event(self, instruction: tuple, who: Doer) -> list:
        try:
            made = steps_of(instruction, self.env, who)
        except OutOfRange:
            return Agent._event(self, instruction, who)
        site = self.sites.get(instruction[1].id)
        if site is not None:
            job = Job(site, self.env[:])
            step = next((s for s in reversed(made) if s.do in (Do.GROUP, Do.ENGINE, Do.COPY)), None)
            if step is not None:
                step.job = job
        return made


@thawed(eq=False)
class Simulator:
    """One kernel, compiled once, for any number of launches. `single`: roles whose warps are executed each by itself; `ordering`: whether it hands
    over by flags in global memory."""

    facts: Facts
    room: Room
    places: Places
    before: Writer
    after: Writer
    roles: dict[str, Writer]
    single: frozenset[str]
    ordering: bool

    @staticmethod
    def of(typed: Kernel, registry: Any, arch: Architecture, watch: Watch | None = None) -> Simulator:
        """`watch`: called at statements with a label. Raises CakeError where something of the kernel is not simulated."""
        facts = facts_of(typed, registry, arch)
        plan = read_plan(typed, warps_of(typed, registry), registry.spaces)
        reader = Reader(typed, registry, plan, {})
        room, places = Room(typed, registry, plan), Places(facts)
        own = (" actor", " warps", " cta", " role", " instance", "warp", "cluster.id", "cluster.count", f"cluster.{facts.axis}")
        for name in (*own, *(f"{r.name}.i" for r in facts.roles), *(p.name for p in typed.params)):
            room.slots.slot(name)  # first of all: an environment has them, whenever an expression is compiled
        outer = [s for s in typed.body if not isinstance(s, Role)]
        first = next((n for n, s in enumerate(typed.body) if isinstance(s, Role)), len(typed.body))
        front = [s for s in typed.body[:first] if s in outer]
        names: dict = {}
        numbers = [0]

        def writer(role: Role | None, warps: int, body) -> Writer:
            made = Writer(room, facts, places, reader.scope(role, {}), warps, body)
            made.numbers, made.watch = numbers, watch
            return made

        before = writer(None, plan.warps, facts.before)
        before.write(front, names)
        roles = {}
        for s in typed.body[first:]:
            if isinstance(s, Role):
                of = next(r for r in facts.roles if r.name == s.name)
                roles[s.name] = writer(s, of.plan.warps, of.body)
                roles[s.name].write(s.body, dict(names))
        after = writer(None, plan.warps, facts.after)
        after.write([s for s in typed.body[first:] if not isinstance(s, Role)], names)
        single = frozenset(s.name for s in typed.body if isinstance(s, Role) and tells_warps_apart(s.body))
        blocks = (facts.before, facts.after, *(r.body for r in facts.roles))
        ordering = any(isinstance(a, Access) and a.order is not None for b in blocks for e in events(b) for a in e.acts)
        return Simulator(facts, room, places, before, after, roles, single, ordering)

    # --- one launch ------------------------------------------------------------------------------------------------

    def run(
        self, params: Mapping[str, Any], tensors: Mapping[str, Block], plot: Plot, *, most: int = CLUSTERS, told: Callable[[Trace], None] | None = None
    ) -> list[Fault]:
        """Run a launch: `params` are the scalars, `tensors` the arrays by name, which are changed. What went wrong. `told`: called with what each
        cluster did, in their order.

        Raises CakeError where something is not simulated, `machine.MachineError` where the kernel does not end."""
        items = self._items(params)
        clusters = items if not self.facts.launch.persistent else min(items, most, max(1, -(-items // TURNS)))
        draw = Random(plot.seed)
        order = list(range(clusters))
        if plot.name == "random":
            draw.shuffle(order)
        faults: dict[tuple, Fault] = {}
        layout, ledger = None, Ledger(frozenset(t.name for t in self.facts.tensors if t.mode != "in"), not self.ordering)
        with np.errstate(all="ignore"):
            for number in order:
                cluster = self._cluster(params, tensors, number, clusters, ledger)
                layout = layout or layout_of(cluster)
                for f in self._scheduled(cluster, layout, plot, draw, told):
                    faults.setdefault(f.key, f)
                if any(f.kind.value == "deadlock" for f in faults.values()):
                    break
        return list(faults.values())

    def _items(self, params: Mapping[str, Any]) -> int:
        from cake_core.machine.scenarios import value

        return max(0, value(self.facts.launch.items, dict(params)))

    def _scheduled(self, cluster: Cluster, layout: Layout, plot: Plot, draw: Random, told: Callable[[Trace], None] | None) -> list[Fault]:
        ranks = tuple(range(len(cluster.agents)))
        match plot.name:
            case "adversarial":
                turned = ranks[::-1] if cluster.scenario.cluster % 2 == 0 else ranks  # who is last in one cluster is first in the next
                order, mover = Order(turned, LATE, last=True), Mover(False, draw)
            case "round-robin":
                order, mover = Order(ranks, -LATE, turns=True), Mover(True, draw)
            case _:
                order, mover = Order(ranks, 0, seed=draw.randrange(1 << 30)), Mover(None, draw)
        schedule = Schedule(cluster, layout, order, carrier=mover) if told is None else Timed(cluster, layout, order, mover)
        for a in cluster.agents:
            a.run = schedule
        found = schedule.run()
        mover.rest()
        if told is not None:
            told(schedule.trace(found))
        return found

    def _cluster(self, params: Mapping[str, Any], tensors: Mapping[str, Block], number: int, clusters: int, ledger: Ledger) -> Cluster:
        facts, slots = self.facts, self.room.slots
        template: list = [None] * len(slots.slots)
        for name, value in {**params, "cluster.id": number, "cluster.count": clusters}.items():
            if name in slots.slots:
                template[slots.slots[name]] = np.float32(value) if isinstance(value, float) else value
        fixed = {n: slots.slot(n) for n in (" cta", " role", " instance", "warp", f"cluster.{facts.axis}")}
        indexed = {r.name: slots.slot(f"{r.name}.i") for r in facts.roles}
        memory = Memory(self.room.plan)
        agents: list[Agent] = []
        split = numbered((*facts.before, *facts.after))
        for cta in range(facts.cluster):
            for role, instance, warp, warps, first in groups_of(facts, cta, split, self.single):
                agents.append(
                    self._agent(len(agents), cta, role, (instance, warp, warps, first), template[:], memory, tensors, fixed, indexed, ledger)
                )
        scenario = Scenario({k: v for k, v in params.items() if isinstance(v, int)}, number, clusters)
        return Cluster(facts, scenario, self.places, agents, {})

    def _agent(
        self, id: int, cta: int, role, who: tuple, env: list, memory: Memory, tensors: Mapping[str, Block], fixed, indexed, ledger: Ledger
    ) -> Agent:
        instance, warp, warps, first = who
        facts = self.facts
        name = role.name if role else "idle"
        number = -1 if role is None else [r.name for r in facts.roles].index(role.name)
        outer = _numbers(first, warps)
        common = {fixed[" cta"]: cta, fixed[" role"]: number, fixed[" instance"]: instance, fixed[f"cluster.{facts.axis}"]: cta}
        outside = Doer(cta, "", 0, first, warps)
        actor = Actor(cta, first, warps, facts.warps, memory, dict(tensors), facts.pair, ledger)
        env[ACTOR] = actor
        sections = [(self.before.code, outside, common | {fixed["warp"]: first, WARPS: outer}, Do.CONVERGE)]
        sites, collective = dict(self.before.sites) | self.after.sites, self.before.coder.collective
        if role is not None:
            own = self.roles[role.name]
            sites |= own.sites
            collective = own.coder.collective
            inside = Actor(cta, warp, warps, role.plan.warps, memory, actor.tensors, facts.pair, ledger)
            start = {fixed["warp"]: warp, indexed[name]: instance, WARPS: _numbers(warp, warps), ACTOR: inside}
            sections.append((own.code, Doer(cta, name, instance, warp, warps), start, Do.ROLE_END))
        sections.append((self.after.code, outside, {fixed["warp"]: first, WARPS: outer, ACTOR: actor}, Do.EXIT))
        made = Warps(id, cta, role, name, instance, warp, warps, first, sections, env, frozenset(collective), MOST)
        made.sites = sites
        for a in (actor, *([inside] if role is not None else [])):
            a.agent = made
        return made


def _numbers(first: int, warps: int) -> Any:
    return first if warps == 1 else np.arange(first, first + warps)[:, None]
