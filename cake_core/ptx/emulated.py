"""How instructions are executed without a GPU: what a plugin says of its own, and what it is given for that.

A warp is 32 lanes whose registers are rows of numpy arrays. An instruction is made once into a `Step`, a function of the lanes that execute
together (`Lanes`); it reads its operands with what the `Coder` gave it and writes its results under the mask of those lanes. Semantics are
written from the PTX ISA and share nothing with lowering: a wrong encoding there must be seen here.

    def add(s: Statement, c: Coder) -> Step:
        d, a, b = s.operands
        kind = s.words[-1]
        to, x, y = c.result(d, kind), c.source(a, kind), c.source(b, kind)
        return lambda lanes: to(lanes, x(lanes) + y(lanes))

    Emulated("add", "cake_isa.integers:add", doc="PTX ISA, Integer Arithmetic Instructions: add")

Arrays are of shape (32,) with one element a lane; lanes that are not active hold anything there. Types are PTX's words (`TYPES`).
A register may be wider than the type that an instruction names (PTX ISA, Operand Size Exceeding Instruction-Type Size): what is read are its low
bits, what is written is extended by its sign for an `s` type, else by zeros. Steps run where numpy says nothing of overflow, division by zero and
invalid operations (`numpy.errstate`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from cake_core.frozen import frozen

if TYPE_CHECKING:
    import numpy as np

    from cake_core.ptx.reader import Operand

T = TypeVar("T")

#: Lanes of a warp.
LANES = 32

#: PTX's types and the type of numpy that their bits are seen as; bf16 and the 8-bit floats are plain bits to numpy.
TYPES: dict[str, str] = {
    **{f"b{n}": f"uint{n}" for n in (8, 16, 32, 64)},
    **{f"u{n}": f"uint{n}" for n in (8, 16, 32, 64)},
    **{f"s{n}": f"int{n}" for n in (8, 16, 32, 64)},
    "f16": "float16", "f32": "float32", "f64": "float64",
    "bf16": "uint16", "f16x2": "uint32", "bf16x2": "uint32", "tf32": "uint32", "e4m3x2": "uint16", "e5m2x2": "uint16", "pred": "bool",
}  # fmt: skip


class Wait(Protocol):
    """What `Lanes.wait` returns: a step that returns it is executed again once it is ready. `what`: for the message of a deadlock."""

    ready: Callable[[], bool]
    what: str


#: Executes one instruction for the lanes; a `Wait`: not yet, and nothing was done.
Step = Callable[["Lanes"], "Wait | None"]


@frozen
class Emulated:
    """Instructions whose opcode starts with the words of `name`; of several that fit, the one of most words holds.

    `make`: 'package.module:function', imported when such an instruction is met, so that a plugin costs nothing where nothing is emulated;
    the function takes (Statement, Coder), returns a Step, and raises `Coder.unsupported` for a form that it does not cover.
    `waits`: the step may return a `Wait`.
    """

    name: str
    make: str
    waits: bool = False
    doc: str = ""  # the section of the PTX ISA, and a second source where there is one
    source: object = field(default=None, compare=False)  # set by the plugin host


class Coder(Protocol):
    """Gives access to the operands of the statement that is being made."""

    def source(self, operand: Operand, type: str) -> Callable[[Lanes], np.ndarray]:
        """Values of a register, an immediate, a special register or a symbol's address; of type `pred` also of `!p`. Do not write into what it gives."""

    def result(self, operand: Operand, type: str) -> Callable[[Lanes, np.ndarray], None]:
        """Stores values (or one for all) into a register for the active lanes; `_` and None store nothing."""

    def sources(self, operands: Sequence[Operand], type: str) -> Callable[[Lanes], np.ndarray]:
        """Registers of one type together, (n, 32): a vector, a fragment."""

    def results(self, operands: Sequence[Operand], type: str) -> Callable[[Lanes, np.ndarray], None]:
        """Stores (n, 32) values."""

    def address(self, operand: Operand, generic: bool = False) -> Callable[[Lanes], np.ndarray]:
        """`[base + offset]`, or an operand that is an address: uint64 a lane. Coordinates of a tensor map are the operand's own. `generic`: the
        instruction names no space, so that a variable's name stands for its generic address."""

    def parameter(self, operand: Operand) -> str:
        """The space in which a parameter of this address lies: `param` of the kernel's, `local` of a function's and of a call's."""

    def constant(self, operand: Operand) -> int | None:
        """An immediate's value; None of anything else."""

    def meets(self, mask: Operand | None = None, without_ended: bool = False) -> None:
        """The lanes of `mask` (None: all of the warp that have not ended) execute this together: those that come first wait for the others. Lanes that are
        together and give several masks execute it a mask after another, and a lane that its mask does not name is a fault (PTX ISA, membermask). A
        mask that names lanes that have ended is a fault; `without_ended`: they are not waited for."""

    def holds(self, operands: Sequence[Operand]) -> Callable[[Lanes, str], None]:
        """For registers that an engine reads or writes after the instruction: called with a text, it says who has them; until it is called with ''
        again, an instruction of these lanes that reads or writes one of them is a finding (`emulate/race`). What the instruction that asks for
        `holds` reads and writes through its own coder is none."""

    def touched(self, operands: Sequence[Operand]) -> Callable[[Lanes], int]:
        """Of registers that `holds` was asked for: which of the accesses that `Lanes.touches` counts was the last to one of them; 0: none."""

    def orders(self, kind: str) -> None:
        """The kernel has fences for memory of this kind (`Cta.memory`): its accesses must be ordered by them too. In a kernel without any what orders
        threads is enough."""

    def unsupported(self, why: str) -> Exception:
        """To be raised: `why` is what of this form is not covered."""


