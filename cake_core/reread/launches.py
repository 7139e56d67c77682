"""Small launches at which a kernel is read back: sizes, which cluster, and what control reads from memory.

The event machine's own sizes are those at which loops run not at all, and a little longer than a ring (`machine.scenarios`). What decides by
elements of tensors, such as a table of items and where groups start, runs little at those; so such a kernel gets one launch more, of one group that
is long and of a few items.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cake_core.facts.schema import Facts
from cake_core.ir.places import names
from cake_core.machine.outcome import Scenario
from cake_core.machine.scenarios import scenarios_of, value
from cake_core.machine.values import MachineError

#: Tries for sizes, far fewer than the event machine takes for its own.
TRIES, MORE, MOST = 500, 2000, 4000
#: Of a kernel whose control reads memory: how many items, and lengths of what contracts about data speak of, each by so much longer
#: than the one before.
ITEMS, SHORT, LONGER = 3, 130, 650


def rounds(slots: int, items: int = 5) -> tuple[tuple[int, int], ...]:
    """(items, trips) to be read back at: first rounds alone, and rings of two slots that items go round twice and once more; a ring that goes so within an
    item; nothing to do; and a ring that an item leaves half full."""
    return (items, 1), (1, 2 * slots + 1), (2, 0), (2, slots + 1)


def launches(facts: Facts) -> Iterator[Scenario]:
    """Raises MachineError where no small sizes satisfy the kernel's `require`s."""
    try:
        found = _some(facts, TRIES)
    except MachineError:
        found = _some(facts, MOST)
    if facts.assumes and len(found) < len(rounds(1)):
        found = _some(facts, MORE)  # sizes that count items and sizes of data hang together there: few draws fit
    yield from found
    if (long := _long(facts, found[-1])) is not None:
        yield long


def _some(facts: Facts, tries: int) -> tuple[Scenario, ...]:
    few = 2 if facts.assumes else 5  # what a table says of items costs sizes of its own
    return scenarios_of(facts, len(rounds(1)), tries=tries, wanted=lambda slots: rounds(slots, few))


def _long(facts: Facts, of: Scenario) -> Scenario | None:
    said = list(dict.fromkeys(n.id for e in facts.assumes for n in names(e) if n.id in facts.scalars))
    counts = {n.id for t in facts.tensors for d in t.shape for n in names(d) if t.mode == "in" and t.bits == 32 and len(t.shape) <= 2}
    lengths = [n for n in said if n not in counts]
    if not said:
        return None
    sizes = dict(of.params)
    sizes |= {n: 1 if n in said else ITEMS for n in counts if n in said or sizes.get(n, ITEMS) < ITEMS}
    sizes |= {n: SHORT + LONGER * i for i, n in enumerate(lengths)}
    try:
        return replace(of, params=sizes) if all(value(e, sizes) for e in facts.requires) else None
    except MachineError:
        return None
