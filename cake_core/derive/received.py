"""Conditions that are made of messages (S10): what decides around the verbs of a pipeline is the same in every role at its ends.

A message is a value that the producer of a pipeline stores into the slot that it has acquired, and that its consumers load from the
slot that they have waited for: all of them see the same ones in the same order. Two roles go through a pipeline alike if the
conditions around its verbs are the same expressions of messages, constants and values of the CTA (`symbols.py` beside this file).
"""

from __future__ import annotations

from cake_core.derive.accesses import Touch
from cake_core.derive.symbols import Follower, Taken, said, whose
from cake_core.diagnostics import Related, Sink
from cake_core.effects import Mode
from cake_core.frozen import frozen
from cake_core.ir.flow import walk
from cake_core.ir.nodes import For, If, Kernel, Op, Pipeline, Stmt, While
from cake_core.ir.types import Level, Scalar
from cake_core.ir.visit import nested

VERBS = ("acquire", "commit", "wait", "release", "drain", "take", "pass")


@frozen
class Received:
    """`agreed`: by identity, statements that decide alike in every role that comes there, so that verbs may stand in them."""

    agreed: frozenset[int] = frozenset()


def received(kernel: Kernel, registry, touched: list[Touch], sink: Sink) -> Received:
    """Follow the roles of an elaborated schedule-form kernel. `touched`: its accesses. Findings go to `sink`."""
    written = {p.name for p in kernel.params if p.mode not in (None, "in")}
    reads = any(t.buffer in written and t.access.mode is Mode.READ for t in touched)
    if not reads and not any(decides(s) and _verb(s) is not None for role in kernel.roles for s in walk(role.body)):
        return Received()
    pipelines = {s.name: s for s in kernel.body if isinstance(s, Pipeline)}
    agreed, taken = set(), {}
    for role in kernel.roles:
        follower = Follower(role, pipelines, kernel, registry, decides)
        decided, taken[role.name] = follower.follow()
        for s, condition in decided:
            if not (own := whose(condition)):
                agreed.add(id(s))
            elif (isinstance(s, While) or not decides(s)) and (verb := _verb(s)) is not None:  # the rest are guards: held slots
                where = "under a condition" if isinstance(s, If) else "in a loop"
                sink.error(
                    "derive/not-received",
                    f"`{verb.name} {verb.operands[0].id}` stands {where} that '{role.name}' alone decides",
                    s.hi.span if isinstance(s, For) else s.test.span,
                    role=role.name,
                    resource=verb.operands[0].id,
                    related=(Related("the verb", verb.span),),
                    why=f"every role of a pipeline goes round equally often, and no other role knows '{own}' (S10)",
                    fix="ask a value that was received through a pipeline; in its producer, what is stored into the slot",
                )
    for p in pipelines.values():
        first, *others = (*p.producers, *p.consumers)
        for other in others:
            _agree(p, first.name, other.name, taken, sink)
    return Received(frozenset(agreed))


def decides(s: Stmt) -> bool:
    """Whether a statement goes by what may differ among roles."""
    match s:
        case While():
            return True
        case If(test):
            return _level(test) > Level.CTA
        case For(lo=lo, hi=hi) if hi is not None:
            return max(_level(lo), _level(hi)) > Level.CTA
    return False


def _level(e) -> Level:
    return e.type.level if isinstance(e.type, Scalar) else Level.CTA


def _verb(s: Stmt) -> Op | None:
    return next((v for block in nested(s) for v in walk(block) if isinstance(v, Op) and v.name in VERBS), None)


def _agree(p: Pipeline, first: str, second: str, taken: dict[str, dict[str, list[Taken]]], sink: Sink) -> None:
    """One finding where one role at an end goes through `p` under other conditions than another does."""
    sides = {role: taken[role].get(p.name, []) for role in (first, second)}
    if not all(sides.values()) or any(whose(u.condition) for found in sides.values() for t in found for u in t.under):
        return  # held slots, guards and fills are looked at elsewhere
    ways = {role: _ways(found) for role, found in sides.items()}
    for role, other in ((second, first), (first, second)):
        if (mine := next((t for t, w in ways[role].items() if w not in ways[other].values()), None)) is not None:
            theirs = next((t for t, w in ways[other].items() if w not in ways[role].values()), sides[other][0])
            alike = any([u.condition for u in t.under] == [u.condition for u in mine.under] for t in sides[other])
            more = f"'{other}' does so in fewer loops; " if alike else ""
            sink.error(
                "derive/received-differs",
                f"'{role}' and '{other}' go through '{p.name}' under different conditions",
                mine.by.span,
                role=role,
                resource=p.name,
                related=(Related(f"'{other}' takes a slot {said(theirs.under)}", theirs.by.span),),
                why=f"'{role}' takes a slot {said(mine.under)}; {more}a role that goes round once more than another waits for ever (S10)",
                fix="let both ask the same expression of the same message",
            )
            return


def _ways(found: list[Taken]) -> dict[Taken, tuple]:
    """By verb, its conditions; loops that are alike are told apart by their order in the text."""
    loops = {n: i for i, n in enumerate(dict.fromkeys(u.loop for t in found for u in t.under if u.loop is not None))}
    return {t: tuple((u.condition, loops.get(u.loop)) for u in t.under) for t in found}
