"""The body of a kernel on arrays: what tests of instructions that reach memory are written with.

    run = on_body("ld.global.b32 %r0, [%A];", {"A": a}, emulates)
    run.codes, run["A"]

A register has the name of each parameter: of an array its address, of a tensor map its generic address, of a scalar its value. `%t` is the thread's
number, `%rank` that of the CTA in its cluster, and `%s` the address of `smem`, an array of shared memory. Further registers: %p0.., %h0.., %r0.., %d0..
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cake_core.emulate.arrays import OnArrays, on_arrays
from cake_core.ptx.emulated import Emulated

_REGISTERS = (".reg .pred %p<32>;", ".reg .b16 %h<32>;", ".reg .b32 %r<128>;", ".reg .b64 %d<64>;", ".reg .b32 %t, %s, %rank;")


def on_body(body: str, given: Mapping[str, Any], emulates: Mapping[str, Emulated], shared: int = 0, **more: Any) -> OnArrays:
    """`given` and `more`: as of `on_arrays`. `shared`: bytes of `smem`, which is aligned to 1024 bytes."""
    params, lines = [], [*_REGISTERS, "mov.u32 %t, %tid.x;", "mov.u32 %rank, %cluster_ctarank;"]
    for name, value in given.items():
        if callable(value):
            params.append(f".param .align 64 .b8 {name}[128]")
            lines += [f".reg .b64 %{name};", f"mov.b64 %{name}, {name};", f"cvta.param.u64 %{name}, %{name};"]
        else:
            size = 64 if isinstance(value, np.ndarray) and value.ndim else 8 * np.asarray(value).dtype.itemsize
            params.append(f".param .b{size} {name}")
            lines += [f".reg .b{size} %{name};", f"ld.param.b{size} %{name}, [{name}];"]
    if shared:
        lines = [f".shared .align 1024 .b8 smem[{shared}];", *lines, "mov.u32 %s, smem;"]
    text = ".visible .entry k(\n" + ",\n".join(params) + "\n)\n{\n" + "\n".join([*lines, *(s.strip() for s in body.splitlines())]) + "\nret;\n}\n"
    return on_arrays(text, given, emulates, **more)
