"""What of a text counts for a proof: the streams that an event adds to, and the names that decide where a role goes."""

from __future__ import annotations

from collections.abc import Iterator

from cake_core.effects import Mode
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
    Loop,
    Meet,
    Node,
    Wait,
    While,
    WithBytes,
)
from cake_core.facts.schema import walk as nodes
from cake_core.frozen import frozen
from cake_core.ir.nodes import Expr, Int
from cake_core.ir.places import names
from cake_core.ir.printer import expr_text
from cake_core.prove.agents import Agent, Constants, specialise

#: What is counted, by what happens: ("wait", barrier), ("arrive", barrier, at whose), ("meet", scope, id), ("commit", queue),
#: ("read" | "retired", queue): groups known to be complete, ("issue", barrier, at whose), ("access", event, act); and ("var", name): a variable's value.
Key = tuple


class Unanalysed(Exception):
    """What the method cannot say, in words for a diagnostic."""

    def __init__(self, what: str, span=None) -> None:
        super().__init__(what)
        self.what, self.span = what, span


# --- what an event counts ----------------------------------------------------------------------------------------


@frozen
class Counting:
    """How a run counts. `ids`: of meetings, as the text writes them, by the one that stands for the same number; `turns`: of arrivals and
    copies (`arrival_turns`); `apart`: lanes of a warp meet as warps do."""

    ids: dict[str, str]
    turns: dict[tuple[int, int], int]
    apart: bool

    def streams(self, event: Event) -> list[Key]:
        """What has happened once more when the event has. Barriers of a CTA are told apart by how the text names it, so that agents
        that do the same count the same."""
        out: list[Key] = []
        for number, a in enumerate(event.acts):
            match a:
                case Wait():
                    out.append(("wait", a.barrier.name))
                case Arrive() | EngineArrive():
                    out.append(arrival(a, self.turns[event.id, number]))
                case Commit(queue):
                    out.append(("commit", queue))
                case Meet() if a.scope != "warp" or self.apart:
                    out.append(meeting(a, self.ids))
                case Access(mode=Mode.WRITE, completion=WithBytes()):
                    out.append(copied(a.completion, self.turns[event.id, number]))
                case Access() if a.region.memory in ("shared", "tensor"):
                    out.append(("access", event.id, number))
        out += [("commit", queue) for queue in lane_queues(event)]
        return out

    def drains(self, event: Event) -> list[Drain]:
        """Groups that are known to be complete behind the event. Where lanes meet, and where each of them arrives, what they did is done."""
        out = [a for a in event.acts if isinstance(a, Drain)]
        if any(isinstance(a, Meet) or isinstance(a, Arrive) and event.by is By.ALL for a in event.acts):
            out += [Drain(q, 0, False) for q in LANES.values()]
        if any(isinstance(a, Meet) and a.waits for a in event.acts):
            out.append(Drain(AMONG, 0, False))
        return out


#: What some lanes of a warp did, and others do not know done until they meet: queues of groups of one access. Who hears from all
#: lanes that they have come to an arrival knows it too; the lanes themselves do not.
LANES = {True: "all lanes", False: "the leader"}
AMONG = "lanes among themselves"


def lane_queues(event: Event) -> tuple[str, ...]:
    """The queues of an event that touches shared memory at once."""
    if not any(isinstance(a, Access) and a.region.memory in ("shared", "tensor") and isinstance(a.completion, AtOnce) for a in event.acts):
        return ()
    return (LANES[True], AMONG) if event.by is By.ALL else (LANES[False],)


def arrival(a: Arrive | EngineArrive, turn: int) -> Key:
    """`a` as the text has it, not as an agent does. `turn`: the first, second, .. arrival of a stretch that brings several a phase."""
    if isinstance(a, EngineArrive):
        return ("arrive", a.barrier.name, f"engine {a.mask or 'own'}", turn)
    return ("arrive", a.barrier.name, "own" if a.cta is None else expr_text(a.cta), turn)


def copied(done: WithBytes, turn: int) -> Key:
    """A copy by the barrier that counts its bytes; `turn` as of arrivals."""
    to = "own" if done.mask is None else f"mask {done.mask}"
    return ("issue", done.barrier.name, to if done.cta is None else expr_text(done.cta), turn)


def arrival_turns(block: Block) -> dict[tuple[int, int], int]:
    """Of each arrival and copy, how many for the same stage of the same barrier stand in front of it in its straight stretch of text."""
    out: dict[tuple[int, int], int] = {}

    def stretch(block: Block) -> None:
        met: dict[tuple, int] = {}
        for node in block:
            match node:
                case Loop() | While():
                    met = {}
                    stretch(node.body)
                case Branch():
                    met = {}
                    stretch(node.then)
                    stretch(node.other)
                case Event():
                    for number, a in enumerate(node.acts):
                        signals = isinstance(a, Access) and a.mode is Mode.WRITE and isinstance(a.completion, WithBytes)
                        if signals or isinstance(a, Arrive | EngineArrive):
                            to = a.completion.barrier if signals else a.barrier
                            at = (*(copied(a.completion, 0) if signals else arrival(a, 0)), expr_text(to.index))
                            out[node.id, number] = met.get(at, 0)
                            met[at] = met.get(at, 0) + 1
                        elif isinstance(a, Wait):
                            met = {}
                    if node.sets:
                        met = {}

    stretch(block)
    return out