class Barrier(Protocol):
    """A barrier object in shared memory that counts arrivals and bytes (PTX ISA, mbarrier). Misuse ends the run with a finding."""

    phase: int  # completed phases
    pending: int  # arrivals that the current one still waits for

    def init(self, agent: Agent, count: int) -> None:
        """Who uses it from now on must be ordered behind this."""

    def publish(self, stamp: Any) -> None:
        """Who acquires the stamp is behind the initialisation."""

    def invalidate(self, agent: Agent) -> None: ...
    def arrive(self, agent: Agent, count: int = 1, expect: int = 0, drop: bool = False, release: bool = True, scope: str = "") -> int:
        """`scope`: `cta` or `cluster` of threads that arrive: those who wait in another CTA are told of what is over alone, and of no writes of threads,
        where theirs and this one do not hold each other. Expects `expect` more bytes in this phase, then counts the arrivals with all that the agent has done before. The phase in which it fell."""

    def grow(self, agent: Agent, count: int = 1) -> None:
        """The current phase waits for so many arrivals more."""

    def expect(self, agent: Agent, bytes: int) -> None: ...
    def complete(self, agent: Agent, bytes: int) -> None:
        """`bytes` have come, with all that the agent has done before."""

    def passed(self, parity: int) -> bool:
        """Whether the phase of that parity has completed: the current one's parity differs."""

    def acquire(self, agent: Agent, scope: str = "", mask: int | None = None) -> None:
        """What came to the completed phase is seen by the agent from now on. `scope` as of `arrive`; `mask`: these of its lanes alone."""


class Meeting(Protocol):
    """A barrier of threads without bytes (named barriers of a CTA, barrier of a cluster). `agent`s come; a generation ends when `expected` have come."""

    def come(self, lanes: Lanes, threads: int, expected: int, release: bool = True, whole: bool = False) -> int:
        """The generation that these threads came to. `release` False: they tell of nothing that they did; `whole`: all threads are waited for, and so those that
        have ended are not."""

    def over(self, generation: int) -> bool: ...
    def acquire(self, agent: Agent, generation: int) -> None: ...


class Memory(Protocol):
    """A piece of memory, by bytes. Every access is checked: inside, written before it is read, not in a race."""

    name: str
    size: int

    def read(self, agent: Agent, offsets: np.ndarray, size: int, lanes: np.ndarray | None = None, scope: str = "") -> np.ndarray:
        """`size` bytes at each offset (int64, any shape): uint8 of that shape + (size,). `lanes`: which lane of a warp accesses each (offsets of one
        dimension); `scope` as of `Lanes.load`."""

    def write(self, agent: Agent, offsets: np.ndarray, data: np.ndarray, lanes: np.ndarray | None = None, scope: str = "") -> None:
        """`data`: uint8, shape of `offsets` + (size,)."""

    def forget(self, agent: Agent, offsets: np.ndarray, size: int) -> None:
        """These bytes are given back: nobody has written them any more. Ordered as a write is, without fences."""


