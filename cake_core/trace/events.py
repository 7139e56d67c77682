"""Events on tracks, whoever executed: tracks in groups, stretches of time on them, moments, and arrows from one stretch to another.

Times are numbers in a unit that the trace names; `microseconds` says how long that unit is where it is one of time. Stretches of one track follow each
other or lie inside of one another, as viewers want it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from cake_core.frozen import frozen
from cake_core.source import Span


class Kind(StrEnum):
    """What a track shows."""

    ROLE = "role"  # what the threads of one instance of a role do
    ENGINE = "engine"  # what one of its engines or queues does meanwhile
    BARRIER = "barrier"  # phases of a barrier
    MEMORY = "memory"  # who writes and who reads one slot


@frozen
class Track:
    """`group`: what it belongs to, such as a CTA. `detail`: words about it."""

    group: str
    name: str
    kind: Kind
    detail: str = ""


@frozen
class Slice:
    """From `start` to `end` on the track of that number. `waited`: how much of it, at its start, was waiting. `what`: one word on what it does: "wait",
    "arrive", "issue", "access", "engine", "phase", "read", "write", "stuck" or "". `span`: its statement. `details`: more, by name."""

    track: int
    name: str
    start: float
    end: float
    waited: float = 0
    what: str = ""
    span: Span | None = None
    details: tuple[tuple[str, str | int], ...] = ()


@frozen
class Mark:
    """A moment on a track."""

    track: int
    name: str
    at: float
    span: Span | None = None
    details: tuple[tuple[str, str | int], ...] = ()


@frozen
class Arrow:
    """The slice of number `source` let the slice `target` go on. `name`: through what. `last`: nothing that came later was missing."""

    source: int
    target: int
    name: str
    last: bool = True


@frozen
class Trace:
    """A run. `about`: facts about it, by name, such as the sizes. `unit`: what a time counts; `microseconds`: how long viewers show it."""

    title: str
    unit: str
    tracks: tuple[Track, ...]
    slices: tuple[Slice, ...]
    marks: tuple[Mark, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    about: tuple[tuple[str, str | int], ...] = ()
    microseconds: float = 1.0

    @property
    def end(self) -> float:
        return max((*(s.end for s in self.slices), *(m.at for m in self.marks)), default=0)


def beside(traces: Sequence[tuple[str, Trace]], *about: tuple[str, str | int]) -> Trace:
    """Several runs in one trace: the groups of each behind its name; with one run they keep their own."""
    tracks: list[Track] = []
    slices: list[Slice] = []
    marks: list[Mark] = []
    arrows: list[Arrow] = []
    for name, t in traces:
        track, first = len(tracks), len(slices)
        tracks += t.tracks if len(traces) == 1 else (replace(x, group=f"{name}, {x.group}") for x in t.tracks)
        slices += (replace(s, track=s.track + track) for s in t.slices)
        marks += (replace(m, track=m.track + track) for m in t.marks)
        arrows += (replace(a, source=a.source + first, target=a.target + first) for a in t.arrows)
    first = traces[0][1]
    return Trace(first.title, first.unit, tuple(tracks), tuple(slices), tuple(marks), tuple(arrows), about, first.microseconds)


@dataclass(slots=True)
class Recorder:
    """Gathers a trace while something runs: each method returns the number by which others refer to what it noted."""

    title: str
    unit: str
    microseconds: float = 1.0
    tracks: dict[Track, int] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)

    def track(self, group: str, name: str, kind: Kind, detail: str = "") -> int:
        """The number of a track, which is made when it is first named."""
        return self.tracks.setdefault(Track(group, name, kind, detail), len(self.tracks))

    def slice(
        self,
        track: int,
        name: str,
        start: float,
        end: float,
        waited: float = 0,
        what: str = "",
        span: Span | None = None,
        details: tuple[tuple[str, str | int], ...] = (),
    ) -> int:
        self.slices.append(Slice(track, name, start, end, waited, what, span, details))
        return len(self.slices) - 1

    def mark(self, track: int, name: str, at: float, span: Span | None = None, details: tuple[tuple[str, str | int], ...] = ()) -> None:
        self.marks.append(Mark(track, name, at, span, details))

    def arrow(self, source: int, target: int, name: str, last: bool = True) -> None:
        self.arrows.append(Arrow(source, target, name, last))

    def trace(self, *about: tuple[str, str | int]) -> Trace:
        made = tuple(map(tuple, (self.tracks, self.slices, self.marks, self.arrows)))
        return Trace(self.title, self.unit, *made, about, self.microseconds)
