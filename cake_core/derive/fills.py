"""Fills by transaction bytes: what one role brings to a slot between `acquire` and `commit`, counted before it is announced."""

from __future__ import annotations

from collections import Counter
from dataclasses import field

from cake_core.diagnostics import Related, fail
from cake_core.effects import Access, BySignal, Effect, Mode, Rendezvous
from cake_core.frozen import frozen, thawed
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Attr, Block, Expr, Index, Int, Name, Op, Pipeline, Role, Stmt
from cake_core.ir.places import root
from cake_core.ir.visit import nested, written_flat
from cake_core.primitive.asking import effects_of


@frozen
class Fills:
    """The fills of `pipeline` by one of its producers, of `warps` warps an instance, in a cluster of `cluster` CTAs."""

    pipeline: Pipeline
    role: Role
    registry: object
    warps: int
    cluster: int

    def bytes(self) -> int:
        """Bytes of one fill: every stretch from `acquire` to `commit` must bring the same. Raises CakeError."""
        p, producer = self.pipeline, self.role.name
        found: list[tuple[int, Op]] = []
        self._found(self.role.body, found)
        if not found:
            raise fail("derive/no-fill", f"role '{producer}' never fills pipeline '{p.name}' between `acquire` and `commit`", p.span, role=producer)
        amounts = {n for n, _ in found}
        if len(amounts) > 1:
            a, b = found[0], next(f for f in found if f[0] != found[0][0])
            raise fail(
                "derive/fill-bytes",
                f"one fill of '{p.name}' brings {a[0]} bytes, another {b[0]}",
                b[1].span,
                role=producer,
                related=(Related("the other fill", a[1].span),),
                why="every phase of its barrier counts one number of bytes",
                fix="bring the same in every fill, or use two pipelines",
            )
        return found[0][0]

    def _found(self, block: Block, found: list[tuple[int, Op]]) -> None:
        """Adds the bytes of every fill that the block acquires, with its `acquire`."""
        p = self.pipeline
        opened: list[_Fill] = []  # oldest first
        for s in written_flat(block):
            if isinstance(s, Op) and s.operands and s.operands[0] == Name(p.name):
                if s.name == "acquire":
                    opened.append(_Fill(s, s.words.get("as")))
                elif s.name == "commit" and opened:
                    done = opened.pop(0)
                    found.append((self._total(done), done.by))
            for e in effects_of(s, self.registry):
                if isinstance(e, Rendezvous) and e.waits and e.scope != "warp":
                    for fill in opened:
                        fill.met = True
                if _fills_by_bytes(e, p):
                    fill = self._filled(opened, e, s)
                    self._together(fill, s)
                    fill.add(e.completion, s)
            for inner in nested(s):
                if opened and self._touches(inner):
                    raise fail(
                        "derive/fill-guarded",
                        f"a fill of '{p.name}' stands under a condition or in a loop",
                        self._first(inner).span,
                        role=self.role.name,
                        why="the bytes of a fill are announced when its slot is acquired, so they must be known there",
                        fix="move it beside its `acquire` and `commit`",
                    )
                self._found(inner, found)
        found += [(self._total(f), f.by) for f in opened]

    def _total(self, fill: _Fill) -> int:
        """What one barrier receives in a fill: of the own CTA's copies, and of what all CTAs of the cluster send to each of them."""
        p = self.pipeline
        sent: Counter[int] = Counter()
        for rank, count, s in fill.sent:
            if not isinstance(rank, Int):
                raise fail(
                    "derive/uneven-sends",
                    f"to which CTA this fill of '{p.name}' is sent is not known",
                    s.span,
                    role=self.role.name,
                    why="every CTA announces at its own barrier what the others will send to it, so each must be sent the same",
                    fix="send to each in turn: `for k in 0 .. n unroll`, `at k`",
                )
            sent[rank.value] += count
        if sent and len({sent[rank] for rank in range(self.cluster)}) > 1:
            amounts = ", ".join(f"{sent[rank]} to CTA {rank}" for rank in range(self.cluster))
            raise fail(
                "derive/uneven-sends",
                f"a fill of '{p.name}' sends not every CTA the same",
                fill.sent[0][2].span,
                role=self.role.name,
                why=f"bytes: {amounts}; every CTA announces the same number at its own barrier",
                fix="send each CTA of the cluster, the own one included, as many bytes",
            )
        return fill.bytes + sent[0] * self.cluster

    def _together(self, fill: _Fill, s: Stmt) -> None:
        """The leader fills for the whole instance: no other warp may still be waiting for the slot when it is full and empty again."""
        role, p = self.role.name, self.pipeline
        if self.warps > 1 and not fill.met:
            raise fail(
                "derive/leader-ahead",
                f"the leader of '{role}' may fill '{p.name}' while its other warps wait for the slot",
                s.span,
                role=role,
                resource=p.name,
                related=(Related("they wait here", fill.by.span),),
                why="a warp that is late finds the phase over, and the one behind it not come: it waits for ever",
                fix=f"`sync {role}` behind the `acquire`, or let the role be `1 warp`",
            )

    def _filled(self, opened: list[_Fill], e: Access, s: Stmt) -> _Fill:
        """The fill that an access belongs to: that of the slot that it names."""
        role, p = self.role.name, self.pipeline
        if not opened:
            raise fail(
                "derive/fill-outside",
                f"a fill of '{p.name}' stands outside `acquire` and `commit`",
                s.span,
                role=role,
                why="only between the two does the producer own a slot",
            )
        slot = _slot_of(e.place)
        fill = next((f for f in opened if f.slot is not None and f.slot == slot), None)
        if fill is None and len(opened) == 1 and p.slots == Int(1):
            fill = opened[0]
        if fill is None:
            names = " or ".join(f"'{f.slot.id}'" for f in opened if f.slot is not None)
            raise fail(
                "derive/fill-slot",
                f"this fill of '{p.name}' is not into the slot that was acquired",
                s.span,
                role=role,
                why=f"the slot is {names}" if names else "`acquire` gives the slot no name",
                fix="index the buffer with the name that `acquire .. as NAME` gives",
            )
        return fill

    def _first(self, block: Block) -> Stmt:
        """The first fill in a block that has one."""
        return next(s for s in walk(block) if any(_fills_by_bytes(e, self.pipeline) for e in effects_of(s, self.registry)))

    def _touches(self, block: Block) -> bool:
        return any(_fills_by_bytes(e, self.pipeline) for s in block for e in effects_of(s, self.registry)) or any(
            self._touches(inner) for s in block for inner in nested(s)
        )


@thawed
class _Fill:
    """One slot between its `acquire` and its `commit`."""

    by: Op
    slot: Expr | None
    bytes: int = 0  # to the own CTA's barrier
    met: bool = False  # whether the warps of the role have met since its `acquire`
    sent: list[tuple[Expr, int, Stmt]] = field(default_factory=list)  # rank of the CTA that it is sent to, bytes, by what

    def add(self, done: BySignal, by: Stmt) -> None:
        if done.cta is None:
            self.bytes += done.bytes
        else:
            self.sent.append((done.cta, done.bytes, by))


def _fills_by_bytes(e: Effect, p: Pipeline) -> bool:
    return isinstance(e, Access) and e.mode is Mode.WRITE and isinstance(e.completion, BySignal) and root(e.place).id in p.buffers


def _slot_of(place: Expr) -> Expr | None:
    """The index in the first bracket of a place."""
    index = None
    while isinstance(place, Index | Attr):
        if isinstance(place, Index):
            index = place.indices[0]
        place = place.base
    return index
