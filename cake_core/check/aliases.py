"""Buffers that share bytes, or columns of tensor memory (S14): what can be told without a proof of when each is in use.

At one time the bytes hold one of them. So a statement touches one; what was written of one is not read as another; and roles of which
one uses this and another that have something that orders them. That they are in use at different times whatever the roles' speed
is an obligation that no check here settles: the manifest names it, and the facts hold the pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cake_core.check.paths import Paths
from cake_core.check.subject import Subject
from cake_core.diagnostics import Related, Sink
from cake_core.effects import Access, BarrierArrive, BarrierInit, BarrierWait, BySignal, EngineCommit, Mode, Rendezvous
from cake_core.facts import Rows
from cake_core.frozen import frozen
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Int, Role, Stmt
from cake_core.ir.places import place_of, root
from cake_core.ir.plan import Placed, slot_cells
from cake_core.ir.types import Tile
from cake_core.source import Span

CODE = "core/alias-at-once"


@frozen
class Bytes:
    """What a statement touches of a buffer, in cells of its memory: surely all of `lo .. hi`, or, not `sure`, a part."""

    name: str
    home: str
    lo: int
    hi: int
    sure: bool
    mode: Mode
    span: Span

    def meets(self, other: Bytes) -> bool:
        return self.home == other.home and self.lo < other.hi and other.lo < self.hi


State = dict[str, frozenset[Bytes]]  # by buffer: what the role surely wrote of it and nobody wrote over since


def check(subject: Subject, rows: Rows, sink: Sink) -> None:
    mates = subject.plan.mates
    if not mates:
        return
    for b in subject.plan.placed.values():
        _placed(b, subject.plan.placed.get(b.alias or ""), sink)
    first: dict[tuple[str, str], Span] = {}  # role, buffer
    for role in subject.kernel.roles:
        _Run(subject, role, mates, sink).analyse()
        for s in walk(role.body):
            for b in touched(subject, s, mates):
                first.setdefault((role.name, b.name), b.span)
    _unordered(subject, mates, first, sink)


def _placed(b: Placed, home: Placed | None, sink: Sink) -> None:
    """A buffer that is declared to share bytes lies in them."""
    if home is None or home.cells.start <= b.cells.start and b.cells.stop <= home.cells.stop:
        return
    cells_of = lambda x: f"{x.cells.start} to {x.cells.stop - 1}"
    sink.error(
        "core/alias-place",
        f"'{b.name}' has {b.unit} {cells_of(b)}, outside of '{home.name}' ({cells_of(home)})",
        b.span,
        resource=b.name,
        why=f"it is declared to share the {b.unit} of that buffer (S14)",
        fix="place it there, or leave `alias` out",
        related=(Related(f"'{home.name}' is here", home.span),),
    )


def touched(subject: Subject, s: Stmt, mates) -> Iterator[Bytes]:
    """What a statement itself touches of buffers that share bytes, in the CTA's own memory."""
    for e in subject.effects(s):
        name = root(e.place) if isinstance(e, Access) and e.cta is None else None
        if name is not None and name.id in mates:
            yield _bytes(subject.plan.placed[name.id], e, name.type, s.span)


def _bytes(b: Placed, e: Access, declared: Tile | None, span: Span) -> Bytes:
    all_of_it = Bytes(b.name, b.alias or b.name, b.cells.start, b.cells.stop, False, e.mode, span)
    if not isinstance(declared, Tile):
        return all_of_it
    place = place_of(e.place, declared)
    if not all(isinstance(i, Int) for i in place.slots):
        return all_of_it
    cells = slot_cells(b, tuple(i.value for i in place.slots))
    return replace(all_of_it, lo=cells.start, hi=cells.stop, sure=tuple(p.size for p in place.parts) == b.shape)


