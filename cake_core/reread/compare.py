"""Two lists of acts of one thread, side by side: where they part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from cake_core.ptx.acts import ADDED, COORDINATE, USES, WRITTEN, Act, rank_of
from cake_core.reread.areas import area_of, joined
from cake_core.reread.expected import Wanted
from cake_core.reread.threads import Seen


class Difference(NamedTuple):
    """What was wanted and what was seen there; None: nothing more."""

    wanted: Wanted | None
    seen: Seen | None


def compared(wanted: list[Wanted], seen: list[Seen], rank: int) -> Difference | None:
    """The first difference of a thread in the CTA of `rank`. One copy of the text may be several instructions: neighbours that tell the same barriers count as one."""
    one, other = _joined(_ordered(wanted)), _joined(_ordered(seen))
    for w, s in zip(one, other, strict=False):
        if w.act != s.act and not (w.act.what == s.act.what == "copy" and _same_copy(w, s.act)):
            return Difference(w, s)
    if len(one) > len(other):
        return Difference(one[len(other)], None)
    if len(other) > len(one):
        return Difference(None, other[len(one)])
    return _used(wanted, seen, rank)


def _ordered(acts: list) -> list:
    return [a for a in acts if a.act.what != USES]


def _used(wanted: list[Wanted], seen: list[Seen], rank: int) -> Difference | None:
    """What asynchronous operations touch, compared between each two of the other acts, which are the same ones."""
    for want, got in zip_longest(between(wanted), between(seen), fillvalue=()):
        if not want and not got:
            continue
        by_name: dict[str, tuple[list[Wanted], list[Seen]]] = defaultdict(lambda: ([], []))
        (asked, starts), (found, started) = _onto(want), _onto(got)
        for w in asked:
            by_name[w.act.name][0].append(w)
        for s in found:
            by_name[s.act.name][1].append(s)
        for name, (ws, ss) in by_name.items():
            if (difference := _same(name, ws, ss, rank)) is not None:
                return difference
        for place in starts.keys() & started.keys():
            if len(starts[place]) != len(started[place]):
                return Difference(starts[place][-1], started[place][-1])
    return None


def _onto(acts: list) -> tuple[list, dict[tuple, list]]:
    """The acts without those that add to what was written between the same two others; and, by queue and place, those that start a sum anew there: that
    write and don't add."""
    kept, written, added, starts = [], set(), set(), defaultdict(list)
    if not any(a.act.name.startswith((ADDED, WRITTEN)) for a in acts):
        return acts, starts
    for a in acts:
        name = a.act.name
        place = name.removeprefix(ADDED).removeprefix(WRITTEN), a.act.parts
        if name.startswith(ADDED):
            added.add(place)
            if place in written:
                continue
        elif name.startswith(WRITTEN):
            if place not in added:
                starts[place].append(a)
            added.discard(place)
            written.add(place)
        kept.append(a)
    return kept, starts


def _same(name: str, wanted: list[Wanted], seen: list[Seen], rank: int) -> Difference | None:
    """What of one name is touched: each thing inside of what the text touches, and together all of it. One without parts may be anything."""
    if not all(w.act.parts for w in wanted) or not all(s.act.parts for s in seen):
        return None
    for s in seen:
        if not any(_inside(s.act, w.act) for w in wanted):
            return Difference(wanted[0] if wanted else None, s)
    if name.startswith(COORDINATE):
        for w in wanted:
            inside = [s for s in seen if _inside(s.act, w.act)]
            if inside and joined(frozenset(area_of(s.act) for s in inside)) != joined(frozenset((area_of(w.act),))):
                return Difference(w, inside[-1])
        return None
    exact = [w for w in wanted if w.exact]
    if len(exact) < len(wanted):
        missing = next((w for w in exact if rank_of(w.act.parts[0][1]) == rank and not any(_inside(s.act, w.act) for s in seen)), None)
        return None if missing is None else Difference(missing, seen[0] if seen else None)
    parts = joined(frozenset(area_of(s.act) for s in seen))
    if exact and parts != joined(frozenset(area_of(w.act) for w in exact)):
        w = next((w for w in exact if area_of(w.act) not in parts), exact[0])
        return Difference(w, next((s for s in seen if _inside(s.act, w.act)), seen[0] if seen else None))
    return None


def between(acts: list) -> Iterator[list]:
    """The acts without a place in the order, by how many others stand in front of them; copies that count as one stand for one."""
    run: list = []
    last: frozenset[int] | None = None
    for a in acts:
        if a.act.what == USES:
            run.append(a)
        else:
            signals = _signals(a.act) if a.act.what == "copy" else None
            if signals is None or signals != last:
                yield run
                run = []
            last = signals
    yield run


def _inside(got: Act, want: Act) -> bool:
    (_, a, b), (_, lo, hi) = got.parts[0], want.parts[0]
    return lo <= a and b <= hi and set(got.form) <= set(want.form or got.form)


def _joined(acts: list) -> list:
    out: list = []
    for a in acts:
        if a.act.what == "copy" and out and out[-1].act.what == "copy" and _signals(out[-1].act) == _signals(a.act):
            last = out[-1]
            form = tuple(sorted({*last.act.form, *a.act.form}))
            both = last.act._replace(number=last.act.number + a.act.number, parts=last.act.parts + a.act.parts, form=form)
            out[-1] = last._replace(act=both, **({"exact": last.exact and a.exact} if isinstance(a, Wanted) else {}))
        else:
            out.append(a)
    return out


def _signals(act: Act) -> frozenset[int]:
    return frozenset(b for b, _, _ in act.parts)


def _same_copy(w: Wanted, seen: Act) -> bool:
    """Whether the same bytes are told to the same barriers, and are written where they should be: exactly there where the text says so to the
    byte, and no further than the slot where a tile lies in it in pieces."""
    if seen.number != w.act.number or _signals(seen) != _signals(w.act) or not set(seen.form) <= set(w.act.form or seen.form):
        return False
    want, got = _spans(w.act), _spans(seen)
    return want == got if w.exact else all(any(lo <= a and b <= hi for lo, hi in want) for a, b in got)


def _spans(act: Act) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for _, lo, hi in sorted(act.parts, key=lambda p: p[1]):
        if out and lo <= out[-1][1]:
            out[-1] = out[-1][0], max(hi, out[-1][1])
        else:
            out.append((lo, hi))
    return out
