"""Copies by tensor maps (PTX ISA, cp.async.bulk.tensor, cp.reduce.async.bulk.tensor; CUDA driver API, cuTensorMapEncodeTiled): one to five
dimensions, every swizzle, element types, edges on all sides with both fills, steps, multicast, reductions.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import ml_dtypes
import numpy as np

from .case import Case, Exact, Map, entry, rounded
from .copies import BAR, HEAD, MEET, THREADS, begin, drain, expect, fill, registers, wait

KINDS = {
    "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "INT32": np.int32, "UINT64": np.uint64, "INT64": np.int64, "FLOAT16": np.float16,
    "BFLOAT16": ml_dtypes.bfloat16, "FLOAT32": np.float32, "FLOAT64": np.float64, "TFLOAT32": np.float32, "FLOAT32_FTZ": np.float32, "TFLOAT32_FTZ": np.float32,
}  # fmt: skip
#: By rank: extents and box of elements of 2 bytes, innermost first, and places of boxes, some of them over an edge.
PLACES = {
    1: ((200,), (64,), ((0,), (64,), (136,), (184,), (-8,), (200,), (-64,))),
    2: ((72, 20), (16, 8), ((0, 0), (16, 8), (64, 16), (-8, -3), (64, 19), (80, 4), (8, 13))),
    3: ((40, 6, 5), (16, 3, 2), ((0, 0, 0), (24, 3, 3), (32, 5, 4), (-8, -1, -1), (8, 2, 1))),
    4: ((24, 4, 3, 3), (8, 2, 2, 2), ((0, 0, 0, 0), (16, 2, 1, 1), (16, 3, 2, 2), (-8, -1, -1, -1))),
    5: ((16, 3, 3, 2, 2), (8, 2, 2, 2, 1), ((0, 0, 0, 0, 0), (8, 1, 1, 0, 1), (8, 2, 2, 1, 1), (-8, -1, -1, -1, -1))),
}


def cases() -> Iterator[Case]:
    for rank in PLACES:
        yield load(f"{rank}d", "UINT16", *PLACES[rank])
        yield store(f"{rank}d", "UINT16", *PLACES[rank])
        yield load(f"{rank}d with a hint", "UINT16", *PLACES[rank], hint=True)
    for kind in KINDS:
        size = np.dtype(KINDS[kind]).itemsize
        inner = 64 // size
        yield load(f"2d {kind}", kind, (3 * inner - 16 // size, 10), (inner, 8), ((0, 0), (inner, 4), (2 * inner, 5), (-16 // size, -2)))
        if "FLOAT" in kind:
            yield load(
                f"2d {kind} NaN",
                kind,
                (3 * inner - 16 // size, 10),
                (inner, 8),
                ((0, 0), (2 * inner, 5), (-16 // size, -2)),
                fill_="NAN_REQUEST_ZERO_FMA",
            )
    for span in (32, 64, 128):
        for size, kind in ((1, "UINT8"), (2, "BFLOAT16"), (4, "FLOAT32")):
            for rows in (1, 8, 20):
                box = (span // size, rows)
                extents = (4 * span // size, 40)
                at = ((0, 0), (span // size, 3), (4 * span // size - 16 // size, 30), (-16 // size, -2))
                yield load(f"swizzle {span} {kind} {rows} rows", kind, extents, box, at, swizzle=f"{span}B")
                if rows == 20:
                    yield store(f"swizzle {span} {kind}", kind, extents, box, at, swizzle=f"{span}B")
        yield load(f"swizzle {span} 3d", "UINT16", (128, 6, 5), (span // 2, 4, 3), ((0, 0, 0), (16, 3, 3), (-8, -1, -1)), swizzle=f"{span}B")
        yield store(f"swizzle {span} 3d", "UINT16", (128, 6, 5), (span // 2, 4, 3), ((0, 0, 0), (16, 3, 3)), swizzle=f"{span}B")
    yield load("2d, every second row", "UINT16", (64, 30), (16, 8), ((0, 0), (16, 7), (48, 24)), steps=(1, 2))
    yield load("3d, steps of 3 and 2", "UINT16", (32, 12, 9), (16, 6, 4), ((0, 0, 0), (16, 5, 6)), steps=(1, 3, 2))
    for count in (2, 4):
        yield multicast(count)
    for kind, word in (("UINT32", "u32"), ("INT32", "s32"), ("UINT64", "u64"), ("INT64", "s64")):
        for op in ("add", "min", "max") if kind != "INT64" else ("min", "max"):
            yield store(f"{op} {kind}", kind, *sizes(kind), reduction=op)
        if kind == "UINT32":
            for op in ("inc", "dec"):
                yield store(f"{op} {kind}", kind, *sizes(kind), reduction=op)
        if kind.startswith("U"):
            for op in ("and", "or", "xor"):
                yield store(f"{op} {kind}", kind, *sizes(kind), reduction=op)
    for kind in ("FLOAT16", "BFLOAT16", "FLOAT32"):
        for op in ("add", "min", "max") if kind != "FLOAT32" else ("add",):
            yield store(f"{op} {kind}", kind, *sizes(kind), reduction=op)


def sizes(kind: str) -> tuple:
    inner = 64 // np.dtype(KINDS[kind]).itemsize
    return (3 * inner - inner // 2, 20), (inner, 8), ((0, 0), (inner, 9), (2 * inner, 15))


def array(kind: str, count: int, seed: int) -> np.ndarray:
    of = np.dtype(KINDS[kind])
    rng = np.random.default_rng(seed)
    if of.kind in "iu":
        return rng.integers(0, 256, count * of.itemsize, np.uint8).view(of)
    return rounded(rng.standard_normal(count) * 4, of)


def mapped(name: str, kind: str, extents: tuple, box: tuple, swizzle: str = "NONE", steps: tuple = (), fill_: str = "NONE") -> tuple[Map, int]:
    """A map on packed rows, and the elements of the array."""
    size = np.dtype(KINDS[kind]).itemsize
    pitch = [-(-extents[0] * size // 16) * 16]
    for n in extents[1:-1]:
        pitch.append(pitch[-1] * n)
    strides = tuple(pitch[: len(extents) - 1])
    elements = pitch[-1] * extents[-1] // size if len(extents) > 1 else extents[0]
    return Map(name, kind, extents, strides, box, steps, swizzle, "NONE", fill_), elements


def _slot(kind: str, box: tuple, steps: tuple = ()) -> tuple[int, int]:
    """Bytes of a box, and from one box in the buffer to the next."""
    size = prod(-(-b // s) for b, s in zip(box, steps or (1,) * len(box), strict=True)) * np.dtype(KINDS[kind]).itemsize
    return size, -(-size // 1024) * 1024


def _at(place: tuple[int, ...]) -> str:
    return "{" + ", ".join(map(str, place)) + "}"


def load(
    form: str, kind: str, extents: tuple, box: tuple, places: tuple, swizzle: str = "NONE", steps: tuple = (), fill_: str = "NONE", hint: bool = False
) -> Case:
    m, count = mapped("A", kind, extents, box, swizzle, steps, fill_)
    size, slot = _slot(kind, box, steps)
    total = slot * len(places)
    lines = [registers(total), fill(total), begin(), "mov.u64 %m, M; cvta.param.u64 %m, %m;", expect(size * len(places))]
    if hint:
        lines.append(f"@%first prefetch.tensormap [%m]; @%first cp.async.bulk.prefetch.tensor.{len(box)}d.L2.global [%m, {_at(places[0])}];")
        lines.append(".reg .b64 %hint; createpolicy.fractional.L2::evict_first.b64 %hint, 1.0;")
    mode, word, operand = (".tile", ".L2::cache_hint", ", %hint") if hint else ("", "", "")
    for n, place in enumerate(places):
        copy = f"cp.async.bulk.tensor.{len(box)}d.shared::cluster.global{mode}.mbarrier::complete_tx::bytes{word}"
        lines.append(f"add.u32 %at, %s, {n * slot}; @%first {copy} [%at], [%m, {_at(place)}], [%b]{operand};")
    lines += [wait(), drain(total)]
    params = {"S": np.full(total, 0xCD, np.uint8), "D": np.zeros(total, np.uint8), "M": m}
    text = entry("S D M:map", "\n".join(lines), HEAD)
    return Case("tensor map", f"load {form}", text, params, {"D": Exact()}, THREADS, dynamic=total + BAR, more={"A": array(kind, count, len(form))})


def store(form: str, kind: str, extents: tuple, box: tuple, places: tuple, swizzle: str = "NONE", reduction: str | None = None) -> Case:
    places = tuple(
        p for p in places if min(p) >= 0
    )  # of a store a negative one is an illegal instruction, of all one that is no multiple of 16 bytes (H200)
    m, count = mapped("A", kind, extents, box, swizzle)
    _, slot = _slot(kind, box)
    total = slot * len(places)
    lines = [registers(total), fill(total), begin(), "mov.u64 %m, M; cvta.param.u64 %m, %m;"]
    for n, place in enumerate(places):
        op = (
            f"cp.reduce.async.bulk.tensor.{len(box)}d.global.shared::cta.{reduction}.tile"
            if reduction
            else f"cp.async.bulk.tensor.{len(box)}d.global.shared::cta"
        )
        lines.append(f"add.u32 %at, %s, {n * slot}; @%first {op}.bulk_group [%m, {_at(place)}], [%at];")
        # one behind the other: boxes of two places may overlap
        lines.append("@%first cp.async.bulk.commit_group; @%first cp.async.bulk.wait_group.read 0; @%first cp.async.bulk.wait_group 0;")
    source = np.random.default_rng(len(form)).integers(0, 256, total, np.uint8)
    if np.dtype(KINDS[kind]).kind not in "iu":
        source = array(kind, total // np.dtype(KINDS[kind]).itemsize, 3).view(np.uint8)
    a = array(kind, count, len(form))
    how = Exact(nan=reduction is not None)
    return Case(
        "tensor map",
        f"store {form}",
        entry("S M:map", "\n".join(lines), HEAD),
        {"S": source, "M": m},
        {"A": how},
        THREADS,
        dynamic=total + BAR,
        more={"A": a},
    )


def multicast(count: int) -> Case:
    """Each CTA of the cluster loads a box for all; every CTA waits for all boxes."""
    m, elements = mapped("A", "UINT16", (64, 16), (64, 4), "128B")
    size, slot = _slot("UINT16", (64, 4))
    total = slot * count
    lines = [registers(total), fill(total), begin(), "mov.u64 %m, M; cvta.param.u64 %m, %m;", expect(size * count), MEET]
    copy = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
    lines += [f".reg .b16 %mask; mov.b16 %mask, {(1 << count) - 1}; .reg .u32 %row; mul.lo.u32 %row, %rank, 4; mad.lo.u32 %at, %rank, {slot}, %s;"]
    lines += [f"@%first {copy} [%at], [%m, {{0, %row}}], [%b], %mask;", wait(), drain(total), MEET]
    params = {"S": np.full(total * count, 0xCD, np.uint8), "D": np.zeros(total * count, np.uint8), "M": m}
    more = {"A": array("UINT16", elements, count)}
    return Case(
        "tensor map",
        f"load multicast to {count}",
        entry("S D M:map", "\n".join(lines), HEAD),
        params,
        {"D": Exact()},
        THREADS,
        count,
        count,
        total + BAR,
        more,
    )
