"""Branches by an index into a table of labels, as branches that are tried one after another.

PTX ISA, brx.idx: control goes to the label of the table that the index names, for each thread; the index starts at 0, and one that is not in the table
is undefined behaviour.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from cake_core.emulate.outcome import Unsupported
from cake_core.ptx.emulated import Step
from cake_core.ptx.reader import Statement

if TYPE_CHECKING:
    from cake_core.emulate.code import Coder
    from cake_core.emulate.warps import Lanes


def indexed(s: Statement, coder: Coder, tables: Mapping[str, tuple[str, ...]]) -> tuple[int, list[tuple[str, Step]], Step]:
    """Of `brx.idx{.uni} index, table`: the row of a predicate that is no register's, the labels with the steps that set it for lanes that go there, and
    the step of those that go nowhere. Raises Unsupported."""
    coder.statement = s
    operands = s.operands
    if s.words[1:2] != ("idx",) or len(operands) != 2 or (targets := tables.get(str(operands[1]))) is None:
        raise Unsupported(s.line, s.opcode, "only an index into a table of the entry is covered")
    index = coder.source(operands[0], "u32")
    chosen = None if s.guard is None else coder.source(f"!{s.guard}" if s.negated else s.guard, "pred")
    row, view = coder.rows.setdefault(0, 0), coder._view("bool")
    coder.rows[0] += 1

    def goes(n: int) -> Step:
        def step(lanes: Lanes) -> None:
            hit = index(lanes) == n
            if chosen is not None:
                hit &= chosen(lanes)
            np.copyto(lanes.rows[view][row], hit, where=lanes.active)

        return step

    def outside(lanes: Lanes) -> None:
        left = lanes.active if chosen is None else lanes.active & chosen(lanes)
        if left.any():
            at = int(index(lanes)[left][0])
            raise lanes.fault("emulate/operand", f"a branch by the index {at} into a table of {len(targets)} labels")

    return row, [(label, goes(n)) for n, label in enumerate(targets)], outside


__all__ = ["indexed"]
