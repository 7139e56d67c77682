"""Accesses before the roles, which all threads of the CTA run: ordered by a meeting of all of them between, or because one thread does both."""

from __future__ import annotations

from cake_core.effects import Mode
from cake_core.facts import Row
from cake_core.facts.schema import By, Event, Facts, Meet, events
from cake_core.ir.nodes import Int
from cake_core.rules.predicates import PROVED, Answer, Standing


def ordered(facts: Facts, a: Row, b: Row) -> Answer:
    """Of two accesses that may share bytes, one of them at least before the roles. Each runs once a thread, in the order of the text."""
    number = {id(e): n for n, e in enumerate(events(facts.before))}
    first, second = sorted((a, b), key=lambda row: number.get(id(row.site.event), len(number)))
    if a is b:
        many = a.site.event.by is By.ALL and a.site.event.warp is None
        if many and a.site.act.mode is Mode.WRITE and _one_element(a):
            return Answer(Standing.VIOLATED, f"all warps write '{a.site.act.region.name}' (line {a.site.event.span.line}), and nothing orders them")
        return PROVED
    if _alone(first) is not None and _alone(first) == _alone(second):
        return PROVED
    start, end = number[id(first.site.event)], number.get(id(second.site.event), len(number))
    if any(start < number[id(n)] < end and _meets(n) for n in facts.before if isinstance(n, Event)):
        return PROVED
    lines = f"lines {first.site.event.span.line} and {second.site.event.span.line}"
    reason = f"no barrier of all threads stands between two accesses of '{first.site.act.region.name}' ({lines}), the first of them before the roles"
    return Answer(Standing.VIOLATED, reason)


def _meets(e: Event) -> bool:
    return any(isinstance(a, Meet) and a.scope in ("cta", "cluster") and a.waits for a in e.acts)


def _alone(row: Row) -> tuple | None:
    """Which thread or warp it is, where only one executes it."""
    e = row.site.event
    if row.site.part != "before":
        return None
    return ("leader",) if e.by is By.LEADER else ("warp", e.warp) if e.warp is not None else None


def _one_element(row: Row) -> bool:
    return all(d.size == Int(1) for d in row.site.act.region.box)
