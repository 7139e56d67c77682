"""Two lists of acts of one thread, side by side: where they part."""

from __future__ import annotations

from typing import NamedTuple

from cake_core.ptx.acts import Act
from cake_core.reread.expected import Wanted
from cake_core.reread.threads import Seen


class Difference(NamedTuple):
    """What was wanted and what was seen there; None: nothing more."""

    wanted: Wanted | None
    seen: Seen | None


def compared(wanted: list[Wanted], seen: list[Seen]) -> Difference | None:
    """The first difference. One copy of the text may be several instructions: neighbours that tell the same barriers count as one."""
    one, other = _joined(wanted), _joined(seen)
    for w, s in zip(one, other, strict=False):
        if w.act != s.act and not (w.act.what == s.act.what == "copy" and _same_copy(w, s.act)):
            return Difference(w, s)
    if len(one) > len(other):
        return Difference(one[len(other)], None)
    if len(other) > len(one):
        return Difference(None, other[len(one)])
    return None


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
