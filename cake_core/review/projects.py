"""What `cake.toml` says of rules in both versions of a repository: what it let pass before and what it lets pass now.

A project can have findings below their level, waive them, judge fewer rules, and ask no more for a pack. None of that is a change of a rule, and all of it
lets more pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cake_core.diagnostics import CakeError, Diagnostic, Severity
from cake_core.frozen import frozen
from cake_core.rules.book import RANK
from cake_core.rules.settings import Settings, Waiver, read_settings
from cake_core.source import Span

#: Characters of a waiver's reason: fewer give none.
REASON = 20
CODE = "review/settings"


@frozen
class Project:
    """`file`: a `cake.toml`, from the repository's root on. `said`: None where it can't be read, and then `findings` say why."""

    file: str
    said: Settings | None
    findings: tuple[Diagnostic, ...] = ()


def read_project(root: Path, file: str) -> Project:
    try:
        return Project(file, read_settings(root / file, file))
    except CakeError as error:
        return Project(file, None, error.diagnostics)


def changed_settings(old: tuple[Project, ...], new: tuple[Project, ...], nobody) -> Iterator[Diagnostic]:
    """What lets more pass than before, each as a finding. `nobody`: whether a name is of no one who could be asked."""
    before = {p.file: p.said or Settings() for p in old}
    now = {p.file: p for p in new}
    for d in (d for project in new for d in project.findings):
        yield Diagnostic(CODE, f"'{d.span.file}' can't be read: {d.message}", d.span, fix=d.fix or "mend it: no check of this project runs")
    for file in sorted(before.keys() | now.keys()):
        if file not in now or now[file].said is not None:
            said = now[file].said if file in now else Settings()
            yield from _looser(file, before.get(file, Settings()), said, nobody)


def _looser(file: str, old: Settings, new: Settings, nobody) -> Iterator[Diagnostic]:
    at = new.span or Span(file, 1, 1, 1, 2)
    asked = {n.name: n.range for n in new.packs}
    for need in old.packs:
        if need.name not in asked:
            fix = "bring it back: without it a pack that is not there is missed by nobody"
            yield Diagnostic(CODE, f"'{file}' asks no more for the pack '{need.name}'", at, fix=fix)
        elif need.range and asked[need.name] != need.range:
            said = f"'{file}' asks for the pack '{need.name}' {asked[need.name] or 'of any version'}, and asked for {need.range}"
            yield _look(said, at, "see which versions the range admits")
    if old.suite != new.suite:
        yield _look(f"'{file}' has the suite '{new.suite}' judged, and had '{old.suite}'", at, "see which rules are judged no more")
    levels = {s.name: s for s in new.levels}
    for was in old.levels:
        if was.name not in levels:
            yield _look(f"'{file}' no longer says the level of '{was.name}', which was {was.level}", at, "see what it is without")
    before = {s.name: s.level for s in old.levels}
    for s in new.levels:
        if s.name not in before or RANK[s.level] < RANK[before[s.name]]:
            was = f"was {before[s.name]}" if s.name in before else "was said nowhere"
            yield _look(f"'{file}' has '{s.name}' at {s.level}, which {was}", s.span, "see that it is not below what it should be")
    yield from _waivers(file, old, new, nobody)


def _waivers(file: str, old: Settings, new: Settings, nobody) -> Iterator[Diagnostic]:
    before = {w.rule: w for w in old.waivers}
    for w in new.waivers:
        was = before.get(w.rule)
        if was is not None and RANK[w.level] >= RANK[was.level]:
            continue
        wrong = _wrong(w, nobody)
        message = f"'{file}' waives '{w.rule}', to {w.level}{', by ' + repr(w.owner) if not wrong else ', ' + wrong}"
        fix = "mend the kernel instead, or say why nothing wrong passes and who answers for it" if wrong else "let its owner agree"
        yield Diagnostic(CODE, message, w.span, Severity.ERROR if wrong else Severity.WARNING, why=w.reason, fix=fix)


def _wrong(w: Waiver, nobody) -> str:
    if len(w.reason) < REASON:
        return "and gives no reason"
    return f"and '{w.owner}' is nobody who could answer for it" if nobody(w.owner) else ""


def _look(message: str, at: Span, fix: str) -> Diagnostic:
    return Diagnostic(CODE, message, at, Severity.WARNING, fix=fix)
