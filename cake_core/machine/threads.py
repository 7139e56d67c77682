"""The threads of one cluster: who takes part, and what each does, step by step.

An agent is a warp of a role's instance, or several that do the same: the first warp of an instance is one, for the leading lane is in
it; all others together are the second. They run the same steps, so that who is behind and who is ahead among them shows
between the first warp and the others as well; they arrive together, as often as they are many. Where the text asks for the number
of a warp in a condition or in the name of a barrier, each warp is an agent. Pad warps, and those of roles that another CTA of a pair
has, run what stands in front of the roles and behind them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from cake_core.facts.schema import Arrive, Block, Branch, EngineArrive, Event, Facts, Loop, Meet, RoleFacts, Wait, While, events, walk
from cake_core.ir.places import names
from cake_core.machine.outcome import Fault, Kind, Scenario, Site
from cake_core.machine.places import OutOfRange, Places
from cake_core.machine.program import Coder, executes, steps_of
from cake_core.machine.steps import Do, Doer, Step
from cake_core.machine.values import Compiler, Endless, Env, MachineError, Names
from cake_core.machine.worlds import World

#: Instructions between two steps, and steps of one agent, after which a loop is taken for endless.
INSTRUCTIONS, STEPS = 200_000, 50_000


class FaultFound(Exception):
    """Raised where execution cannot go on behind a fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


@dataclass(slots=True, eq=False)
class Agent:
    """`first`: its first warp in the CTA. `steps`: those known so far; all of them once `ended`."""

    id: int
    cta: int
    role: RoleFacts | None
    name: str
    instance: int
    warp: int
    warps: int
    first: int
    sections: list[tuple[list[tuple], Doer, dict[int, int], Do | None]]
    env: Env
    collective: frozenset[str]
    most: int = STEPS
    steps: list[Step] = field(default_factory=list)
    section: int = 0
    pc: int = 0
    ended: bool = False

    def step(self, i: int) -> Step | None:
        """The i-th step, None behind the last."""
        while i >= len(self.steps):
            if self.ended:
                return None
            try:
                self._advance()
            except ZeroDivisionError:
                raise MachineError(f"a division by zero in '{self.name}'") from None
        return self.steps[i]

    def fellow(self, other: Agent) -> bool:
        """Whether both are warps of one instance."""
        return (self.cta, self.name, self.instance) == (other.cta, other.name, other.instance)

    def site(self, step: Step | None) -> Site:
        if step is None or step.event is None:
            return Site(self.name, self.instance, self.warp, self.warps, self.cta)
        lane = "all" if step.all else "leader"
        at = tuple(zip(step.loops, step.iteration, strict=True))
        e = step.event
        return Site(self.name, self.instance, self.warp, self.warps, self.cta, lane, e, e.id, e.op, at)

    def _advance(self) -> None:
        """Run until there is one more step, or the end."""
        code, who, start, mark = self.sections[self.section]
        env = self.env
        if self.pc == 0:
            for slot, value in start.items():
                env[slot] = value
        count = INSTRUCTIONS
        pc, size = self.pc, len(code)
        while pc < size:
            count -= 1
            if not count:
                raise Endless(f"'{self.name}' runs for ever, or for more than {INSTRUCTIONS} instructions")
            instruction = code[pc]
            match instruction[0]:
                case "set":
                    for slot, value in instruction[1]:
                        env[slot] = value(env)
                    pc += 1
                case "jump":
                    pc = instruction[1]
                case "unless":
                    pc = pc + 1 if instruction[1](env) else instruction[2]
                case "by":
                    if executes(instruction[1], who):
                        for slot, value in instruction[2]:
                            env[slot] = value(env)
                    pc += 1
                case "event":
                    pc += 1
                    if executes(instruction[1], who) and (made := self._event(instruction, who)):
                        self.steps += made
                        self.pc = pc
                        if len(self.steps) > self.most:
                            raise Endless(f"'{self.name}' runs for ever, or for more than {self.most} steps")
                        return
                case "do":
                    pc += 1
                    if executes(instruction[1], who):
                        instruction[2](env)
        self.steps.append(Step(mark, True, None, None, None, None, (), ()))
        self.section, self.pc = self.section + 1, 0
        self.ended = self.section == len(self.sections)

    def _event(self, instruction: tuple, who: Doer) -> list[Step]:
        try:
            return steps_of(instruction, self.env, who)
        except OutOfRange as e:
            _, event, _, slots, loops = instruction
            at = Step(Do.ACCESS, True, None, None, None, event, tuple(self.env[s] for s in slots), loops)
            raise FaultFound(Fault(Kind.BOUNDS, str(e), e.name, e.index, cta=self.cta, second=self.site(at))) from None


@dataclass(slots=True)
class Cluster:
    """One scenario of some facts, ready to run: agents, numbers of places, and what execution has asked of unknown values."""

    facts: Facts
    scenario: Scenario
    places: Places
    agents: list[Agent]
    messages: dict[int, dict[tuple, int]]

    def members(self, agent: Agent) -> list[Agent]:
        """All agents of the instance that an agent belongs to."""
        return [a for a in self.agents if (a.cta, a.name, a.instance) == (agent.cta, agent.name, agent.instance)]


