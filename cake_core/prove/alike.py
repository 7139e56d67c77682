"""Symmetries of a protocol: agents that may change places without a change in what can happen.

CTAs of a cluster often do the same, instances of a role, and warps of an instance that are each an agent. A permutation of agents and CTAs under which runs, barriers and who
starts what together are the same takes each cut to a cut, so what is asked of some agents is asked of those that they change places with:
one question stands for all of its kind. Nothing is assumed: every permutation is compared with the protocol, piece by piece.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from cake_core.frozen import frozen
from cake_core.prove.protocol import Barrier, Protocol, Stream
from cake_core.prove.text import Key
from cake_core.prove.walk import Run

#: Permutations that are looked at for one question; more of them are left out, and what they would spare is asked.
MOST = 64


@frozen
class Permutation:
    agents: tuple[int, ...]  # by number, in the order of the protocol's runs
    ctas: tuple[int, ...]

    def then(self, other: Permutation) -> Permutation:
        return Permutation(tuple(other.agents[a] for a in self.agents), tuple(other.ctas[c] for c in self.ctas))


class Alike:
    """The symmetries of one protocol, and what they say of a question."""

    def __init__(self, protocol: Protocol) -> None:
        self.number = {key: n for n, key in enumerate(protocol.runs)}
        ctas = 1 + max((r.agent.cta for r in protocol.runs.values()), default=0)
        same = Permutation(tuple(range(len(self.number))), tuple(range(ctas)))
        kept = [p for p in _candidates(protocol, self.number, same) if _keeps(protocol, p)]
        self.group = _closure(same, kept)
        self.sisters = _sisters(protocol, self.number, same)
        self._forms: dict[tuple, tuple] = {}

    def form(self, agents: tuple[str, ...], ctas: tuple[int, ...] = ()) -> tuple:
        """The same for agents and CTAs that some symmetry takes to each other, one by one."""
        if (agents, ctas) not in self._forms:
            numbers = [self.number[a] for a in agents]
            self._forms[agents, ctas] = min((*self._named([p.agents[n] for n in numbers]), *(p.ctas[c] for c in ctas)) for p in self.group)
        return self._forms[agents, ctas]

    def named(self, *agents: str) -> tuple[int, ...]:
        """The same for agents that warps of one instance which change places take to each other, while all others stay."""
        return tuple(self._named([self.number[a] for a in agents]))

    def _named(self, agents: list[int]) -> list[int]:
        """Of warps that may all change places, the first that is met goes by the least of their numbers, and so on."""
        if not self.sisters:
            return agents
        met: dict[int, int] = {}
        used: dict[int, int] = {}
        for n in agents:
            if n not in met and (warps := self.sisters.get(n)) is not None:
                first = warps[0]
                met[n] = warps[used.get(first, 0)]
                used[first] = used.get(first, 0) + 1
        return [met.get(n, n) for n in agents]


def _candidates(protocol: Protocol, number: dict[str, int], same: Permutation) -> Iterator[Permutation]:
    """CTAs whose ranks differ in some bits change places; so do neighbouring instances of a role in one CTA."""
    place = {(*r.agent.place, r.agent.first, r.agent.warp): number[key] for key, r in protocol.runs.items()}

    def moved(to) -> Permutation | None:
        agents = [place.get((*to(role, instance, cta), *which)) for (role, instance, cta, *which) in place]
        if None in agents:
            return None
        return Permutation(tuple(agents), tuple(to("", 0, c)[2] for c in same.ctas))

    found = [moved(lambda role, i, cta, bits=bits: (role, i, cta ^ bits)) for bits in range(1, len(same.ctas)) if len(same.ctas) > bits]
    for role, instance, cta, first, _ in place:
        if first and (role, instance + 1, cta, True, None) in place:
            swapped = {instance: instance + 1, instance + 1: instance}

            def swap(r: str, i: int, c: int, of=(role, cta), swapped=swapped) -> tuple[str, int, int]:
                return r, swapped.get(i, i) if (r, c) == of else i, c

            found.append(moved(swap))
    return (p for p in found if p is not None and all(c < len(same.ctas) for c in p.ctas))


def _sisters(protocol: Protocol, number: dict[str, int], same: Permutation) -> dict[int, list[int]]:
    """By warp, those of its instance of which any two may change places: it is seen of neighbours, and the rest follows."""
    out: dict[int, list[int]] = {}
    places: dict[tuple, list[int]] = {}
    for key, r in protocol.runs.items():
        if r.agent.warp is not None:
            places.setdefault(r.agent.place, []).append(number[key])
    for warps in places.values():
        for a, b in itertools.pairwise(warps):
            agents = list(same.agents)
            agents[a], agents[b] = b, a
            if _keeps(protocol, Permutation(tuple(agents), same.ctas)):
                out[b] = out.setdefault(a, [a])
                out[b].append(b)
    return out


def _keeps(protocol: Protocol, p: Permutation) -> bool:
    """Whether the protocol is the same with agents and CTAs at each other's places."""
    keys = list(protocol.runs)
    to = {key: keys[p.agents[n]] for n, key in enumerate(keys)}
    if not all(_same_run(run, protocol.runs[to[key]], p) for key, run in protocol.runs.items()):
        return False
    joint = set(protocol.joint)
    if {(to[a], to[b], queue) for a, b, queue in joint} != joint:
        return False
    same = Permutation(tuple(range(len(keys))), tuple(range(len(p.ctas))))
    before = sorted(_barrier(b, {k: k for k in keys}, same) for b in protocol.barriers.values())
    after = sorted(_barrier(b, to, p) for b in protocol.barriers.values())
    return before == after


