"""sm80 as data: what it offers and where it ends, each limit with its source. The README says what a capability means."""

from __future__ import annotations

from types import MappingProxyType

from cake_core.architecture import Architecture, Limit
from cake_sm80.backend import Ampere

CAPABILITIES = frozenset(
    {
        "atomics",
        "cp_async",
        "ldmatrix",
        "mbarrier",
        "mma_sync",
        "named_barrier",
        "shuffle",
        "vector_memory",
    }
)

_GUIDE = "CUDA C++ Programming Guide, technical specifications per compute capability, 8.0"

LIMITS = MappingProxyType(
    {
        # shared memory, bytes
        "shared_bytes_per_block": Limit(166_912, f"{_GUIDE} (163 KB)"),
        "shared_bytes_per_sm": Limit(167_936, f"{_GUIDE} (164 KB)"),
        "shared_bytes_reserved": Limit(
            1_024, "CUDA C++ Programming Guide, compute capability 8.x, shared memory: reserved by the system for each block"
        ),
        # registers, 32 bits each
        "registers_per_sm": Limit(65_536, f"{_GUIDE} (64 K)"),
        "registers_per_thread": Limit(255, _GUIDE),
        "register_granule": Limit(8, "CUDA Occupancy Calculator, 8.0: a warp's registers are given out in units of 256"),
        # threads and blocks
        "threads_per_block": Limit(1_024, _GUIDE),
        "threads_per_sm": Limit(2_048, _GUIDE),
        "blocks_per_sm": Limit(32, _GUIDE),
        # barriers
        "named_barriers": Limit(16, "PTX ISA, bar and barrier: sixteen a CTA, numbered 0 to 15"),
        # clusters, CTAs
        "cluster_ctas": Limit(1, "PTX ISA, cluster dimension directives: clusters need sm_90 or higher"),
        # memory accesses
        "vector_bytes": Limit(16, "PTX ISA, vectors: at most 128 bits"),
    }
)

SM80 = Architecture(
    name="sm80",
    target="sm_80",
    # A driver compiles the text itself only up to its own version, so no newer than needed: 8.6 is CUDA 12.7.
    ptx_version="8.6",
    compute_capability=(8, 0),
    # No feature here is specific to the architecture: the text runs on every later one, compiled by the driver.
    portable=True,
    capabilities=CAPABILITIES,
    limits=LIMITS,
    backend=Ampere,
    summary="NVIDIA Ampere (A100), and by its text every later GPU",
)
