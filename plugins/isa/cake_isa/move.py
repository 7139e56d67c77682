"""Moves and addresses (PTX ISA, Data Movement and Conversion Instructions: mov, cvta, isspacep, getctarank, createpolicy; Miscellaneous)."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from cake_core.ptx.emulated import LANES, RANK_AT, TYPES, WINDOWS, Coder, Lanes, Step, halves
from cake_core.ptx.forms import Words
from cake_core.ptx.reader import Group, Operand, Statement

_MOVED = ("pred", "b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f16", "bf16", "f32", "f64", "f16x2", "bf16x2", "b128")


def mov(s: Statement, c: Coder) -> Step:
    """PTX ISA, mov: a value, an address, or the parts of a vector put together or taken apart, the first part lowest."""
    w = Words(s, c)
    vector = w.one("v2", "v4")
    kind = w.type(*_MOVED)
    w.end()
    d, a = s.operands
    if vector:
        return _elements(c, int(vector[1]), kind, d, a)
    if isinstance(d, Group) or isinstance(a, Group):
        return _vector(c, kind, d, a)
    if kind == "b128":
        return _halves(c, halves(str(d)), halves(str(a)))
    bits = "pred" if kind == "pred" else f"u{''.join(x for x in kind.partition('x')[0] if x.isdigit())}"
    if kind.endswith("x2"):
        bits = "u32"
    if isinstance(a, float):
        bits = kind
    to, x = c.result(d, bits), c.source(a, bits)
    return lambda lanes: to(lanes, x(lanes))


def _elements(c: Coder, count: int, kind: str, d: Operand, a: Operand) -> Step:
    """PTX ISA, Vectors as Operands: element by element."""
    if any(not isinstance(o, Group) or len(o.items) != count for o in (d, a)) or kind in ("pred", "b128"):
        raise c.unsupported(f"other than {count} elements on both sides")
    bits = f"b{8 * np.dtype(TYPES[kind]).itemsize}"
    to, x = c.results(d.items, bits), c.sources(a.items, bits)
    return lambda lanes: to(lanes, x(lanes).copy())


def _halves(c: Coder, into: Sequence[Operand], of: Sequence[Operand]) -> Step:
    to, x = c.results(into, "b64"), c.sources(of, "b64")
    return lambda lanes: to(lanes, x(lanes).copy())


def _vector(c: Coder, kind: str, d, a) -> Step:
    if kind == "b128":
        sides = [o.items if isinstance(o, Group) else halves(str(o)) for o in (d, a)]
        if [len(o) for o in sides] != [2, 2]:
            raise c.unsupported("parts of 128 bits that are not two")
        return _halves(c, *sides)
    group = d if isinstance(d, Group) else a
    assert isinstance(group, Group)
    width = int(kind[1:]) if kind[1:].isdigit() else 32 if kind.endswith("x2") else 0
    if isinstance(d, Group) and isinstance(a, Group) or not width or width % len(group.items) or width == 128:
        raise c.unsupported(f"mov.{kind} of {len(group.items)} parts")
    part = f"b{width // len(group.items)}"
    if part not in TYPES:
        raise c.unsupported(f"parts of {part[1:]} bits")
    whole = f"b{width}"
    if group is a:
        to, reads = c.result(d, whole), [c.source(o, part) for o in group.items]
        return lambda lanes: to(lanes, np.stack([r(lanes) for r in reads], 1).view(TYPES[whole]).reshape(LANES))
    x, gives = c.source(a, whole), [c.result(o, part) for o in group.items]
    count = len(gives)

    def step(lanes: Lanes) -> None:
        parts = x(lanes).view(TYPES[part]).reshape(LANES, count)
        for n, give in enumerate(gives):
            give(lanes, np.ascontiguousarray(parts[:, n]))

    return step


# --- addresses -----------------------------------------------------------------------------------------------------


def _window(c: Coder, space: str) -> int:
    space = space.partition("::")[0]
    if space in ("global", "const"):
        return 0
    if space not in WINDOWS:
        raise c.unsupported(f"generic addresses of .{space}")
    return WINDOWS[space]


def cvta(s: Statement, c: Coder) -> Step:
    """PTX ISA, cvta: from a space's address to the generic one, and `.to` back."""
    w = Words(s, c)
    back = w.flag("to")
    space = w.need("global", "shared", "shared::cta", "shared::cluster", "const", "local", "param", "param::entry")
    kind = w.type("u32", "u64")
    w.end()
    d, a = s.operands
    window = _window(c, space)
    to, x = c.result(d, kind), c.source(a, kind)
    if kind == "u32" and window:
        raise c.unsupported("generic addresses of 32 bits")
    if not window:
        return lambda lanes: to(lanes, x(lanes))
    by = np.uint64(window)
    return (lambda lanes: to(lanes, x(lanes) - by)) if back else (lambda lanes: to(lanes, x(lanes) + by))


