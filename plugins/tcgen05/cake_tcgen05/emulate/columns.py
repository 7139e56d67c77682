"""Tensor memory of a CTA: 128 lanes of 512 columns of 32 bits, of which it owns what it has allocated (PTX ISA, Tensor Memory; tcgen05.alloc).

The CTA has the whole of it, as if no other were on its multiprocessor. An address has the lane in its upper and the column in its lower half.
"""

from __future__ import annotations

import numpy as np

from cake_core.ptx.emulated import RANK_AT, WINDOWS, Agent, Coder, Cta, Lanes, Memory, Step, Wait
from cake_core.ptx.reader import Statement

LANES, COLUMNS, CELL = 128, 512, 4
BLOCK = 32  # columns are given in powers of two from here on
SIZES = (32, 64, 128, 256, 512)
_ALL = (1 << COLUMNS // BLOCK) - 1


class TensorMemory:
    """`owned`: bits of blocks of columns; `allocations`: columns by first column; `smallest`: of the last allocation."""

    def __init__(self) -> None:
        self.owned = 0
        self.allocations: dict[int, int] = {}
        self.smallest, self.permit = COLUMNS, True
        self.asked = 0  # allocations of a pair that this CTA has come to

    def place(self, columns: int, others: int = 0) -> int | None:
        """The first column of the first free run of so many; `others`: blocks that are not free elsewhere."""
        blocks, taken = columns // BLOCK, self.owned | others
        for first in range(COLUMNS // BLOCK - blocks + 1):
            if not taken >> first & (1 << blocks) - 1:
                return first * BLOCK
        return None

    def take(self, first: int, columns: int) -> None:
        self.owned |= _bits(first, columns)
        self.allocations[first] = columns

    def give_back(self, first: int) -> None:
        self.owned &= ~_bits(first, self.allocations.pop(first))

    def ended(self, cta: Cta) -> list[str]:
        return [f"{n} columns of tensor memory from column {first} on are not deallocated" for first, n in sorted(self.allocations.items())]


class Pair:
    """Allocations of two CTAs: each is made when both have come to it, and gives both the same columns."""

    def __init__(self) -> None:
        self.sizes: list[list[int]] = []  # by number: what each CTA asks for
        self.places: dict[int, int] = {}

    def granted(self, number: int, memories: tuple[TensorMemory, TensorMemory]) -> bool:
        if number in self.places:
            return True
        if number >= len(self.sizes) or len(self.sizes[number]) < 2:
            return False
        columns = self.sizes[number][0]
        first = memories[0].place(columns, memories[1].owned)
        if first is None:
            return False
        for memory in memories:
            memory.take(first, columns)
        self.places[number] = first
        return True


def tensor_memory(cta: Cta) -> TensorMemory:
    return cta.state("tcgen05", TensorMemory)


def cells(cta: Cta) -> Memory:
    """The bytes: the cell of a lane and a column at ((lane * 512) + column) * 4."""
    return cta.memory("tensor", LANES * COLUMNS * CELL)


def offsets(lanes: np.ndarray, column: int) -> np.ndarray:
    return (lanes.astype(np.int64) * COLUMNS + column) * CELL


def owned(agent: Agent, cta: Cta, column: int, width: int, what: str) -> None:
    """Faults unless these columns are the CTA's."""
    if column + width > COLUMNS:
        raise agent.fault("emulate/out-of-bounds", f"{what} goes to column {column + width - 1} of tensor memory, which has {COLUMNS}")
    if _bits(column, width) & ~tensor_memory(cta).owned:
        raise agent.fault(
            "emulate/out-of-bounds",
            f"{what} is at columns {column} to {column + width - 1} of tensor memory, which CTA {cta.rank} of the cluster has not allocated",
            why="only columns that tcgen05.alloc gave and tcgen05.dealloc has not taken back may be accessed (PTX ISA, Tensor Memory Allocation)",
        )


def _bits(first: int, columns: int) -> int:
    return (1 << -(-(first + columns) // BLOCK)) - (1 << first // BLOCK) & _ALL


def group_of(s: Statement, c: Coder) -> int:
    """1 or 2 of `.cta_group::`. Raises `unsupported`."""
    for word in s.words:
        if word.startswith("cta_group::"):
            if word not in ("cta_group::1", "cta_group::2"):
                raise c.unsupported(f"`.{word}`")
            return int(word[-1])
    raise c.unsupported("a form without `.cta_group`")


def members(lanes: Lanes, group: int) -> tuple[Cta, ...]:
    """The CTAs that the instruction is of: this one, or the pair, the even one first (PTX ISA, CTA Pair). A kernel has one group."""
    kept = lanes.cta.launch.state("tcgen05", lambda: [group])
    if kept[0] != group:
        raise lanes.fault(
            "emulate/operand",
            f"`.cta_group::{group}` in a kernel that has used `.cta_group::{kept[0]}`",
            why="all tcgen05 instructions of a kernel have the same (PTX ISA, tcgen05.alloc)",
        )
    if group == 1:
        return (lanes.cta,)
    even = lanes.cta.rank & ~1
    if even + 1 >= len(lanes.cta.cluster):
        raise lanes.fault(
            "emulate/operand",
            f"`.cta_group::2` in a CTA of rank {lanes.cta.rank} of a cluster of {len(lanes.cta.cluster)}, which has no peer",
            why="a pair are two CTAs of a cluster whose ranks differ in the last bit (PTX ISA, CTA Pair)",
        )
    return (lanes.cta.cluster[even], lanes.cta.cluster[even + 1])


def whole(lanes: Lanes, what: str) -> None:
    if not lanes.full:
        raise lanes.fault("emulate/divergent", f"lanes of the warp are missing from {what}", why="it is `.sync.aligned`: all of the warp execute it")


def alloc(s: Statement, c: Coder) -> Step:
    """PTX ISA, tcgen05.alloc: blocks until there are so many columns; their address is written to shared memory."""
    _words(s, c, {"b32", "shared::cta"})
    group, generic = group_of(s, c), "shared::cta" not in s.words
    to, size = c.address(s.operands[0], generic), c.source(s.operands[1], "u32")
    c.meets()

    def step(lanes: Lanes) -> Wait | None:
        whole(lanes, "tcgen05.alloc")
        columns, memory, pair = lanes.uniform(size(lanes)), tensor_memory(lanes.cta), members(lanes, group)
        _allowed(lanes, memory, columns)
        address = lanes.uniform(to(lanes)) - (WINDOWS["shared"] if generic else 0)
        if address % CELL:
            raise lanes.fault("emulate/misaligned", f"the address of tensor memory is to be written at {address:#x}, which is no multiple of 4")

        def done(first: int) -> None:
            memory.smallest = columns
            lanes.cta.shared.write(lanes, np.array([address & (1 << RANK_AT) - 1]), np.array([first], np.uint32).view(np.uint8).reshape(1, CELL))
            lanes.acquire(lanes.release())  # each lane of the warp may read it at once (tcgen05, Asynchronous Operations: same-address ordering)

        if group == 1:
            first = memory.place(columns)
            if first is None:
                return lanes.wait(lambda: memory.place(columns) is not None, f"{columns} free columns of tensor memory")
            memory.take(first, columns)
            return done(first)
        talk, number = pair[0].state("tcgen05.pair", Pair), memory.asked
        memory.asked += 1
        both = tensor_memory(pair[0]), tensor_memory(pair[1])
        if number == len(talk.sizes):
            talk.sizes.append([])
        elif talk.sizes[number][0] != columns:
            raise lanes.fault("emulate/operand", f"the CTAs of a pair allocate {talk.sizes[number][0]} and {columns} columns")
        talk.sizes[number].append(columns)
        return lanes.wait(
            lambda: talk.granted(number, both),
            f"tensor memory, {columns} columns for a pair of CTAs" + ("" if len(talk.sizes[number]) == 2 else ", for which the other has not come"),
            after=lambda: done(talk.places[number]),
        )

    return step


def _allowed(lanes: Lanes, memory: TensorMemory, columns: int) -> None:
    if columns not in SIZES:
        raise lanes.fault("emulate/operand", f"tcgen05.alloc of {columns} columns", why="a power of two from 32 to 512 (PTX ISA, tcgen05.alloc)")
    if not memory.permit:
        raise lanes.fault(
            "emulate/operand",
            "tcgen05.alloc behind tcgen05.relinquish_alloc_permit",
            why="the CTA has given up the right to allocate (PTX ISA, tcgen05.relinquish_alloc_permit)",
        )
    if columns > memory.smallest:
        raise lanes.fault(
            "emulate/operand",
            f"tcgen05.alloc of {columns} columns behind one of {memory.smallest}",
            why="sizes do not grow from one allocation of a CTA to the next (PTX ISA, tcgen05.alloc)",
        )


def dealloc(s: Statement, c: Coder) -> Step:
    """PTX ISA, tcgen05.dealloc: of what one tcgen05.alloc gave. In a pair each CTA gives its own half back; the ISA lets it wait for the peer.
    All accesses of the columns must have happened before."""
    _words(s, c, {"b32"})
    group = group_of(s, c)
    at, size = c.source(s.operands[0], "b32"), c.source(s.operands[1], "u32")
    c.meets()

    def step(lanes: Lanes) -> None:
        whole(lanes, "tcgen05.dealloc")
        address, columns, memory = lanes.uniform(at(lanes)), lanes.uniform(size(lanes)), tensor_memory(lanes.cta)
        members(lanes, group)
        if memory.allocations.get(address) != columns:
            held = ", ".join(f"{n} from {first} on" for first, n in sorted(memory.allocations.items())) or "none"
            raise lanes.fault(
                "emulate/operand",
                f"tcgen05.dealloc of {columns} columns at {address:#x}, where no allocation of that size is",
                why=f"allocated columns: {held}; what is given back is what one tcgen05.alloc gave (PTX ISA, tcgen05.dealloc)",
            )
        memory.give_back(address)
        cells(lanes.cta).forget(lanes, offsets(np.arange(LANES), address), columns * CELL)

    return step


def relinquish(s: Statement, c: Coder) -> Step:
    """PTX ISA, tcgen05.relinquish_alloc_permit: the CTA allocates no more."""
    _words(s, c, set())
    group_of(s, c)
    c.meets()

    def step(lanes: Lanes) -> None:
        whole(lanes, "tcgen05.relinquish_alloc_permit")
        tensor_memory(lanes.cta).permit = False

    return step


def _words(s: Statement, c: Coder, more: set[str]) -> None:
    words = {w for w in s.words[2:] if not w.startswith("cta_group::")}
    if not {"sync", "aligned"} <= words or words - {"sync", "aligned"} - more:
        raise c.unsupported(f"the words of '{s.opcode}'")
