"""Products of warps and loads of their factors, read from the PTX ISA (Warp Level Matrix Instructions) and apart from lowering."""

from __future__ import annotations

from functools import cache

from cake_core.ptx.acts import Act, Moment, Reread, accessed
from cake_core.ptx.reader import Statement


def _rows(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`r, [p]`: the address of one row of 16 bytes, of each lane that names one."""
    row = s.operands[1]
    if at.lane >= _lanes(s.opcode) or at.known(row) is None:
        return ()
    first = at.shared(row)
    return (accessed(first, first + 16),)


@cache
def _lanes(opcode: str) -> int:
    """How many lanes name a row."""
    return 8 * int(next(w for w in opcode.split(".") if w in ("x1", "x2", "x4"))[1])


REREADS = (
    Reread("mma.sync", writes=True, doc="PTX ISA, mma"),
    Reread("ldmatrix", _rows, writes=True, accesses=True, doc="PTX ISA, ldmatrix"),
)