class _Run(Paths[State]):
    """Follows one role: what its bytes surely hold."""

    def __init__(self, subject: Subject, role: Role, mates: dict[str, frozenset[str]], sink: Sink) -> None:
        super().__init__(_join, _join)
        self.subject, self.role, self.mates, self.sink = subject, role, mates, sink
        self.told: set[Span] = set()

    def analyse(self) -> None:
        self.block(self.role.body, {}, {})

    def effects(self, s: Stmt, state: State) -> State:
        found = tuple(touched(self.subject, s, self.mates))
        for n, b in enumerate(found):
            other = next((x for x in found[:n] if x.name in self.mates[b.name] and x.meets(b)), None)
            if other is not None:
                self._error(
                    s.span,
                    b.name,
                    f"'{other.name}' and '{b.name}' share {self._unit(b.name)}, and one statement touches both",
                    (),
                    f"give one of them {self._unit(b.name)} of its own",
                )
        for b in (x for x in found if x.mode is Mode.READ):
            over = next((w for w in _held(state, b) if w.name != b.name and (w.meets(b) if b.sure else w.lo <= b.lo and b.hi <= w.hi)), None)
            if over is not None:
                self._error(
                    s.span,
                    b.name,
                    f"'{b.name}' is read where its {self._unit(b.name)} hold '{over.name}'",
                    (Related(f"'{over.name}' is written here", over.span),),
                    f"write '{b.name}' first, or give it {self._unit(b.name)} of its own",
                )
        for b in (x for x in found if x.mode is Mode.WRITE):
            kept = frozenset(w for w in _held(state, b) if not w.meets(b))
            state = {**state, b.home: kept | {b} if b.sure else kept}
        if any(self._changes_hands(e) for e in self.subject.effects(s)):
            return {}
        return state

    def _unit(self, name: str) -> str:
        return self.subject.plan.placed[name].unit

    def _changes_hands(self, e) -> bool:
        """Whether others may have written behind it."""
        return isinstance(e, BarrierWait) or isinstance(e, Rendezvous) and e.scope != "warp" and self.subject.role(self.role.name).instances > 1

    def _error(self, at: Span, name: str, message: str, related: tuple[Related, ...], fix: str) -> None:
        if at not in self.told:
            self.told.add(at)
            self.sink.error(
                CODE,
                message,
                at,
                role=self.role.name,
                resource=name,
                why=f"at one time the {self._unit(name)} hold one of the two (S14)",
                fix=fix,
                related=related,
            )


def _held(state: State, b: Bytes) -> frozenset[Bytes]:
    return state.get(b.home, frozenset())


def _join(a: State, b: State) -> State:
    """What was surely written on both paths."""
    return {home: a[home] & b[home] for home in a.keys() & b.keys()}


# --- roles that nothing orders -------------------------------------------------------------------------------------


def _unordered(subject: Subject, mates, first: dict[tuple[str, str], Span], sink: Sink) -> None:
    groups = _ordered(subject)
    for (role, buffer), at in first.items():
        for (other, mate), there in first.items():
            if (buffer, role) < (mate, other) and mate in mates[buffer] and groups[role] != groups[other]:
                unit = subject.plan.placed[buffer].unit
                sink.error(
                    CODE,
                    f"role '{role}' uses '{buffer}' and role '{other}' '{mate}' at the same {unit}, and nothing orders the two roles",
                    at,
                    role=role,
                    resource=buffer,
                    related=(Related(f"'{mate}' is used here", there),),
                    why=f"at one time the {unit} hold one of the two (S14)",
                    fix=f"a pipeline between the roles, or {unit} of its own for each buffer",
                )


def _ordered(subject: Subject) -> dict[str, str]:
    """By role, one of those with which it shares barriers, directly or by way of others: the same for all of them."""
    uses: dict[str, set[str]] = {}
    for role in subject.kernel.roles:
        for s in walk(role.body):
            for e in subject.effects(s):
                for barrier in _barriers(e):
                    uses.setdefault(barrier, set()).add(role.name)
    group = {r.name: r.name for r in subject.kernel.roles}
    for together in uses.values():
        names = {group[r] for r in together}
        group = {r: min(names) if g in names else g for r, g in group.items()}
    return group


def _barriers(e) -> Iterator[str]:
    match e:
        case BarrierWait(barrier) | BarrierArrive(barrier) | EngineCommit(barrier) | BarrierInit(barrier):
            yield root(barrier).id
        case Access(completion=BySignal(barrier)) if barrier is not None:
            yield root(barrier).id
        case Rendezvous(scope="cta" | "cluster"):
            yield e.scope
        case Rendezvous(id=Int(number)):
            yield f"named {number}"