class Agent(Protocol):
    """Who accesses memory: a warp's lanes, or a job that an engine does."""

    cta: Cta

    def release(self, each: bool = False) -> Any:
        """A stamp of all that this agent has done and seen; with `each` only what each of the lanes has seen that execute this together."""

    def acquire(self, stamp: Any, order: str = "") -> None:
        """What the stamp holds has happened before what this agent does from now on; with an order of fences (`tensor`) it needs none of these either."""

    def relaxed(self, stamp: Any) -> Any:
        """A stamp for a relaxed operation: `stamp` (of the last releasing fence, or None), and what fences for memory of one kind have ordered."""

    def unheld(self, stamp: Any) -> None:
        """For the finding that may follow: this stamp is not acquired because scopes do not hold each other's threads."""

    def acquire_fenced(self, stamp: Any) -> None:
        """Of a relaxed operation: what fences for memory of one kind have ordered."""

    def fence(self, kind: str) -> None:
        """A fence. Kinds: `async`, `async.shared`, `async.global`, between accesses of threads and those of engines (PTX ISA, fence.proxy.async);
        `tensor_before`, `tensor_after`, around a synchronisation, for tensor memory."""

    def fault(self, code: str, message: str, why: str | None = None, fix: str | None = None) -> Exception:
        """To be raised: ends the run with a finding at this instruction. Codes: `emulate/..`."""

    def finding(self, code: str, message: str, why: str | None = None, fix: str | None = None) -> None:
        """A finding at this instruction; the run goes on."""


class Job(Protocol):
    """Work that was given to an engine. `done` once it took effect; `stamp` then: who waited for it other than at a barrier acquires it."""

    done: bool
    stamp: Any


class Lanes(Agent, Protocol):
    """The lanes of one warp that execute together now, and what they reach."""

    active: np.ndarray  # bool, (32,)
    full: bool  # all 32 are active
    first: int  # the first active lane
    warp: int  # of the CTA
    touches: int  # accesses so far, by instructions of the warp, of registers that others `hold`, themselves excepted

    def acquire(self, stamp: Any, order: str = "", mask: int | None = None) -> None:
        """As of any agent; only those who execute this, and of them those of `mask`, know of it, until they meet the others."""

    def uniform(self, values: np.ndarray) -> int:
        """The value that all active lanes hold. Faults where they differ."""

    def load(self, space: str, addresses: np.ndarray, size: int, scope: str = "") -> np.ndarray:
        """`size` bytes from each active lane's address (aligned to `size` up to 32, else a fault): uint8 (32, size). Spaces: `shared` (addresses of the
        cluster's window: rank << 24 | offset), `global`, `generic`, `param`, `local`, `const`. `scope`: a strong operation of that scope (`cta`, `cluster`,
        `gpu`, `sys`), which is in no race with another strong one whose scope and its own hold each other's threads (PTX ISA, Morally Strong
        Operations); '': a weak one."""

    def store(self, space: str, addresses: np.ndarray, data: np.ndarray, scope: str = "") -> None:
        """`data`: uint8 (32, size); only active lanes store."""

    def update(self, space: str, addresses: np.ndarray, size: int, change: Callable[[int, np.ndarray], np.ndarray], scope: str = "gpu") -> np.ndarray:
        """Atomically, lane after lane: `change(lane, old bytes)` gives the new bytes; returns the old ones, uint8 (32, size)."""

    def barrier(self, address: int) -> Barrier:
        """The barrier object at a shared address of the cluster's window."""

    def met(self, mask: int | None = None) -> None:
        """The lanes of `mask` (None: all that have not ended) are here: what each of them did is ordered in front of what each will do. `Coder.meets`
        lets lanes meet, and orders no accesses."""

    def wait(self, ready: Callable[[], bool], what: str, after: Callable[[], None] | None = None) -> Wait:
        """For a step to return. With `after` the step has begun what it does: it is not executed again, and `after` is called when it is ready."""

    def pause(self) -> None:
        """Others may run before these lanes go on: said by what a loop polls with."""

    def start(
        self, queue: Hashable | None, work: Callable[[Agent], None], what: str, proxy: str = "async", outlives: bool = False, each: bool = False
    ) -> Job:
        """Gives work to an engine: it is done at some time from now on, after what the queue was given before (None: in any order). The agent that
        `work` is called with has seen what these lanes had fenced towards engines; of proxy `generic`, all that they had seen; with `each` only what each of them had. Work for several warps
        acquires the stamps that the others released: with them comes what those had fenced."""

    def state(self, key: Hashable, make: Callable[[], T]) -> T:
        """What a family keeps of this warp."""