def meeting(a: Meet, ids: dict[str, str]) -> Key:
    return ("meet", a.scope, "" if a.id is None else ids[expr_text(a.id)])


def reached(a: Arrive | EngineArrive, agent: Agent) -> tuple[int, ...]:
    """Ranks of the CTAs at whose barrier an agent's act arrives."""
    if isinstance(a, EngineArrive):
        return (agent.cta,) if a.mask is None else tuple(r for r in range(a.mask.bit_length()) if a.mask >> r & 1)
    if a.cta is None:
        return (agent.cta,)
    return (rank(a.cta, agent, "that is arrived at"),)


def rank(cta: Expr, agent: Agent, what: str) -> int:
    """Which CTA of its cluster an agent names. `what`: how it is spoken of."""
    if not isinstance(cta, Int):
        raise Unanalysed(f"the CTA {what} is not a constant")
    if not 0 <= cta.value < agent.cluster:
        raise Unanalysed(f"the CTA {what} is none of the cluster: rank {cta.value} of {agent.cluster}")
    return cta.value


# --- what of a text decides something ------------------------------------------------------------------------------


def changed(block: Block, agent: Agent, needed: frozenset[str], counting: Counting) -> Iterator[Key]:
    """Keys of all that a block may count or set."""
    for e in nodes(block):
        if not isinstance(e, Event):
            continue
        if agent.runs(e):
            yield from counting.streams(e)
            for a in counting.drains(e):
                yield ("read", a.queue)
                if not a.reads_only:
                    yield ("retired", a.queue)
        yield from (("var", s.name) for s in e.sets if s.name in needed)


def matters(node: Node, agent: Agent, needed: frozenset[str], counting: Counting) -> bool:
    """Whether a node does something that others see, or sets a name that decides something."""
    if not isinstance(node, Event):
        return isinstance(node, While)
    return bool(agent.runs(node) and (counting.streams(node) or counting.drains(node))) or any(s.name in needed for s in node.sets)


def needed_names(block: Block, regions: bool = True) -> frozenset[str]:
    """Names that decide where a role goes, which barrier it names or (`regions`) which bytes: those, and what their values are made of."""
    made: dict[str, set[str]] = {}
    out: set[str] = set()

    def use(*exprs) -> None:
        out.update(n.id for e in exprs for n in names(e))

    for node in nodes(block):
        match node:
            case Loop():
                use(node.lo, node.hi, node.step)
            case While() | Branch():
                use(node.test)
            case Event():
                for a in node.acts:
                    match a:
                        case Wait(barrier, parity):
                            use(barrier.index, parity)
                        case Arrive(barrier) | EngineArrive(barrier):
                            use(barrier.index)
                        case Access() if a.region.memory in ("shared", "tensor"):
                            if regions:
                                use(*a.region.slot, *(x for d in a.region.box for x in (d.lo, d.size)), *([] if a.when is None else [a.when]))
                            if isinstance(a.completion, WithBytes):
                                use(a.completion.barrier.index)
                for s in node.sets:
                    made.setdefault(s.name, set()).update(n.id for n in names(s.value)) if s.value is not None else made.setdefault(s.name, set())
    work = list(out)
    while work:
        for n in made.get(work.pop(), ()):
            if n not in out:
                out.add(n)
                work.append(n)
    return frozenset(out)


# --- who the agent is ----------------------------------------------------------------------------------------------


def specialised(event: Event, constants: Constants) -> tuple:
    return tuple(specialise(a, constants) for a in event.acts)


def meeting_ids(block: Block, constants: Constants) -> dict[str, str]:
    """The ids of meetings as a text writes them; two that are the same number for this agent are counted as one."""
    out: dict[str, str] = {}
    first: dict[str, str] = {}
    for e in nodes(block):
        for a in e.acts if isinstance(e, Event) else ():
            if isinstance(a, Meet) and a.id is not None:
                text = expr_text(a.id)
                out[text] = first.setdefault(expr_text(specialise(a.id, constants)), text)
    return out


def deciding(block: Block, agent: Agent) -> list[str]:
    """Which of the agent's constants decide where it goes, or which stage it names, or what a variable holds that names bytes."""
    asked = (f"{agent.role.name}.i", "warp", *(n for n in _names_of(block) if n.startswith("cluster.") and n not in ("cluster.id", "cluster.count")))
    used, needed = needed_names(block, regions=False), needed_names(block)
    used |= {n.id for e in nodes(block) if isinstance(e, Event) for s in e.sets if s.name in needed and s.value is not None for n in names(s.value)}
    return [n for n in dict.fromkeys(asked) if n in used]


def _names_of(block: Block) -> Iterator[str]:
    for node in nodes(block):
        match node:
            case Loop():
                yield from (n.id for n in names((node.lo, node.hi, node.step)))
            case While() | Branch():
                yield from (n.id for n in names(node.test))
            case Event():
                yield from (n.id for s in node.sets if s.value is not None for n in names(s.value))
                for a in node.acts:
                    if isinstance(a, Wait | Arrive | EngineArrive):
                        yield from (n.id for n in names(a.barrier.index))
