"""Findings that are let pass: `# cake: allow[acme/few-slots] reason: text` in a kernel's text, and what a baseline counts.

A comment speaks of findings that start on its line or, where it stands alone, on the next line with anything in it. Only rules that no
proof leans on can be let pass: safety and legality never, nor a rule that covers a safety category, whatever its kind.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from cake_core.diagnostics import Diagnostic, Severity, Sink, Suppressed
from cake_core.frozen import frozen
from cake_core.rules import Outcome, Rule, Rulebook, Verdict
from cake_core.rules.engine import MOST
from cake_core.rules.names import named
from cake_core.rules.schema import Kind
from cake_core.source import Source, Span

#: Kinds of rules whose findings may be let pass: advice.
ADVICE = (Kind.PERFORMANCE, Kind.PORTABILITY, Kind.STYLE)

#: Findings that one text may let pass.
MOST_ALLOWED = 500
FORM = "# cake: allow[RULE] reason: TEXT"
DIRECTIVE = re.compile(r"#\s*cake:\s*(?P<said>.*)")
ALLOW = re.compile(r"allow\s*\[(?P<ids>[^\]]*)\]\s*(?P<more>.*)")
REASON = re.compile(r"reason:\s*(?P<reason>\S.*)")


@frozen
class Allow:
    """One rule that a comment at `span` lets pass on one line of the text."""

    rule: str
    reason: str
    line: int
    span: Span


@frozen
class Suppressions:
    """What is let pass in one kernel. `counted`: rules whose findings a baseline counts, wherever they stand."""

    allows: tuple[Allow, ...] = ()
    counted: frozenset[str] = frozenset()

    def of(self, v: Verdict) -> Suppressed | None:
        """What becomes of a bad verdict's finding; None: it is told."""
        if v.finding is None or v.outcome not in (Outcome.VIOLATED, Outcome.UNKNOWN) or not suppressible(v.rule):
            return None
        at = v.finding.span
        found = next((a for a in self.allows if at is not None and a.rule == v.rule.id and (a.span.file, a.line) == (at.file, at.line)), None)
        if found is not None:
            return Suppressed(v.finding, v.rule.id, "inSource", found.reason, found.span)
        return Suppressed(v.finding, v.rule.id, "external", "the baseline counts it") if v.rule.id in self.counted else None

    def split(self, verdicts: Iterable[Verdict]) -> tuple[list[Verdict], list[Suppressed]]:
        """The verdicts whose findings are told, at most `MOST` of a rule, and the findings that are let pass, all of them."""
        told: list[Verdict] = []
        passed: list[Suppressed] = []
        bad: dict[str, int] = {}
        for v in verdicts:
            if (of := self.of(v)) is not None:
                passed.append(of)
                continue
            if v.finding is not None:
                bad[v.rule.id] = bad.get(v.rule.id, 0) + 1
            if bad.get(v.rule.id, 0) <= MOST:
                told.append(v)
        return told, passed


def suppressible(rule: Rule) -> bool:
    return rule.kind in ADVICE and not rule.covers


def allows_of(source: Source, book: Rulebook, sink: Sink) -> tuple[Allow, ...]:
    """What the comments of a text let pass; what is wrong with one goes into the sink: `rules/suppression`, `rules/suppression-refused`."""
    if "cake:" not in source.text:
        return ()
    from cake_core.syntax.parser import lexed

    read = lexed(source)
    out: list[Allow] = []
    for c in read.comments:
        if (found := DIRECTIVE.fullmatch(c.text)) is None:
            continue
        if len(sink.items) >= MOST:  # of findings and of comments more are more of the same
            break
        span = Span(source.name, c.line, c.column, c.line, c.column + len(c.text))
        behind = (read.tokens[i] for i in range(c.before, len(read.tokens)))
        below = next((t.line for t in behind if t.type not in ("_SEP", "$END")), c.line)
        out += _allowed(found.group("said"), span, below if c.own_line else c.line, book, sink)
        if len(out) > MOST_ALLOWED:
            sink.error(
                "rules/suppression", f"the text lets more than {MOST_ALLOWED} findings pass", span, fix="mend some, or count them in a baseline"
            )
            break
    return tuple(out)


def _allowed(said: str, span: Span, line: int, book: Rulebook, sink: Sink) -> Iterator[Allow]:
    found = ALLOW.fullmatch(said)
    ids = [i.strip() for i in found.group("ids").split(",")] if found else []
    if found is None or "" in ids:
        sink.error("rules/suppression", f"'{said[:40]}' is nothing that a comment tells cake", span, fix=f"write `{FORM}`")
        return
    reason = REASON.fullmatch(found.group("more"))
    if reason is None:
        sink.error("rules/suppression", f"nothing says why '{', '.join(ids)}' is let pass", span, fix=f"write `{FORM}`")
        return
    for id in ids[: MOST_ALLOWED + 1]:
        if len(sink.items) >= MOST:
            return
        if (wrong := refusal(id, book, span)) is not None:
            sink.add(wrong)
        else:
            yield Allow(id, reason.group("reason").strip(), line, span)


def refusal(id: str, book: Rulebook, span: Span | None) -> Diagnostic | None:
    """Why findings of a rule can't be let pass; None: they can."""
    rules = {r.id: r for p in book.packs for r in p.rules}
    if (rule := rules.get(id)) is not None:
        if suppressible(rule):
            return None
        why = f"it covers {', '.join(rule.covers)}" if rule.kind in ADVICE else f"it is a rule of kind {rule.kind}"
        return Diagnostic(
            "rules/suppression-refused",
            f"'{id}' can't be let pass",
            span,
            why=f"{why}, and what it finds is wrong with the kernel whatever is said of it",
            fix="mend what it finds, and take this away",
        )
    of = named(book.packs, id)
    return Diagnostic("rules/suppression", of.said, span, why=of.why, fix=of.fix)


def unused(source: Source, book: Rulebook, passed: Collection[Suppressed]) -> list[Diagnostic]:
    """A warning for each comment that let nothing pass, `passed` being what was in all kernels of the text for all targets. Rules that were
    not judged are left out."""
    used = {(s.rule, s.at) for s in passed}
    judged = {r.id for r in book.rules}
    return [
        Diagnostic(
            "rules/suppression-unused",
            f"'{a.rule}' finds nothing here that could be let pass",
            a.span,
            Severity.WARNING,
            fix="take the comment away, or put it on or above the line of the finding",
        )
        for a in allows_of(source, book, Sink())
        if a.rule in judged and (a.rule, a.span) not in used
    ]
