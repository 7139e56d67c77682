"""tcgen05.ld, tcgen05.st and their waits: registers of a warp and the lanes of tensor memory that it reaches.

A load is a job of the engine whose data are there when it has taken effect: the ISA respects a true dependence on its registers with or without a
wait, and nothing else about it (PTX ISA, tcgen05 Memory Consistency Model, register dependency). Only the wait orders it before what follows.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from cake_core.frozen import frozen
from cake_core.ptx.emulated import Agent, Coder, Job, Lanes, Step, Wait
from cake_core.ptx.reader import Group, Statement
from cake_tcgen05.emulate.columns import CELL, cells, offsets, owned, whole

_NUM = re.compile(r"x(\d+)")
WINDOW = 32  # lanes that a warp reaches: those from 32 times its number modulo 4 on (PTX ISA, Access restrictions of tcgen05.ld and .st)


@frozen
class Shape:
    """`lanes` lanes; `registers` for a number of 1, and `most` numbers; `columns` for a number of 1. `place`: of register r (n, 1) and thread t (1, 32)
    the lane and the column (PTX ISA, Data Movement Shape: figures of the matrix fragments; computed from CuTe's layouts of the same names)."""

    lanes: int
    registers: int
    most: int
    columns: int
    place: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


SHAPES = {
    "32x32b": Shape(32, 1, 128, 1, lambda r, t: (t + 0 * r, r + 0 * t)),
    "16x64b": Shape(16, 1, 128, 2, lambda r, t: (t // 4 + 8 * (t % 2) + 0 * r, 2 * r + t // 2 % 2)),
    "16x128b": Shape(16, 2, 64, 4, lambda r, t: (t // 4 + 8 * (r % 2), 4 * (r // 2) + t % 4)),
    "16x256b": Shape(16, 4, 32, 8, lambda r, t: (t // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (t % 4) + r % 2)),
    "16x32bx2": Shape(16, 1, 128, 1, lambda r, t: (t % 16 + 0 * r, r + 0 * t)),
}


@frozen
class Form:
    """`registers` of a thread. `lane`, `word`: (registers, 32), where each lies in the rows that are moved: those of 16x32bx2 for threads from 16 on
    stand behind the others. `halves`: two columns of 16 bits a register. `second`: how many columns further those of threads from 16 on lie."""

    shape: Shape
    registers: int
    lane: np.ndarray
    word: np.ndarray
    columns: int
    halves: bool
    second: int | None

    def spans(self, column: int) -> list[tuple[int, int]]:
        """First columns and widths of what is moved."""
        first = (column, self.columns)
        return [first] if self.second is None else [first, (column + self.second, self.columns)]


class Moves:
    """Loads and stores of a warp that it has not waited for."""

    def __init__(self) -> None:
        self.loads: list[Job] = []
        self.stores: list[Job] = []


def load(s: Statement, c: Coder) -> Step:
    """PTX ISA, tcgen05.ld; with `.pack::16b` two columns of 16 bits come into a register."""
    form = _form(s, c, "pack::16b")
    at = c.address(s.operands[1])
    to = c.results(_registers(c, s, 0, form), "b32")
    c.meets()

    def step(lanes: Lanes) -> Wait:
        rows, column = _where(lanes, form, at, "tcgen05.ld")
        memory, found = cells(lanes.cta), []

        def work(agent: Agent) -> None:
            parts = [memory.read(agent, offsets(rows, first), width * CELL) for first, width in form.spans(column)]
            found.append((parts[0] if len(parts) == 1 else np.concatenate(parts, 1)).view(np.uint32))

        job = lanes.start(None, work, f"tcgen05.ld of line {s.line}", each=True)
        lanes.state("tcgen05.moves", Moves).loads.append(job)
        return lanes.wait(lambda: job.done, f"the tcgen05.ld of line {s.line}", after=lambda: to(lanes, _taken(form, found[0])))

    return step


def store(s: Statement, c: Coder) -> Step:
    """PTX ISA, tcgen05.st; with `.unpack::16b` a register goes to two columns, each in its lower half (the upper ones become 0: the ISA leaves them)."""
    form = _form(s, c, "unpack::16b")
    at = c.address(s.operands[0])
    values = c.sources(_registers(c, s, -1, form), "b32")
    c.meets()

    def step(lanes: Lanes) -> None:
        rows, column = _where(lanes, form, at, "tcgen05.st")
        memory, given = cells(lanes.cta), _given(form, values(lanes))

        def work(agent: Agent) -> None:
            for n, (first, width) in enumerate(form.spans(column)):
                part = np.ascontiguousarray(given[:, n * width : (n + 1) * width])
                memory.write(agent, offsets(rows, first), part.view(np.uint8))

        job = lanes.start(None, work, f"tcgen05.st of line {s.line}", each=True)
        lanes.state("tcgen05.moves", Moves).stores.append(job)

    return step


def wait_loads(s: Statement, c: Coder) -> Step:
    """PTX ISA, tcgen05.wait::ld: all loads of the warp so far are over."""
    _sync(s, c)
    c.meets()

    def step(lanes: Lanes) -> None:
        whole(lanes, "tcgen05.wait::ld")
        moves = lanes.state("tcgen05.moves", Moves)
        for job in moves.loads:
            lanes.acquire(job.stamp, "tensor")
        moves.loads.clear()

    return step


def wait_stores(s: Statement, c: Coder) -> Step:
    """PTX ISA, tcgen05.wait::st: all stores of the warp so far are over."""
    _sync(s, c)
    c.meets()

    def step(lanes: Lanes) -> Wait | None:
        whole(lanes, "tcgen05.wait::st")
        moves = lanes.state("tcgen05.moves", Moves)
        late = [job for job in moves.stores if not job.done]
        if late:
            return lanes.wait(lambda: all(job.done for job in late), "its stores to tensor memory")
        for job in moves.stores:
            lanes.acquire(job.stamp, "tensor")
        moves.stores.clear()
        return None

    return step


# --- forms ---------------------------------------------------------------------------------------------------------


def _form(s: Statement, c: Coder, packing: str) -> Form:
    words = list(s.words[2:])
    if "red" in words:
        raise c.unsupported("reductions on the way (`.red`), which sm_100a does not have")
    halves = packing in words
    shape = next((w for w in words if w in SHAPES), None)
    count = next((int(m[1]) for w in words if (m := _NUM.fullmatch(w))), None)
    if shape is None or count is None or set(words) != {"sync", "aligned", "b32", shape, f"x{count}"} | ({packing} if halves else set()):
        raise c.unsupported(f"the words of '{s.opcode}'")
    how = SHAPES[shape]
    if count & (count - 1) or not 1 <= count <= how.most:
        raise c.unsupported(f"`.{shape}.x{count}`")
    second = None
    if shape == "16x32bx2":
        second = c.constant(s.operands[2 if s.words[1] == "ld" else 1])
        if second is None or second < 0:
            raise c.unsupported("an offset of `.16x32bx2` that is no immediate of 0 or more")
        if halves:
            raise c.unsupported(f"`.16x32bx2` with `.{packing}`: no text says in which unit its offset is")
    n = how.registers * count
    thread, columns = np.arange(32)[None, :], how.columns * count
    lane, word = how.place(np.arange(n)[:, None], thread)
    if second is not None:
        word = word + columns * (thread // 16)
    return Form(how, n, lane, word, columns * (2 if halves else 1), halves, second)


def _registers(c: Coder, s: Statement, which: int, form: Form):
    operand = s.operands[which]
    if not isinstance(operand, Group) or len(operand.items) != form.registers:
        raise c.unsupported(f"a vector of other than {form.registers} registers")
    return operand.items


def _sync(s: Statement, c: Coder) -> None:
    if set(s.words[2:]) != {"sync", "aligned"}:
        raise c.unsupported(f"the words of '{s.opcode}'")


def _where(lanes: Lanes, form: Form, at: Callable[[Lanes], np.ndarray], what: str) -> tuple[np.ndarray, int]:
    """The lanes of tensor memory, and the first column. The lane of an address may be that of the warp's window or count from its start: compilers write
    both, and a warp reaches no other (CUTLASS and Triton write the one, DeepGEMM and TVM the other)."""
    whole(lanes, what)
    address = lanes.uniform(at(lanes))
    lane, column, window = address >> 16, address & 0xFFFF, lanes.warp % 4
    inside = lane % WINDOW
    if lane // WINDOW not in (0, window) or inside + form.shape.lanes > WINDOW or inside not in (0, 16):
        raise lanes.fault(
            "emulate/out-of-bounds",
            f"{what} of {form.shape.lanes} lanes from lane {lane} on, by warp {lanes.warp}",
            why=f"the warp reaches lanes {WINDOW * window} to {WINDOW * window + WINDOW - 1} (PTX ISA, tcgen05.ld, Access restrictions)",
        )
    for first, width in form.spans(column):
        owned(lanes, lanes.cta, first, width, what)
    return np.arange(form.shape.lanes) + WINDOW * window + inside, column


def _taken(form: Form, rows: np.ndarray) -> np.ndarray:
    """Cells (lanes, columns) as registers (n, 32)."""
    if form.halves:
        return rows[form.lane, 2 * form.word] & np.uint32(0xFFFF) | rows[form.lane, 2 * form.word + 1] << np.uint32(16)
    return rows[form.lane, form.word]


def _given(form: Form, registers: np.ndarray) -> np.ndarray:
    """Registers (n, 32) as cells (lanes, columns)."""
    cells = np.zeros((form.shape.lanes, form.columns * (1 if form.second is None else 2)), np.uint32)
    if form.halves:
        cells[form.lane, 2 * form.word] = registers & np.uint32(0xFFFF)
        cells[form.lane, 2 * form.word + 1] = registers >> np.uint32(16)
    else:
        cells[form.lane, form.word] = registers
    return cells
