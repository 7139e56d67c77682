"""Where a kernel's registers, parameters and threads' own variables lie."""

from __future__ import annotations

import numpy as np

from cake_core.emulate.outcome import Unsupported
from cake_core.ptx.emulated import TYPES, halves
from cake_core.ptx.reader import Entry

#: Bytes of a register, by PTX's type; predicates are a byte.
WIDTHS = {type: np.dtype(name).itemsize for type, name in TYPES.items()}


#: Calls inside of each other: a thread's stack is this many frames.
DEPTH = 64

#: What a text may declare, by what: more than any device gives, and little enough for a host (PTX ISA, Kernel Function Parameters: 32,764 bytes;
#: CUDA C++ Programming Guide, technical specifications: 512 KiB of local memory a thread, 227 KiB of shared memory a CTA).
MOST = {
    "registers": 1 << 17,
    "bytes of parameters": 1 << 16,
    "bytes of local memory": 1 << 19,
    "bytes of shared memory": 1 << 18,
    "bytes of variables": 1 << 30,
}


def refuse_excess(entry: Entry) -> None:
    """Raises Unsupported for declarations beyond `MOST`, before anything is made of their size."""
    codes = entry, *(f.code for f in entry.functions)
    local = [sum(v.size or 0 for v in c.variables if v.space == "local") for c in codes]
    asked = {
        "registers": sum(1 if count is None else count for c in codes for _, _, count in c.registers),
        "bytes of parameters": sum(size for _, size in entry.sizes.values()),
        "bytes of local memory": local[0] + DEPTH * max(local[1:], default=0),
        "bytes of shared memory": sum(size or 0 for _, _, size in entry.shared),
        "bytes of variables": sum(v.size or 0 for v in entry.variables if v.space != "local"),
    }
    for what, amount in asked.items():
        if amount > MOST[what]:
            raise Unsupported(0, ".entry", f"{amount} {what} are declared; {MOST[what]} is the limit here")


def registers(entry: Entry, rows: dict[int, int]) -> tuple[dict[str, tuple[int, int]], dict[str, str]]:
    """(width, row) of each register, and the types of those that are not covered. `rows`: how many there are of each width, to which these are added.
    Predicates have the width 0; a register of 128 bits is two of 64, its `halves`."""
    places: dict[str, tuple[int, int]] = {}
    refused: dict[str, str] = {}
    for type, name, count in entry.registers:
        width = 0 if type == "pred" else 8 if type == "b128" else WIDTHS.get(type)
        for register in [name] if count is None else [f"{name}{i}" for i in range(count)]:
            if width is None:
                refused[register] = type
                continue
            for one in halves(register) if type == "b128" else (register,):
                places[one] = width, rows.setdefault(width, 0)
                rows[width] += 1
    return places, refused


def params(entry: Entry) -> tuple[dict[str, int], int]:
    """Offset of each parameter, and the bytes of all."""
    places, at = {}, 0
    for name, _ in entry.params:
        align, size = entry.sizes[name]
        at = -(-at // align) * align
        places[name] = at
        at += size
    return places, at


def locals_of(entry: Entry) -> tuple[dict[str, int], int]:
    """Offset of each variable of a thread, and the bytes of all."""
    places, at = {}, 0
    for v in entry.variables:
        if v.space == "local" and v.size:
            at = -(-at // v.align) * v.align
            places[v.name] = at
            at += v.size
    return places, -(-at // 16) * 16
