"""What an instruction does to barriers, groups and those who wait: the words in which machine code that is read back is compared with facts.

A plugin says of its instructions what they do (`Reread`), from the PTX ISA and apart from its lowering. Whoever reads a kernel back gives it a
`Moment`: one thread that executes the instruction, with the values of its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cake_core.frozen import frozen

if TYPE_CHECKING:
    from cake_core.ptx.reader import Operand, Statement


class Act(NamedTuple):
    """One thing that a thread does, in order. Made by the functions below; a tuple, since a small run has some thousands of them.

    `at`: an address in shared memory, or the number of a barrier of threads. `parts`: of a copy, (barrier, first byte, end) a destination; of what
    is touched (`USES`), one part, which is `number` pieces, each `at` bytes behind the one before, where there are more than one. `form`: what is known of how
    the bytes there are taken, in words that `form_of` makes."""

    what: str
    at: int | None = None
    number: int = 0
    name: str = ""
    parts: tuple[tuple[int, int, int], ...] = ()
    form: tuple[str, ...] = ()


#: Acts that have no place of their own in the order, and who does those that threads do themselves.
USES, THREADS, COORDINATE = "uses", "threads", "coordinate"
#: What is done to tensor memory, and the bits of an address there in front of the lane (the columns).
READ, ADDED, WRITTEN, LANE = "tensor memory read", "tensor memory added to", "tensor memory written", 16


def initialised(address: int, count: int) -> Act:
    """The barrier at `address` starts phase 0 with `count` arrivals a phase."""
    return Act("init", address, count)


def waited(address: int, parity: int) -> Act:
    """Has waited until the phase of `parity` of the barrier was complete."""
    return Act("wait", address, parity)


def arrived(address: int, expected: int = 0, count: int = 1) -> Act:
    """`count` arrivals at the barrier, and `expected` more transaction bytes in its phase."""
    return Act("arrive", address, expected, "" if count == 1 else f"{count} arrivals")


def form_of(elem: str | None = None, swizzle: int | None = None) -> tuple[str, ...]:
    """What is known of how bytes are taken: the type of their elements, and the bytes of the swizzle, 0 none."""
    return (*(() if elem is None else (elem,)), *(() if swizzle is None else (f"swizzle {swizzle}",)))


def copied(parts: Iterable[tuple[int, int, int]], size: int, form: tuple[str, ...] = ()) -> Act:
    """A copy of `size` bytes to each of its destinations, (barrier that is told, first byte, end)."""
    return Act("copy", None, size, "", tuple(parts), form)


def engine_arrived(addresses: Iterable[int], engine: str) -> Act:
    """One arrival of `engine` at each barrier, when all that the thread gave it before is complete."""
    return Act("engine arrives", None, 0, engine, tuple((a, 0, 0) for a in addresses))


def committed(queue: str) -> Act:
    """The thread's open group of `queue` is closed."""
    return Act("commit", None, 0, queue)


def drained(queue: str, pending: int, reads_only: bool = False) -> Act:
    """Has waited until at most `pending` groups of `queue` were in flight, or had still to read."""
    return Act("wait for reads" if reads_only else "wait for groups", None, pending, queue)


def used(name: str, first: int, end: int, form: tuple[str, ...] = ()) -> Act:
    """An asynchronous operation of the queue or engine `name` touches these bytes of shared memory. How it is compared: it lies in what the
    text touches there, between the same two other acts, and together such operations touch all of it."""
    return Act(USES, None, 0, name, ((0, first, end),), form)


def rows_used(name: str, first: int, rows: int, pitch: int, width: int, form: tuple[str, ...] = ()) -> Act:
    """The same of `rows` pieces of `width` bytes, `pitch` bytes from one to the next."""
    if width == pitch or rows == 1:
        return used(name, first, first + rows * width, form)
    return Act(USES, pitch, rows, name, ((0, first, first + (rows - 1) * pitch + width),), form)


def tensor_used(name: str, how: str, lanes: tuple[int, int], columns: tuple[int, int], rank: int, form: tuple[str, ...] = ()) -> Act:
    """An asynchronous operation touches these lanes and columns of the tensor memory of a CTA, (first, how many) each; columns as the address of the
    instruction has them. `how`: READ, WRITTEN, or ADDED, a read by who writes it too. Of what a warp moves itself lanes count from the first one that it
    reaches. Compared like `used`, but adding to what was written between the same two acts is not asked for by the text."""
    return rows_used(f"{how} by '{name}'", in_rank(lanes[0] << LANE | columns[0], rank), lanes[1], 1 << LANE, columns[1], form)


def anywhere(name: str) -> Act:
    """Whatever the text has `name` touch between the same two acts may be touched: nothing is known of it."""
    return Act(USES, None, 0, name)


def accessed(first: int, end: int) -> Act:
    """The thread itself reads or writes these bytes of shared memory at once; compared like `used`."""
    return used(THREADS, first, end, aligned(first, end))


