"""Reads of what no one has written: a cut in which an agent is about to read an element that no write of its buffer has reached.

Where all parts are constants, elements that the same writes reach are one question; else one question is about any element.

How often each write was started is known at a cut; which slots that are is known where its n-th goes to slot n, counted round the ring. What is
not known of a write, a slot by another count or a part that moves, is taken for all of it, so a cut that is found is one for certain, and
of such a write it is proved that there was one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import field
from math import prod

from cake_core import smt
from cake_core.effects import Mode
from cake_core.facts import Row
from cake_core.facts.schema import Access, Extent, Facts, Region, events
from cake_core.frozen import frozen, thawed
from cake_core.ir.nodes import Expr, Int
from cake_core.prove.numbers import literal
from cake_core.prove.solve import NONE, Cuts, Found
from cake_core.prove.states import issue_of
from cake_core.prove.uses import Use, apart, at_cut, placed_form, residue
from cake_core.rules.predicates import PROVED, Answer, Standing

#: Warps that make one write together: more of them are asked of one by one, if that makes no more questions of one.
FEW, MOST_WAYS = 2, 32


@frozen
class Unwritten:
    """A question: whether `read` may begin while none of `writes`, which may reach what it reads, was started; `before`: parts that were written in
    front of the roles. `whole`: these are all that reach some elements of it; else each reaches a part of it."""

    read: Use
    before: tuple[Region, ...]
    writes: tuple[Use, ...]
    whole: bool

    @property
    def form(self) -> tuple:
        """All that the question depends on but for who its agents are."""
        placed = (lambda u: placed_form(u)[: len(u.access.region.slot)]) if self.whole else placed_form
        writes = ((w.site.number, w.number, apart(self.read, w), _same_part(w, self.read), placed(w)) for w in self.writes)
        return self.read.site.number, self.read.number, placed(self.read), self.before, *writes


def unwritten(cuts: Cuts, read: Use, writes: Iterable[Use]) -> Iterator[Unwritten]:
    """What is to be asked of one read. `writes`: all of the buffer, in that CTA."""
    before, groups = tuple(_before(cuts.facts, read.access.region)), [_who(read, g) for g in _groups(writes).values()]
    parts = _parts(read.access.region, [*before, *(g[0].access.region for g in groups)])
    if parts is None:
        yield from (Unwritten(read, before, who, False) for who in _split(cuts, read, groups))
    for part in parts or ():
        reach = [groups[n - len(before)] for n in part if n >= len(before)]
        yield from (Unwritten(read, tuple(before[n] for n in part if n < len(before)), who, True) for who in _split(cuts, read, reach))


def ask(cuts: Cuts, question: Unwritten) -> Found:
    """A cut in which the read is about to begin, and no one has started a write of one of its elements."""
    read = question.read
    at = at_cut(cuts, read)
    state = [cuts.cut.at[read.key][read.site.number]]
    if read.access.when is not None:
        state.append(at(cuts.sums.numbers.condition(read.access.when, read.site.env)))
    element = _Element(cuts, read, question.whole)
    for before in question.before:
        element.not_in(before, _another_slot(cuts, read, before))
    agents = [read.key]
    for group in _groups(question.writes).values():
        missing = _missing(cuts, read, group)
        if missing is not None:
            element.not_in(group[0].access.region, smt.Or(missing))
            agents += [u.key for u in group]
    return NONE if element.whole else cuts.consistent([*state, *element.conditions], *dict.fromkeys(agents))


def first_read(facts: Facts, row: Row) -> Answer:
    """Of a read in front of the roles: whether a write of the buffer stands above it."""
    for e in events(facts.before):
        if e is row.site.event:
            break
        if any(_writes(a, row.site.act.region.name) for a in e.acts):
            return PROVED
    return Answer(Standing.VIOLATED, f"no write of '{row.site.act.region.name}' stands in front of it")


def _writes(act, name: str) -> bool:
    return isinstance(act, Access) and act.mode is Mode.WRITE and not act.atomic and act.region.name == name


def _before(facts: Facts, read: Region) -> list[Region]:
    """What is written before the roles: of another slot than the one that is read, nothing of it."""
    found = (a.region for e in events(facts.before) for a in e.acts if _writes(a, read.name))
    return [r for r in found if not any(map(_apart, r.slot, read.slot))]


def _groups(writes: Iterable[Use]) -> dict[tuple, list[Use]]:
    """The warps that make one write together: each has a part of the tile, where its number does not name one."""
    out: dict[tuple, list[Use]] = {}
    for w in writes:
        if not w.access.atomic:
            out.setdefault((w.site.event.id, w.number, w.agent.place, w.access.region), []).append(w)
    return out


def _who(read: Use, group: list[Use]) -> list[Use]:
    """Of the warps that make one write together those that have a part in what is read."""
    return [u for u in group if u.agent is read.agent and _same_part(u, read)] or [u for u in group if not apart(read, u)] or group


def _split(cuts: Cuts, read: Use, groups: list[list[Use]]) -> list[tuple[Use, ...]]:
    """That one warp of each group has not written, warp by warp where there are many: of those that may change places, one stands for all."""
    ways: list[tuple[Use, ...]] = [()]
    for group in groups:
        if len(group) <= FEW or read.access.region.memory != "shared":
            ways = [(*way, *group) for way in ways]
            continue
        more = []
        for way in ways:
            keys = (read.key, *(u.key for u in way))
            more += [(*way, u) for u in {cuts.alike.named(*keys, u.key): u for u in reversed(group)}.values()]
        ways = more
    return ways if len(ways) <= MOST_WAYS else [tuple(u for g in groups for u in g)]


# --- which slot ----------------------------------------------------------------------------------------------------


def _missing(cuts: Cuts, read: Use, group: list[Use]) -> list[smt.Term] | None:
    """That a warp has not written the slot that is read, one condition a warp that has a part in it; None: no one ever does."""
    out = [_short(cuts, read, u) for u in group if not apart(read, u)]
    return None if not out or any(x is None for x in out) else out


def _same_part(a: Use, b: Use) -> bool:
    """Whether a warp reads what it has written itself, though the tile is written by all."""
    x, y = a.access, b.access
    return x.division is not None and y.division is not None and x.division.map == y.division.map and x.region.box == y.region.box


def _short(cuts: Cuts, read: Use, write: Use) -> smt.Term | None:
    """That a write has not been started so often that the slot which is read was among its slots."""
    done = cuts.cut.count(write.key, issue_of(write))
    mine, theirs = read.access.region.slot, write.access.region.slot
    slots = _slots(cuts.facts, read.access.region)
    if len(slots) != 1 or len(mine) != 1 or len(theirs) != 1:
        return None if any(_apart(x, y) for x, y in zip(mine, theirs, strict=False)) else done <= 0
    slot, goes = at_cut(cuts, read)(cuts.number(mine[0], read.site.env)), cuts.number(theirs[0], write.site.env)
    a, b = literal(slot), literal(goes)
    if a is not None and b is not None:
        return done <= 0 if a == b else None
    if b is not None:
        return smt.Or(slot != b, done <= 0)
    first = _first(cuts, write, goes, slots[0])
    return done <= 0 if first is None else done <= (slot - first) % slots[0]


def _first(cuts: Cuts, write: Use, goes: smt.Term, slots: int) -> int | None:
    """The slot of a write's first time, where each time goes to the next one round the ring."""
    over, by = residue(goes)
    if by in (None, slots) and (off := literal(smt.simplify(over - write.site.count(issue_of(write))))) is not None:
        return off % slots
    return 0 if cuts.sums.holds(goes == write.site.count(issue_of(write)) % slots, write.site.guard) else None


