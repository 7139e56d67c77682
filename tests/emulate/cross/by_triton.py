"""Kernels compiled by Triton, and by Gluon in it, and started as its launcher starts them (triton/backends/nvidia/driver.py)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource

from cake_core.emulate.arrays import OnArrays, on_arrays
from cake_core.emulate.device import KINDS
from cake_core.ptx.emulated import TiledMap
from cake_core.ptx.reader import read

#: What Triton calls numpy's types.
NAMES = {
    "float16": "fp16", "float32": "fp32", "float64": "fp64", "bfloat16": "bf16", "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5", "int8": "i8", "uint8": "u8",
    "int16": "i16", "int32": "i32", "uint32": "u32", "int64": "i64",
}  # fmt: skip


@dataclass(frozen=True)
class Described:
    """An argument that is a host's tensor descriptor: of a whole array, box by box. `layout`: Gluon's, of the box in shared memory."""

    array: np.ndarray
    block: tuple[int, ...]
    layout: Any = None

    @property
    def type(self) -> str:
        return (
            f"tensordesc<{NAMES[self.array.dtype.name]}[{', '.join(map(str, self.block))}]{f',{self.layout!r}' if self.layout is not None else ''}>"
        )

    def map(self, address: int, meta: dict) -> TiledMap:
        """As its launcher encodes it: types by the numbers that instructions have for them."""
        padded = meta["fp4_padded"]
        bits = 4 if padded else 8 * self.array.itemsize
        shape = [n * (2 if padded and at == self.array.ndim - 1 else 1) for at, n in enumerate(self.array.shape)]
        box = tuple(meta["block_size"][::-1])
        kind = "16u4_align16b" if padded else list(KINDS)[meta["elem_type"]]
        swizzle = (0, 32, 64, 128)[meta["swizzle"]]
        strides = tuple(self.array.strides[-2::-1])
        return TiledMap(address, bits, kind, tuple(shape[::-1]), strides, box, (1,) * len(box), swizzle)


class Compiled:
    """A kernel for compute capability `arch` (80, 90, 100). `arguments` by name in the kernel's order: an array is a pointer, a scalar of numpy a value, what is
    described a tensor descriptor, all else a constant of the compilation."""

    def __init__(self, fn: Any, arch: int, grid: Any, options: dict[str, Any], **arguments: Any) -> None:
        self.grid, self.arguments = grid, arguments
        signature, constants, attrs = {}, {}, {}
        for n, name in enumerate(fn.arg_names):
            value = arguments[name]
            if isinstance(value, np.ndarray) and value.ndim:
                signature[name], attrs[(n,)] = f"*{NAMES[value.dtype.name]}", [["tt.divisibility", 16]]
            elif isinstance(value, np.generic):
                signature[name] = NAMES[value.dtype.name]
                if value.dtype.kind in "iu" and int(value) % 16 == 0:
                    attrs[(n,)] = [["tt.divisibility", 16]]
            elif isinstance(value, Described):
                signature[name] = value.type
            else:
                signature[name], constants[name] = "constexpr", value
        source = (GluonASTSource if fn.is_gluon() else ASTSource)(fn, signature, constants, attrs)
        made = triton.compile(source, target=GPUTarget("cuda", arch, 32), options={"ptx_version": 88, **options})
        self.text, self.metadata = made.asm["ptx"], made.metadata

    def fenced(self) -> str:
        """Its text with a proxy fence behind each allocation of tensor memory."""
        return re.sub(r"tcgen05\.alloc[^;]*;", r"\g<0> fence.proxy.async.shared::cta;", self.text)

    def run(self, emulates: Any, schedule: str, text: str | None = None) -> OnArrays:
        """Execute it, or another text in its place; arrays are looked at by the names of the kernel's arguments."""
        m = self.metadata
        given, order, metas = {}, [], iter(m.tensordesc_meta or [])
        for name, value in self.arguments.items():
            if isinstance(value, Described):
                given[name] = value.array
                meta = next(metas)
                order.append(lambda places, name=name, value=value, meta=meta: value.map(places[name], meta))
                order += [np.int32(n) for n in value.array.shape]
                order += [np.int64(n // value.array.itemsize) for n in value.array.strides]
            elif isinstance(value, np.ndarray) and value.ndim:
                given[name] = value
                order.append(name)
            elif isinstance(value, np.generic):
                order.append(value)
        grid = self.grid if isinstance(self.grid, tuple) else (self.grid, 1, 1)
        # Memory that the compiler asks for beside the arguments, for each CTA: tensor maps that the kernel makes.
        scratch = m.global_scratch_size * grid[0] * grid[1] * grid[2] * m.num_ctas
        if scratch:
            given["scratch"] = np.zeros(scratch, np.uint8)
        order += ["scratch" if scratch else np.uint64(0), np.uint64(0)]
        entry = read(self.text)
        assert len(entry.params) == len(order), "another launch than this one is wanted"
        for (name, _), value in zip(entry.params, order, strict=True):
            given[name] = (lambda places, value=value: places[value]) if isinstance(value, str) else value
        threads = entry.threads
        return on_arrays(
            text or self.text,
            given,
            emulates,
            block=threads,
            grid=(grid[0] * m.num_ctas, grid[1], grid[2]),
            cluster=m.num_ctas,
            dynamic=m.shared,
            schedule=schedule,
            fresh=("scratch",),
        )


__all__ = ["Compiled", "Described"]
