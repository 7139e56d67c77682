"""What the threads of an instance touch of shared memory together: what their statements name, to the byte.

Each thread has a share of a tile, and which one a layout says, in code that the machine code was made by. That they miss nothing and go nowhere else needs
no layout. A few threads are run, the others follow where places grow bit by bit with the numbers of lane and warp, by sums or by exclusive or, and two
threads more agree with that. Before anything is told all threads are run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from cake_core.facts.schema import Access, Facts
from cake_core.ir.places import names
from cake_core.machine.steps import Do, Step
from cake_core.ptx.acts import THREADS, USES, in_rank
from cake_core.reread.areas import Area, in_buffer
from cake_core.reread.compare import between
from cake_core.reread.expected import Wanted
from cake_core.reread.threads import Seen

LANES = 32
#: Warp of the instance, lane; the leading one; line, and how often it was executed before.
Thread = tuple[int, int]
FIRST = (0, 0)
Key = tuple[int, int]
#: By event and iteration, steps of warps.
Numbered = dict[tuple[int, tuple[int, ...]], list[Step]]
#: Bytes that a swizzle moves in one piece, and the lowest bit of an address that says where to (cuTensorMapEncodeTiled; PTX ISA, swizzling modes).
PIECE, FROM = 16, 7


class Unshared(NamedTuple):
    """A statement whose bytes are not those that its threads touch: the first one that is `missed`, or is touched beside them."""

    step: Step | None
    line: int | None
    byte: int
    missed: bool


def sampled(warps: int) -> tuple[Thread, ...]:
    """Threads that are run for all: the first, those of one bit more, and two that have many."""
    return (FIRST, *_bits(warps), (0, LANES - 1), (warps - 1, 0), (warps - 1, LANES - 1))


def _bits(warps: int) -> list[Thread]:
    return [(0, 1 << n) for n in range(5)] + [(1 << n, 0) for n in range(warps.bit_length()) if 1 << n < warps]


def every(warps: int) -> tuple[Thread, ...]:
    return tuple((w, lane) for w in range(warps) for lane in range(LANES))


def unshared(
    facts: Facts, base: int, wanted: list[Wanted], numbered: Numbered, seen: Mapping[Thread, list[Seen]], warps: int, all_: bool
) -> list[Unshared] | None:
    """What differs, in order. `wanted` of the leading thread of the instance; `numbered`: what its warps do where each goes by its number; `seen` of those that were run, all of them or those of `sampled`. What is touched
    between the same two other acts of that thread is compared. None: places don't grow as they would have to."""
    names = {w.act.name for w in wanted if shared_out(w)}
    touched: dict[Key, dict[Thread, tuple[int, int]]] = defaultdict(dict)
    for thread, acts in seen.items():
        for key, place in _keyed(acts, names):
            touched[key][thread] = place
    ours, theirs, keys = list(between(wanted)), list(between(seen[FIRST])), iter([key for key, _ in _keyed(seen[FIRST], names)])
    if len(ours) != len(theirs):
        return None
    stretches = []
    for want, got in zip(ours, theirs, strict=True):
        steps, here = defaultdict(dict), defaultdict(list)
        for w in want:
            if shared_out(w):
                steps[w.act.name][id(w.step)] = w.step
        for s in got:
            if s.act.name in names:
                here[s.act.name].append(next(keys))
        stretches += [(list(steps[name].values()), here[name]) for name in steps.keys() | here.keys()]
    followed = {step.event.op for steps, here in stretches if here for step in steps}
    out = []
    for steps, here in stretches:
        if not here and not any(step.event.op in followed for step in steps):
            continue  # by instructions of which no plugin says where they go
        asked, starts, open_ = _named(facts, base, steps, numbered)
        if any(lo < end and first < hi for lo, hi in open_ for first, end in asked):
            continue  # two buffers in the same bytes, or a slot that several statements name
        parts = [touched[k] for k in here if not any(lo <= touched[k][FIRST][0] < hi for lo, hi in open_)]
        runs = _direct(parts) if all_ else _followed(parts, starts, warps)
        if runs is None:
            return None
        if (difference := _first(asked, runs)) is not None:
            out.append(Unshared(steps[0] if steps else None, here[0][0] if here else None, *difference))
    return out


def shared_out(w: Wanted) -> bool:
    """Whether threads share what an act touches: their own accesses, and copies that each of them starts."""
    return w.act.name == THREADS or w.step is not None and w.step.do is Do.GROUP and not w.exact and bool(w.act.parts)


def _keyed(acts: list[Seen], names: Container[str]) -> Iterator[tuple[Key, tuple[int, int]]]:
    """Accesses of a thread by line and turn: what all threads have alike."""
    turn: dict[int, int] = defaultdict(int)
    for act, line in acts:
        if act.name in names and act.what == USES:
            yield (line, turn[line]), act.parts[0][1:]
            turn[line] += 1


def by_number(step: Step) -> bool:
    """Whether warps that execute it name places by their number, so that one agent's do not stand for several warps."""
    regions = [a.region for a in step.event.acts if isinstance(a, Access)] if step.event is not None else []
    return any(n.id == "warp" for r in regions for n in names((r.slot, tuple(x.lo for x in r.box))))


def numbered(steps: Iterable[Step]) -> Numbered:
    """By event and iteration, the steps of all warps where they go by their number."""
    out: Numbered = defaultdict(list)
    for step in steps:
        if step.do in (Do.ACCESS, Do.GROUP) and by_number(step):
            out[step.event.id, step.iteration].append(step)
    return out


