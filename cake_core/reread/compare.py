"""Two lists of acts of one thread, side by side: where they part."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from cake_core.ptx.acts import USES, Act, rank_of
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
    for want, got in zip_longest(_between(wanted), _between(seen), fillvalue=()):
        open_ = {w.act.name for w in want if not w.act.parts}
        for s in got:
            if s.act.name not in open_ and not any(_inside(s.act, w.act) for w in want):
                return Difference(next((w for w in want if w.act.name == s.act.name), None), s)
        for w in want:
            if w.exact and rank_of(w.act.parts[0][1]) == rank and not any(_inside(s.act, w.act) for s in got):
                return Difference(w, next((s for s in got if s.act.name == w.act.name), None))
    return None


def _between(acts: list) -> Iterator[list]:
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
    if not want.parts or got.name != want.name:
        return False
    (_, a, b), (_, lo, hi) = got.parts[0], want.parts[0]
    return lo <= a and b <= hi


def _joined(acts: list) -> list:
    out: list = []
    for a in acts:
        if a.act.what == "copy" and out and out[-1].act.what == "copy" and _signals(out[-1].act) == _signals(a.act):
            last = out[-1]
            both = last.act._replace(number=last.act.number + a.act.number, parts=last.act.parts + a.act.parts)
            out[-1] = last._replace(act=both, **({"exact": last.exact and a.exact} if isinstance(a, Wanted) else {}))
        else:
            out.append(a)
    return out


def _signals(act: Act) -> frozenset[int]:
    return frozenset(b for b, _, _ in act.parts)


def _same_copy(w: Wanted, seen: Act) -> bool:
    """Whether the same bytes are told to the same barriers, and are written where they should be: exactly there where the text says so to the
    byte, and no further than the slot where a tile lies in it in pieces."""
    if seen.number != w.act.number or _signals(seen) != _signals(w.act):
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
