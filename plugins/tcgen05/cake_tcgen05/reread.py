"""What the instructions of tensor memory do to barriers, fences and columns, read from the PTX ISA (tcgen05) and apart from lowering; what of shared and of
tensor memory they touch is in `reach.py`."""

from __future__ import annotations

from cake_core.ptx.acts import READ, WRITTEN, Act, Moment, Reread, accessed, drained, engine_arrived, fenced, freed, in_rank, reserved
from cake_core.ptx.reader import Statement
from cake_tcgen05.reach import ENGINE, copied, moved, product


def _commit(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`[mbar] {, ctaMask}`: with a mask the arrival is at the same place of each CTA in it."""
    barrier, *mask = s.operands
    signal = at.shared(barrier)
    if "multicast::cluster" not in s.words:
        return (engine_arrived([signal], ENGINE),)
    return (engine_arrived([in_rank(signal, r) for r in range(16) if at.value(mask[0]) >> r & 1], ENGINE),)


def _take(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`[dst], nCols`: the address of the columns is written to dst."""
    to, amount = s.operands
    at.keep(to, at.value(amount))
    return (accessed(at.shared(to), at.shared(to) + 4), reserved(at.value(amount)))


REREADS = (
    Reread("tcgen05.commit", _commit, doc="PTX ISA, tcgen05.commit"),
    Reread("tcgen05.fence::before_thread_sync", lambda s, at: (fenced("tensor_before"),), doc="PTX ISA, tcgen05.fence"),
    Reread("tcgen05.fence::after_thread_sync", lambda s, at: (fenced("tensor_after"),), doc="PTX ISA, tcgen05.fence"),
    Reread("tcgen05.alloc", _take, doc="PTX ISA, tcgen05.alloc"),
    Reread("tcgen05.dealloc", lambda s, at: (freed(at.value(s.operands[1])),), doc="PTX ISA, tcgen05.dealloc"),
    Reread("tcgen05.relinquish_alloc_permit", doc="PTX ISA, tcgen05.relinquish_alloc_permit"),
    Reread("tcgen05.wait::ld", lambda s, at: (drained("tcgen05.ld", 0),), doc="PTX ISA, tcgen05.wait"),
    Reread("tcgen05.wait::st", lambda s, at: (drained("tcgen05.st", 0),), doc="PTX ISA, tcgen05.wait"),
    Reread("tcgen05.ld", moved("tcgen05.ld", READ), writes=True, doc="PTX ISA, tcgen05.ld"),
    Reread("tcgen05.st", moved("tcgen05.st", WRITTEN), doc="PTX ISA, tcgen05.st"),
    Reread("tcgen05.cp", copied, doc="PTX ISA, tcgen05.cp"),
    Reread("tcgen05.mma", product, doc="PTX ISA, tcgen05.mma"),
)
