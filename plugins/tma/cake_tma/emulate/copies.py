"""Copies of boxes of tensors (PTX ISA, cp.async.bulk.tensor, cp.reduce.async.bulk.tensor, cp.async.bulk.prefetch.tensor, prefetch.tensormap).

A load is one job, which fills what lies outside and completes the bytes of the whole box on the barrier. A store is two on a queue of their own,
reading and writing; what lies outside is not read and not written. A negative coordinate of a store is taken for a fault, as it is on an H200, where it is
an illegal instruction (`.tile`; the ISA is silent). Of the load modes `.tile` and `.tile::gather4` are covered, and `.tile::scatter4` of the store modes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cake_core.ptx import places
from cake_core.ptx.groups import BULK, UNAWAITED, Groups, Operation, Unawaited
from cake_core.ptx.reader import At
from cake_core.ptx.reductions import reduction
from cake_tma.emulate.boxes import CHUNK, Box
from cake_tma.emulate.made import map_at

if TYPE_CHECKING:
    from cake_core.ptx.emulated import Agent, Coder, Lanes, Step
    from cake_core.ptx.reader import Operand, Statement

_COMPLETES, _GROUP = "mbarrier::complete_tx::bytes", "bulk_group"
_GATHER, _SCATTER = "tile::gather4", "tile::scatter4"
_DIMS = ("1d", "2d", "3d", "4d", "5d")
_MODES = {"tile", _GATHER, _SCATTER}

#: What an address of a box in shared memory, and that of a tensor map, is a multiple of.
ALIGN, MAP_ALIGN = 128, 64

#: PTX's type of an element, by the driver's name.
_TYPES = {"uint8": "u8", "uint16": "u16", "uint32": "u32", "int32": "s32", "uint64": "u64", "int64": "s64", "float16": "f16", "bfloat16": "bf16",
          "float32": "f32", "float32_ftz": "f32", "float64": "f64"}  # fmt: skip

#: Kinds whose elements have padding in shared memory.
_PADDED = ("16u4_align16b", "16u6_align16b")

Change = Callable[[np.ndarray, np.ndarray], np.ndarray]


class _Form:
    """The words and operands of a copy, made once: `boxes(lanes)` gives (lane, address of the map's box in words of the ISA) for each active lane."""

    def __init__(self, s: Statement, c: Coder, words: tuple[str, ...], allowed: set[str], map: Operand) -> None:
        if not words or words[0] not in _DIMS:
            raise c.unsupported("a tensor of no dimension from .1d to .5d")
        self.words = frozenset(words[1:])
        for word in words[1:]:
            if word.startswith("im2col"):
                raise c.unsupported(f"the mode '.{word}'")
            if word not in allowed and word not in _MODES:
                raise c.unsupported(f"'.{word}' of {'.'.join(s.words[:4])}")
        if not isinstance(map, At):
            raise c.unsupported("a tensor map that is no address")
        self.dims = _DIMS.index(words[0]) + 1
        self.four = bool(self.words & {_GATHER, _SCATTER})
        if self.four and self.dims != 2 or len(map.coordinates) != (5 if self.four else self.dims):
            raise c.unsupported(f"{len(map.coordinates)} coordinates of a tensor of {self.dims} dimensions")
        self.map, self.coordinates = c.address(map), [c.source(x, "s32") for x in map.coordinates]

    def each(self, lanes: Lanes) -> list[tuple[int, Box, tuple[int, ...], np.ndarray | None]]:
        """(lane, box, coordinates, those of gathered rows) of each active lane."""
        maps, values = self.map(lanes), [get(lanes) for get in self.coordinates]
        out = []
        for lane in [lanes.first] if not lanes.full and int(lanes.active.sum()) == 1 else np.flatnonzero(lanes.active).tolist():
            box = _box(lanes, int(maps[lane]), self.four)
            if box.rank != self.dims:
                raise lanes.fault("emulate/operand", f"a tensor map of {box.rank} dimensions in an instruction for {self.dims}")
            at = tuple(int(v[lane]) for v in values)
            if at[0] * box.bits % 8:
                raise lanes.fault("emulate/operand", f"element {at[0]} of {box.bits} bits starts at no byte")
            if box.rank > 1 and at[0] * box.bits % 128:
                raise lanes.fault(
                    "emulate/misaligned",
                    f"a box at element {at[0]} of the innermost dimension, {at[0] * box.bits // 8} bytes from its start",
                    why="of two dimensions and more an H200 takes multiples of 16 bytes, and any other is an illegal instruction (driver 580.159.04, 2026-12-01)",
                )
            if self.four and box.map.box[1] != 1:
                raise lanes.fault("emulate/operand", f"a tensor map with the box {box.map.box} for four rows: its second extent is 1")
            out.append((lane, box, at[:2] if self.four else at, np.array(at[1:], np.int64) if self.four else None))
        return out


def _box(lanes: Lanes, address: int, four: bool) -> Box:
    """The box of the map at an address, checked when it is first met."""
    if address % MAP_ALIGN:
        raise lanes.fault("emulate/misaligned", f"a tensor map at {hex(address)}, which is no multiple of {MAP_ALIGN}")
    launch = lanes.cta.launch
    map = launch.map(address) or map_at(launch, address)
    if map is None:
        raise lanes.fault("emulate/operand", f"there is no tensor map at {hex(address)}")
    kept = lanes.cta.launch.state(("tensor maps", four), dict)
    found = kept.get(id(map))
    if found is None or found[0] is not map:
        box = Box(map)
        if map.kind in _PADDED:
            raise lanes.fault("emulate/unsupported", f"elements of the type '{map.kind}', which are padded in shared memory")
        if (wrong := box.wrong(lanes)) is not None:
            raise wrong
        kept[id(map)] = found = map, box.gathered() if four else box
    return found[1]


def copy(s: Statement, c: Coder) -> Step:
    """`cp.async.bulk.tensor.dim.dst.src{.mode}.completion..`: a load where it completes on an mbarrier object, else a store."""
    words = s.words[4:]
    if _GROUP in words:
        return _store(s, c, words, None)
    return _load(s, c, words)


def reduce(s: Statement, c: Coder) -> Step:
    """`cp.reduce.async.bulk.tensor.dim.global.shared::cta.op{.tile}.bulk_group{.L2::cache_hint} [tensorMap, coords], [src] {, cache-policy}`. The elements'
    type is that of the map."""
    words = s.words[5:]
    operation = words[3] if len(words) > 3 else ""
    if operation not in ("add", "min", "max", "inc", "dec", "and", "or", "xor") or _GROUP not in words:
        raise c.unsupported(f"'.{'.'.join(words)}'")
    return _store(s, c, (*words[:3], *words[4:]), operation)


# --- loads ----------------------------------------------------------------------------------------------------------


def _load(s: Statement, c: Coder, words: tuple[str, ...]) -> Step:
    """`.dst.global{.mode}.mbarrier::complete_tx::bytes{.multicast::cluster}{.cta_group}{.L2::cache_hint} [dst], [tensorMap, coords], [mbar] {, ctaMask}
    {, cache-policy}`. With a mask the box goes to the same place of each CTA in it, and so does the signal; with `.cta_group::2` the barrier may be in
    the peer of the destination, and a signal of a mask goes to that CTA of each pair that has the barrier's parity."""
    to, spaces = ("shared::cta" if "shared::cta" in words else "shared::cluster"), {"shared::cta", "shared::cluster", "global"}
    groups = {"cta_group::1", "cta_group::2"}
    form = _Form(s, c, words, {*spaces, *groups, _COMPLETES, "multicast::cluster", "L2::cache_hint"}, s.operands[1])
    if _COMPLETES not in form.words or words[1:3] not in ((to, "global"),) and not {to, "global"} <= form.words or _SCATTER in form.words:
        raise c.unsupported(f"'.{'.'.join(words)}'")
    multicast, pair = "multicast::cluster" in form.words, "cta_group::2" in form.words
    if multicast and to == "shared::cta" or len(s.operands) != 3 + multicast + ("L2::cache_hint" in form.words):
        raise c.unsupported(f"{len(s.operands)} operands of '.{'.'.join(words)}'")
    into = places.shared(c, s.operands[0], to, align=ALIGN)
    tells = places.shared(c, s.operands[2], "shared::cluster" if pair else to, align=8)
    masks = c.source(s.operands[3], "b16") if multicast else None

    def step(lanes: Lanes) -> None:
        targets, told = into(lanes), tells(lanes)
        mask = None if masks is None else masks(lanes)
        for lane, box, at, each in form.each(lanes):
            address, barrier = int(targets[lane]), int(told[lane])
            rank, offset = places.split(address)
            parity = barrier >> places.RANK_AT
            if parity != rank and not (pair and parity >> 1 == rank >> 1):
                raise lanes.fault(
                    "emulate/operand",
                    f"the barrier is in CTA {parity} of the cluster and the destination in CTA {rank}",
                    why="PTX ISA, cp.async.bulk.tensor: both are in one CTA, or with .cta_group::2 in one pair",
                )
            ranks = [rank] if mask is None else _members(lanes, int(mask[lane]))
            signals = [(r & ~1 | parity & 1) if pair and mask is not None else parity if mask is None else r for r in ranks]
            ends = [(r, lanes.barrier(places.in_rank(barrier, _there(lanes, q)))) for r, q in zip(ranks, signals, strict=True)]
            lanes.start(None, _loading(box, at, each, offset, ends), "a copy by a tensor map")

    return step


def _there(lanes: Lanes, rank: int) -> int:
    if rank >= len(lanes.cta.cluster):
        raise lanes.fault("emulate/operand", f"CTA {rank} of a cluster of {len(lanes.cta.cluster)} is signalled")
    return rank


def _members(lanes: Lanes, mask: int) -> list[int]:
    ranks = [r for r in range(16) if mask >> r & 1]
    if not ranks or ranks[-1] >= len(lanes.cta.cluster):
        raise lanes.fault("emulate/operand", f"the mask {hex(mask)} of CTAs in a cluster of {len(lanes.cta.cluster)}")
    return ranks


def _loading(box: Box, at: tuple[int, ...], each: np.ndarray | None, offset: int, ends: list) -> Callable[[Agent], None]:
    def work(agent: Agent) -> None:
        data = taken(agent, box, at, each)
        order = box.order(offset)
        for rank, barrier in ends:
            memory = agent.cta.shared_of(agent, rank)
            if order is None:
                memory.write(agent, np.array([offset]), data.reshape(1, -1))
            elif _whole(order):
                memory.write(agent, np.array([offset]), _ordered(data, order))
            else:
                memory.write(agent, order * CHUNK + offset, data.reshape(-1, CHUNK))
            barrier.complete(agent, box.bytes)

    return work


def _whole(order: np.ndarray) -> bool:
    """Whether the chunks of the box fill one stretch of shared memory: else it begins inside of a pattern."""
    return int(order.min()) == 0 and int(order.max()) == len(order) - 1


def _ordered(data: np.ndarray, order: np.ndarray) -> np.ndarray:
    out = np.empty((len(order), 2), np.uint64)
    out[order] = data.reshape(-1, CHUNK).view(np.uint64)
    return out.view(np.uint8).reshape(1, -1)


def taken(agent: Agent, box: Box, at: tuple[int, ...], each: np.ndarray | None) -> np.ndarray:
    """The elements of a box as a load gives them, filled outside: uint8 (rows, pitch)."""
    rows, low, high = box.inside(at, each)
    whole = rows is None and high - low == box.counts[0]
    if rows is not None and not len(rows):
        return box.filled()
    first, end = low * box.bits // 8, -(-high * box.bits // 8)
    sources = box.sources(at, rows, low, each)
    start = int(sources.min())
    found = agent.cta.launch.locate(start, 1)
    if found is None:
        raise agent.fault("emulate/out-of-bounds", f"a tensor map names {hex(start)} of global memory, where nothing is allocated")
    read = found[0].read(agent, sources - start + found[1], end - first)
    if box.map.kind.startswith("tfloat32"):
        read = nearest_tf32(read)
    if whole:
        return np.ascontiguousarray(read)
    data = box.filled()
    data[slice(None) if rows is None else rows, first:end] = read
    return data


def nearest_tf32(data: np.ndarray) -> np.ndarray:
    """The words of elements of the types tfloat32, which a load rounds, a NaN to the canonical one (H200, driver 580.159.04, 2026-12-01); ties, which
    were not seen, to even."""
    bits = np.ascontiguousarray(data).view(np.uint32)
    near = bits + (np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1))) & np.uint32(0xFFFFE000)
    size = bits & np.uint32(0x7FFFFFFF)
    return np.where(size < 0x7F800000, near, np.where(size == 0x7F800000, bits, np.uint32(0x7FFFE000))).view(np.uint8)


