"""Mutation operators on declarations: counts of arrivals, slots of a ring, where a buffer lies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace

from cake_core.ir.build import binary
from cake_core.ir.nodes import Declaration, Declare, Index, Int, Kernel, Name, Words
from cake_core.mutate.sites import Edit, Spot, spots


def declaration_edits(kernel: Kernel, typed: Kernel) -> Iterator[Edit]:
    for spot in spots(kernel, typed):
        for i, s in enumerate(spot.block):
            if isinstance(s, Declare):
                for k, d in enumerate(s.declarations):
                    yield from _words(spot, i, k, d)
                    yield from _slots(spot, i, d)


def _words(spot: Spot, i: int, k: int, d: Declaration) -> Iterator[Edit]:
    s = spot.block[i]

    def put(operator: str, word: str, value: int) -> Edit:
        items = tuple(replace(w, value=Int(value)) if w.name == word else w for w in d.words.items)
        changed = replace(d, words=Words(items, d.words.flag, span=d.words.span))
        what = f"{d.name}: {word} {value}"
        return Edit(operator, what, d.span, spot.instead(i, replace(s, declarations=(*s.declarations[:k], changed, *s.declarations[k + 1 :]))))

    count, at = d.words.get("count"), d.words.get("at")
    if isinstance(count, Int):
        yield put("count", "count", count.value + 1)
        if count.value > 1:
            yield put("count", "count", count.value - 1)
    if isinstance(at, Int):
        yield put("place", "at", at.value + 64)


def _slots(spot: Spot, i: int, d: Declaration) -> Iterator[Edit]:
    """A ring that goes round one slot earlier: every index of its slot is taken modulo one less."""
    groups = d.declared.groups
    if len(groups) == 2 and len(groups[0]) == 1 and isinstance(groups[0][0], Int) and groups[0][0].value > 1:
        n = groups[0][0].value - 1
        kernel = spot.rebuild(spot.block)
        yield Edit("slots", f"{d.name}: {n}", d.span, _wrapped(kernel, d.name, n))


def _wrapped(node, buffer: str, slots: int):
    match node:
        case Index(Name(id), indices) if id == buffer:
            return replace(node, indices=tuple(binary("%", x, slots) for x in _wrapped(indices, buffer, slots)))
        case tuple():
            return tuple(_wrapped(x, buffer, slots) for x in node)
    if not is_dataclass(node):
        return node
    changed = {}
    for f in fields(node):
        if f.name not in ("span", "type", "label"):
            old = getattr(node, f.name)
            if isinstance(old, tuple) or is_dataclass(old):
                new = _wrapped(old, buffer, slots)
                if new is not old and new != old:
                    changed[f.name] = new
    return replace(node, **changed) if changed else node
