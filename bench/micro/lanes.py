"""What lanes of a warp exchange (PTX ISA, shfl.sync, vote.sync, match.sync, redux.sync, activemask, elect.sync) under whole and partial masks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Case
from .lanewise import case, data

MASKS = {"all": 0xFFFFFFFF, "odd": 0xAAAAAAAA, "some": 0x00FF0F31}


def masked(mask: int, text: str) -> str:
    """The statements by those lanes of the mask alone; the others' results are 7."""
    if mask == 0xFFFFFFFF:
        return text
    before = f"mov.b32 {{d}}, 7; mov.b32 {{x}}, 7; .reg .u32 %l, %m; mov.u32 %l, %laneid; shr.u32 %m, {mask:#x}, %l; and.b32 %m, %m, 1;"
    return f"{before} setp.eq.u32 %p, %m, 0; @%p bra OUT; {text} OUT:"


def cases() -> Iterator[Case]:
    yield from shuffles()
    for name, mask in MASKS.items():
        for how in ("all", "any", "uni"):
            text = f"setp.lt.u32 %p, {{a}}, {{b}}; vote.sync.{how}.pred %q, %p, {mask:#x}; selp.b32 {{d}}, 1, 0, %q; mov.b32 {{x}}, 0;"
            yield case("lanes", f"vote.sync.{how} {name}", masked(mask, text), "u32 u32", "b32 b32", given=alike())
        text = f"setp.lt.u32 %p, {{a}}, {{b}}; vote.sync.ballot.b32 {{d}}, %p, {mask:#x}; mov.b32 {{x}}, 0;"
        yield case("lanes", f"vote.sync.ballot {name}", masked(mask, text), "u32 u32", "b32 b32")
        for kind in ("b32", "b64"):
            text = f"match.any.sync.{kind} {{d}}, {{a}}, {mask:#x}; mov.b32 {{x}}, 0;"
            yield case("lanes", f"match.any.sync.{kind} {name}", masked(mask, text), f"{kind} u32", "b32 b32", given=few(kind))
            text = f"match.all.sync.{kind} {{d}}|%p, {{a}}, {mask:#x}; selp.b32 {{x}}, 1, 0, %p;"
            yield case("lanes", f"match.all.sync.{kind} {name}", masked(mask, text), f"{kind} u32", "b32 b32", given=few(kind))
        for op, kind in (*((o, k) for o in ("add", "min", "max") for k in ("u32", "s32")), ("and", "b32"), ("or", "b32"), ("xor", "b32")):
            text = f"redux.sync.{op}.{kind} {{d}}, {{a}}, {mask:#x}; mov.b32 {{x}}, 0;"
            yield case("lanes", f"redux.sync.{op}.{kind} {name}", masked(mask, text), "b32 u32", "b32 b32")
        text = "activemask.b32 {d}; mov.b32 {x}, 0;"
        yield case("lanes", f"activemask {name}", masked(mask, text), "b32 u32", "b32 b32")
        text = f"elect.sync %m2|%p, {mask:#x}; mov.b32 {{d}}, %m2; selp.b32 {{x}}, 1, 0, %p;"
        yield case("lanes", f"elect.sync {name}", ".reg .b32 %m2; " + masked(mask, text), "b32 u32", "b32 b32")


def shuffles() -> Iterator[Case]:
    for mode in ("idx", "up", "down", "bfly"):
        for width, clamp in ((32, 0x1F), (16, 0x101F), (8, 0x181F), (4, 0x1C1F)):
            limit = clamp & ~0x1F if mode == "up" else clamp
            text = f"and.b32 {{b}}, {{b}}, 31; shfl.sync.{mode}.b32 {{d}}|%p, {{a}}, {{b}}, {limit:#x}, 0xffffffff; selp.b32 {{x}}, 1, 0, %p;"
            yield case("lanes", f"shfl.sync.{mode} width {width}", text, "b32 u32", "b32 b32")
        for lane in (0, 1, 5, 16, 31):
            limit = 0 if mode == "up" else 0x1F
            text = f"shfl.sync.{mode}.b32 {{d}}|%p, {{a}}, {lane}, {limit:#x}, 0xffffffff; selp.b32 {{x}}, 1, 0, %p;"
            yield case("lanes", f"shfl.sync.{mode} by {lane}", text, "b32 u32", "b32 b32")
    # Lanes of a partial mask among themselves: source lanes outside of it are not defined, so each asks within.
    text = "shfl.sync.bfly.b32 {d}|%p, {a}, 2, 0x1f, 0xaaaaaaaa; selp.b32 {x}, 1, 0, %p;"
    yield case("lanes", "shfl.sync.bfly odd", masked(0xAAAAAAAA, text), "b32 u32", "b32 b32")
    # Lanes and limits that differ from lane to lane, some of them beyond the warp: `d` is the own value there.
    for mode in ("idx", "up", "down", "bfly"):
        limit = "and.b32 {b}, {b}, 0x1f1f;" if mode != "up" else "and.b32 {b}, {b}, 0x1f00;"
        text = f"{limit} and.b32 %n, {{a}}, 63; shfl.sync.{mode}.b32 {{d}}|%p, {{a}}, %n, {{b}}, 0xffffffff; selp.b32 {{x}}, 1, 0, %p;"
        yield case("lanes", f"shfl.sync.{mode} by registers", text, "b32 u32", "b32 b32")
    # Halves of a warp that have parted, each under its own mask.
    text = """and.b32 %n, %n, 16; setp.eq.u32 %p, %n, 0; @%p bra LOW; shfl.sync.down.b32 {d}|%q, {a}, 3, 0x1f, 0xffff0000; redux.sync.add.u32 {x}, {b}, 0xffff0000; bra OUT;
LOW: shfl.sync.bfly.b32 {d}|%q, {a}, 5, 0x1f, 0x0000ffff; vote.sync.ballot.b32 {x}, %q, 0x0000ffff; OUT:"""
    yield case("lanes", "halves that have parted", text, "b32 u32", "b32 b32")


def few(kind: str) -> list[np.ndarray]:
    """Of few values many equal ones; some warps are of one value."""
    a = (data(["u32"], "few")[0] % 3).astype(f"u{int(kind[1:]) // 8}")
    a[:64] = 5
    return [a << (int(kind[1:]) - 4), a.astype(np.uint32)]


def alike() -> list[np.ndarray]:
    """Comparisons that hold for all lanes of a warp, for some, for none."""
    a, b = data(["u32", "u32"], "alike")
    a[:32], b[:32], a[32:64], b[32:64] = 0, 1, 1, 0
    return [a, b]