# --- stores ---------------------------------------------------------------------------------------------------------


def _store(s: Statement, c: Coder, words: tuple[str, ...], operation: str | None) -> Step:
    """`.global.shared::cta{.mode}.bulk_group{.L2::cache_hint} [tensorMap, coords], [src] {, cache-policy}`."""
    form = _Form(s, c, words, {"global", "shared::cta", _GROUP, "L2::cache_hint"}, s.operands[0])
    if words[1:3] != ("global", "shared::cta") or _GATHER in form.words or len(s.operands) != 2 + ("L2::cache_hint" in form.words):
        raise c.unsupported(f"'.{'.'.join(words)}'")
    source = places.shared(c, s.operands[1], "shared::cta", align=ALIGN)

    def step(lanes: Lanes) -> None:
        sources = source(lanes)
        for lane, box, at, each in form.each(lanes):
            if min(at) < 0 or each is not None and int(each.min()) < 0:
                raise lanes.fault(
                    "emulate/operand",
                    f"a store to the coordinates {at if each is None else (at[0], *each.tolist())}",
                    why="a negative one is an illegal instruction",
                )
            change = None
            if operation is not None and (
                (operation, box.map.kind) == ("add", "int64")  # an illegal instruction (H200)
                or (change := reduction(operation, _TYPES.get(box.map.kind, ""))) is None
            ):
                raise lanes.fault("emulate/operand", f"'.{operation}' of elements of the type '{box.map.kind}'")
            _storing(lanes, lane, box, at, each, places.split(int(sources[lane]))[1], change)

    return step


