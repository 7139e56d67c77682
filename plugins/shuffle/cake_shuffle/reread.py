"""Reductions over the lanes of a warp, read from the PTX ISA (redux.sync) and apart from lowering: they do nothing to barriers."""

from __future__ import annotations

from functools import reduce
from operator import or_

from cake_core.ptx.acts import Act, Moment, Reread
from cake_core.ptx.reader import Statement


def _or(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`dst, src, membermask`."""
    result, source, mask = s.operands
    given = at.gathered(source) if at.value(mask) & 0xFFFFFFFF == 0xFFFFFFFF else None
    at.give(result, None if given is None or None in given else reduce(or_, given))
    return ()


REREADS = (
    Reread("redux.sync", writes=True, doc="PTX ISA, redux.sync"),
    Reread("redux.sync.or", _or, acts=False, writes=True, doc="PTX ISA, redux.sync"),
)
