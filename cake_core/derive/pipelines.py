"""Pipelines: how each role at an end hands a slot over (S3), and the arrivals that follow from it."""

from __future__ import annotations

from collections.abc import Callable

from cake_core.derive.accesses import Touch
from cake_core.derive.fills import Fills
from cake_core.derive.warps import Placed
from cake_core.diagnostics import Related, Sink, fail
from cake_core.effects import Access, ByCommit, BySignal, InGroup, Issuer, Mode, Proxy
from cake_core.frozen import frozen
from cake_core.ir.nodes import Kernel, Pipeline
from cake_core.ir.plan import pair_rank
from cake_core.primitive import PipelinePlan, Signal

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
        self._strangers(p)
        fills = {e.name: self._fills(p, e.name) for e in p.producers}
        commits, engines = {role: self._commit(p, found) for role, found in fills.items()}, self._engines(p)
        shared = self.cluster > 1 and any(_reaches_all(t.access) for found in fills.values() for t in found)
        homes = self._homes(p, commits, shared)
        releases = {c.name: self._release(p, c.name) for c in p.consumers}
        empty = sum(self._arrivals(role, how) for role, how in releases.items()) * homes.releasing
        full = sum(self._arrivals(role, how) for role, how in commits.items()) * homes.filling
        bytes_ = {
            role.name: Fills(p, role, self.registry, self.placed[role.name].warps, self.cluster).bytes()
            for role in self.kernel.roles
            if commits.get(role.name) is Signal.BYTES
        }
        filled = {t.buffer for found in fills.values() for t in found}
        if (unfilled := next((b for b in p.buffers if b not in filled), None)) is not None:
            who = " and ".join(f"'{role}'" for role in fills)
            one = len(fills) == 1
            raise fail(
                "derive/no-fill",
                f"{'role' if one else 'roles'} {who} never fill{'s' if one else ''} '{unfilled}' of pipeline '{p.name}'",
                p.span,
                role=p.producers[0].name,
                why="its slots are handed over with the others and hold nothing",
                fix=f"fill it, or leave '{unfilled}' out of the pipeline",
            )
        return PipelinePlan(p.name, p.slots.value, p.buffers, commits, releases, full, empty, bytes_, homes.full_at, homes.empty_at, engines)

    def _fills(self, p: Pipeline, producer: str) -> list[Touch]:
        """What a producer writes to the slots. Raises CakeError where that is nothing."""
        fills = [t for t in self.touches if t.role == producer and t.buffer in p.buffers and t.access.mode is Mode.WRITE]
        if not fills:
            raise fail(
                "derive/no-fill",
                f"role '{producer}' never fills pipeline '{p.name}'",
                p.span,
                role=producer,
                why="consumers wait for what it writes",
            )
        return fills

    def _homes(self, p: Pipeline, commits: dict[str, Signal], shared: bool) -> Homes:
        """Full barriers live where the slot is read, empty ones where it is filled (S16): `shared`, by all CTAs of the cluster (S15)."""
        producers, consumers = ({self.on[e.name] for e in ends} for ends in (p.producers, p.consumers))
        everyone = tuple(range(self.cluster))
        if consumers == producers and len(producers) == 1:
            return Homes(empty_at=everyone, releasing=self.cluster) if shared else Homes()
        for ends, what in ((consumers, "read"), (producers, "filled")):
            if len(ends) > 1:
                raise fail(
                    "derive/not-implemented",
                    f"pipeline '{p.name}' is {what} by roles of different CTAs of a pair",
                    p.span,
                    why="one between the CTAs of one role, or of several that have the same, is",
                )
        (producer,), (consumer,) = producers, consumers
        signals = set(commits.values())
        engine = producer is not None and signals == {Signal.ENGINE} or producer is None and signals == {Signal.BYTES} and not shared
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
                fix=f"give each kind its own pipeline{', or a role of its own' if how == 'filled' else ''}",
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


def _reaches_all(access: Access) -> bool:
    """Whether a fill goes to the CTAs of the cluster, so that a slot is empty when the consumers of all have released it (S15)."""
    return isinstance(access.completion, BySignal) and (access.completion.multicast or access.completion.cta is not None)
