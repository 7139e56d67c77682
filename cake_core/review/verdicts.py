"""What a rule says of a kernel, and what that takes of the solver: the same numbers in every process, kept by content.

The solver's steps depend on what the process asked it before. So each rule is judged on each kernel in a process of its own, a copy of one
that has asked nothing.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import pickle
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from cake_core.diagnostics import CakeError
from cake_core.facts import Rows
from cake_core.frozen import frozen
from cake_core.prove import cache as kept
from cake_core.prove.prover import Prover
from cake_core.rules import Outcome, Rule, judge
from cake_core.smt import spending

#: Kernels whose verdicts are kept; the oldest go first.
MOST = 2048


@frozen
class Text:
    """A kernel of a text for one target. `name`: what tables call it."""

    name: str
    data: bytes
    kernel: str
    arch: str

    @property
    def shown(self) -> str:
        return f"{self.name} ({self.kernel}, {self.arch})"


@frozen
class Tally:
    """The verdicts of one rule on one kernel. `outcomes`: how many of each, by name; `told`: (line, message) of what is found; `checks` and
    `steps` of the solver, `most`: the steps of its largest question."""

    outcomes: tuple[tuple[str, int], ...]
    told: tuple[tuple[int, str], ...] = ()
    checks: int = 0
    steps: int = 0
    most: int = 0

    @property
    def verdict(self) -> str:
        """The worst of the outcomes, the one that a person is told."""
        there = {n for n, _ in self.outcomes}
        return next((str(o) for o in _WORST if o in there), str(Outcome.INAPPLICABLE))

    @property
    def found(self) -> tuple:
        """What must be the same in two versions: the verdicts, and at which lines; how it is said may differ."""
        return self.outcomes, tuple(line for line, _ in self.told)


_WORST = (Outcome.ERROR, Outcome.VIOLATED, Outcome.UNKNOWN, Outcome.PROVED, Outcome.INAPPLICABLE)
#: Of a text that has no facts: it is no kernel, and no rule says anything of it.
NO_FACTS = Tally((("no facts", 1),))
#: Of a rule whose process ended without an answer.
DIED = Tally(((str(Outcome.ERROR), 1),), ((0, "judging it ended without a verdict"),))


def tally(rule: Rule, rows: Rows) -> Tally:
    """Judge, in a process of its own."""
    return apart(lambda: _tally(rule, rows))


def _tally(rule: Rule, rows: Rows) -> Tally:
    with spending() as spent:
        prover = Prover(rows, (rule,), keep=False)
        found = judge([rule], rows, prover)
        prover.close()
    outcomes = tuple(sorted(Counter(str(v.outcome) for v in found).items()))
    told = ((v.finding.span.line if v.finding.span else 0, v.finding.message) for v in found if v.finding is not None)
    return Tally(outcomes, tuple(sorted(told)), spent.checks, spent.steps, spent.most)


def apart(work: Callable[[], Tally]) -> Tally:
    """What `work` gives in a copy of this process, or here where a process can't be copied."""
    if not hasattr(os, "fork"):
        return work()
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.close(out)
            with os.fdopen(into, "wb") as f:
                pickle.dump(work(), f)
        os._exit(0)
    os.close(into)
    try:
        with os.fdopen(out, "rb") as f:
            data = f.read()
    except KeyboardInterrupt:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        os.waitpid(child, 0)
    return pickle.loads(data) if data else DIED


# --- kept --------------------------------------------------------------------------------------------------------


@cache
def engine() -> str:
    """What judges: the compiler, its plugins and the solver, by their files."""
    from cake_core.plugins.entries import find_entries

    h = hashlib.sha256(kept.method().encode())
    packages = {"cake_core", *(e.point.value.partition(":")[0].partition(".")[0] for e in find_entries())}
    for name in sorted(packages):
        found = find_spec(name)
        for place in found.submodule_search_locations or () if found is not None else ():
            for path in sorted(p for p in Path(place).rglob("*") if p.suffix in (".py", ".lark", ".json", ".toml") and "__pycache__" not in p.parts):
                h.update(f"{name}/{path.relative_to(place).as_posix()}\0".encode() + path.read_bytes())
    return h.hexdigest()


def content(rule: Rule) -> str:
    """What a rule says, its pack's definitions included."""
    said = repr(sorted(rule.definitions.items())).encode()
    return hashlib.sha256(rule.path.read_bytes() + b"\0" + said).hexdigest()


@frozen
class Bench:
    """Judges rules on texts. `rows_of`: the facts of a text, raises CakeError where it has none. `jobs`: processes that judge side by side; the
    result is the same."""

    rows_of: Callable[[Text], Rows]
    jobs: int = 1

    def all(self, work: Sequence[tuple[Sequence[Rule], Text]]) -> Iterator[list[Tally]]:
        """Of each entry of `work`, in its order."""
        jobs = min(self.jobs, len(work))
        if jobs < 2 or "fork" not in multiprocessing.get_all_start_methods():
            yield from (self.tallies(rules, text) for rules, text in work)
            return
        engine()  # once, for all copies
        _SHARED[:] = [(self, rules, text) for rules, text in work]  # what a copy inherits need not be sent to it
        with multiprocessing.get_context("fork").Pool(jobs, _leave_interrupts) as pool:
            yield from pool.imap(_numbered, range(len(work)))

    def tallies(self, rules: Sequence[Rule], text: Text) -> list[Tally]:
        """Of each of the rules, on one text."""
        name = hashlib.sha256(b"\0".join((engine().encode(), text.kernel.encode(), text.arch.encode(), text.data))).hexdigest()
        place = kept.folder()
        path = place.parent / "verdicts" / f"{name}.json" if place is not None else None
        known = _read(path)
        keys = [content(r) for r in rules]
        missing = {k: r for k, r in zip(keys, rules, strict=True) if k not in known}
        if missing:
            try:
                rows = self.rows_of(text)
            except CakeError:
                rows = None
            known |= {k: tally(r, rows) if rows is not None else NO_FACTS for k, r in missing.items()}
            _write(path, known)
        return [known[k] for k in keys]


_SHARED: list[tuple[Bench, Sequence[Rule], Text]] = []


def _leave_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks ends its copies


def _numbered(number: int) -> list[Tally]:
    bench, rules, text = _SHARED[number]
    return bench.tallies(rules, text)


def _read(path: Path | None) -> dict[str, Tally]:
    if path is None:
        return {}
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["sum"] == _sum(found["tallies"]):
            return {k: _tuples(t) for k, t in found["tallies"].items()}
    return {}


def _tuples(t: dict) -> Tally:
    return Tally(tuple(map(tuple, t["outcomes"])), tuple(map(tuple, t["told"])), t["checks"], t["steps"], t["most"])


def record(t: Tally) -> dict:
    return {"outcomes": list(map(list, t.outcomes)), "told": list(map(list, t.told)), "checks": t.checks, "steps": t.steps, "most": t.most}


def _sum(tallies: dict) -> str:
    return hashlib.sha256(json.dumps(tallies, sort_keys=True).encode()).hexdigest()


def _write(path: Path | None, known: dict[str, Tally]) -> None:
    """Whole or not at all; a folder that can't be written keeps nothing."""
    if path is None:
        return
    import tempfile

    tallies = {k: record(t) for k, t in sorted(known.items()) if t != DIED}
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as f:
            json.dump({"sum": _sum(tallies), "tallies": tallies}, f)
        os.replace(name, path)
        for old in sorted(path.parent.glob("*.json"), key=lambda p: p.stat().st_mtime)[:-MOST]:
            old.unlink(missing_ok=True)
