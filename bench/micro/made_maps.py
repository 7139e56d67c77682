"""Tensor maps that the kernel makes or changes (PTX ISA, tensormap.replace, tensormap.cp_fenceproxy, fence.proxy.tensormap): each field by itself, and a
map of zeros all of whose fields are set. What shows is what a copy by the map then loads.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Case, Exact, entry
from .copies import HEAD, THREADS, begin, drain, expect, fill, registers, wait
from .tensor_maps import array, mapped

PLACES = ((0, 0), (16, 8), (64, 16), (-16, -3), (64, 19), (32, 13))  # at multiples of 16 bytes, of elements of every size
#: Elements' numbers (PTX ISA, Tensormap new_val validity), and how many bytes each has.
ELEMENTS = {
    "u8": (0, 1),
    "u16": (1, 2),
    "u32": (2, 4),
    "s32": (3, 4),
    "u64": (4, 8),
    "s64": (5, 8),
    "f16": (6, 2),
    "f32": (7, 4),
    "f32.ftz": (8, 4),
    "f64": (9, 8),
}
ELEMENTS |= {"bf16": (10, 2), "tf32": (11, 4), "tf32.ftz": (12, 4)}


def cases() -> Iterator[Case]:
    for space in ("shared", "global"):
        yield changed("nothing", [], space=space)
        yield changed("global_address", [("global_address", None, "%B")], space=space)
        yield changed("global_dim", [("global_dim", 0, 40), ("global_dim", 1, 11)], space=space)
        yield changed("global_stride", [("global_stride", 0, 160)], space=space)
    yield changed("box_dim", [("box_dim", 0, 8), ("box_dim", 1, 4)], size=8 * 4 * 2)
    yield changed("element_stride", [("element_stride", 1, 2)], size=16 * 4 * 2)
    for mode, word in ((1, "32"),):
        yield changed(f"swizzle_mode {word}", [("swizzle_mode", None, mode)])
    for mode, word in ((2, "64"), (3, "128")):
        box = [("box_dim", 0, int(word) // 2), ("swizzle_mode", None, mode)]
        yield changed(f"swizzle_mode {word}", box, size=int(word) * 8)
    for name, (number, size) in ELEMENTS.items():
        fields = [("elemtype", None, number), ("global_dim", 0, 128 // size), ("box_dim", 0, 32 // size)]
        yield changed(f"elemtype {name}", fields)
        if "f" in name:
            yield changed(f"elemtype {name}, NaN", [*fields, ("fill_mode", None, 1)])
    for rank in (1, 2, 3):
        yield made(rank)


def changed(form: str, fields: list[tuple], size: int = 16 * 8 * 2, space: str = "shared") -> Case:
    """A map that the host has encoded, of which some fields are replaced."""
    m, count = mapped("A", "UINT16", (72, 20), (16, 8))
    return _case(f"replace {form}, {space}", fields, PLACES, size, space, {"M": m}, count)


def made(rank: int) -> Case:
    """From 128 zeros."""
    extents, box, pitch = (72, 10, 2), (16, 4, 2), (144, 1440)
    fields: list[tuple] = [("global_address", None, "%A"), ("rank", None, rank - 1), ("elemtype", None, 1), ("interleave_layout", None, 0)]
    fields += [("swizzle_mode", None, 0), ("fill_mode", None, 0)]
    for n in range(rank):
        fields += [("box_dim", n, box[n]), ("global_dim", n, extents[n]), ("element_stride", n, 1)]
    fields += [("global_stride", n, pitch[n]) for n in range(rank - 1)]
    places = tuple(p[:rank] for p in ((0, 0, 0), (64, 4, 1), (-8, 8, -1)))
    size = 2 * int(np.prod(box[:rank]))
    return _case(f"made of zeros {rank}d", fields, places, size, "shared", {}, 72 * 20)


def _case(form: str, fields: list[tuple], places: tuple, size: int, space: str, maps: dict, count: int) -> Case:
    slot = 1024
    total = slot * len(places)
    where = "shared::cta" if space == "shared" else "global"
    at = "%desc" if space == "shared" else "%W"
    lines = [
        registers(total),
        fill(total),
        begin(),
        f".reg .u32 %desc, %lane4; .reg .b32 %x; .reg .u64 %mine; .reg .pred %warp; add.u32 %desc, %s, {total + 128};",
    ]
    lines += ["setp.lt.u32 %warp, %t, 32; mul.lo.u32 %lane4, %t, 4; cvt.u64.u32 %o, %lane4; add.u32 %at, %desc, %lane4; mov.b32 %x, 0;"]
    if maps:
        lines.append("mov.u64 %m, M; cvta.param.u64 %m, %m; add.u64 %m, %m, %o; @%warp ld.b32 %x, [%m];")
    lines += [f"add.u64 %mine, %W, %o; @%warp {'st.shared.b32 [%at]' if space == 'shared' else 'st.global.b32 [%mine]'}, %x; bar.sync 0;"]
    for name, order, value in fields:
        bits = "b64" if name in ("global_address", "global_stride") else "b32"
        ordered = "" if order is None else f"{order}, "
        lines.append(f"@%first tensormap.replace.tile.{name}.{where}.b1024.{bits} [{at}], {ordered}{value};")
    lines.append("bar.sync 0; @!%warp bra AFTER;")
    if space == "shared":
        lines.append("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%W], [%desc], 128;")
    else:
        lines.append("@%first fence.proxy.tensormap::generic.release.gpu;")
    lines += ["@%first fence.proxy.tensormap::generic.acquire.gpu [%W], 128; bar.warp.sync 0xffffffff; AFTER:", expect(size * len(places))]
    for n, place in enumerate(places):
        copy = f"cp.async.bulk.tensor.{len(place)}d.shared::cluster.global.mbarrier::complete_tx::bytes"
        lines.append(f"add.u32 %at, %s, {n * slot}; @%first {copy} [%at], [%W, {{{', '.join(map(str, place))}}}], [%b];")
    lines += [wait(), drain(total)]
    params = {"S": np.full(total, 0xCD, np.uint8), "D": np.zeros(total, np.uint8), "A": array("UINT16", max(count, 2048), 5)}
    params |= {"B": array("UINT16", 2048, 6), "W": np.zeros(128, np.uint8)}
    names = " ".join([*params, *(f"{n}:map" for n in maps)])
    return Case("tensor map", form, entry(names, "\n".join(lines), HEAD), params | maps, {"D": Exact()}, THREADS, dynamic=total + 256)
