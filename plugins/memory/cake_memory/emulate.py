"""Matrices between shared memory and the registers of a warp (PTX ISA, Warp Level Matrix Instructions: ldmatrix, stmatrix).

Which element of which row a lane holds is a table made from the shape alone: for each piece that a lane moves, the lane that gives the row's address
and where in the row it lies. All pieces are then one access of memory. The fragments of the 8-bit shapes are pictures in the ISA; their
second source is CUTLASS (copy_traits_sm100.hpp and copy_sm100.hpp, where the bytes of m16n16 are exchanged into that layout; mma_traits_sm120.hpp, by
which elements of 4 and 6 bits stand in the low bits of their bytes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cake_core.ptx import places
from cake_core.ptx.emulated import LANES, bytes_of
from cake_core.ptx.reader import Group

if TYPE_CHECKING:
    from cake_core.ptx.emulated import Coder, Lanes, Step
    from cake_core.ptx.reader import Operand, Statement

#: Bytes of a row, which is what its address is a multiple of.
ROW = 16

Table = tuple[np.ndarray, np.ndarray, int]


def fragments(shape: str, trans: bool, matrices: int) -> Table:
    """(giver, offset, bytes): of each piece in the order register, lane, piece, the lane that gives the address of its row and the bytes in front of
    it in the row; (registers, 32, pieces a register) each.

    m8n8 of b16: lane l has the elements 2(l % 4) and the next of row l / 4; transposed, those of column l / 4 in rows 2(l % 4) and the next.
    m16n16 of b8, transposed: register r of a matrix has column l / 4 + 8r of rows 4(l % 4) to 4(l % 4) + 3. m16n8 of b8, stored transposed:
    bytes 0 and 1 are row l / 4 and bytes 2 and 3 row l / 4 + 8 of columns 2(l % 4) and the next; each column is a row of 16 bytes in memory. m8n16:
    lane l has the columns 4(l % 4) to 4(l % 4) + 3 of row l / 4.
    """
    lane = np.arange(LANES)[:, None]
    match shape, trans:
        case "m8n8" | "m8n16", False:
            piece = np.zeros(1, int)
            giver, offset, size, rows = lane // 4 + piece, 4 * (lane % 4) + piece, 4, 8
        case "m8n8", True:
            piece = np.arange(2)
            giver, offset, size, rows = 2 * (lane % 4) + piece, 2 * (lane // 4) + 0 * piece, 2, 8
        case "m16n16", True:
            piece = np.arange(4)
            giver, rows, size = 4 * (lane % 4) + piece, 16, 1
            both = [(giver, lane // 4 + 8 * r + 0 * piece) for r in range(2)]
            givers = [g + rows * m for m in range(matrices) for g, _ in both]
            return np.stack(givers), np.stack([o for _ in range(matrices) for _, o in both]), size
        case "m16n8", True:
            piece = np.arange(4)
            giver, offset, size, rows = 2 * (lane % 4) + piece % 2, lane // 4 + 8 * (piece // 2), 1, 8
        case _:
            raise ValueError(shape)
    return np.stack([giver + rows * m for m in range(matrices)]), np.stack([offset] * matrices), size


#: By instruction, shape and type: how many matrices, and whether `.trans` may and must stand.
_FORMS = {
    ("ldmatrix", "m8n8", "b16"): ((1, 2, 4), (False, True)),
    ("ldmatrix", "m16n16", "b8"): ((1, 2), (True,)),
    ("ldmatrix", "m8n16", "b4x16_p64"): ((1, 2, 4), (False,)),
    ("ldmatrix", "m8n16", "b6x16_p32"): ((1, 2, 4), (False,)),
    ("ldmatrix", "m16n16", "b4x16_p64"): ((1, 2), (True,)),
    ("ldmatrix", "m16n16", "b6x16_p32"): ((1, 2), (True,)),
    ("stmatrix", "m8n8", "b16"): ((1, 2, 4), (False, True)),
    ("stmatrix", "m16n8", "b8"): ((1, 2, 4), (True,)),
}


class _Form:
    def __init__(self, s: Statement, c: Coder, address: Operand, registers: Operand) -> None:
        name, *words = s.words
        rest = [w for w in words if w not in ("sync", "aligned")]
        if len(words) - len(rest) != 2:
            raise c.unsupported("a form without .sync.aligned")
        self.bits = {"b4x16_p64": 4, "b6x16_p32": 6}.get(words[-1], 8)
        if self.bits < 8 and "b8x16" in rest:
            rest.remove("b8x16")
        space = next((w for w in rest if w.startswith("shared")), "")
        trans = "trans" in rest
        rest = [w for w in rest if w != space and w != "trans"]
        number = next((w for w in rest if w in ("x1", "x2", "x4")), "")
        shape, type = next((w for w in rest if w.startswith("m")), ""), rest[-1] if rest else ""
        numbers, transposed = _FORMS.get((name, shape, type), ((), ()))
        matrices = int(number[1:]) if number else 0
        if matrices not in numbers or trans not in transposed or len(rest) != 3 or space not in ("", "shared", "shared::cta"):
            raise c.unsupported(f"'.{'.'.join(words)}'")
        self.registers = registers.items if isinstance(registers, Group) else (registers,)
        giver, offset, self.size = fragments(shape, trans, matrices)
        if len(self.registers) != len(giver):
            raise c.unsupported(f"{len(self.registers)} registers for {len(giver)}")
        self.givers = int(giver.max()) + 1
        self.shape = (*giver.shape, self.size)
        self.giver, self.offset = giver.reshape(-1), offset.reshape(-1)
        self.lanes = np.repeat(np.tile(np.arange(LANES), len(giver)), giver.shape[-1])
        self.address = c.address(address)
        self.start = np.uint64(places.WINDOWS["shared"] if not space else 0)
        c.meets()

    def offsets(self, lanes: Lanes) -> np.ndarray:
        """Of all pieces, in the memory of the CTA."""
        return self.rows(lanes)[self.giver] + self.offset

    def rows(self, lanes: Lanes) -> np.ndarray:
        """Of all rows. Only the lanes that give an address need a good one."""
        if not lanes.full:
            raise lanes.fault(
                "emulate/divergent",
                "a matrix is moved by a warp of which lanes have ended",
                why="PTX ISA: the behaviour is undefined if any thread has exited",
            )
        rows = self.address(lanes)[: self.givers] - self.start
        if np.bitwise_or.reduce(rows) & np.uint64(ROW - 1):
            lane = int(np.flatnonzero(rows % ROW)[0])
            raise lanes.fault("emulate/misaligned", f"the row address {hex(int(rows[lane]))} of lane {lane} is no multiple of {ROW}")
        if (rows >> np.uint64(places.RANK_AT) != lanes.cta.rank).any():
            for row in rows.tolist():
                places.check(lanes, row, own=True)
        return (rows & np.uint64(places.OFFSET)).astype(np.int64)


def load(s: Statement, c: Coder) -> Step:
    """`ldmatrix.sync.aligned.shape.num{.trans}{.shared{::cta}}.type r, [p]`: a weak access, each piece by the lane that gets it. With `.b8x16` and a source
    of 4 or 6 bits a row is 16 packed elements, each of which becomes a byte, and padding that is not read."""
    form = _Form(s, c, s.operands[1], s.operands[0])
    if form.bits < 8:
        return _unpacked(form, c)
    to, shape, who, size = c.results(form.registers, "b32"), form.shape, form.lanes, form.size

    def step(lanes: Lanes) -> None:
        found = lanes.cta.shared.read(lanes, form.offsets(lanes), size, lanes=who)
        to(lanes, np.ascontiguousarray(found).reshape(shape[0], LANES, 4).view(np.uint32)[..., 0])

    return step


def _unpacked(form: _Form, c: Coder) -> Step:
    to, count, size = c.results(form.registers, "b32"), form.shape[0], 16 * form.bits // 8
    give = form.giver if form.size == 1 else np.repeat(form.giver, form.size)
    byte = form.offset if form.size == 1 else (form.offset[:, None] + np.arange(form.size)).reshape(-1)

    def step(lanes: Lanes) -> None:
        packed = lanes.cta.shared.read(lanes, form.rows(lanes), size)
        bits = np.unpackbits(packed, axis=1, bitorder="little").reshape(-1, 16, form.bits)
        elements = np.packbits(bits, axis=2, bitorder="little")[..., 0]  # a byte each, in its low bits
        to(lanes, elements[give, byte].reshape(count, LANES, 4).view(np.uint32)[..., 0])

    return step


def store(s: Statement, c: Coder) -> Step:
    """`stmatrix.sync.aligned.shape.num{.trans}{.shared{::cta}}.type [p], r`."""
    form = _Form(s, c, s.operands[0], s.operands[1])
    of, who, size = c.sources(form.registers, "b32"), form.lanes, form.size

    def step(lanes: Lanes) -> None:
        lanes.cta.shared.write(lanes, form.offsets(lanes), bytes_of(of(lanes)).reshape(-1, size), lanes=who)

    return step
