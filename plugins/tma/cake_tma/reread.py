"""What copies by tensor maps do to barriers, read from the PTX ISA (cp.async.bulk.tensor) and apart from lowering."""

from __future__ import annotations

from cake_core.ptx.acts import Act, Moment, Reread, copied, in_rank, used
from cake_core.ptx.reader import Statement


def _load(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`[dstMem], [tensorMap, coordinates], [mbar] {, ctaMask}`; to global memory it has no barrier. A box is always
    written whole: what lies outside of the tensor is filled."""
    if "mbarrier::complete_tx::bytes" not in s.words:
        return _store(s, at)
    to, map, barrier, *mask = s.operands
    size, first, signal = at.box(map), at.shared(to), at.shared(barrier)
    if "multicast::cluster" not in s.words:
        return (copied(((signal, first, first + size),), size),)
    ranks = [r for r in range(16) if at.value(mask[0]) >> r & 1]
    return (copied([(in_rank(signal, r), in_rank(first, r), in_rank(first, r) + size) for r in ranks], size),)


def _store(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`[tensorMap, coordinates], [srcMem]`."""
    map, source = s.operands[:2]
    first = at.shared(source)
    return (used("bulk", first, first + at.box(map)),)


REREADS = (
    Reread("cp.async.bulk.tensor", _load, doc="PTX ISA, cp.async.bulk.tensor"),
    Reread("cp.reduce.async.bulk.tensor", _store, doc="PTX ISA, cp.reduce.async.bulk.tensor"),
    Reread("cp.async.bulk.prefetch.tensor", doc="PTX ISA, cp.async.bulk.prefetch.tensor"),
)
