"""What the event machine is asked and what it answers: scenarios, faults, outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from cake_core.facts.schema import Event


class Kind(StrEnum):
    """What went wrong."""

    DEADLOCK = "deadlock"  # no one can go on, and not all have ended
    RACE = "race"  # two accesses of the same bytes, one a write, that nothing orders
    UNWRITTEN = "unwritten"  # a read of shared or tensor memory that no one has written
    ASYNC = "async completion"  # an access of bytes that an asynchronous operation, issued before, may still be using
    FENCE = "missing fence"  # ordered, but through different proxies without the fence between them
    PHASE = "missed phase"  # a barrier may complete a phase that someone has still to wait for: the parity then lies
    OVERRUN = "phase overrun"  # an arrival or bytes may count in another phase than they belong to
    ARRIVALS = "too many arrivals"  # one statement's arrivals are more than the phase is short of
    BYTES = "transaction bytes"  # bytes that were received are not those that were announced, or leave the field's range
    INIT = "barrier init"  # use of a barrier whose start is not known to have happened, or not seen by who uses it
    IN_FLIGHT = "in flight at the end"  # a group or a copy that no one has waited for when a role or a CTA ends
    EXIT = "exited CTA"  # access to the memory of a CTA that has left, or may have
    TENSOR = "tensor memory"  # use outside of an allocation, a wrong amount given back, columns never given back
    NAMED = "named barrier"  # threads that meet disagree, or are too many
    BOUNDS = "slot out of range"  # an index of a slot, a barrier or a rank that does not exist


@dataclass(frozen=True, slots=True)
class Policy:
    """What is asked beyond what PTX leaves undefined, or of what to look away.

    `lanes`: the lanes of a warp are together only where they meet; without it a warp is one thread. `strict`: a proxy fence is wanted of
    each writer itself, and between generic accesses and later asynchronous writes too; without it, one anywhere on the way from a
    generic write to an asynchronous read is enough."""

    lanes: bool = True
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """One launch as one cluster sees it: values of the integer parameters, which of how many clusters it is. `loads`: the element of
    an `in` tensor at given indices; where it is None, or answers None, small values that satisfy the contracts are tried. `draws`: the n-th
    number that this cluster takes of a counter in a tensor; None: clusters take turns."""

    params: Mapping[str, int]
    cluster: int = 0
    clusters: int = 1
    loads: Callable[[str, tuple[int, ...]], int | None] | None = None
    policy: Policy = Policy()
    draws: Callable[[str, int], int] | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """One execution of an event. `lane`: "leader" or "all" (of the warp); `iteration`: indices of the loops around, outermost first;
    `warp`: first of the `warps` of the instance that are taken together here."""

    role: str
    instance: int
    warp: int
    warps: int
    cta: int
    lane: str = "all"
    event: Event | None = field(default=None, compare=False)
    number: int = 0
    op: str = ""
    iteration: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        at = "".join(f" {n}={v}" for n, v in self.iteration)
        who = f"{self.role}[{self.instance}]" + (f" warps {self.warp}-{self.warp + self.warps - 1}" if self.warps > 1 else f" warp {self.warp}")
        return f"{who} of CTA {self.cta}: {self.op or 'end'}{at}"


@dataclass(frozen=True, slots=True)
class Fault:
    """`first` came before `second` in the interleaving `trail`, oldest step first. `phase`: of the barrier, 0 the first. `slot`:
    indices of the buffer's slot, or the barrier's index in its array. `blocked`: of a deadlock, who waits where for what."""

    kind: Kind
    message: str
    resource: str = ""
    slot: tuple[int, ...] = ()
    phase: int | None = None
    cta: int | None = None
    first: Site | None = None
    second: Site | None = None
    blocked: tuple[tuple[Site, str], ...] = ()
    trail: tuple[Site, ...] = field(default=(), compare=False, repr=False)

    @property
    def key(self) -> tuple:
        """Equal for what is the same mistake of the text in other iterations and instances."""
        return self.kind, self.resource, self.first and self.first.number, self.second and self.second.number

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.message}"]
        lines += [f"  {s}" for s in (self.first, self.second) if s is not None]
        return "\n".join(lines + [f"  {s} waits for {what}" for s, what in self.blocked])


@dataclass(frozen=True, slots=True)
class Outcome:
    """`complete`: in mode "exhaustive", every interleaving within the scenario was seen; other modes are never complete. `states`:
    of that search; `schedules`: that were run from start to end. Nothing found is not a proof for other parameters."""

    faults: tuple[Fault, ...]
    complete: bool
    states: int
    schedules: int
    mode: str
    limit: str = ""

    @property
    def found(self) -> frozenset[Kind]:
        return frozenset(f.kind for f in self.faults)