class Cta(Protocol):
    rank: int  # in its cluster
    index: tuple[int, int, int]  # in the grid
    threads: int
    cluster: Sequence[Cta]  # by rank
    shared: Memory  # offsets as in addresses
    launch: Launch

    def shared_of(self, agent: Agent, rank: int) -> Memory:
        """The shared memory of a CTA of the cluster. Faults where there is none, or where all threads of that CTA have ended."""

    def meeting(self, number: int) -> Meeting:
        """The named barrier `number`."""

    def state(self, key: Hashable, make: Callable[[], T]) -> T:
        """What a family keeps of this CTA: tensor memory, for one. An object with a method `ended(cta)` is asked for leaks at the CTA's end: it returns
        texts, each a finding `emulate/unfinished`."""

    def together(self) -> Meeting:
        """The barrier of the cluster."""

    def memory(self, name: str, size: int) -> Memory:
        """A memory of this CTA beside shared memory, of `size` bytes; made at the first call."""


@frozen
class TiledMap:
    """A tensor map, as the host encoded it (CUDA driver API, cuTensorMapEncodeTiled). All lists innermost dimension first; `strides` in bytes, of the
    dimensions from the second on. `kind`: the driver's name of the elements' type, in small letters; `bits`: of one. `swizzle`: 0, 32, 64 or 128 bytes. `fill`: 'zero' or 'nan'."""

    address: int
    bits: int
    kind: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: int
    fill: str = "zero"


class Launch(Protocol):
    grid: tuple[int, int, int]
    cluster: tuple[int, int, int]
    directives: Sequence[str]  # of the entry, as written: `.maxnreg 64`

    def cancel(self) -> tuple[int, int, int] | None:
        """Takes a cluster that has not begun out of the launch: the index of its first CTA. None: all have begun."""

    def map(self, address: int) -> TiledMap | None:
        """The tensor map at an address: of a parameter, or encoded into global memory."""

    def peek(self, address: int, size: int) -> bytes:
        """Bytes of global memory as they are now, an access that nobody watches; none where nothing is allocated."""

    def map_in(self, data: bytes) -> TiledMap | None:
        """The map that the host has encoded as these 128 bytes, wherever they were copied."""

    def locate(self, address: int, size: int) -> tuple[Memory, int] | None:
        """The allocation of global memory that holds these bytes, and where they lie in it."""

    def state(self, key: Hashable, make: Callable[[], T]) -> T: ...


#: Generic addresses of the spaces that are no global memory: where their windows start (PTX ISA, Generic Addressing; the numbers are ours).
WINDOWS = {"shared": 1 << 56, "param": 1 << 57, "local": 1 << 58}
#: Bits of an offset in an address of shared memory; the rank of the CTA in its cluster stands above.
RANK_AT = 24


def halves(register: str) -> tuple[str, str]:
    """The two registers of 64 bits that one of 128 bits is to a `Coder`, the lower first."""
    return f"{register}.lo", f"{register}.hi"


def bytes_of(values: np.ndarray) -> np.ndarray:
    """The bytes of each element along a new last axis: (32,) of uint32 to uint8 (32, 4)."""
    import numpy as np

    values = np.ascontiguousarray(values)
    return values.view(np.uint8).reshape(*values.shape, values.dtype.itemsize)


def joined(parts: Iterable[np.ndarray]) -> np.ndarray:
    """Bytes of several elements a lane behind each other: parts of uint8 (32, n)."""
    import numpy as np

    return np.concatenate(list(parts), axis=-1)


def swizzled(addresses: np.ndarray, span: int) -> np.ndarray:
    """Where the bytes of shared addresses lie under a swizzle of `span` bytes: 16-byte chunks (32: bit 4, 64: bits 4-5, 128: bits 4-6) are
    exchanged by the bits from 7 on (PTX ISA, Tensor Swizzling Modes: 128B swizzle, chunk index xor row index modulo 8). 0: as they are."""
    bits = {0: 0, 32: 1, 64: 2, 128: 3}[span]
    return addresses ^ ((addresses >> 7 & (1 << bits) - 1) << 4)
