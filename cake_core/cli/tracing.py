"""`cake run --trace`: what a run tells, gathered as a trace, and the file of it. An emulated run has a track for each warp and engine, and one a barrier;
a simulated one those of the event machine's pictures."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from cake_core.source import Span
from cake_core.trace import Kind, Recorder, Trace, beside, trace_bytes

#: Slices that a trace holds; viewers get slow beyond, and a file has megabytes.
MOST = 200_000


class Recording:
    """Implements `emulate.watch.Watch`. `span`: the place of a PTX line in the text; `role`: who a warp of a CTA is."""

    def __init__(self, title: str, span: Callable[[int], Span | None], role: Callable[[int], str | None]) -> None:
        self.recorder = Recorder(title, "instructions of a warp")
        self.span, self.role = span, role
        self.open: dict[int, list] = {}  # track: span, first line, start, end
        self.phases: dict[object, float] = {}
        self.full = False

    def _track(self, lanes) -> int:
        name = self.role(lanes.warp)
        return self.recorder.track(f"CTA {lanes.cta.number}", f"warp {lanes.warp}" + (f", {name}" if name else ""), Kind.ROLE)

    def ran(self, lanes, lines: Sequence[int], start: float) -> None:
        """Instructions of one statement behind each other are one slice."""
        track = self._track(lanes)
        for n, line in enumerate(lines):
            span, at = self.span(line), start + n
            now = self.open.get(track)
            if now is not None and now[3] == at and (now[0] and now[0].line) == (span and span.line):
                now[3] = at + 1
                continue
            self._close(track)
            self.open[track] = [span, line, at, at + 1]

    def waited(self, lanes, line: int, start: float, end: float, what: str) -> None:
        track = self._track(lanes)
        self._close(track)
        self._slice(track, f"waits for {what}", start, end, end - start, "wait", line)

    def performed(self, job, start: float, end: float) -> None:
        track = self.recorder.track(f"CTA {job.cta.number}", job.what.partition(" of line")[0], Kind.ENGINE)
        self._slice(track, job.what, start, end, 0, "engine", job.line)

    def completed(self, barrier, agent, at: float) -> None:
        track = self.recorder.track("barriers", barrier.name, Kind.BARRIER)
        begun = self.phases.get(barrier, 0.0)
        self.phases[barrier] = at
        self._slice(track, f"phase {barrier.phase - 1}", begun, at, 0, "phase", agent.line, (("ended by", agent.who),))

    def _close(self, track: int) -> None:
        if (now := self.open.pop(track, None)) is not None:
            span, line, start, end = now
            self._slice(track, f"line {span.line}" if span is not None else f"PTX line {line}", start, end, 0, "", line)

    def _slice(self, track: int, name: str, start: float, end: float, waited: float, what: str, line: int, details: tuple = ()) -> None:
        if len(self.recorder.slices) >= MOST:
            self.full = True
            return
        self.recorder.slice(track, name, start, end, waited, what, self.span(line), (*details, ("PTX line", line)))

    def file(self, *about: tuple[str, str | int]) -> bytes:
        for track in list(self.open):
            self._close(track)
        if self.full:
            about = (*about, ("cut", f"behind {MOST} stretches of time"))
        return trace_bytes(self.recorder.trace(*about))


class Clusters:
    """What the clusters of the first simulated launch did, one after another. Those behind MOST slices are left out, and the file says so."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []
        self.count = self.slices = 0
        self.over = False

    def told(self) -> Callable[[Trace], None] | None:
        """Who takes what the next launch does; None behind the first one."""
        if self.over:
            return None
        self.over = True
        return self._take

    def _take(self, trace: Trace) -> None:
        self.count += 1
        if not self.traces or self.slices + len(trace.slices) <= MOST:
            self.slices += len(trace.slices)
            self.traces.append(trace)

    def file(self, *about: tuple[str, str | int]) -> bytes | None:
        """None where nothing was launched."""
        if not self.traces:
            return None
        if self.count > len(self.traces):
            about = (*about, ("cut", f"behind {len(self.traces)} of {self.count} clusters"))
        return trace_bytes(beside([(f"cluster {n}", t) for n, t in enumerate(self.traces)], *about))


def checked_file(file: str) -> None:
    """Raises click.FileError where a trace can't be written, in front of a run that takes a while."""
    path = Path(file)
    folder = path.parent
    if file == "-":
        raise click.BadParameter("a trace goes to a file: what the run says goes to stdout", param_hint="--trace")
    try:
        if path.is_dir():
            raise click.FileError(file, "is a folder")
        if not folder.is_dir():
            raise click.FileError(file, f"there is no folder '{folder}'")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise click.FileError(file, "no permission to write it")
    except OSError as error:  # a name that is too long, or a closed folder
        raise click.FileError(file, error.strerror) from None


def write_trace(data: bytes, file: str) -> None:
    """The whole file or none: what stood there stays until all is written. Raises click.FileError."""
    path = Path(file)
    try:
        if path.exists() and not path.is_file():  # a device or a pipe
            path.write_bytes(data)
            return
        number, beside_it = tempfile.mkstemp(prefix=f".{path.name[:80]}.", dir=path.parent)
        try:
            with os.fdopen(number, "wb") as out:
                out.write(data)
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(beside_it, 0o666 & ~umask)
            os.replace(beside_it, path)
        except BaseException:
            os.unlink(beside_it)
            raise
    except OSError as error:
        raise click.FileError(file, error.strerror) from None
