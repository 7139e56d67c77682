"""The texts beside a rule, judged: bad ones break it, good ones reach it and keep it, and what is told is what stands beside them.

A text `gap_WHY.cake` is a fault that the rule does not find yet; it is watched, so that the day it is found it becomes a bad text.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cake_core.diagnostics import CakeError, Diagnostic, Severity, Sink
from cake_core.diagnostics.text import render
from cake_core.facts import Rows
from cake_core.frozen import frozen
from cake_core.rules.engine import judge
from cake_core.rules.predicates import Predicates
from cake_core.rules.probes import Judged, probe, untested
from cake_core.rules.schema import Rule
from cake_core.rules.unreached import unreached
from cake_core.rules.verdict import Outcome
from cake_core.source import Source, Span
from cake_core.syntax import decode

#: Lines that a bad and a good text may differ in to be a near miss: one statement, replaced or moved.
NEAR = 2
#: What becomes of a rule by the kinds of its texts; a gap is a fault that it does not find.
WANTED = {"bad": Outcome.VIOLATED, "good": Outcome.PROVED, "gap": None}


@frozen
class Trial:
    """What became of a rule's texts. `gaps`: faults that it does not find yet; `undecided`: texts of which the rule says nothing, for want of a
    prover; `probes`: by name, what each found wrong, empty where nothing."""

    rule: Rule
    bad: int
    good: int
    undecided: int
    findings: tuple[Diagnostic, ...]
    gaps: int = 0
    probes: tuple[tuple[str, str], ...] = ()


def trial(rule: Rule, rows_of: Callable[[Source], Rows], prover: Callable[[Rows], Predicates] | None = None, update: bool = False, thorough: bool = False) -> Trial:
    """Judge the texts in a rule's folder. `rows_of` makes the facts of a text. `update`: write what is told beside the bad ones;
    `thorough`: say which parts of the rule no text needs."""
    folder, sink = rule.path.parent, Sink()
    texts = {kind: sorted(folder.glob(f"{kind}_*.cake")) for kind in WANTED}
    for path in sorted(set(folder.glob("*.cake")).difference(*texts.values())):
        at = Span(str(path), 1, 1, 1, 2)
        fix = f"call it 'bad_{path.name}' or 'good_{path.name}'; a fault that the rule does not find yet 'gap_{path.name}'"
        sink.error("rules/example", f"'{path.name}' is neither bad nor good", at, fix=fix)
    judged: dict[str, list[Judged]] = {kind: [] for kind in WANTED}
    undecided = 0
    for kind, paths in texts.items():
        if not paths and kind != "gap":
            sink.error("rules/example", f"'{rule.id}' has no {kind} text", rule.span, fix=f"write '{kind}_WHY.cake' beside the rule")
        for path in paths:
            with sink.collecting():
                rows = _rows(path, rows_of, sink)
                if rows is None:
                    continue
                judged[kind].append((rows, prover(rows, (rule,)) if prover is not None else None))
                undecided += _one(rule, kind, path, judged[kind][-1], update, sink)
    if texts["bad"] and texts["good"] and min(_distance(a, b) for a in texts["bad"] for b in texts["good"]) > NEAR:
        sink.error(
            "rules/example",
            f"'{rule.id}' has no near miss",
            rule.span,
            why="a good text beside a bad one, in one statement different, shows what the rule turns on",
        )
    if texts["gap"] and not rule.limits:
        sink.error("rules/example", f"'{rule.id}' has a gap and no 'limits'", rule.span, fix="say in 'limits' what it does not find")
    found = {} if undecided or sink.items else probe(rule, judged["bad"], judged["good"])
    for name, wrong in found.items():
        if wrong:
            sink.error("rules/probe", f"'{rule.id}' fails the {name} probe: {wrong}", rule.span)
    if thorough and found and not any(found.values()):
        for what, span in untested(rule, judged["bad"], judged["good"]):
            sink.add(Diagnostic("rules/untested", f"'{rule.id}' has what no text needs, {what}", span, Severity.NOTE))
    counts = {kind: len(paths) for kind, paths in texts.items()}
    return Trial(rule, counts["bad"], counts["good"], undecided, tuple(sink.items), counts["gap"], tuple(found.items()))


def _rows(path: Path, rows_of: Callable[[Source], Rows], sink: Sink) -> Rows | None:
    at = Span(str(path), 1, 1, 1, 2)
    try:
        return rows_of(decode(path.name, path.read_bytes()))
    except OSError as error:
        sink.error("rules/example", f"'{path.name}' can't be read: {error.strerror}", at)
    except CakeError as error:
        span = error.diagnostics[0].span
        sink.error("rules/example", f"'{path.name}' has no facts: {error}", replace(span, file=str(path)) if span else at)
    return None


def _one(rule: Rule, kind: str, path: Path, judged: Judged, update: bool, sink: Sink) -> bool:
    """Whether a text is left undecided; what is wrong goes into the sink."""
    at = Span(str(path), 1, 1, 1, 2)
    rows, prover = judged
    found = judge([rule], rows, prover)
    outcomes = {v.outcome for v in found}
    if prover is None and outcomes == {Outcome.UNKNOWN}:
        return True
    if kind == "gap":
        if Outcome.VIOLATED in outcomes:
            sink.error("rules/example", f"'{path.name}' is found", at, fix=f"call it '{path.name.replace('gap_', 'bad_', 1)}': it is no gap any more")
    elif outcomes != {WANTED[kind]}:
        said = "; ".join(dict.fromkeys(v.finding.message for v in found if v.finding is not None))
        what = " and ".join(sorted(str(o) for o in outcomes)) or "not judged"
        sink.error(
            "rules/example",
            f"'{path.name}' is {what}, not {WANTED[kind]}",
            at,
            why=said or (unreached(rule, rows) if Outcome.INAPPLICABLE in outcomes else None),
        )
    elif kind == "bad":
        source = decode(path.name, path.read_bytes())
        _told(path, render([v.finding for v in found], {source.name: source}, color=False), update, at, sink)
    return False


def _told(path: Path, text: str, update: bool, at: Span, sink: Sink) -> None:
    golden = path.with_suffix(".diag")
    if update:
        try:
            golden.write_text(text, encoding="utf-8")
        except OSError as error:
            sink.error("rules/example", f"'{golden.name}' can't be written: {error.strerror}", at)
            return
    before = golden.read_text(encoding="utf-8", errors="replace") if golden.is_file() else None
    if before != text:
        first = next(
            (
                line
                for line in difflib.unified_diff((before or "").splitlines(), text.splitlines(), lineterm="", n=0)
                if line[0] == "+" and not line.startswith("+++")
            ),
            "",
        )
        why = "there is no such file" if before is None else f"it now says: {first[1:].strip()}"
        sink.error("rules/example", f"'{golden.name}' is not what is told", at, why=why, fix="read the difference, then --update")


def _distance(a: Path, b: Path) -> int:
    lines = difflib.ndiff(*([s.strip() for s in p.read_text(encoding="utf-8", errors="replace").splitlines()] for p in (a, b)))
    changes = [line[0] for line in lines]
    return max(changes.count("-"), changes.count("+"))
