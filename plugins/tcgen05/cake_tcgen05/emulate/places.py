"""Where the results, the factor A and the scales of a product lie in tensor memory (PTX ISA, tcgen05, Data path layout organization; Scale factor layout).

Layouts have the letters of the ISA. Second sources: CUTLASS (cute/atom/mma_traits_sm100.hpp, tmem_frg), Triton and TVM for D, F, A and B.
"""

from __future__ import annotations

import numpy as np

from cake_core.frozen import frozen
from cake_core.ptx import numbers
from cake_core.ptx.emulated import Agent, Cta, Lanes
from cake_tcgen05.emulate.columns import CELL, COLUMNS, LANES, cells, offsets
from cake_tcgen05.emulate.descriptors import Instruction


@frozen
class Layout:
    """Results of one CTA: `lanes` of tensor memory in order, each with `columns` columns. In `folds` equal parts of the lanes lie the parts of the columns
    of all rows."""

    lanes: np.ndarray
    columns: int
    folds: int = 1

    def rows(self, held: np.ndarray) -> np.ndarray:
        """Cells (lanes, columns) as rows of the result."""
        return np.concatenate(np.split(held, self.folds), 1) if self.folds > 1 else held

    def cells(self, rows: np.ndarray) -> np.ndarray:
        return np.concatenate(np.split(rows, self.folds, 1)) if self.folds > 1 else rows


def layout(lanes: Lanes, found: Instruction, group: int, lane: int, ws: bool) -> Layout:
    """A (pair, M 256), D (M 128): row m in lane m. B (pair, M 128), E (`.ws`, M 64): row m of 64 in lane m, and in lane m + 64 its right half; G (`.ws`,
    M 32): so in quarters. F (M 64): row m in lane 32 (m / 16) + m mod 16, or 16 lanes further, as the address says."""
    quarter = group == 1 and found.m == 64 and not ws
    if lane not in ((0, 16) if quarter else (0,)):
        raise lanes.fault(
            "emulate/operand",
            f"a result of {found.m} rows from lane {lane} on",
            why=f"it starts in lane {'0 or 16' if quarter else '0'} (PTX ISA, tcgen05, Data path layout organization)",
        )
    if quarter:
        row = np.arange(64)
        return Layout(32 * (row // 16) + lane + row % 16, found.n)
    folds = LANES * group // found.m if ws or group == 2 else 1
    return Layout(np.arange(LANES), found.n // folds, folds)


def read_a(agent: Agent, cta: Cta, where: Layout, column: int) -> np.ndarray:
    """A from tensor memory: a row lies in the lanes of its row of the result, 8 columns of packed elements along K; of a folded layout it is there
    in each part. uint8 (rows, 32)."""
    held = cells(cta).read(agent, offsets(where.lanes, column), 8 * CELL)
    if where.folds == 1:
        return held
    copies = np.stack(np.split(held, where.folds))
    if (copies != copies[0]).any():
        raise agent.fault(
            "emulate/operand",
            "the two copies of A in tensor memory differ",
            why="where results are folded A lies in lanes 0 to 63 and again in lanes 64 to 127 (CUTLASS, mma_traits_sm100.hpp)",
        )
    return copies[0]


def scales(agent: Agent, cta: Cta, found: Instruction, column: int, which: str, rows: int) -> np.ndarray:
    """What each element of `rows` rows of A (columns of B) is multiplied with, float64 (rows, K). Scale s of row i is the byte `first` + s of the cell of
    lane i mod 32 and column i / 32, which the other three quarters of the lanes hold too."""
    i, first, count = np.arange(rows), found.a_scales if which == "A" else found.b_scales, found.scales
    at = offsets(i % 32, column) + i // 32 * CELL + first
    quarters = np.arange(4)[:, None] * (32 * COLUMNS * CELL)
    held = cells(cta).read(agent, at[None, :] + quarters, count)
    if (held != held[0]).any():
        bad = int(np.flatnonzero((held != held[0]).any((0, 2)))[0])
        raise agent.fault(
            "emulate/operand",
            f"the scales of {which} for row {bad} differ between the four quarters of the lanes",
            why="scales are there four times, in each quarter (PTX ISA, tcgen05, Scale factor layout)",
        )
    if found.scale == "ue4m3" and (held[0] > 127).any():
        raise agent.fault("emulate/operand", f"a scale of {which} is a negative ue4m3", why="it has no sign")
    return np.repeat(numbers.values(held[0], found.scale), found.k // count, 1)
