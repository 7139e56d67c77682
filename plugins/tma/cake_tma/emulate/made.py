"""Tensor maps that a kernel makes or changes (PTX ISA, tensormap.replace, tensormap.cp_fenceproxy).

The 128 bytes of a map are opaque; a map whose fields a kernel has set is kept as a record of them here. 128 zeros are a map of which nothing is set yet, as
compilers begin with. `.global_stride` is taken in bytes, which is what toolkits from 12.5 on pass. What reads a map is not held against who writes it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from cake_core.ptx.emulated import LANES, TiledMap
from cake_core.ptx.forms import Words

if TYPE_CHECKING:
    from cake_core.ptx.emulated import Coder, Lanes, Launch, Step
    from cake_core.ptx.reader import Statement

BYTES = 128
_MAGIC = b"tensors\0"
_RECORD = struct.Struct("<8sQ4B4x5I5H5H4Q")

#: The driver's name of each element type and its bits (PTX ISA, Tensormap new_val validity), by `.elemtype`.
ELEMENTS = (
    ("uint8", 8), ("uint16", 16), ("uint32", 32), ("int32", 32), ("uint64", 64), ("int64", 64), ("float16", 16), ("float32", 32),
    ("float32_ftz", 32), ("float64", 64), ("bfloat16", 16), ("tfloat32", 32), ("tfloat32_ftz", 32), ("16u4_align8b", 4),
    ("16u4_align16b", 4), ("16u6_align16b", 6),
)  # fmt: skip
_SWIZZLES = (0, 32, 64, 128)
_FILLS = ("zero", "nan")
_ORDERED = {"global_dim": 5, "box_dim": 5, "element_stride": 5, "global_stride": 4}
_CHOSEN = {"elemtype": len(ELEMENTS), "swizzle_mode": len(_SWIZZLES), "fill_mode": len(_FILLS), "interleave_layout": 1, "swizzle_atomicity": 1}


def map_at(launch: Launch, address: int) -> TiledMap | None:
    """The map that a kernel has put at an address of global memory; None: none."""
    data = launch.peek(address, BYTES)
    if data[:8] != _MAGIC:
        return None
    kept = launch.state(("tensor maps", "made"), dict)
    if data not in kept:
        kept[data] = _tiled(_fields(data))
    return kept[data]


def _fields(data: bytes) -> dict:
    """A record's fields by their names in `tensormap.replace`; `rank` is the rank less one, as there."""
    _, address, rank, element, swizzle, fill, *rest = _RECORD.unpack_from(data)
    return {
        "global_address": address,
        "rank": rank,
        "elemtype": element,
        "swizzle_mode": swizzle,
        "fill_mode": fill,
        "global_dim": rest[:5],
        "box_dim": rest[5:10],
        "element_stride": rest[10:15],
        "global_stride": rest[15:],
    }


def _packed(f: dict) -> bytes:
    head = (f["global_address"], f["rank"], f["elemtype"], f["swizzle_mode"], f["fill_mode"])
    lists = (*f["global_dim"], *f["box_dim"], *f["element_stride"], *f["global_stride"])
    return _RECORD.pack(_MAGIC, *head, *lists).ljust(BYTES, b"\0")


def _tiled(f: dict) -> TiledMap:
    n = f["rank"] + 1
    kind, bits = ELEMENTS[f["elemtype"]]
    return TiledMap(
        f["global_address"], bits, kind, tuple(f["global_dim"][:n]), tuple(f["global_stride"][: n - 1]), tuple(f["box_dim"][:n]),
        tuple(f["element_stride"][:n]), _SWIZZLES[f["swizzle_mode"]], _FILLS[f["fill_mode"]],
    )  # fmt: skip


def _of(m: TiledMap) -> dict:
    """The fields of a map that the host has encoded."""
    fill = lambda values, n: [*values, *[0] * (n - len(values))]
    return {
        "global_address": m.address,
        "rank": len(m.shape) - 1,
        "elemtype": [k for k, _ in ELEMENTS].index(m.kind),
        "swizzle_mode": _SWIZZLES.index(m.swizzle),
        "fill_mode": _FILLS.index(m.fill),
        "global_dim": fill(m.shape, 5),
        "box_dim": fill(m.box, 5),
        "element_stride": fill(m.steps, 5),
        "global_stride": fill(m.strides, 4),
    }