def _another_slot(cuts: Cuts, read: Use, before: Region) -> smt.Term | None:
    """That the slot that is read is not the one that was written before the roles; None: it is, for all that is known."""
    pairs = [(x, y.value) for x, y in zip(read.access.region.slot, before.slot, strict=False) if isinstance(y, Int) and not isinstance(x, Int)]
    return smt.Or([at_cut(cuts, read)(cuts.number(x, read.site.env)) != slot for x, slot in pairs]) if pairs else None


def _slots(facts: Facts, region: Region) -> tuple[int, ...]:
    return (facts.buffers if region.memory == "shared" else facts.columns)[region.name].slots


def _apart(x: Expr, y: Expr) -> bool:
    return isinstance(x, Int) and isinstance(y, Int) and x.value != y.value


# --- which part ----------------------------------------------------------------------------------------------------

#: Elements that are looked at in one read, at most.
MOST_PARTS = 4096


def _parts(read: Region, written: list[Region]) -> list[tuple[int, ...]] | None:
    """Which of the regions reach an element of `read`, for each element, each answer once; None: where they are is not constant, or they are too many."""
    boxes = [[_literal(x) for x in r.box] for r in (read, *written)]
    if any(n is None for box in boxes for extent in box for n in extent):
        return None
    mine, *theirs = boxes
    corners = [sorted({lo, *(f for box in theirs for f in (box[n][0], sum(box[n])) if lo < f < lo + size)}) for n, (lo, size) in enumerate(mine)]
    if prod(map(len, corners)) > MOST_PARTS:
        return None
    reached = {}
    for point in itertools.product(*corners):
        inside = (all(lo <= x < lo + size for x, (lo, size) in zip(point, box, strict=True)) for box in theirs)
        reached[tuple(n for n, is_in in enumerate(inside) if is_in)] = None
    return list(reached)


@thawed
class _Element:
    """An element of the tile that is read, which is in none of the parts that were written. `reached`: each of these parts has it."""

    cuts: Cuts
    read: Use
    reached: bool = False
    conditions: list[smt.Term] = field(default_factory=list)
    whole: bool = False  # all of the tile was written
    _bounded: set[int] = field(default_factory=set)

    def not_in(self, region: Region, missing: smt.Term | None) -> None:
        """That it is in no part that was written, unless `missing`; None: that was written."""
        outside = []
        for n, (mine, theirs) in enumerate(() if self.reached else zip(self.read.access.region.box, region.box, strict=True)):
            (lo, size), (first, many) = _literal(mine), _literal(theirs)
            if None in (first, many) or None not in (lo, size) and first <= lo and lo + size <= first + many:
                continue
            outside += [self._index(n) < first, self._index(n) >= first + many]
        if missing is None and not outside:
            self.whole = True
        else:
            self.conditions.append(smt.Or([*outside, *([] if missing is None else [missing])]))

    def _index(self, n: int) -> smt.Term:
        index, x = smt.Int(f"element {n}"), self.read.access.region.box[n]
        if n not in self._bounded:
            self._bounded.add(n)
            lo, size = (at_cut(self.cuts, self.read)(self.cuts.number(e, self.read.site.env)) for e in (x.lo, x.size))
            self.conditions += [index >= lo, index < lo + size]
        return index


def _literal(x: Extent) -> tuple[int | None, int | None]:
    return tuple(e.value if isinstance(e, Int) else None for e in (x.lo, x.size))
