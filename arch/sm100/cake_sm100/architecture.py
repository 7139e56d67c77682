"""sm100 as data: what it offers and where it ends, each limit with its source. The README says what a capability means.

No device of this target was at hand: limits come from documents, and kernels for it are assembled, not executed.
"""

from __future__ import annotations

from types import MappingProxyType

from cake_core.architecture import Architecture, Limit
from cake_sm100.backend import Blackwell

#: There are no warpgroup products: `wgmma` is a feature of sm_90a alone (PTX ISA, wgmma.mma_async, target ISA notes).
CAPABILITIES = frozenset(
    {
        "async_proxy",
        "atomics",
        "bulk_copy",
        "cluster",
        "cp_async",
        "cta_pair",
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
        "tcgen05",
        "tma",
        "transaction_barrier",
        "vector_memory",
        "vector_reduction",
    }
)

_GUIDE = "CUDA C++ Programming Guide, technical specifications per compute capability, 10.0"
_TENSOR_MAP = "CUDA Driver API, cuTensorMapEncodeTiled"
_MBARRIER = "PTX ISA, mbarrier, contents of the mbarrier object"
_TENSOR_MEMORY = "PTX ISA, Tensor Memory"

LIMITS = MappingProxyType(
    {
        # shared memory, bytes
        "shared_bytes_per_block": Limit(232_448, f"{_GUIDE} (227 KB)"),
        "shared_bytes_per_sm": Limit(233_472, f"{_GUIDE} (228 KB)"),
        "shared_bytes_reserved": Limit(
            1_024, "CUDA C++ Programming Guide, compute capability 10.0, shared memory: reserved by the system for each block"
        ),
        # tensor memory of a CTA
        "tensor_lanes": Limit(128, f"{_TENSOR_MEMORY}, addressing: rows, one a lane of four warps"),
        "tensor_columns": Limit(512, f"{_TENSOR_MEMORY}, addressing: columns of 32 bits"),
        "tensor_granule": Limit(32, "PTX ISA, tcgen05.alloc: the least number of columns; every number is a power of two"),
        "tensor_alignment": Limit(4, "triton-lang/triton#6205: where a buffer begins, in columns; the PTX ISA says nothing of it"),
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
        "cluster_ctas_nonportable": Limit(
            16, "CUDA Driver API, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED; Blackwell tuning guide"
        ),
        # tensor maps
        "tensor_rank": Limit(5, _TENSOR_MAP),
        "tensor_box_extent": Limit(256, f"{_TENSOR_MAP}: elements of a box along one dimension"),
        "tensor_address_align": Limit(16, f"{_TENSOR_MAP}: bytes, of the global address and of each stride but the innermost"),
        # memory accesses
        "vector_bytes": Limit(16, "PTX ISA, vectors: at most 128 bits; 256 need .version 8.8"),
    }
)

SM100 = Architecture(
    name="sm100",
    # The `a` suffix: tensor memory and its products are architecture-specific features (PTX ISA, tcgen05, target ISA notes).
    target="sm_100a",
    # The first with all kinds of products (mxf4nvf4). The drivers that know these devices take it: both came with CUDA 12.8.
    ptx_version="8.7",
    compute_capability=(10, 0),
    capabilities=CAPABILITIES,
    limits=LIMITS,
    backend=Blackwell,
    summary="NVIDIA Blackwell (B200, GB200); assembled, not executed",
)