def aligned(first: int, end: int, form: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The form of what one thread moves, whose address has to be a multiple of its size: as no text has it where it is none."""
    return form if first % max(end - first, 1) == 0 else ("misaligned",)


def met(number: int, threads: int, waits: bool = True) -> Act:
    """Came to the barrier of threads `number` of its CTA at which `threads` meet, and waited there or went on."""
    return Act("meet" if waits else "come", number, threads)


def met_cluster(waits: bool) -> Act:
    """Came to the cluster's barrier (`waits` False), or has waited there."""
    return Act("wait for the cluster" if waits else "come to the cluster")


def converged(lanes: int = 0xFFFFFFFF) -> Act:
    """The lanes of the warp in the mask `lanes` have met."""
    return Act("warp meets", None, lanes & 0xFFFFFFFF)


def fenced(kind: str) -> Act:
    """A fence of a kind that effects name."""
    return Act("fence", None, 0, kind)


def begun(tensor: str, first: Iterable[int | None], sizes: Iterable[int]) -> tuple[Act, ...]:
    """An asynchronous operation takes a box of a tensor, by its first element and its size, outermost dimension first; None: not known. Compared like
    `used`, dimension by dimension."""
    boxes = zip(first, sizes, strict=True)
    return tuple(Act(USES, None, 0, f"{COORDINATE} {d} of '{tensor}'", () if x is None else ((0, x, x + n),)) for d, (x, n) in enumerate(boxes))


def grids_ordered(waits: bool) -> Act:
    """Has waited for the grids in front of this one, or lets the one behind it start."""
    return Act("wait for grids" if waits else "let grids start")


def reserved(amount: int) -> Act:
    """Columns of tensor memory are taken."""
    return Act("take columns", None, amount)


def freed(amount: int) -> Act:
    """Columns of tensor memory are given back."""
    return Act("give back columns", None, amount)


def worded(word: str, number: int) -> Act:
    """What a word on a role's header asks of its warps."""
    return Act("word", None, number, word)


# --- how an instruction is read ------------------------------------------------------------------------------------


class Boxes(NamedTuple):
    """What a tensor map says: the tensor, the `sizes` of a box, outermost dimension first, its bytes, and the form in which they lie in shared memory."""

    tensor: str
    sizes: tuple[int, ...]
    bytes: int
    form: tuple[str, ...]


class Moment(Protocol):
    """One thread at one instruction."""

    rank: int  # of the CTA in its cluster
    warp: int  # in the CTA
    lane: int
    threads: int  # of the CTA

    def value(self, operand: Operand) -> int:
        """A number, the value of a register, or an address. What is not known ends the reading of this thread."""

    def known(self, operand: Operand) -> int | None:
        """The same, None where it is not known."""

    def shared(self, operand: Operand) -> int:
        """An address in shared memory, of the own CTA or mapped to another one, as one of the cluster's window (`in_rank`)."""

    def give(self, register: Operand, value: int | None) -> None:
        """Set a result; None: not known."""

    def gathered(self, operand: Operand) -> tuple[int | None, ...] | None:
        """What the lanes of the warp give to this instruction: those that are read, which stand for all, the leading one first. None: not known."""

    def drawn(self, address: Operand) -> int | None:
        """What a counter in global memory holds when this thread adds to it; None: not known."""

    def keep(self, address: Operand, amount: int) -> None:
        """The address of `amount` columns of tensor memory is written to shared memory, where the threads of the CTA read it."""

    def map(self, map: Operand) -> Boxes:
        """The tensor map whose address is the operand's base."""


@frozen
class Reread:
    """Instructions whose opcode starts with the words of `name`; of several that fit, the one of most words holds.

    `read(statement, moment)` returns what it does, and sets its results. None: it does nothing to barriers, and its results are not known.
    Parts of vectors are not followed, and coordinates of a tensor map are, with `coordinates`, where accesses are compared: else their values are not known here.
    `accesses`: all that it does is `accessed`, which is compared where every branch around such accesses can be followed.
    `acts` False: it does nothing either, but computes: it matters only where its results do. `writes`: its first operand is a result.
    """

    name: str
    read: Callable[[Statement, Moment], tuple[Act, ...]] | None = None
    acts: bool = True
    writes: bool = False
    accesses: bool = False
    coordinates: bool = False
    doc: str = ""  # the section of the PTX ISA
    source: object = field(default=None, compare=False)  # set by the plugin host


#: Bits of an address inside of one CTA's shared memory.
WINDOW = 24


def in_rank(address: int, rank: int) -> int:
    """The address in the cluster's window that lies in the CTA of `rank` where `address` lies in its own (PTX ISA, mapa)."""
    return rank + 1 << WINDOW | address & (1 << WINDOW) - 1


def rank_of(address: int) -> int | None:
    """The rank of the CTA in whose memory an address of the cluster's window lies; None of one that is not mapped: the own CTA's."""
    return (address >> WINDOW) - 1 if address >> WINDOW else None
