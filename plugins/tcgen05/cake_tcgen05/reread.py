"""What the instructions of tensor memory do to barriers, fences and columns, read from the PTX ISA (tcgen05) and apart from lowering."""

from __future__ import annotations

from cake_core.ptx.acts import Act, Moment, Reread, drained, engine_arrived, fenced, freed, in_rank, reserved, used
from cake_core.ptx.reader import Operand, Statement

ENGINE = "tcgen05.commit"


def _commit(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`[mbar] {, ctaMask}`: with a mask the arrival is at the same place of each CTA in it."""
    barrier, *mask = s.operands
    signal = at.shared(barrier)
    if "multicast::cluster" not in s.words:
        return (engine_arrived([signal], ENGINE),)
    return (engine_arrived([in_rank(signal, r) for r in range(16) if at.value(mask[0]) >> r & 1], ENGINE),)


def _described(at: Moment, descriptor: Operand) -> Act:
    """The lowest 14 bits of a descriptor are the start address over 16."""
    first = at.shared((at.value(descriptor) & 0x3FFF) << 4)
    return used(ENGINE, first, first + 16)


def _product(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`[d-tmem], a-desc | [a-tmem], b-desc, idesc, ..`."""
    _, a, b = s.operands[:3]
    return tuple(_described(at, x) for x in (a, b) if isinstance(x, str))


def _columns(act):
    """`.., nCols`."""
    return lambda s, at: (act(at.value(s.operands[1])),)


REREADS = (
    Reread("tcgen05.commit", _commit, doc="PTX ISA, tcgen05.commit"),
    Reread("tcgen05.fence::before_thread_sync", lambda s, at: (fenced("tensor_before"),), doc="PTX ISA, tcgen05.fence"),
    Reread("tcgen05.fence::after_thread_sync", lambda s, at: (fenced("tensor_after"),), doc="PTX ISA, tcgen05.fence"),
    Reread("tcgen05.alloc", _columns(reserved), doc="PTX ISA, tcgen05.alloc"),
    Reread("tcgen05.dealloc", _columns(freed), doc="PTX ISA, tcgen05.dealloc"),
    Reread("tcgen05.relinquish_alloc_permit", doc="PTX ISA, tcgen05.relinquish_alloc_permit"),
    Reread("tcgen05.wait::ld", lambda s, at: (drained("tcgen05.ld", 0),), doc="PTX ISA, tcgen05.wait"),
    Reread("tcgen05.wait::st", lambda s, at: (drained("tcgen05.st", 0),), doc="PTX ISA, tcgen05.wait"),
    Reread("tcgen05.ld", writes=True, doc="PTX ISA, tcgen05.ld"),
    Reread("tcgen05.st", doc="PTX ISA, tcgen05.st"),
    Reread("tcgen05.cp", lambda s, at: (_described(at, s.operands[1]),), doc="PTX ISA, tcgen05.cp"),
    Reread("tcgen05.mma", _product, doc="PTX ISA, tcgen05.mma"),
)
