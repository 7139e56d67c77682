"""Single mutants of facts: one act of one event less, twice or changed, one count changed, two neighbours swapped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cake_core.effects import Fence, Free, Reserve
from cake_core.facts.schema import (
    Access,
    Arrive,
    Block,
    Branch,
    Commit,
    Drain,
    EngineArrive,
    Event,
    Facts,
    Init,
    Loop,
    Meet,
    Wait,
    While,
    WithBytes,
    events,
)
from cake_core.ir.build import binary
from cake_core.ir.nodes import Int


@dataclass(frozen=True)
class Mutant:
    name: str
    kind: str
    facts: Facts


def edit(block: Block, number: int, change) -> Block:
    """The block with event `number` replaced by the events that `change` gives for it."""
    out = []
    for n in block:
        match n:
            case Event(id=i) if i == number:
                out += change(n)
            case Loop() | While():
                out.append(replace(n, body=edit(n.body, number, change)))
            case Branch():
                out.append(replace(n, then=edit(n.then, number, change), other=edit(n.other, number, change)))
            case _:
                out.append(n)
    return tuple(out)


def changed(facts: Facts, number: int, change) -> Facts:
    roles = tuple(replace(r, body=edit(r.body, number, change)) for r in facts.roles)
    return replace(facts, before=edit(facts.before, number, change), after=edit(facts.after, number, change), roles=roles)


def acts(facts: Facts, number: int, i: int, *new) -> Facts:
    """Act `i` of event `number` replaced by `new`."""
    return changed(facts, number, lambda e: [replace(e, acts=(*e.acts[:i], *new, *e.acts[i + 1 :]))])


def swapped(block: Block) -> Iterator[tuple[str, Block]]:
    """Blocks in which two neighbouring events are swapped."""
    for i, n in enumerate(block):
        before = block[i - 1] if i else None
        both = (n, before) if isinstance(n, Event) and isinstance(before, Event) and n.acts and before.acts else ()
        if not all(isinstance(a, Access) for e in both for a in e.acts):
            yield f"{before.id}<->{n.id}", (*block[: i - 1], n, before, *block[i + 1 :])
        match n:
            case Loop() | While():
                for name, body in swapped(n.body):
                    yield name, (*block[:i], replace(n, body=body), *block[i + 1 :])
            case Branch():
                for name, then in swapped(n.then):
                    yield name, (*block[:i], replace(n, then=then), *block[i + 1 :])


def mutants(facts: Facts) -> Iterator[Mutant]:
    blocks = (facts.before, *(r.body for r in facts.roles), facts.after)
    for e in (e for b in blocks for e in events(b)):
        for i, a in enumerate(e.acts):
            at = f"{e.id} {e.op}"

            def made(kind: str, *new, at=at, e=e, i=i) -> Mutant:
                return Mutant(f"{kind} {at}", kind, acts(facts, e.id, i, *new))

            match a:
                case Wait(parity=p):
                    yield made("drop wait")
                    yield made("parity", replace(a, parity=binary("%", binary("+", p, Int(1)), Int(2))))
                case Arrive(expect=n):
                    yield made("drop arrive")
                    yield made("twice arrive", a, a)
                    if n:
                        yield made("bytes", replace(a, expect=n * 2))
                        yield made("bytes", replace(a, expect=n // 2))
                case EngineArrive():
                    yield made("drop commit")
                    yield made("twice commit", a, a)
                case Commit():
                    yield made("drop group")
                case Drain(pending=n):
                    yield made("drop drain")
                    yield made("drain", replace(a, pending=n + 1))
                case Meet():
                    yield made("drop meet")
                case Fence():
                    yield made("drop fence")
                case Init():
                    yield made("drop init")
                case Reserve() | Free():
                    yield made("drop columns")
                case Access(completion=WithBytes(bytes=n) as c):
                    if a.mode == "write":
                        yield made("copy bytes", replace(a, completion=replace(c, bytes=n // 2)))
    for name, b in facts.barriers.items():
        for n in (b.count - 1, b.count + 1):
            if n > 0:
                yield Mutant(f"count {name} {n}", "count", replace(facts, barriers={**facts.barriers, name: replace(b, count=n)}))
    for k, r in enumerate(facts.roles):
        for name, body in swapped(r.body):
            yield Mutant(f"swap {name}", "swap", replace(facts, roles=(*facts.roles[:k], replace(r, body=body), *facts.roles[k + 1 :])))
