"""Special registers (PTX ISA, Special Registers), for each what a warp's lanes read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cake_core.ptx.emulated import LANES

if TYPE_CHECKING:
    from cake_core.emulate.warps import Lanes

_LANE = np.arange(LANES, dtype=np.uint64)


def _all(value: int) -> np.ndarray:
    return np.full(LANES, value, np.uint64)


def _axis(which: int, get: Callable[[Lanes], tuple[int, int, int]]) -> Callable[[Lanes], np.ndarray]:
    return lambda lanes: _all(get(lanes)[which])


def _thread(which: int) -> Callable[[Lanes], np.ndarray]:
    def get(lanes: Lanes) -> np.ndarray:
        x, y, _ = lanes.cta.shape
        number = _LANE + np.uint64(LANES * lanes.warp)
        return (number % x, number // x % y, number // (x * y))[which]

    return get


def _per_axis(name: str, get: Callable[[Lanes], tuple[int, int, int]]) -> dict[str, Callable[[Lanes], np.ndarray]]:
    return {f"%{name}.{axis}": _axis(n, get) for n, axis in enumerate("xyz")}


def _cluster_index(lanes: Lanes) -> tuple[int, int, int]:
    return tuple(i // n for i, n in zip(lanes.cta.index, lanes.cta.launch.cluster, strict=True))


def _clusters(lanes: Lanes) -> tuple[int, int, int]:
    return tuple(-(-i // n) for i, n in zip(lanes.cta.launch.grid, lanes.cta.launch.cluster, strict=True))


def _in_cluster(lanes: Lanes) -> tuple[int, int, int]:
    return tuple(i % n for i, n in zip(lanes.cta.index, lanes.cta.launch.cluster, strict=True))


def _explicit(lanes: Lanes) -> bool:
    """A cluster that the launch or the entry asked for. A launch without is one of clusters of one CTA that are not explicit (H200, driver
    580.159.04, 2026-12-01)."""
    words = " ".join(lanes.cta.launch.directives)
    return len(lanes.cta.cluster) > 1 or ".reqnctapercluster" in words or ".explicitcluster" in words


#: Warps that a multiprocessor of compute capability 8.0, 9.0 and 10.0 has room for (CUDA Programming Guide, Compute Capabilities), which is what an
#: H200 has in %nwarpid (driver 580.159.04, 2026-12-01).
WARPS = 64
_ONE = np.uint64(1)
SPECIAL: dict[str, Callable[[Lanes], np.ndarray]] = {
    **{f"%tid.{axis}": _thread(n) for n, axis in enumerate("xyz")},
    **_per_axis("ntid", lambda lanes: lanes.cta.shape),
    **_per_axis("ctaid", lambda lanes: lanes.cta.index),
    **_per_axis("nctaid", lambda lanes: lanes.cta.launch.grid),
    **_per_axis("clusterid", _cluster_index),
    **_per_axis("nclusterid", _clusters),
    **_per_axis("cluster_ctaid", _in_cluster),
    **_per_axis("cluster_nctaid", lambda lanes: lanes.cta.launch.cluster),
    "%cluster_ctarank": lambda lanes: _all(lanes.cta.rank),
    "%cluster_nctarank": lambda lanes: _all(len(lanes.cta.cluster)),
    "%is_explicit_cluster": lambda lanes: _all(_explicit(lanes)),
    "%laneid": lambda lanes: _LANE,
    "%warpid": lambda lanes: _all(lanes.warp),
    "%nwarpid": lambda lanes: _all(WARPS),
    "%smid": lambda lanes: _all(lanes.cta.number),
    "%nsmid": lambda lanes: _all(lanes.cta.launch.multiprocessors),
    "%gridid": lambda lanes: _all(1),
    "%lanemask_eq": lambda lanes: _ONE << _LANE,
    "%lanemask_lt": lambda lanes: (_ONE << _LANE) - _ONE,
    "%lanemask_le": lambda lanes: (_ONE << (_LANE + _ONE)) - _ONE,
    "%lanemask_gt": lambda lanes: ~((_ONE << (_LANE + _ONE)) - _ONE) & np.uint64(0xFFFFFFFF),
    "%lanemask_ge": lambda lanes: ~((_ONE << _LANE) - _ONE) & np.uint64(0xFFFFFFFF),
    "%clock": lambda lanes: _all(lanes.cta.launch.executed & 0xFFFFFFFF),
    "%clock64": lambda lanes: _all(lanes.cta.launch.executed),
    "%clock_hi": lambda lanes: _all(lanes.cta.launch.executed >> 32),
    "%globaltimer": lambda lanes: _all(lanes.cta.launch.executed),
    "%globaltimer_lo": lambda lanes: _all(lanes.cta.launch.executed & 0xFFFFFFFF),
    "%dynamic_smem_size": lambda lanes: _all(lanes.cta.launch.dynamic_bytes),
    "%total_smem_size": lambda lanes: _all(lanes.cta.shared.size),
    "WARP_SZ": lambda lanes: _all(LANES),
}  # fmt: skip
