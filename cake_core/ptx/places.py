"""Addresses of shared memory as instructions name them, checked and split, for those who execute instructions.

PTX ISA, State Spaces (Shared State Space, `::cta` and `::cluster`) and Generic Addressing: an address of the window of the cluster has the rank of a
CTA and an offset in its memory; `::cta` names the memory of the executing CTA alone. Without a space the address is generic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from cake_core.ptx.emulated import RANK_AT, WINDOWS

if TYPE_CHECKING:
    import numpy as np

    from cake_core.ptx.emulated import Agent, Coder, Lanes, Memory
    from cake_core.ptx.reader import Operand

#: The bits of an offset.
OFFSET = (1 << RANK_AT) - 1

#: What an operand is where its instruction names this space; "": none.
SPACES = {"": "generic", "shared": "cta", "shared::cta": "cta", "shared::cluster": "cluster"}


def shared(c: Coder, operand: Operand, space: str, own: bool = False, align: int = 1) -> Callable[[Lanes], np.ndarray]:
    """Addresses in the window of the cluster, uint64 (32,), of an operand in `space` (a key of SPACES). `own`: they must be of the executing CTA, as
    always with `::cta`. Faults of active lanes: `emulate/out-of-bounds` of an address of no CTA that may be meant, `emulate/misaligned`."""
    import numpy as np

    kind = SPACES[space]
    own, find, start = own or kind == "cta", c.address(operand), np.uint64(WINDOWS["shared"])
    low = np.uint64(align - 1)
    at = np.uint64(RANK_AT)

    def places(lanes: Lanes) -> np.ndarray:
        found = find(lanes)
        if kind == "generic":
            found = found - start
        active = found if lanes.full else found[lanes.active]
        ranks = active >> at
        first = int(ranks[0])
        if first >= len(lanes.cta.cluster) or own and first != lanes.cta.rank or (ranks != ranks[0]).any():
            for address in active.tolist():
                check(lanes, address, own)
        if align > 1 and np.bitwise_or.reduce(active) & low:
            bad = next(a for a in active.tolist() if a % align)
            raise lanes.fault("emulate/misaligned", f"address {hex(bad)} of shared memory is no multiple of {align}")
        return found

    return places


def check(agent: Agent, address: int, own: bool) -> None:
    """Faults where the address is of no CTA of the cluster, or of another CTA where the executing one's memory is named."""
    rank = address >> RANK_AT
    if rank >= len(agent.cta.cluster):
        raise agent.fault(
            "emulate/out-of-bounds",
            f"address {hex(address)} is in the shared memory of no CTA: the cluster has {len(agent.cta.cluster)}",
        )
    if own and rank != agent.cta.rank:
        raise agent.fault(
            "emulate/out-of-bounds",
            f"address {hex(address)} is in the shared memory of CTA {rank} of the cluster, and the instruction names that of its own, {agent.cta.rank}",
            why="`.shared::cta` is the window of the executing CTA",
        )


def split(address: int) -> tuple[int, int]:
    """(rank, offset)."""
    return address >> RANK_AT, address & OFFSET


def in_rank(address: int, rank: int) -> int:
    """The address that has the same offset in the CTA of `rank`."""
    return rank << RANK_AT | address & OFFSET


def in_global(agent: Agent, addresses: np.ndarray, size: int) -> Iterator[tuple[Memory, np.ndarray, np.ndarray]]:
    """Where `size` bytes at each address of global memory (uint64, (n,)) lie: (memory, offsets in it, which of the addresses). As a rule one piece of
    memory has them all. Faults where there is none: `emulate/out-of-bounds`."""
    import numpy as np

    if not len(addresses):
        return
    low = int(addresses.min())
    found = agent.cta.launch.locate(low, int(addresses.max()) - low + size)
    if found is not None:
        memory, first = found
        yield memory, (addresses - np.uint64(low)).astype(np.int64) + first, np.arange(len(addresses))
        return
    for n, address in enumerate(addresses.tolist()):
        found = agent.cta.launch.locate(address, size)
        if found is None:
            raise agent.fault("emulate/out-of-bounds", f"{size} bytes at {hex(address)} are in no piece of global memory")
        yield found[0], np.array([found[1]]), np.array([n])
