"""CUDA C++ compiled by NVRTC with NVIDIA's own headers: the toolkit's, CCCL's (cuda::ptx, cuda::barrier, CUB) and cooperative groups."""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
from cuda.bindings import nvrtc

from cake_core.emulate.arrays import OnArrays, on_arrays
from cake_core.ptx.reader import read

INCLUDE = Path(str(distribution("nvidia-cuda-cccl").locate_file("nvidia/cu13/include")))


def ptx(source: str, arch: str) -> str:
    """PTX for `arch` (`sm_90a`). Fails with the compiler's log."""
    status, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    assert not status
    options = [f"-arch={arch}", "-std=c++17", f"-I{INCLUDE}", f"-I{INCLUDE / 'cccl'}", "-default-device"]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
    log = bytearray(nvrtc.nvrtcGetProgramLogSize(program)[1])
    nvrtc.nvrtcGetProgramLog(program, log)
    assert not status, log.decode()
    text = bytearray(nvrtc.nvrtcGetPTXSize(program)[1])
    nvrtc.nvrtcGetPTX(program, text)
    nvrtc.nvrtcDestroyProgram(program)
    return text.rstrip(b"\0").decode()


def launched(text: str, arguments: dict[str, Any], emulates: Any, fresh: tuple[str, ...] = (), **launch: Any) -> OnArrays:
    """Execute the text's kernel; `arguments` in order, arrays looked at by their names."""
    given: dict[str, Any] = {n: v for n, v in arguments.items() if isinstance(v, np.ndarray) and v.ndim}
    entry = read(text)
    assert len(entry.params) == len(arguments)
    for (name, _), (own, value) in zip(entry.params, arguments.items(), strict=True):
        given[name] = (lambda places, own=own: places[own]) if own in given else value
    return on_arrays(text, given, emulates, fresh=fresh, **launch)


__all__ = ["launched", "ptx"]