def _same_run(a: Run, b: Run, p: Permutation) -> bool:
    """The same text, walked once: counts and guards are the same terms, and so is what the acts name but for who does them. What is
    counted by a CTA's rank is counted as for the CTA at its place."""
    x, y = a.agent, b.agent
    if (x.role.name, x.first, x.warps, x.apart) != (y.role.name, y.first, y.warps, y.apart) or len(a.sites) != len(b.sites):
        return False
    moved = [(k, _key(k, p)) for k in a.end.state if _key(k, p) != k]
    if not all(s.count(k).eq(s.count(to)) for k, to in moved for s in a.places):  # a cut stands at places alone
        return False
    return all(
        s.state is t.state and s.env is t.env and s.guard is t.guard and s.event is t.event and s.number == t.number
        for s, t in zip(a.sites, b.sites, strict=True)
    )


def _key(key: Key, p: Permutation) -> Key:
    """A stream's key (`text.arrival`, `text.copied`) with CTAs at each other's places."""
    if key[0] not in ("arrive", "issue"):
        return key
    kind, barrier, to, turn = key
    *words, last = to.split()
    if not last.isdigit():
        return key
    rank = int(last)
    if rank >= (len(p.ctas) if not words else 1 << len(p.ctas)):
        return key
    if words:  # a mask of CTAs
        return kind, barrier, f"{' '.join(words)} {sum(1 << c for n, c in enumerate(p.ctas) if rank >> n & 1)}", turn
    return kind, barrier, str(p.ctas[rank]), turn


def _barrier(b: Barrier, to: dict[str, str], p: Permutation) -> str:
    """All that cuts know of a barrier, agents and CTAs by what they are taken to. Named barriers and meetings go by who comes to them."""

    def streams(of: list[Stream]) -> list:
        return sorted((to[s.agent.key], _key(s.key, p), s.weight, s.engine or "", s.expects, [x.number for x in s.sites]) for s in of)

    told = (
        b.name if b.mbarrier else "",
        p.ctas[b.cta] if b.cta >= 0 else b.cta,
        b.stages,
        b.count,
        b.mbarrier,
        b.short,
        [streams(of) for of in (b.arrivals, b.waits, b.copies)],
        sorted((to[k], v) for k, v in b.credit.items()),
        sorted((to[k], sorted(v)) for k, v in b.waiting.items()),
        sorted(map(str, b.threads)),
    )
    return repr(told)


def _closure(same: Permutation, generators: list[Permutation]) -> tuple[Permutation, ...]:
    found = {same: None}
    work = [same]
    while work and len(found) < MOST:
        p = work.pop()
        for g in generators:
            q = p.then(g)
            if q not in found and len(found) < MOST:
                found[q] = None
                work.append(q)
    return tuple(found)
