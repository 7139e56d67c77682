"""Stores of matrices, read from the PTX ISA (Warp Level Matrix Instructions, stmatrix) and apart from lowering."""

from __future__ import annotations

from cake_core.ptx.acts import Act, Moment, Reread, accessed
from cake_core.ptx.reader import Statement


def _rows(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`[p], r`: the address of one row of 16 bytes, of each lane that names one."""
    row = s.operands[0]
    if at.known(row) is None or at.lane >= 8 * int(next(w for w in s.words if w in ("x1", "x2", "x4"))[1]):
        return ()
    return (accessed(at.shared(row), at.shared(row) + 16),)


REREADS = (Reread("stmatrix", _rows, accesses=True, doc="PTX ISA, stmatrix"),)
