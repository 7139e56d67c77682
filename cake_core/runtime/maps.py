"""Tensor maps: descriptors of a tensor and a box that the copy engine reads, encoded on the host and passed by value."""

from __future__ import annotations

from typing import Any

from cake_core.artifact import TensorMapInfo
from cake_core.runtime.driver import Driver
from cake_core.runtime.elements import ELEMENTS
from cake_core.runtime.lru import Lru

MAPS = 1024  # encoded maps kept a kernel; one takes 128 bytes and 4 us to encode
SWIZZLES = {0: "NONE", 32: "32B", 64: "64B", 128: "128B"}


class TensorMaps:
    """Encodes the maps of a kernel, each once for an address, shape and strides."""

    def __init__(self, infos: tuple[TensorMapInfo, ...]):
        self.infos = infos
        self.cache: Lru[Any] = Lru(MAPS)

    def get(self, driver: Driver, index: int, pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], spare: int) -> Any:
        """The driver's map object for map `index`. `shape` and `strides` (elements) outermost first.

        An extent of 0 can't be encoded (cuTensorMapEncodeTiled refuses it, hardware reading). Such a tensor gets a dummy:
        a legal map of one element at `spare`, the address of another argument's memory, so that even a prefetch of the
        descriptor is sound. The kernel must not use it; its loops over an empty extent run zero times.
        """
        if 0 in shape:
            pointer, shape, strides = spare, (1,) * len(shape), _dummy_strides(self.infos[index], len(shape))
        return self.cache.get((index, pointer, shape, strides), lambda: encode(driver, self.infos[index], pointer, shape, strides))


def _dummy_strides(info: TensorMapInfo, rank: int) -> tuple[int, ...]:
    return (16 // ELEMENTS[info.elem].bytes,) * (rank - 1) + (1,)


def encode(driver: Driver, info: TensorMapInfo, pointer: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """One map: L2 promotion 256 bytes, no interleave, zero fill. The driver counts dimensions innermost first and takes
    no stride for the innermost (CUDA driver API, tensor map object management). A tensor of one dimension has none, and the
    driver still refuses an empty list (H200, driver 580.159.04, 2026-11-29): it gets one that is not read."""
    api = driver.api
    size = ELEMENTS[info.elem].bytes
    return driver.call(
        "cuTensorMapEncodeTiled",
        getattr(api.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{ELEMENTS[info.elem].map_type}"),
        len(shape),
        pointer,
        [api.cuuint64_t(n) for n in reversed(shape)],
        [api.cuuint64_t(n * size) for n in reversed(strides[:-1])] or [api.cuuint64_t(16)],
        [api.cuuint32_t(n) for n in reversed(info.box)],
        [api.cuuint32_t(1)] * len(shape),
        api.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(api.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{SWIZZLES[info.swizzle]}"),
        api.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        api.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
