"""What atomics give, read from the PTX ISA (atom) and apart from lowering: they do nothing to barriers."""

from __future__ import annotations

from cake_core.ptx.acts import Act, Moment, Reread
from cake_core.ptx.reader import Statement


def _atom(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`d, [a], b`: of a sum in global memory the result is what a counter gives; of others nothing is known."""
    result, place = s.operands[:2]
    at.give(result, at.drawn(place) if "global" in s.words and "add" in s.words else None)
    return ()


REREADS = (Reread("atom", _atom, acts=False, writes=True, doc="PTX ISA, atom"),)
