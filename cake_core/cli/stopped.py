"""`cake run --on cpu --break LABEL`: what the emulator holds in front of a labelled statement, read by the artifact's source map and manifest.

The warps of an instance come to a label one after another; what they hold is put together, each as it was when that warp was there. Memory and barriers
are those of the first one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from cake_core.frozen import frozen
from cake_core.ir import swizzle
from cake_core.ir.types import ELEMENTS, Elem
from cake_core.machine import Site
from cake_core.primitive.simulated import dtypes
from cake_core.ptx.emulated import LANES, RANK_AT
from cake_core.simulate.memory import POISON
from cake_core.simulate.stops import Held, Standing, Stop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cake_core.artifact import Manifest
    from cake_core.cli.stops import Printer
    from cake_core.emulate.warps import Lanes

_OFFSET = (1 << RANK_AT) - 1
#: Rows (lanes) of tensor memory, and bytes of a cell.
ROWS, CELL = 128, 4
#: How lanes' parts of an element become the element, by the word of the declaration.
COMBINES = {"sum": np.add, "max": np.maximum, "min": np.minimum}
#: A register is seen as numbers of this type, by its kind.
KINDS = {"f32": np.float32, "b16": np.int16, "b32": np.int32, "b64": np.int64, "pred": np.bool_}


@frozen
class _Slot:
    """What `ir.swizzle.offset` asks of a buffer's plan."""

    shape: tuple[int, ...]
    elem: Elem
    swizzle: int

    @property
    def row_bytes(self) -> int:
        return self.shape[-1] * self.elem.bytes


@dataclass(slots=True)
class _Coming:
    """One stop of an instance, while its warps come. `tiles`: values by the number of their element, and which have come."""

    row: dict
    where: Site
    names: list[tuple[str, Any]]
    buffers: tuple[Held, ...]
    barriers: tuple[Standing, ...]
    tiles: list[tuple[np.ndarray, np.ndarray] | None]
    come: np.ndarray  # which lanes of the instance have
    engines: dict[str, str] = field(default_factory=dict)  # by a tile's name, who still has its registers

    def stop(self) -> Stop:
        held = []
        for row, tile in zip(self.row["tiles"], self.tiles, strict=True):
            if tile is None:
                held.append(Held(row["name"], f"{row['type']}, not shown: {row['why']}", {}))
                continue
            values, there = tile
            share = float(there.mean()) if there.size else 1.0
            type = row["type"] + (f", which {self.engines[row['name']]} still has" if row["name"] in self.engines else "")
            held.append(Held(row["name"], type, values if share == 1 else values[there], share, "of it here"))
        return Stop(self.row["label"], self.where, tuple(self.names), tuple(held), self.buffers, self.barriers)


class Stopped:
    """Gathers stops of a launch at the labels `breaks`; `rows`: the source map's."""

    def __init__(self, rows: list[dict], breaks: tuple[str, ...], manifest: Manifest, printer: Printer) -> None:
        self.manifest, self.printer = manifest, printer
        self.stops = [(row["line"], partial(self._at, row)) for row in rows if row["label"] in breaks]
        self.coming: dict[tuple, list[_Coming]] = {}
        self.all: list[_Coming] = []
        self.more = 0

    def flush(self) -> None:
        """Print what has come, in the order in which the first warps came."""
        for coming in self.all:
            self.printer.show(coming.stop())
        self.printer.left_out(self.more)
        self.coming, self.all, self.more = {}, [], 0

    def _at(self, row: dict, lanes: Lanes) -> None:
        role = next((r for r in self.manifest.roles if 0 <= lanes.warp - r["first_warp"] < r["instances"] * r["warps"]), None)
        instance, warp = divmod(lanes.warp - role["first_warp"], role["warps"]) if role is not None else (0, lanes.warp)
        name = role["name"] if role is not None else "idle"
        if row["role"] is None:  # outside of roles a tile lies over all warps of the CTA
            warp = lanes.warp
        mine = np.zeros((row["warps"], LANES), bool)
        mine[warp] = lanes.active
        mine = mine.ravel()
        known = self.coming.setdefault((row["line"], lanes.cta.number, name, instance), [])
        coming = next((c for c in known if not (c.come & mine).any()), None)
        if coming is None:
            if not self.printer.room(len(self.all)):
                self.more += warp == 0
                return
            coming = self._begun(row, lanes, Site(name, instance, 0, row["warps"], lanes.cta.number))
            known.append(coming)
            self.all.append(coming)
        coming.come = coming.come | mine
        for tile, place in zip(row["tiles"], coming.tiles, strict=True):
            if place is not None:
                _read(tile, lanes, warp, *place)
                if who := _engine(tile, lanes):
                    coming.engines.setdefault(tile["name"], who)

    def _begun(self, row: dict, lanes: Lanes, where: Site) -> _Coming:
        names = [(n, _scalar(lanes, x)) for n, x in row["names"]]
        loops = tuple((n, _scalar(lanes, dict(row["names"])[n])) for n in row["loops"])
        where = Site(where.role, where.instance, where.warp, where.warps, where.cta, iteration=loops)
        base = None if row["base"] is None else int(_register(lanes, row["base"])[lanes.first]) & _OFFSET
        buffers = (*(self._buffers(lanes, base) if base is not None else ()), *_columns(row, lanes, dict(names)))
        barriers = tuple(self._barriers(lanes, base)) if base is not None else ()
        tiles = []
        for t in row["tiles"]:
            size = math.prod(t["shape"]) if "shape" in t else 0
            tiles.append((np.zeros(size, dtypes()[t["elem"]]), np.zeros(size, bool)) if "shape" in t else None)
        return _Coming(row, where, names, buffers, barriers, tiles, np.zeros(row["warps"] * LANES, bool))

    def _buffers(self, lanes: Lanes, base: int) -> Iterator[Held]:
        memory = lanes.cta.shared
        for row in (r for r in self.manifest.shared_map if r["kind"] == "buffer"):
            elem, shape, slots = ELEMENTS[row["elem"]], tuple(row["shape"]), tuple(row["slots"])
            at = swizzle.offset(_Slot(shape, elem, row["swizzle"]), tuple(np.indices(shape)))
            size = row["bytes"] // math.prod(slots)
            for n, slot in enumerate(product(*map(range, slots))):
                first = base + row["offset"] + n * size - memory.base
                index = first + np.asarray(at)[..., None] + np.arange(elem.bytes)
                name = row["name"] + "".join(f"[{i}]" for i in slot)
                yield _memory(name, f"{elem}[{', '.join(map(str, shape))}]", memory.data[index], memory.written[index], dtypes()[row["elem"]])

    def _barriers(self, lanes: Lanes, base: int) -> Iterator[Standing]:
        """Objects that are initialised, each 8 bytes."""
        rows = sorted((r for r in self.manifest.shared_map if r["kind"] != "buffer"), key=lambda r: r["name"])
        for row in rows:
            for n in range(row["slots"][0]):
                found = lanes.cta.barriers.get(base + row["offset"] + 8 * n)
                if found is not None and found.alive:
                    yield Standing(f"{row['name']}[{n}]", found.phase, found.pending, found.bytes)


