"""NVIDIA Ada (compute capability 8.9): capabilities by name, limits with their sources, a backend of two methods."""

from __future__ import annotations

from types import MappingProxyType

from cake_core import types
from cake_core.ptx.builder import Builder, Sym

_GUIDE = "CUDA C++ Programming Guide, technical specifications per compute capability, 8.9"

LIMITS = {
    "shared_bytes_per_block": 101_376,
    "registers_per_sm": 65_536,
    "registers_per_thread": 255,
    "register_granule": 8,
    "threads_per_block": 1_024,
    "named_barriers": 16,
    "cluster_ctas": 1,
    "vector_bytes": 16,
}


class Backend:
    def entry_directives(self, launch: types.Launch) -> tuple[str, ...]:
        block = f".reqntid {launch.threads}, 1, 1"
        return (block, f".minnctapersm {launch.min_ctas}") if launch.min_ctas else (block,)

    def cluster_identity(self, builder: Builder, cluster: int) -> types.ClusterIdentity:
        index, count = (builder.op("mov.u32", Sym(name)) for name in ("%ctaid.x", "%nctaid.x"))
        return types.ClusterIdentity(0, index, count)


ADA = types.Architecture(
    name="acme_sm89",
    target="sm_89",
    ptx_version="8.6",
    compute_capability=(8, 9),
    portable=True,
    capabilities=frozenset({"cp_async", "ldmatrix", "mma_sync", "named_barrier", "shuffle", "vector_memory", "acme_fast_math"}),
    limits=MappingProxyType({name: types.Limit(value, _GUIDE) for name, value in LIMITS.items()}),
    backend=Backend,
    summary="NVIDIA Ada (RTX 4090, L40S)",
)