def _storing(lanes: Lanes, lane: int, box: Box, at: tuple[int, ...], each: np.ndarray | None, offset: int, change: Change | None) -> None:
    operation = Operation(1 << lane, "a store by a tensor map")
    lanes.state(BULK, Groups).add(operation)
    lanes.cta.state(UNAWAITED, Unawaited).add(operation)
    rows, low, high = box.inside(at, each)
    empty = rows is not None and not len(rows)
    first, end = low * box.bits // 8, -(-high * box.bits // 8)
    data: list[np.ndarray] = []

    def reads(agent: Agent) -> None:
        if not empty:
            data.append(given(agent, box, offset, rows, first, end))
        operation.has_read(agent)

    def writes(agent: Agent) -> None:
        if not empty:
            sources = box.sources(at, rows, low, each)
            start = int(sources.min())
            found = agent.cta.launch.locate(start, 1)
            if found is None:
                raise agent.fault("emulate/out-of-bounds", f"a tensor map names {hex(start)} of global memory, where nothing is allocated")
            memory, offsets = found[0], sources - start + found[1]
            if change is None:
                memory.write(agent, offsets, data[0])
            else:
                memory.write(agent, offsets, change(memory.read(agent, offsets, end - first, scope="gpu"), data[0]), scope="gpu")
        operation.completed(agent)

    lanes.start(operation, reads, operation.what)
    lanes.start(operation, writes, operation.what, outlives=True)