def _named(facts: Facts, base: int, steps: list[Step], numbered: Numbered) -> tuple[list[tuple[int, int]], list[int], list[tuple[int, int]]]:
    """The runs of bytes that statements name, where their slots start, and slots of which that is not known."""
    out, starts, open_ = [], set(), set()
    for step in steps:
        own = by_number(step)
        mates = numbered.get((step.event.id, step.iteration)) if own else [step]
        for t in (t for s in mates or [step] for t in s.a if t.location.memory == "shared"):
            plan, zero = facts.buffers[t.location.name], in_rank(base, t.location.cta)
            areas = in_buffer(plan, t.location.lo, t.box) if mates else None
            starts.add(zero + t.location.lo)
            if areas is None:
                open_.add((zero + t.location.lo, zero + t.location.hi))
            else:
                out += [(zero + lo, zero + hi) for area in areas for lo, hi in _swizzled(plan.swizzle, area)]
    return _merged(out), sorted(starts), sorted(open_)


@lru_cache(256)
def _swizzled(swizzle: int, area: Area) -> tuple[tuple[int, int], ...]:
    """Where bytes of an area lie."""
    first, rows, pitch, width = area
    whole = not swizzle or first % swizzle == 0 and width % swizzle == 0 and (rows == 1 or pitch == width)
    if whole or width < PIECE:
        return tuple((first + n * pitch, first + n * pitch + width) for n in range(rows))
    mask, out = swizzle // PIECE - 1, []
    for n in range(rows):
        for at in range(first + n * pitch, first + n * pitch + width, PIECE):
            place = at ^ (at >> FROM & mask) * PIECE
            out.append((place, place + PIECE))
    return tuple(_merged(out))


def _direct(touched: Iterable[Mapping[Thread, tuple[int, int]]]) -> list[tuple[int, int]]:
    return _merged(run for by in touched for run in by.values())


def _followed(touched: Iterable[Mapping[Thread, tuple[int, int]]], starts: list[int], warps: int) -> list[tuple[int, int]] | None:
    """All that is touched, from what the sampled threads touch. A thread does something if all threads do that have one of its bits. Places count from the
    start of their slot, one of `starts`: there no sum carries into the bits of a swizzle."""
    grouped: dict[int, list[tuple[int, tuple[tuple[Thread, int], ...]]]] = defaultdict(list)
    for by in touched:
        first, end = by[FIRST]
        start = starts[max(bisect_right(starts, first) - 1, 0)] if starts else 0
        grouped[start].append((end - first, tuple((t, place - start) for t, (place, _) in by.items())))
    out: list[tuple[int, int]] = []
    for start, patterns in grouped.items():
        if (runs := _pattern(tuple(patterns), warps)) is None:
            return None
        out += [(start + lo, start + hi) for lo, hi in runs]
    return _merged(out)


@lru_cache(256)
def _pattern(patterns: tuple[tuple[int, tuple[tuple[Thread, int], ...]], ...], warps: int) -> list[tuple[int, int]] | None:
    """What all threads touch from one start on, where each item is (bytes, places of those that were run); the turns of a loop are alike."""
    out: set[tuple[int, int]] = set()
    for size, at in patterns:
        if (places := _grown(dict(at), _xor, warps) or _grown(dict(at), _sum, warps)) is None:
            return None
        out |= {(p, p + size) for p in places}
    return _merged(out)


def _grown(at: Mapping[Thread, int], grows: Callable[[int, int], int], warps: int) -> list[int] | None:
    """The places of all threads that have one; None where those that were run are elsewhere than their bits say."""
    first = at[FIRST]
    steps = {bit: at[bit] ^ first if grows is _xor else at[bit] - first for bit in _bits(warps) if bit in at}

    def place(thread: Thread) -> int | None:
        warp, lane = thread
        where = first
        for bit in [(0, 1 << n) for n in range(5) if lane >> n & 1] + [(1 << n, 0) for n in range(warp.bit_length()) if warp >> n & 1]:
            if bit not in steps:
                return None
            where = grows(where, steps[bit])
        return where

    if any(place(t) != at.get(t) for t in ((0, LANES - 1), (warps - 1, 0), (warps - 1, LANES - 1))):
        return None
    places = [first]
    for (warp, _), step in steps.items():
        if not warp:
            places += [grows(p, step) for p in places]
    others = [w for w in (place((warp, 0)) for warp in range(1, warps)) if w is not None]
    return places + [grows(p, w ^ first if grows is _xor else w - first) for w in others for p in places]


def _xor(a: int, b: int) -> int:
    return a ^ b


def _sum(a: int, b: int) -> int:
    return a + b


def _merged(runs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for lo, hi in sorted(set(runs)):
        if out and lo <= out[-1][1]:
            out[-1] = out[-1][0], max(hi, out[-1][1])
        else:
            out.append((lo, hi))
    return out


def _first(asked: list[tuple[int, int]], runs: list[tuple[int, int]]) -> tuple[int, bool] | None:
    """The first byte that only one of them has, and whether it is asked for."""
    if asked == runs:
        return None
    edges = sorted({x for lo, hi in (*asked, *runs) for x in (lo, hi)})
    for at in edges:
        a, b = (any(lo <= at < hi for lo, hi in side) for side in (asked, runs))
        if a != b:
            return at, a
    return None
