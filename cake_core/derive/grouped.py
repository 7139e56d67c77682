"""`group { .. }` in the derived form: its statements without the ends of their own groups, and one end behind them."""

from __future__ import annotations

from dataclasses import replace

from cake_core.derive.accesses import operation_with
from cake_core.effects import Access, CommitGroup, Fence, InGroup, Issuer
from cake_core.ir.build import by_leader
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Block, For, Group, If, Op, Stmt, While
from cake_core.ir.places import root
from cake_core.ir.types import Tile
from cake_core.primitive.asking import effects_of

#: A fence between a thread's registers and what reads or writes them asynchronously.
REGISTERS = "registers"


def joined(group: Group, body: Block, registry, arch) -> Block:
    """`body`: what the statements of a group were derived to. An empty group is one too: what counts them is right on every path."""
    ends = [s for s in walk(body) if isinstance(s, Op) and CommitGroup(group.queue) in effects_of(s, registry)]
    end = (
        ends[-1] if ends else operation_with(registry, arch, CommitGroup, lambda e: e.queue == group.queue, "an end of a group", group.span)
    )
    end = replace(end, span=group.span)
    accesses = [e for s in walk(body) for e in effects_of(s, registry) if isinstance(e, Access) and isinstance(e.completion, InGroup)]
    by_one = all(a.issuer is Issuer.LEADER for a in accesses) if accesses else any(isinstance(s, If) and s.then == (end,) for s in body)
    body = _without(body, group.queue, registry)
    return (*_fenced_once(body, registry), by_leader(end) if by_one else end)


def _without(body: Block, queue: str, registry) -> Block:
    """A block less the ends of groups, and less guards with nothing else in them."""
    out: list[Stmt] = []
    for s in body:
        match s:
            case Op() if CommitGroup(queue) in effects_of(s, registry):
                continue
            case For() | While():
                s = replace(s, body=_without(s.body, queue, registry))
            case If():
                s = replace(
                    s, then=_without(s.then, queue, registry), other=_without(s.other, queue, registry) if s.other is not None else None
                )
                if not s.then and not s.other:
                    continue
        out.append(s)
    return tuple(out)


def _fenced_once(body: Block, registry) -> Block:
    """Asynchronous statements in a row need one fence of registers in front of the first. Another one stands where a statement
    between them may touch registers, or where two of them use one fragment in different shapes."""
    out: list[Stmt] = []
    shapes: dict[str, tuple] | None = None  # of the fragments that have been in use since the fence; None: no fence yet
    pending: Stmt | None = None
    for s in body:
        effects = effects_of(s, registry)
        if isinstance(s, Op) and effects and all(isinstance(e, Fence) and e.kind == REGISTERS for e in effects):
            pending = s
            continue
        uses = {root(e.place).id: tuple(e.place.type.groups) for e in effects if isinstance(e, Access) and isinstance(e.place.type, Tile)}
        joins = isinstance(s, Op) and bool(effects) and all(isinstance(e, Access) and isinstance(e.completion, InGroup) for e in effects)
        if pending is not None and (shapes is None or not joins or any(shapes.get(n, g) != g for n, g in uses.items())):
            out.append(pending)
            shapes = {}
        pending = None
        shapes = {**shapes, **uses} if joins and shapes is not None else None
        out.append(s)
    return (*out, pending) if pending is not None else tuple(out)