def _register(lanes: Lanes, name: str) -> np.ndarray:
    width, at = lanes.grid.code.places[name]
    return lanes.own.store[width][at]


def _scalar(lanes: Lanes, x: Any) -> Any:
    """What a name stands for: one number, or those that lanes have."""
    if not isinstance(x, list):
        return x
    found = _register(lanes, x[0]).view(KINDS[x[1]])[lanes.active].tolist()
    return found[0] if len(set(map(str, found))) == 1 else found


def _memory(name: str, type: str, data: np.ndarray, written: np.ndarray, dtype: np.dtype) -> Held:
    """Bytes as elements; what nobody has written is poison, as the simulator has it."""
    share = float((written != 0).mean())
    bytes = np.where(written != 0, data, np.uint8(POISON))
    return Held(name, type, np.ascontiguousarray(bytes).view(dtype) if share else None, share)


def _columns(row: dict, lanes: Lanes, names: dict[str, Any]) -> Iterator[Held]:
    """Buffers in tensor memory whose elements take a cell each: row r of one is lane r. An address has its lane above 16 bits of column."""
    memory = lanes.cta.kept.get(("memory", "tensor"))
    for t in row["tensors"]:
        elem, shape, slots = ELEMENTS[t["elem"]], t["shape"], t["slots"]
        type = f"{elem}[{', '.join(map(str, shape))}]"
        start = names.get(t["base"])
        whole = elem.bytes == CELL and len(shape) == 2 and shape[0] == ROWS and t["slot_columns"] == shape[1]
        for n, slot in enumerate(product(*map(range, slots))):
            name = t["name"] + "".join(f"[{i}]" for i in slot)
            if memory is None or not isinstance(start, int):
                yield Held(name, type, None, 0.0)
                continue
            if not whole:
                yield Held(name, f"{type}, not shown: only tiles of {ROWS} rows of {8 * CELL}-bit elements are", {})
                continue
            width = memory.size // (ROWS * CELL)
            column = (start & 0xFFFF) + t["column"] + n * t["slot_columns"]
            cells = slice(CELL * column, CELL * (column + shape[1]))
            data, written = (x.reshape(ROWS, width * CELL)[:, cells] for x in (memory.data, memory.written))
            yield _memory(name, type, data, written, dtypes()[t["elem"]])


def _engine(tile: dict, lanes: Lanes) -> str | None:
    """Who has registers of a tile and has not been waited for."""
    held, places = lanes.own.held, lanes.grid.code.places
    return next((held[places[x[0]]] for x in tile["registers"] if isinstance(x, list) and places[x[0]] in held), None) if held else None


def _read(tile: dict, lanes: Lanes, warp: int, values: np.ndarray, there: np.ndarray) -> None:
    """Put the elements that these lanes hold into a tile."""
    packed, shape = tile["packed"], tile["shape"]
    origins = np.array(tile["origins"][warp * LANES : (warp + 1) * LANES]).reshape(LANES, len(shape))[lanes.active]
    combine = COMBINES.get(tile["part"])
    for e, offset in enumerate(tile["offsets"]):
        x = tile["registers"][e // packed]
        if isinstance(x, list):
            held = _register(lanes, x[0]).view(values.dtype).reshape(LANES, packed)[lanes.active, e % packed]
        else:
            held = x
        at = np.zeros(len(origins), np.int64)
        for size, column, step in zip(shape, origins.T, offset, strict=True):
            at = at * size + column + step
        if combine is None:
            values[at], there[at] = held, True
            continue
        new = ~there[at]
        values[at[new]], there[at] = combine.identity if combine.identity is not None else held[new], True
        combine.at(values, at, held)
