"""What copies by tensor maps do to barriers, read from the PTX ISA (cp.async.bulk.tensor) and apart from lowering."""

from __future__ import annotations

from cake_core.ptx.acts import Act, Moment, Reread, begun, copied, in_rank, used
from cake_core.ptx.reader import At, Statement


def _load(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`[dstMem], [tensorMap, coordinates], [mbar] {, ctaMask}`; to global memory it has no barrier. A box is always
    written whole: what lies outside of the tensor is filled."""
    if "mbarrier::complete_tx::bytes" not in s.words:
        return _store(s, at)
    to, map, barrier, *mask = s.operands
    box, first, signal = at.map(map), at.shared(to), at.shared(barrier)
    size = box.bytes
    if "multicast::cluster" not in s.words:
        return (*_begins(map, at), copied(((signal, first, first + size),), size, box.form))
    ranks = [r for r in range(16) if at.value(mask[0]) >> r & 1]
    return (*_begins(map, at), copied([(in_rank(signal, r), in_rank(first, r), in_rank(first, r) + size) for r in ranks], size, box.form))


def _store(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`[tensorMap, coordinates], [srcMem]`."""
    map, source = s.operands[:2]
    first, box = at.shared(source), at.map(map)
    return (*_begins(map, at), used("bulk", first, first + box.bytes, box.form))


def _begins(map: At, at: Moment) -> tuple[Act, ...]:
    """Coordinates are signed numbers of 32 bits, innermost first."""
    box = at.map(map)
    return begun(box.tensor, (_signed(at.known(c)) for c in reversed(map.coordinates)), box.sizes)


def _signed(x: int | None) -> int | None:
    return None if x is None else (x + (1 << 31) & (1 << 32) - 1) - (1 << 31)


REREADS = (
    Reread("cp.async.bulk.tensor", _load, coordinates=True, doc="PTX ISA, cp.async.bulk.tensor"),
    Reread("cp.reduce.async.bulk.tensor", _store, coordinates=True, doc="PTX ISA, cp.reduce.async.bulk.tensor"),
    Reread("cp.async.bulk.prefetch.tensor", doc="PTX ISA, cp.async.bulk.prefetch.tensor"),
)
