"""Verdicts of rules, and the findings that they are told as."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum

from cake_core.diagnostics import Diagnostic, Related, Severity, Witness
from cake_core.facts import Row, Rows
from cake_core.frozen import frozen, thawed
from cake_core.rules.evaluate import Evaluator, OverBudget, Undecidable
from cake_core.rules.names import deprecation
from cake_core.rules.predicates import Answer
from cake_core.rules.schema import Also, Level, Rule, Status, Template
from cake_core.rules.terms import words
from cake_core.source import Span


class Outcome(StrEnum):
    """What becomes of a rule for a kernel, or for one match of it."""

    PROVED = "proved"
    VIOLATED = "violated"
    UNKNOWN = "unknown"
    INAPPLICABLE = "inapplicable"
    ERROR = "error"


@frozen
class Verdict:
    """One verdict. Proved and inapplicable ones speak of all matches together, `matches` of them; each of the others of the one whose
    facts are in `bindings`. `answer`: reason and witness."""

    rule: Rule
    outcome: Outcome
    bindings: Mapping[str, Row | str | None] = field(default_factory=dict)
    answer: Answer | None = None
    matches: int = 0
    finding: Diagnostic | None = None


#: What a finding says of a rule without an answer.
SAID = {"rules/undecided": "is not decided", "rules/failed": "has no answer", "rules/budget": "is over its budget"}
#: Of a value in a text.
MAX_SHOWN = 1000
#: Further places of one kind that a finding names.
MOST_PLACES = 2

SEVERITY = {Level.ERROR: Severity.ERROR, Level.WARNING: Severity.WARNING, Level.INFO: Severity.NOTE}


def severity(rule: Rule) -> Severity:
    """Findings of a rule that is not stable fail no build."""
    of = SEVERITY[rule.level]
    return of if rule.status in (Status.STABLE, Status.DEPRECATED) or of is Severity.NOTE else Severity.WARNING


def finding(rule: Rule, bindings: Mapping[str, Row | str | None], answer: Answer, evaluator: Evaluator, extra: str = "") -> Diagnostic:
    """A violation, in the words of the rule. `evaluator`: of the rule, whose budget is spent on words too; `extra`: what the decision adds to
    the reason. Raises OverBudget."""
    rows, text = evaluator.rows, Filler(evaluator, bindings)
    at = _at(rule, bindings)
    why = text.of(rule.detail) if rule.detail else rule.why
    if rule.status is Status.DEPRECATED:
        said, _, instead = deprecation(rule)
        extra = "; ".join(p for p in (extra, said, instead) if p)
    parts = [f"{extra}. {why[:1].upper()}{why[1:]}"] if answer.reason and extra and why else [why, extra]
    span = answer.span or place(at, rows)
    related = [r for also in rule.also for r in text.places(also)]
    told = {span, *(r.span for r in related)}
    related += [Related(say, s) for s, say in answer.places if s not in told]
    return Diagnostic(
        rule.id,
        text.of(rule.message),
        span,
        severity(rule),
        resource=answer.resource or _resource(at),
        role=answer.role or _role(at),
        stage=answer.stage,
        iteration=answer.iteration,
        witness=_witness(answer),
        why="; ".join(p for p in parts if p),
        fix=answer.fix or (text.of(rule.help) if rule.help else None),
        related=tuple(related),
        rule_version=f"{rule.pack} {rule.version}" if rule.pack else None,
        category=rule.category,
        follows=tuple(id for how, id in rule.related if how == "follows"),
    )


def undecided(rule: Rule, bindings: Mapping[str, Row | str | None], answer: Answer, rows: Rows, code: str = "rules/undecided") -> Diagnostic:
    """Nothing is proved: as bad as a violation where the rule is stable, since unknown is not safe. Where the answer has an example that may be
    none, it is shown."""
    at = _at(rule, bindings)
    return Diagnostic(
        code,
        f"rule '{rule.id}' {SAID[code]}: {answer.reason}",
        answer.span or place(at, rows),
        severity(rule),
        resource=answer.resource or _resource(at),
        role=answer.role or _role(at),
        stage=answer.stage,
        iteration=answer.iteration,
        witness=_witness(answer),
        why=rule.limits or None,
        rule_version=f"{rule.pack} {rule.version}" if rule.pack else None,
        category=rule.category,
    )


def _witness(answer: Answer) -> Witness | None:
    if not answer.values and not answer.story:
        return None
    return Witness(answer.values, answer.story, answer.confirmed, answer.story_places, answer.fault)


def _at(rule: Rule, bindings: Mapping[str, Row | str | None]) -> Row | None:
    """The fact that a finding points at; where the kernel lacks it, another one of the match."""
    return bindings.get(rule.at) or next((r for r in bindings.values() if isinstance(r, Row)), None)


def place(row: Row | None, rows: Rows) -> Span | None:
    """Where a fact stands; of what derivation added without a place, the nearest thing in the text that has one."""
    if row is None:
        return None
    if row.span.line:
        return row.span
    for column in ("buffer", "barrier", "role"):
        owner = row.values.get(column)
        if owner is not None and (found := rows.index.get((column, owner))) is not None and found.span.line:
            return found.span
    kernel = rows["kernel"][0].span
    return kernel if kernel.line else None


def _resource(row: Row | None) -> str | None:
    if row is None:
        return None
    if row.relation in ("barrier", "buffer", "place"):
        return row.id
    if row.relation == "rendezvous":
        return f"barrier {row['number']}"
    if row.relation == "meet" and row["number"] is not None:
        return f"barrier {words(row['number'])}"
    return row.values.get("buffer") or row.values.get("barrier")


def _role(row: Row | None) -> str | None:
    if row is None:
        return None
    return row.id if row.relation == "role" else row.values.get("role")


@thawed
class Filler:
    """Fills the templates of one finding."""

    evaluator: Evaluator
    bindings: Mapping[str, Row | str | None]

    def places(self, also: Also) -> Iterator[Related]:
        """At most `MOST_PLACES` of one kind, those that have a place."""
        if also.over is None:
            envs = [dict(self.bindings)]
        else:
            envs = self.evaluator.facts(also.over, self.bindings)
        places: dict[Span, str] = {}
        for env in envs:
            row = env.get(also.over.var if also.over is not None else also.at)
            if (span := place(row, self.evaluator.rows)) is not None and len(places) < MOST_PLACES:
                places.setdefault(span, Filler(self.evaluator, env).of(also.say))
        for span, message in places.items():
            yield Related(message, span)

    def of(self, template: Template) -> str:
        return "".join(p if isinstance(p, str) else self._shown(p) for p in template.pieces)

    def _shown(self, node) -> str:
        try:
            said = words(self.evaluator.value(node, self.bindings))
        except OverBudget:
            raise
        except (Undecidable, KeyError):
            return "?"
        return said if len(said) <= MAX_SHOWN else f"{said[:MAX_SHOWN]}.."
