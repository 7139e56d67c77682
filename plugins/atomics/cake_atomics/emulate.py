"""Atomic operations as they are executed without a GPU, apart from lowering (PTX ISA, Parallel Synchronization and Communication Instructions: atom,
red).

The lanes of a warp come one after another, the lowest first; the ISA leaves their order open. A sum of floats is rounded to nearest at each. f32
`add` flushes subnormal numbers in global memory, unless `.noftz` says no, and keeps them in shared memory (PTX ISA, atom: Floating-point operations).
`.v2` to `.v8` are atomic by elements.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cake_core.ptx import orders
from cake_core.ptx.emulated import TYPES, WINDOWS, Coder, Lanes, Step, bytes_of, halves
from cake_core.ptx.forms import Words
from cake_core.ptx.reader import Group, Operand, Statement
from cake_core.ptx.reductions import reduction

_OPERATIONS = ("and", "or", "xor", "exch", "cas", "add", "inc", "dec", "min", "max")
_SCOPES = ("cta", "cluster", "gpu", "sys")
_ELEMENT = {"f16x2": "f16", "bf16x2": "bf16"}
#: Types that each operation takes (PTX ISA, atom, Atom Scalar Type Operations), vectors apart.
_TAKES = {
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
    "exch": ("b32", "b64", "b128"),
    "cas": ("b16", "b32", "b64", "b128"),
    "add": ("u32", "s32", "u64", "s64", "f32", "f64", "f16", "bf16", "f16x2", "bf16x2"),
    "inc": ("u32",),
    "dec": ("u32",),
    "min": ("u32", "s32", "u64", "s64"),
    "max": ("u32", "s32", "u64", "s64"),
}
_VECTORS = {"f32": (2, 4), "f16": (2, 4, 8), "bf16": (2, 4, 8), "f16x2": (2, 4), "bf16x2": (2, 4)}


def flushed(data: np.ndarray) -> np.ndarray:
    """Bytes of f32 whose subnormal numbers are zeros of their sign."""
    bits = np.ascontiguousarray(data).view(np.uint32)
    return np.where(bits & np.uint32(0x7F800000) == 0, bits & np.uint32(0x80000000), bits).view(np.uint8).reshape(data.shape)


def atom(s: Statement, c: Coder) -> Step:
    """atom: `d, [a], b` and for cas `d, [a], b, c`: d is what was there."""
    d, *rest = s.operands
    return _made(s, c, d, rest)


def red(s: Statement, c: Coder) -> Step:
    """red: atom without a result."""
    return _made(s, c, None, list(s.operands))


def _made(s: Statement, c: Coder, d: Operand | None, rest: list[Operand]) -> Step:
    w = Words(s, c)
    order = w.one("relaxed", "acquire", "release", "acq_rel") or "relaxed"
    scope = w.one(*_SCOPES) or "gpu"
    space = w.one("global", "shared", "shared::cta", "shared::cluster").partition("::")[0] or "generic"
    op = w.need(*_OPERATIONS)
    noftz, hint = w.flag("noftz"), w.starting("L2::")
    vector = w.one("v2", "v4", "v8")
    kind = w.type()
    w.end()
    count = int(vector[1]) if vector else 1
    if (
        (kind not in _TAKES[op])
        if not vector
        else (op not in ("add", "min", "max") or count not in _VECTORS.get(kind, ()) or (kind == "f32" and op != "add"))
    ):
        raise c.unsupported(f"'{s.opcode}': .{op} of .{kind}{' by ' + vector if vector else ''}")
    if vector and space == "shared":
        raise c.unsupported(f"'{s.opcode}': vectors in shared memory")
    if (kind in ("f16", "bf16", "f16x2", "bf16x2") and op != "cas" and not noftz) or (d is None and op in ("exch", "cas")):
        raise c.unsupported(f"'{s.opcode}'")
    if d is None and order in ("acquire", "acq_rel"):
        raise c.unsupported(f"'{s.opcode}': a reduction reads nothing that it could acquire")
    a, *values = rest
    if len(values) != (2 if op == "cas" else 1) + bool(hint):
        raise c.unsupported(f"operands of '{s.opcode}'")
    if kind == "b128":  # two registers of 64 bits each, changed at once
        kind, count = "b64", 2
        values = [Group(halves(str(v))) for v in values[: 2 if op == "cas" else 1]]
        d = None if d is None else Group(halves(str(d)))
    at, datas = c.address(a, generic=space == "generic"), [_data(c, v, kind, count) for v in values[: 2 if op == "cas" else 1]]
    size = count * np.dtype(TYPES[kind]).itemsize
    flushes = (op, kind) == ("add", "f32") and not noftz
    change = _change(c, op, kind)
    give = None if d is None else _result(c, d, kind, count)

    def step(lanes: Lanes) -> None:
        addresses, given = at(lanes), [read(lanes) for read in datas]
        flush = flushes and space != "shared"
        low, high = WINDOWS["shared"], WINDOWS["shared"] << 1

        def one(lane: int, old: np.ndarray) -> np.ndarray:
            new = [g[lane] for g in given]
            if not flush or (space == "generic" and low <= int(addresses[lane]) < high):
                return change(old, *new)
            return flushed(change(flushed(old), *(flushed(n) for n in new)))

        if order in ("release", "acq_rel"):  # what the stamp holds is what was done before, not the access
            orders.updated(lanes, space, addresses, order, scope)
            old = lanes.update(space, addresses, size, one, scope)
        else:
            old = lanes.update(space, addresses, size, one, scope)
            orders.updated(lanes, space, addresses, order, scope)
        if give is not None:
            give(lanes, old)

    return step


def _change(c: Coder, op: str, kind: str) -> Callable[..., np.ndarray]:
    """Bytes of one lane: those that were there and the operands' to those that are written."""
    if op == "exch":
        return lambda old, new: new
    if op == "cas":
        return lambda old, compare, new: new if (old == compare).all() else old
    combine = reduction(op, _ELEMENT.get(kind, kind))
    if combine is None:
        raise c.unsupported(f".{op} of .{kind}")
    return combine


def _data(c: Coder, operand: Operand, kind: str, count: int) -> Callable[[Lanes], np.ndarray]:
    """uint8 (32, bytes)."""
    if count == 1:
        if isinstance(operand, Group):
            raise c.unsupported("a vector without .v2, .v4 or .v8")
        read = c.source(operand, kind)
        return lambda lanes: bytes_of(read(lanes))
    if not isinstance(operand, Group) or len(operand.items) != count:
        raise c.unsupported(f"a vector of other than {count} registers")
    all_ = c.sources(operand.items, kind)
    return lambda lanes: np.ascontiguousarray(all_(lanes).T).view(np.uint8)


def _result(c: Coder, operand: Operand, kind: str, count: int) -> Callable[[Lanes, np.ndarray], None]:
    dtype = np.dtype(TYPES[kind])
    if count == 1:
        to = c.result(operand, kind)
        return lambda lanes, data: to(lanes, np.ascontiguousarray(data).view(dtype).reshape(-1))
    if not isinstance(operand, Group) or len(operand.items) != count:
        raise c.unsupported(f"a vector of other than {count} registers")
    all_ = c.results(operand.items, kind)
    return lambda lanes, data: all_(lanes, np.ascontiguousarray(np.ascontiguousarray(data).view(dtype).T))
