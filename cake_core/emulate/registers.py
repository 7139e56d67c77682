"""Instructions on one warp's registers: what tests of single instructions are written with.

    run = on_registers("add.s32 %d, %a, %b;", {"a": a, "b": b}, {"d": "int32"}, emulates)
    run["d"]

Lane i has element i of each array in the register of its name; a bool is a predicate. Every lane starts, and all meet again at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cake_core.emulate.arrays import OnArrays, on_arrays
from cake_core.ptx.emulated import Emulated


def on_registers(
    statements: str, given: Mapping[str, np.ndarray], results: Mapping[str, Any], emulates: Mapping[str, Emulated], declared: str = "", **more: Any
) -> OnArrays:
    """`given`: arrays of 32; `results`: the types of numpy of the registers that are read afterwards; one of `given` may be among them.
    `declared`: other registers. `more`: as of `on_arrays`."""
    arrays = {f"in_{n}": np.ascontiguousarray(v) for n, v in given.items()}
    arrays |= {f"out_{n}": np.zeros(32, t) for n, t in results.items()}
    types = {**{n: np.dtype(v.dtype) for n, v in given.items()}, **{n: np.dtype(t) for n, t in results.items()}}
    body = [".reg .pred %go;", ".reg .b16 %byte;", ".reg .b32 %lane;", ".reg .b64 %at, %by;", "mov.u32 %lane, %laneid;"]
    body += [f".reg .{'pred' if t.kind == 'b' else f'b{8 * t.itemsize}'} %{n};" for n, t in types.items()]
    for name, value in given.items():
        body.append(_place(f"in_{name}", value.dtype.itemsize))
        if value.dtype.kind == "b":
            body += ["ld.global.u8 %byte, [%at];", f"setp.ne.u16 %{name}, %byte, 0;"]
        else:
            body.append(f"ld.global.b{8 * value.dtype.itemsize} %{name}, [%at];")
    body += [declared, *(s.strip() for s in statements.splitlines())]
    for name, type in results.items():
        size = np.dtype(type).itemsize
        body.append(_place(f"out_{name}", size))
        if np.dtype(type).kind == "b":
            body += [f"selp.u16 %byte, 1, 0, %{name};", "st.global.u8 [%at], %byte;"]
        else:
            body.append(f"st.global.b{8 * size} [%at], %{name};")
    head = ",\n".join(f"  .param .b64 {n}" for n in arrays)
    text = ".visible .entry k(\n" + head + "\n)\n{\n" + "\n".join(body) + "\nret;\n}\n"
    run = on_arrays(text, arrays, emulates, **more)
    return OnRegisters(run.device, run.grid, run.places)


class OnRegisters(OnArrays):
    """`run[name]`: the register of each lane."""

    def __getitem__(self, name: str) -> np.ndarray:
        return super().__getitem__(f"out_{name}")


def _place(name: str, size: int) -> str:
    return f"ld.param.b64 %at, [{name}];\nmul.wide.u32 %by, %lane, {size};\nadd.u64 %at, %at, %by;"
