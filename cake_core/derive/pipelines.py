"""Pipelines: how each side hands a slot over (S3), and the arrivals and bytes that follow from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from cake_core.derive.accesses import Touch
from cake_core.derive.warps import Placed
from cake_core.diagnostics import Related, Sink, fail
from cake_core.effects import Access, ByCommit, BySignal, Effect, InGroup, Issuer, Mode, Proxy, Rendezvous
from cake_core.frozen import frozen
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Attr, Block, Expr, Index, Int, Kernel, Name, Op, Pipeline, Role, Stmt
from cake_core.ir.places import root
from cake_core.ir.plan import pair_rank
from cake_core.ir.visit import nested, written_flat
from cake_core.primitive import PipelinePlan, Signal
from cake_core.primitive.asking import effects_of

#: Who hands over by each signal, in words.
_ACTORS = {Signal.BYTES: "asynchronous copies", Signal.WARPS: "threads", Signal.ENGINE: "the tensor engine"}


@frozen
class Homes:
    """The CTAs whose full and empty barriers are reached (none: the own one's), and how many CTAs fill and release a slot
    at one of them."""

    full_at: tuple[int, ...] = ()
    empty_at: tuple[int, ...] = ()
    filling: int = 1
    releasing: int = 1


@frozen
class Planner:
    """What the plans are made from."""

    kernel: Kernel
    registry: object
    placed: dict[str, Placed]
    touches: list[Touch]
    cluster: int
    sink: Sink

    @property
    def on(self) -> dict[str, int | None]:
        """By role, the rank in its pair of the one CTA that has it; None: every CTA has it."""
        return {r.name: pair_rank(r.words) for r in self.kernel.roles}

    def plans(self) -> dict[str, PipelinePlan]:
        out = {}
        for s in self.kernel.body:
            if isinstance(s, Pipeline):
                with self.sink.collecting(resource=s.name):
                    out[s.name] = self._plan(s)
        return out

    def _plan(self, p: Pipeline) -> PipelinePlan:
        producer = p.producers[0].name
        self._strangers(p)
        fills = [t for t in self.touches if t.role == producer and t.buffer in p.buffers and t.access.mode is Mode.WRITE]
        if not fills:
            raise fail(
                "derive/no-fill",
                f"role '{producer}' never fills pipeline '{p.name}'",
                p.span,
                role=producer,
                why="consumers wait for what it writes",
            )
        commit, engines = self._commit(p, fills), self._engines(p)
        shared = self.cluster > 1 and any(_reaches_all(t.access) for t in fills)
        homes = self._homes(p, commit, shared)
        releases = {c.name: self._release(p, c.name) for c in p.consumers}
        empty = sum(self._arrivals(role, how) for role, how in releases.items()) * homes.releasing
        full = (self.placed[producer].instances if commit is Signal.BYTES else self._arrivals(producer, commit)) * homes.filling
        bytes_ = self._bytes(p, producer) if commit is Signal.BYTES else 0
        if (unfilled := next((b for b in p.buffers if all(t.buffer != b for t in fills)), None)) is not None:
            raise fail(
                "derive/no-fill",
                f"role '{producer}' never fills '{unfilled}' of pipeline '{p.name}'",
                p.span,
                role=producer,
                why="its slots are handed over with the others and hold nothing",
                fix=f"fill it, or leave '{unfilled}' out of the pipeline",
            )
        return PipelinePlan(p.name, p.slots.value, p.buffers, commit, releases, full, empty, bytes_, homes.full_at, homes.empty_at, engines)

    def _homes(self, p: Pipeline, commit: Signal, shared: bool) -> Homes:
        """Full barriers live where the slot is read, empty ones where it is filled (S16): `shared`, by all CTAs of the cluster (S15)."""
        producer = self.on[p.producers[0].name]
        consumers = {self.on[c.name] for c in p.consumers}
        everyone = tuple(range(self.cluster))
        if consumers == {producer}:
            return Homes(empty_at=everyone, releasing=self.cluster) if shared else Homes()
        if len(consumers) > 1:
            raise fail(
                "derive/not-implemented",
                f"pipeline '{p.name}' is read by roles of different CTAs of a pair",
                p.span,
                why="a pipeline to the CTAs of one role, or of several that have the same, is",
            )
        (consumer,) = consumers
        engine = producer is not None and commit is Signal.ENGINE or producer is None and commit is Signal.BYTES and not shared
        if not engine:
            raise fail(
                "derive/not-implemented",
                f"pipeline '{p.name}' leads from some CTAs of a pair to others",
                p.span,
                why="such a pipeline is filled by copies of both CTAs, or by the tensor engine of one",
                fix="let both ends be on the same CTAs",
            )
        ranks = lambda on: everyone if on is None else (on,)  # noqa: E731
        return Homes(ranks(consumer), ranks(producer), len(ranks(producer)), len(ranks(consumer)))

    def _strangers(self, p: Pipeline) -> None:
        """Only the roles at its ends know when a slot is whose."""
        ends = {e.name for e in (*p.producers, *p.consumers)}
        for t in self.touches:
            if t.buffer in p.buffers and t.role not in ends:
                raise fail(
                    "derive/not-an-end",
                    f"role '{t.role}' touches '{t.buffer}' and is at no end of pipeline '{p.name}'",
                    t.by.span,
                    role=t.role,
                    related=(Related("the pipeline", p.span),),
                    why="only a role that acquires or waits knows that a slot is its own",
                    fix=f"add '{t.role}' to the consumers, or give it a buffer of its own",
                )

    def _engines(self, p: Pipeline) -> dict[str, str]:
        """By role, the operation that commits what its engine does with the pipeline's buffers."""
        return {
            t.role: t.access.completion.engine for t in self.touches if t.buffer in p.buffers and isinstance(t.access.completion, ByCommit)
        }

    def _commit(self, p: Pipeline, fills: list[Touch]) -> Signal:
        signal = self._one_kind(p, fills, "filled", lambda a: Signal.BYTES if isinstance(a.completion, BySignal) else Signal.WARPS)
        if signal is Signal.WARPS and any(t.access.proxy is Proxy.ASYNC for t in fills):
            raise fail(
                "derive/not-implemented",
                f"pipeline '{p.name}' is filled by an engine whose hand-off is not implemented yet",
                fills[0].by.span,
            )
        if grouped := next((t for t in fills if isinstance(t.access.completion, InGroup) and t.access.proxy is not Proxy.TENSOR), None):
            raise fail(
                "derive/not-implemented",
                f"pipeline '{p.name}' is filled by copies in groups, whose hand-off is not implemented yet",
                grouped.by.span,
                role=grouped.role,
                why="an arrival of the threads would not wait for their copies",
                fix=f"let one role fill and read '{grouped.buffer}' as a ring, without a pipeline",
            )
        return signal

    def _one_kind(self, p: Pipeline, uses: list[Touch], how: str, otherwise: Callable[[Access], Signal]) -> Signal:
        """The signal that all uses of a slot ask for. Raises CakeError where they differ."""
        kinds = [Signal.ENGINE if isinstance(t.access.completion, ByCommit) else otherwise(t.access) for t in uses]
        other = next((t for t, k in zip(uses, kinds, strict=True) if k is not kinds[0]), None)
        if other is not None:
            first, second = _ACTORS[kinds[0]], _ACTORS[kinds[uses.index(other)]]
            raise fail(
                "derive/mixed-hand-off",
                f"pipeline '{p.name}' is {how} both by {first} and by {second}",
                other.by.span,
                role=other.role,
                related=(Related(f"by {first}", uses[0].by.span),),
                why="one hand-off has one kind of signal (S3)",
                fix="give each kind its own pipeline",
            )
        return kinds[0]

    def _release(self, p: Pipeline, role: str) -> Signal:
        """One arrival a warpgroup only if every access was a collective asynchronous operation of one whole warpgroup."""
        uses = [t for t in self.touches if t.role == role and t.buffer in p.buffers]
        if sent := next((t for t in uses if t.access.mode is Mode.READ and isinstance(t.access.completion, BySignal)), None):
            raise fail(
                "derive/not-implemented",
                f"a slot of pipeline '{p.name}' is sent on",
                sent.by.span,
                role=role,
                resource=sent.buffer,
                why="only the CTA that receives it learns when it has been read, so this role can't release the slot",
                fix="copy it into a buffer of the role's own, and send that",
            )
        if uses and self._one_kind(p, uses, "read", lambda a: Signal.WARPS) is Signal.ENGINE:
            return Signal.ENGINE
        reads = [t.access for t in uses]
        collective = reads and all(a.issuer is Issuer.WARPGROUP and isinstance(a.completion, InGroup) for a in reads)
        group = self.registry.groups.get(Issuer.WARPGROUP) if collective else None
        return Signal.COLLECTIVE if group is not None and self.placed[role].warps == group.warps else Signal.WARPS

    def _arrivals(self, role: str, how: Signal) -> int:
        placed = self.placed[role]
        return placed.instances * (placed.warps if how is Signal.WARPS else 1)

    # --- transaction bytes

    def _bytes(self, p: Pipeline, producer: str) -> int:
        """Bytes of one fill: every stretch from `acquire` to `commit` must bring the same."""
        role: Role = next(r for r in self.kernel.roles if r.name == producer)
        found: list[tuple[int, Op]] = []
        self._fills(p, role.body, found)
        if not found:
            raise fail(
                "derive/no-fill", f"role '{producer}' never fills pipeline '{p.name}' between `acquire` and `commit`", p.span, role=producer
            )
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

    def _fills(self, p: Pipeline, block: Block, found: list[tuple[int, Op]]) -> None:
        """Adds the bytes of every fill that the block acquires, with its `acquire`."""
        opened: list[_Fill] = []  # oldest first
        for s in written_flat(block):
            if isinstance(s, Op) and s.operands and s.operands[0] == Name(p.name):
                if s.name == "acquire":
                    opened.append(_Fill(s, s.words.get("as")))
                elif s.name == "commit" and opened:
                    done = opened.pop(0)
                    found.append((self._total(p, done), done.by))
            for e in effects_of(s, self.registry):
                if isinstance(e, Rendezvous) and e.waits and e.scope != "warp":
                    for fill in opened:
                        fill.met = True
                if _fills_by_bytes(e, p):
                    fill = self._filled(p, opened, e, s)
                    self._together(p, fill, s)
                    fill.add(e.completion, s)
            for inner in nested(s):
                if opened and self._touches(p, inner):
                    raise fail(
                        "derive/fill-guarded",
                        f"a fill of '{p.name}' stands under a condition or in a loop",
                        self._first(p, inner).span,
                        role=p.producers[0].name,
                        why="the bytes of a fill are announced when its slot is acquired, so they must be known there",
                        fix="move it beside its `acquire` and `commit`",
                    )
                self._fills(p, inner, found)
        found += [(self._total(p, f), f.by) for f in opened]

    def _total(self, p: Pipeline, fill: _Fill) -> int:
        """What one barrier receives in a fill: of the own CTA's copies, and of what all CTAs of the cluster send to each of them."""
        sent: Counter[int] = Counter()
        for rank, count, s in fill.sent:
            if not isinstance(rank, Int):
                raise fail(
                    "derive/uneven-sends",
                    f"to which CTA this fill of '{p.name}' is sent is not known",
                    s.span,
                    role=p.producers[0].name,
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
                role=p.producers[0].name,
                why=f"bytes: {amounts}; every CTA announces the same number at its own barrier",
                fix="send each CTA of the cluster, the own one included, as many bytes",
            )
        return fill.bytes + sent[0] * self.cluster

    def _together(self, p: Pipeline, fill: _Fill, s: Stmt) -> None:
        """The leader fills for the whole instance: no other warp may still be waiting for the slot when it is full and empty again."""
        role = p.producers[0].name
        if self.placed[role].warps > 1 and not fill.met:
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

    def _filled(self, p: Pipeline, opened: list[_Fill], e: Access, s: Stmt) -> _Fill:
        """The fill that an access belongs to: that of the slot that it names."""
        role = p.producers[0].name
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

    def _first(self, p: Pipeline, block: Block) -> Stmt:
        """The first fill in a block that has one."""
        return next(
            s
            for s in walk(block)
            if any(_fills_by_bytes(e, p) for e in effects_of(s, self.registry))
        )

    def _touches(self, p: Pipeline, block: Block) -> bool:
        return any(_fills_by_bytes(e, p) for s in block for e in effects_of(s, self.registry)) or any(self._touches(p, inner) for s in block for inner in nested(s))


@dataclass(slots=True)
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


def _reaches_all(access: Access) -> bool:
    """Whether a fill goes to the CTAs of the cluster, so that a slot is empty when the consumers of all have released it (S15)."""
    return isinstance(access.completion, BySignal) and (access.completion.multicast or access.completion.cta is not None)


def _slot_of(place: Expr) -> Expr | None:
    """The index in the first bracket of a place."""
    index = None
    while isinstance(place, Index | Attr):
        if isinstance(place, Index):
            index = place.indices[0]
        place = place.base
    return index