def given(agent: Agent, box: Box, offset: int, rows: np.ndarray | None, first: int, end: int) -> np.ndarray:
    """The bytes `first` to `end` of these rows of a box in shared memory: uint8 (rows, bytes)."""
    if rows is None and end - first == box.pitch:
        order = box.order(offset)
        if order is None:
            return agent.cta.shared.read(agent, np.array([offset]), box.bytes).reshape(box.rows, box.pitch)
        if _whole(order):
            found = np.ascontiguousarray(agent.cta.shared.read(agent, np.array([offset]), box.bytes)).view(np.uint64).reshape(-1, 2)
            return found[order].view(np.uint8).reshape(box.rows, box.pitch)
    at, unit = box.places(offset, rows, first, end)
    return np.ascontiguousarray(agent.cta.shared.read(agent, at.reshape(-1), unit)).reshape(len(at), end - first)


# --- prefetches -----------------------------------------------------------------------------------------------------


def prefetch(s: Statement, c: Coder) -> Step:
    """`cp.async.bulk.prefetch.tensor.dim.L2.global{.mode}{.L2::cache_hint} [tensorMap, coords] {, cache-policy}`: a hint; its operands are checked."""
    form = _Form(s, c, s.words[5:], {"L2", "global", "L2::cache_hint"}, s.operands[0])

    def step(lanes: Lanes) -> None:
        form.each(lanes)

    return step


def prefetch_map(s: Statement, c: Coder) -> Step:
    """`prefetch{.param|.const}.tensormap [a]`: a hint."""
    at, spaced = c.address(s.operands[0]), len(s.words) == 3

    def step(lanes: Lanes) -> None:
        for address in dict.fromkeys(at(lanes)[lanes.active].tolist()):
            if not spaced:
                _box(lanes, address, False)

    return step
