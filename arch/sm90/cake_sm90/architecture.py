"""sm90 as data: what it offers and where it ends, each limit with its source. The README says what a capability means."""

from __future__ import annotations

from types import MappingProxyType

from cake_core.architecture import Architecture, Limit
from cake_sm90.backend import Hopper

CAPABILITIES = frozenset(
    {
        "async_proxy",
        "atomics",
        "bulk_copy",
        "cluster",
        "cp_async",
        "dependent_launch",
        "fp8_convert",
        "ldmatrix",
        "mbarrier",
        "mma_sync",
        "mma_sync_fp8",
        "named_barrier",
        "setmaxnreg",
        "shuffle",
        "stmatrix",
        "tma",
        "transaction_barrier",
        "vector_memory",
        "vector_reduction",
        "wgmma",
    }
)

_GUIDE = "CUDA C++ Programming Guide, technical specifications per compute capability, 9.0"
_TENSOR_MAP = "CUDA Driver API, cuTensorMapEncodeTiled"
_MBARRIER = "PTX ISA, mbarrier, contents of the mbarrier object"

LIMITS = MappingProxyType(
    {
        # shared memory, bytes
        "shared_bytes_per_block": Limit(232_448, f"{_GUIDE} (227 KB); H200, driver 580.159.04: 232,449 is refused"),
        "shared_bytes_per_sm": Limit(233_472, f"{_GUIDE} (228 KB); H200, driver 580.159.04"),
        "shared_bytes_reserved": Limit(1_024, "CUDA C++ Programming Guide, compute capability 9.0, shared memory: reserved by the system for each block"),
        # registers, 32 bits each
        "registers_per_sm": Limit(65_536, f"{_GUIDE} (64 K)"),
        "registers_per_thread": Limit(255, _GUIDE),
        "register_granule": Limit(8, "ptxas 13.0 and 13.5: 384 threads get 168 registers a thread, 65,536 / 384 rounded down to 8"),
        # threads and blocks
        "threads_per_block": Limit(1_024, _GUIDE),
        "threads_per_sm": Limit(2_048, _GUIDE),
        "blocks_per_sm": Limit(32, _GUIDE),
        # barriers
        "named_barriers": Limit(16, "PTX ISA, bar and barrier: sixteen a CTA, numbered 0 to 15"),
        "mbarrier_count": Limit(2**20 - 1, f"{_MBARRIER}: pending arrivals"),
        "mbarrier_bytes": Limit(2**20 - 1, f"{_MBARRIER}: tx-count of a phase"),
        # clusters, CTAs
        "cluster_ctas": Limit(8, "CUDA C++ Programming Guide, thread block clusters: the portable size"),
        "cluster_ctas_nonportable": Limit(16, "CUDA Driver API, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED; Hopper tuning guide"),
        # tensor maps
        "tensor_rank": Limit(5, _TENSOR_MAP),
        "tensor_box_extent": Limit(256, f"{_TENSOR_MAP}: elements of a box along one dimension"),
        "tensor_address_align": Limit(16, f"{_TENSOR_MAP}: bytes, of the global address and of each stride but the innermost"),
        # memory accesses
        "vector_bytes": Limit(16, "PTX ISA, vectors: at most 128 bits"),
    }
)

SM90 = Architecture(
    name="sm90",
    # The `a` suffix: warpgroup products and register reallocation are architecture-specific features.
    target="sm_90a",
    # sm_90a needs 8.0. A driver compiles the text itself only up to its own version, so no newer than needed: 8.6 is CUDA 12.7.
    ptx_version="8.6",
    compute_capability=(9, 0),
    capabilities=CAPABILITIES,
    limits=LIMITS,
    backend=Hopper,
    summary="NVIDIA Hopper (H100, H200)",
)
