"""Loads and stores (PTX ISA, Data Movement and Conversion Instructions: ld, ld.global.nc, ldu, st), for all spaces.

Hints to caches change no value and are read over. A strong operation (`.relaxed`, `.acquire`, `.release`, `.volatile`, `.mmio`) has a scope (PTX ISA,
Memory Consistency Model: Morally Strong Operations); `.volatile` is `.relaxed` with the scope of the system.
"""

from __future__ import annotations

import numpy as np

from cake_core.ptx import orders
from cake_core.ptx.emulated import LANES, TYPES, Coder, Lanes, Step, bytes_of, halves
from cake_core.ptx.forms import Words
from cake_core.ptx.reader import Group, Statement

SCOPES = ("cta", "cluster", "gpu", "sys")
SPACES = ("global", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry", "const")


def _form(s: Statement, c: Coder, sems: tuple[str, ...]) -> tuple[str, str, str, int, str]:
    """(space, order, scope, elements, type)."""
    w = Words(s, c)
    sem = w.one("weak", "volatile", "relaxed", "acquire", "release", "mmio")
    if sem == "mmio":
        w.need("relaxed")
    scope = w.one(*SCOPES)
    if sem not in ("", "weak", "volatile", "mmio", *sems) or bool(scope) != (sem in ("relaxed", "acquire", "release", "mmio")):
        raise c.unsupported(f"'{s.opcode}'")
    space = w.one(*SPACES).partition("::")[0] or ("local" if w.one("param::func") else "generic")
    w.flag("nc"), w.one("ca", "cg", "cs", "lu", "cv", "wb", "wt")
    while w.starting("L1::", "L2::"):
        pass
    w.flag("unified")
    count = {"": 1, "v2": 2, "v4": 4, "v8": 8}[w.one("v2", "v4", "v8")]
    kind = w.type()
    w.end()
    if kind == "b128" and count == 1:
        count = 2
    elif kind not in TYPES or kind == "pred":
        raise c.unsupported(f"'{s.opcode}': type .{kind}")
    order = {"": "weak", "volatile": "relaxed", "mmio": "relaxed"}.get(sem, sem)
    return space, order, "sys" if sem in ("volatile", "mmio") else scope, count, kind


def ld(s: Statement, c: Coder) -> Step:
    """PTX ISA, ld: into a wider register extended by sign or zeros; a vector is aligned to its whole size."""
    space, order, scope, count, kind = _form(s, c, ("relaxed", "acquire"))
    d, a, *_ = s.operands  # behind them at most a cache policy
    if space == "param":
        space = c.parameter(a)
    items = d.items if isinstance(d, Group) else (d,)
    if kind == "b128":
        items, kind = halves(str(d)), "b64"
    if len(items) != count:
        raise c.unsupported(f"'{s.opcode}' into {len(items)} registers")
    at, dtype = c.address(a, generic=space == "generic"), np.dtype(TYPES[kind])
    size = count * dtype.itemsize
    if count == 1:
        to = c.result(items[0], kind)

        def give(lanes: Lanes, data: np.ndarray) -> None:
            to(lanes, data.view(dtype).reshape(LANES))

    else:
        all_ = c.results(items, kind)

        def give(lanes: Lanes, data: np.ndarray) -> None:
            all_(lanes, np.ascontiguousarray(data.view(dtype).T))

    if order == "weak":
        return lambda lanes: give(lanes, lanes.load(space, at(lanes), size))

    def strong(lanes: Lanes) -> None:
        addresses = at(lanes)
        data = lanes.load(space, addresses, size, scope)
        orders.read(lanes, space, addresses, order, scope)
        give(lanes, data)

    return strong


def st(s: Statement, c: Coder) -> Step:
    """PTX ISA, st: the low bits of a wider register; a vector is aligned to its whole size."""
    space, order, scope, count, kind = _form(s, c, ("relaxed", "release"))
    a, b, *_ = s.operands
    if space == "const":
        raise c.unsupported(f"stores to .{space}")
    if space == "param" and (space := c.parameter(a)) == "param":
        raise c.unsupported("stores to parameters of the kernel")
    items = b.items if isinstance(b, Group) else (b,)
    if kind == "b128":
        items, kind = halves(str(b)), "b64"
    if len(items) != count:
        raise c.unsupported(f"'{s.opcode}' of {len(items)} registers")
    at = c.address(a, generic=space == "generic")
    if count == 1:
        x = c.source(items[0], kind)
        data = lambda lanes: bytes_of(x(lanes))
    else:
        all_ = c.sources(items, kind)
        data = lambda lanes: np.ascontiguousarray(all_(lanes).T).view(np.uint8)
    if space == "local":
        return lambda lanes: lanes.store(space, at(lanes), data(lanes))

    def step(lanes: Lanes) -> None:
        addresses = at(lanes)
        if order == "release":  # what the stamp holds is what was done before, not the store
            orders.wrote(lanes, space, addresses, order, scope)
            lanes.store(space, addresses, data(lanes), scope)
        else:
            lanes.store(space, addresses, data(lanes), scope)
            orders.wrote(lanes, space, addresses, order, scope)

    return step
