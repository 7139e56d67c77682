"""mma.sync.m8n8k4 of f16: four products at once, each by the four lanes of a quad and the four that are 16 further (PTX ISA, Matrix Fragments for
mma.m8n8k4 with .f16 floating point type; the same in CuTe's SM70 traits)."""

from __future__ import annotations

import numpy as np

from cake_core.ptx import numbers
from cake_core.ptx.emulated import Coder, Lanes, Step
from cake_core.ptx.reader import Group, Operand, Statement

_LANE = np.arange(32)[:, None]
QUAD, HIGH, IN = _LANE % 16 // 4, 4 * (_LANE // 16), _LANE % 4


def _line(i: np.ndarray, across: bool) -> tuple[np.ndarray, np.ndarray]:
    """Line and place of element i of a lane: lines are rows of A or columns of B, places lie along K; `across`: a lane holds four lines of one place."""
    return (HIGH + i, IN + 0 * i) if across else (HIGH + IN + 0 * i, i + 0 * IN)


def _result(i: np.ndarray, half: bool) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of element i of C: of f16 a lane has a row, of f32 two columns of each of two rows of two halves."""
    return (HIGH + IN + 0 * i, i + 0 * IN) if half else (HIGH + _LANE % 2 + (i & 2), (i & 4) + (_LANE & 2) + (i & 1))


def product(s: Statement, c: Coder) -> Step:
    words = s.words
    if len(words) != 10 or words[1:4] != ("sync", "aligned", "m8n8k4") or words[7:9] != ("f16", "f16"):
        raise c.unsupported(f"the words of '{s.opcode}'")
    a_layout, b_layout, d_type, c_type = words[4], words[5], words[6], words[9]
    if (d_type, c_type) == ("f16", "f32"):
        raise c.unsupported("m8n8k4 with a result of f16 and a C of f32")
    if {a_layout, b_layout} - {"row", "col"} or {d_type, c_type} - {"f16", "f32"}:
        raise c.unsupported(f"the words of '{s.opcode}'")
    put = c.results(_registers(c, s.operands[0], 4 if d_type == "f16" else 8), "b32")
    get_a, get_b = (c.sources(_registers(c, o, 2), "b32") for o in s.operands[1:3])
    get_c = c.sources(_registers(c, s.operands[3], 4 if c_type == "f16" else 8), "b32")
    few, many = np.arange(4)[None, :], np.arange(8)[None, :]
    a_at, b_at = _line(few, a_layout == "col"), _line(few, b_layout == "row")
    c_at, d_at = _result(many, c_type == "f16"), _result(many, d_type == "f16")
    c.meets()

    def step(lanes: Lanes) -> None:
        if not lanes.full:
            raise lanes.fault(
                "emulate/divergent",
                "lanes of the warp are missing from a matrix product",
                why="all threads of the warp must execute it (PTX ISA, mma)",
            )
        left, right, sums = np.empty((4, 8, 4)), np.empty((4, 8, 4)), np.empty((4, 8, 8))
        left[(QUAD, *a_at)], right[(QUAD, *b_at)] = _elements(get_a(lanes), "f16"), _elements(get_b(lanes), "f16")
        sums[(QUAD, *c_at)] = _elements(get_c(lanes), c_type)
        total = (left @ right.transpose(0, 2, 1) + sums)[(QUAD, *d_at)]
        out = numbers.halves(total) if d_type == "f16" else numbers.cut(total)
        put(lanes, np.ascontiguousarray(out).view(np.uint32).T)

    return step


def _elements(held: np.ndarray, kind: str) -> np.ndarray:
    """Registers (n, 32) as elements of lanes (32, ..), low to high."""
    return np.ascontiguousarray(held.T).view(np.float16 if kind == "f16" else np.float32).astype(np.float64)


def _registers(c: Coder, operand: Operand, count: int) -> tuple[Operand, ...]:
    if not isinstance(operand, Group) or len(operand.items) != count:
        raise c.unsupported(f"a fragment of other than {count} registers")
    return operand.items