def isspacep(s: Statement, c: Coder) -> Step:
    """PTX ISA, isspacep: whether a generic address lies in a space; `.shared` is the executing CTA's own."""
    w = Words(s, c)
    space = w.need("global", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry", "const")
    w.end()
    if space == "const":
        raise c.unsupported("isspacep.const: constants have addresses of global memory here")
    p, a = s.operands
    to, x = c.result(p, "pred"), c.source(a, "u64")
    windows = sorted(WINDOWS.values())
    if space == "global":
        return lambda lanes: to(lanes, x(lanes) < np.uint64(windows[0]))
    low = _window(c, space)
    high = min((v for v in windows if v > low), default=1 << 63)

    def step(lanes: Lanes) -> None:
        address = x(lanes)
        inside = (address >= np.uint64(low)) & (address < np.uint64(high))
        if space in ("shared", "shared::cta"):
            inside = inside & ((address - np.uint64(low)) >> np.uint64(RANK_AT) == np.uint64(lanes.cta.rank))
        to(lanes, inside)

    return step


def getctarank(s: Statement, c: Coder) -> Step:
    """PTX ISA, getctarank: the rank of the CTA whose shared memory an address is of."""
    w = Words(s, c)
    window = bool(w.one("shared::cluster"))
    kind = w.type("u32", "u64")
    w.end()
    d, a = s.operands
    to, x = c.result(d, "u32"), c.source(a, kind)
    if not window and kind == "u32":
        raise c.unsupported("generic addresses of 32 bits")
    base = 0 if window else WINDOWS["shared"]

    def step(lanes: Lanes) -> None:
        rank = (x(lanes).astype(np.uint64) - np.uint64(base)) >> np.uint64(RANK_AT)
        if (rank[lanes.active] >= len(lanes.cta.cluster)).any():
            raise lanes.fault("emulate/operand", "getctarank of an address outside of the cluster's shared memory")
        to(lanes, rank.astype(np.uint32))

    return step


def createpolicy(s: Statement, c: Coder) -> Step:
    """PTX ISA, createpolicy: an opaque value; caches are not executed, so that it is zero."""
    w = Words(s, c)
    w.need("fractional", "range", "cvt")
    w.starting("L2"), w.starting("L2"), w.one("global"), w.need("b64")
    w.end()
    to, zero = c.result(s.operands[0], "b64"), np.zeros(LANES, np.uint64)
    return lambda lanes: to(lanes, zero)


# --- caches and the rest: nothing that a value shows ------------------------------------------------------------------


def nothing(s: Statement, c: Coder) -> Step:
    """PTX ISA, prefetch, prefetchu, applypriority, pmevent: hints to caches and counters; they read no value, and no address of theirs is looked at."""
    return lambda lanes: None


def discard(s: Statement, c: Coder) -> Step:
    """PTX ISA, discard: 128 bytes lose their value without being written back. That reading them gives unspecified values is not followed; their
    address has to be a multiple of 128."""
    w = Words(s, c)
    w.flag("global"), w.need("L2")
    w.end()
    a, size = s.operands
    at = c.address(a)
    if c.constant(size) != 128:
        raise c.unsupported("discard of another size than 128")

    def step(lanes: Lanes) -> None:
        if (at(lanes)[lanes.active] % np.uint64(128)).any():
            raise lanes.fault("emulate/misaligned", "discard of an address that is no multiple of 128")

    return step


def nanosleep(s: Statement, c: Coder) -> Step:
    """PTX ISA, nanosleep: others go on; no time passes here."""
    Words(s, c).type("u32")
    return lambda lanes: lanes.pause()


def call(s: Statement, c: Coder) -> Step:
    """PTX ISA, call, of what has no body in the text or is called by its address: the run ends where it is reached. Behind a check that holds (assertions,
    printing) nobody comes here."""
    names = [n for n in re.sub(r"\([^)]*\)", " ", s.text).replace(",", " ").split() if n]

    def step(lanes: Lanes) -> None:
        raise lanes.fault(
            "emulate/unsupported", f"a call of '{names[0] if names else '?'}': only functions whose body is in the text are executed, by their name"
        )

    return step


def trap(s: Statement, c: Coder) -> Step:
    """PTX ISA, trap: ends the run."""

    def step(lanes: Lanes) -> None:
        raise lanes.fault("emulate/trap", "the kernel executes `trap`")

    return step