def replace(s: Statement, c: Coder) -> Step:
    """`tensormap.replace.tile.field{.ss}.b1024.type [addr], {ord,} new_val`: a weak operation on the whole object."""
    w = Words(s, c, skip=2)
    w.need("tile")
    field = w.need("global_address", "rank", *_ORDERED, *_CHOSEN)
    space = w.one("global", "shared::cta").partition("::")[0] or "generic"
    w.need("b1024")
    kind = w.type("b64" if field in ("global_address", "global_stride") else "b32")
    w.end()
    a, *rest = s.operands
    order = c.constant(rest[0]) if field in _ORDERED else None
    if len(rest) != (2 if field in _ORDERED else 1) or (field in _ORDERED and order is None):
        raise c.unsupported(f"operands of '{s.opcode}'")
    if field in _ORDERED and not 0 <= order < _ORDERED[field]:
        raise c.unsupported(f"dimension {order} of '.{field}'")
    if field in _CHOSEN and not 0 <= (c.constant(rest[-1]) if c.constant(rest[-1]) is not None else -1) < _CHOSEN[field]:
        raise c.unsupported(f"'.{field}' of {rest[-1]}")
    at, value = c.address(a, generic=space == "generic"), c.source(rest[-1], kind)

    def step(lanes: Lanes) -> None:
        addresses, values = at(lanes), value(lanes)
        half = np.uint64(BYTES // 2)
        data = np.concatenate([lanes.load(space, addresses, BYTES // 2), lanes.load(space, addresses + half, BYTES // 2)], axis=1)
        out = np.zeros((LANES, BYTES), np.uint8)
        for lane in np.flatnonzero(lanes.active).tolist():
            fields = _found(lanes, data[lane].tobytes())
            new = int(values[lane])
            if field == "rank" and new > 4:
                raise lanes.fault("emulate/operand", f"a tensor map of {new + 1} dimensions; the operand is the rank less one")
            if order is None:
                fields[field] = new
            else:
                if field in ("box_dim", "element_stride") and new > 256:
                    raise lanes.fault("emulate/operand", f".{field} {new} of a tensor map; it is 256 at most")
                fields[field] = [new if n == order else old for n, old in enumerate(fields[field])]
            if field not in ("interleave_layout", "swizzle_atomicity"):
                out[lane] = np.frombuffer(_packed(fields), np.uint8)
            else:  # 0, the one that is covered
                out[lane] = np.frombuffer(_packed({k: v for k, v in fields.items() if k != field}), np.uint8)
        lanes.store(space, addresses, out[:, : BYTES // 2])
        lanes.store(space, addresses + half, out[:, BYTES // 2 :])

    return step


def _found(lanes: Lanes, data: bytes) -> dict:
    """The fields of 128 bytes: set by the kernel, encoded by the host, or none yet."""
    if data[:8] == _MAGIC:
        return _fields(data)
    if (host := lanes.cta.launch.map_in(data)) is not None:
        return _of(host)
    if any(data):
        raise lanes.fault("emulate/operand", "tensormap.replace of bytes that are no tensor map")
    return _fields(bytes(BYTES))


def publish(s: Statement, c: Coder) -> Step:
    """`tensormap.cp_fenceproxy`: the warp copies a map from shared to global memory, and releases it to the proxy of tensor maps."""
    w = Words(s, c, skip=2)
    for word in ("global", "shared::cta", "tensormap::generic", "release", "sync", "aligned"):
        w.need(word)
    w.need("cta", "cluster", "gpu", "sys")
    w.end()
    to, come, size = s.operands
    if c.constant(size) != BYTES:
        raise c.unsupported(f"tensormap.cp_fenceproxy of other than {BYTES} bytes")
    c.meets()
    target, source = c.address(to), c.address(come)

    def step(lanes: Lanes) -> None:
        into, of = target(lanes), source(lanes)
        lanes.uniform(into), lanes.uniform(of)
        for part in (0, BYTES // 2):
            lanes.store("global", into + np.uint64(part), lanes.load("shared", of + np.uint64(part), BYTES // 2))
        lanes.fence("tensormap")

    return step
