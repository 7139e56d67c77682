"""The texts beside a rule, judged: bad ones break it, good ones reach it and keep it, and what is told is what stands beside them."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cake_core.diagnostics import CakeError, Diagnostic, Sink
from cake_core.diagnostics.text import render
from cake_core.facts import Rows
from cake_core.frozen import frozen
from cake_core.rules.engine import judge
from cake_core.rules.predicates import Predicates
from cake_core.rules.schema import Rule
from cake_core.rules.verdict import Outcome
from cake_core.source import Source, Span
from cake_core.syntax import decode

#: Lines that a bad and a good text may differ in to be a near miss: one statement, replaced or moved.
NEAR = 2


@frozen
class Trial:
    """What became of a rule's texts. `undecided`: texts of which the rule says nothing, for want of a prover."""

    rule: Rule
    bad: int
    good: int
    undecided: int
    findings: tuple[Diagnostic, ...]


def trial(rule: Rule, rows_of: Callable[[Source], Rows], prover: Callable[[Rows], Predicates] | None = None, update: bool = False) -> Trial:
    """Judge the texts in a rule's folder. `rows_of` makes the facts of a text. `update`: write what is told beside the bad ones."""
    folder, sink = rule.path.parent, Sink()
    texts = {kind: sorted(folder.glob(f"{kind}_*.cake")) for kind in ("bad", "good")}
    for path in sorted(set(folder.glob("*.cake")).difference(*texts.values())):
        at = Span(str(path), 1, 1, 1, 2)
        sink.error("rules/example", f"'{path.name}' is neither bad nor good", at, fix=f"call it 'bad_{path.name}' or 'good_{path.name}'")
    undecided = 0
    for kind, paths in texts.items():
        if not paths:
            sink.error("rules/example", f"'{rule.id}' has no {kind} text", rule.span, fix=f"write '{kind}_WHY.cake' beside the rule")
        for path in paths:
            with sink.collecting():
                undecided += _one(rule, kind, path, rows_of, prover, update, sink)
    if texts["bad"] and texts["good"] and min(_distance(a, b) for a in texts["bad"] for b in texts["good"]) > NEAR:
        sink.error(
            "rules/example",
            f"'{rule.id}' has no near miss",
            rule.span,
            why="a good text beside a bad one, in one statement different, shows what the rule turns on",
        )
    return Trial(rule, len(texts["bad"]), len(texts["good"]), undecided, tuple(sink.items))


def _one(rule: Rule, kind: str, path: Path, rows_of, prover, update: bool, sink: Sink) -> bool:
    """Whether a text is left undecided; what is wrong goes into the sink."""
    at = Span(str(path), 1, 1, 1, 2)
    try:
        source = decode(path.name, path.read_bytes())
        rows = rows_of(source)
    except OSError as error:
        sink.error("rules/example", f"'{path.name}' can't be read: {error.strerror}", at)
        return False
    except CakeError as error:
        span = error.diagnostics[0].span
        sink.error("rules/example", f"'{path.name}' has no facts: {error}", replace(span, file=str(path)) if span else at)
        return False
    found = judge([rule], rows, prover(rows, (rule,)) if prover is not None else None)
    outcomes = {v.outcome for v in found}
    if prover is None and outcomes == {Outcome.UNKNOWN}:
        return True
    wanted = Outcome.VIOLATED if kind == "bad" else Outcome.PROVED
    if outcomes != {wanted}:
        said = "; ".join(dict.fromkeys(v.finding.message for v in found if v.finding is not None))
        what = " and ".join(sorted(str(o) for o in outcomes)) or "not judged"
        sink.error(
            "rules/example",
            f"'{path.name}' is {what}, not {wanted}",
            at,
            why=said or ("nothing of it is what the rule matches" if Outcome.INAPPLICABLE in outcomes else None),
        )
    elif kind == "bad":
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