def cluster_of(facts: Facts, world: World, whole: bool = False, tensors: bool = False, apart: bool = False) -> Cluster:
    """`whole`: statements that no other agent can notice are steps too; `tensors`: so is where asynchronous ones begin in tensors;
    `apart`: each warp is an agent. Raises MachineError where a parameter has no value."""
    scenario = world.scenario
    missing = [p for p in facts.scalars if p not in scenario.params]
    if missing:
        raise MachineError(f"the scenario gives no value for '{missing[0]}'")
    constants = {**scenario.params, "cluster.id": scenario.cluster, "cluster.count": scenario.clusters}
    slots = Names(constants)
    compiler, places = Compiler(slots, world.load, world.choose, world.draw_number), Places(facts)
    fixed = {n: slots.slot(n) for n in (" cta", " role", " instance", "warp", f"cluster.{facts.axis}")}

    messages: dict[int, dict[tuple, int]] = {}

    def coded(block: Block) -> Coder:
        coder = Coder(facts, compiler, places, messages, whole=whole, tensors=tensors)
        coder.block(block)
        return coder

    try:
        before, after = coded(facts.before), coded(facts.after)
        roles = {r.name: coded(r.body) for r in facts.roles}
    except ZeroDivisionError:
        raise MachineError("a division by zero") from None
    indexed = {r.name: slots.slot(f"{r.name}.i") for r in facts.roles}
    agents: list[Agent] = []
    split = apart or numbered((*facts.before, *facts.after))
    for cta in range(facts.cluster):
        for role, instance, warp, warps, first in groups_of(facts, cta, split):
            name = role.name if role else "idle"
            number = -1 if role is None else [r.name for r in facts.roles].index(role.name)
            common = {fixed[" cta"]: cta, fixed[" role"]: number, fixed[" instance"]: instance, fixed[f"cluster.{facts.axis}"]: cta}
            outside = Doer(cta, "", 0, first, warps)
            sections = [(before.code, outside, common | {fixed["warp"]: first}, Do.CONVERGE)]
            coder = before
            if role is not None:
                coder = roles[role.name]
                inside = Doer(cta, name, instance, warp, warps)
                sections.append((coder.code, inside, {fixed["warp"]: warp, indexed[name]: instance}, Do.ROLE_END))
            sections.append((after.code, outside, {fixed["warp"]: first}, Do.EXIT))
            agents.append(
                Agent(len(agents), cta, role, name, instance, warp, warps, first, sections, [None] * len(slots.slots), frozenset(coder.collective))
            )
    return Cluster(facts, scenario, places, agents, messages)


def groups_of(facts: Facts, cta: int, split: bool | set[int], single: frozenset[str] = frozenset()):
    """(role, instance, first warp in it, how many warps, first warp in the CTA) of each agent of a CTA. `single`: roles whose warps are agents
    each."""
    taken = set()
    for role in facts.roles:
        if cta not in facts.ctas(role):
            continue
        plan = role.plan
        apart = role.name in single or numbered(role.body)
        for i in range(plan.instances):
            base = plan.first + i * plan.warps
            taken |= set(range(base, base + plan.warps))
            for lo, hi in _cuts(plan.warps, apart, split, base):
                yield role, i, lo, hi - lo, base + lo
    idle = [w for w in range(facts.warps) if w not in taken]
    while idle:
        hi = next((k for k in range(1, len(idle)) if idle[k] != idle[0] + k), len(idle))
        for lo, end in _cuts(hi, set(), split, idle[0], first=False):
            yield None, idle[0], lo, end - lo, idle[0] + lo
        idle = idle[hi:]


def _cuts(warps: int, apart: bool | set[int], split: bool | set[int], base: int, first: bool = True) -> list[tuple[int, int]]:
    """Runs of warps of an instance that are taken together."""
    if apart is True or split is True:
        return [(w, w + 1) for w in range(warps)]
    alone = set(apart) | {w - base for w in split} | ({0} if first else set())
    cuts = sorted({0, warps} | {c for w in alone if 0 <= w < warps for c in (w, w + 1)})
    return list(pairwise(cuts))


def numbered(block: Block) -> bool | set[int]:
    """Warps that the text tells apart by number; True: by what it makes of the number."""
    alone = set()
    for node in walk(block):
        asked: tuple = ()
        match node:
            case Branch(test=t) | While(test=t):
                asked = (t,)
            case Loop(lo=lo, hi=hi, step=step):
                asked = (lo, hi, step)
            case Event(warp=w):
                if w is not None:
                    alone.add(w)
        if any(n.id == "warp" for n in names(asked)):
            return True
    for e in events(block):
        for a in e.acts:
            match a:
                case Wait(ref) | Arrive(ref) | EngineArrive(ref):
                    if any(n.id == "warp" for n in names(ref.index)):
                        return True
                case Meet(id=id) if id is not None and any(n.id == "warp" for n in names(id)):
                    return True
        if any(s.value is not None and any(n.id == "warp" for n in names(s.value)) for s in e.sets):
            return True
    return alone
