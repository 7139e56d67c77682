"""What is checked of a derived kernel: the rules of the default suites, and what still needs a walk of its own over registers.

Rules (`rules/`) read facts; registers and the groups that use them are followed here, since fragments are no facts, and so is what the bytes
of buffers that share them hold. All of it reads
the derived form alone, so it holds for what the compiler derived and for what a person wrote.
"""

from __future__ import annotations

from collections.abc import Callable

from cake_core.architecture import Architecture
from cake_core.check import aliases, groups, registers
from cake_core.check.subject import Subject
from cake_core.diagnostics import Diagnostic, Severity, Sink
from cake_core.facts import Rows, facts_of, rows_of
from cake_core.frozen import frozen
from cake_core.ir.nodes import Kernel
from cake_core.rules import Outcome, Predicates, Rule, Rulebook, Verdict, asking, judge, rulebook


def check(
    kernel: Kernel, registry, arch: Architecture, book: Rulebook | None = None, prover: Callable[[Rows], Predicates] | None = None
) -> list[Diagnostic]:
    """All findings of `checked`."""
    return checked(kernel, registry, arch, book, prover).findings


@frozen
class Checked:
    """`covered`: safety categories of which every rule that speaks of them was judged, and none is broken or undecided."""

    findings: list[Diagnostic]
    covered: frozenset[str]


def checked(
    kernel: Kernel, registry, arch: Architecture, book: Rulebook | None = None, prover: Callable[[Rows], Predicates] | None = None
) -> Checked:
    """An elaborated derived-form kernel, judged: findings of rules by their ids, then those of registers and groups.

    `book`: the rules, without it the default suites. `prover` makes who answers predicates for a kernel's rows; without one the rules
    that ask them are left out, and what they cover is not analysed. Raises CakeError where a pack can't be read.
    """
    book = book or rulebook()
    sink = Sink()
    with sink.collecting():
        rows = rows_of(facts_of(kernel, registry, arch), arch, registry)
        rules = book.rules if prover is not None else tuple(r for r in book.rules if not asking(r))
        asked = prover(rows) if prover is not None else None
        found = judge(rules, rows, asked)
        if asked is not None:
            asked.close()
        sink.add(*(v.finding for v in found if v.finding is not None and not _outside(v)))
        outside = [v for v in found if _outside(v)]
        if outside and not any(d.severity is Severity.ERROR for d in sink.items):  # what is violated is mended first
            sink.add(not_analysed(outside, rows))
        subject = Subject(kernel, registry, arch)
        for one in (registers.check, groups.check, aliases.check):
            with sink.collecting():
                one(subject, rows, sink)
    return Checked(sink.items, covered(book.rules, found))


def _outside(v: Verdict) -> bool:
    return v.outcome is Outcome.UNKNOWN and v.answer is not None and v.answer.outside


def not_analysed(verdicts: list[Verdict], rows: Rows) -> Diagnostic:
    """One warning for all that the method does not speak of: what is not known is not proved, and the manifest says so."""
    rules = ", ".join(f"'{r}'" for r in dict.fromkeys(v.rule.id for v in verdicts))
    return Diagnostic(
        "rules/not-analysed",
        f"the proof does not speak of '{rows.facts.kernel}': {verdicts[0].answer.reason}",
        next((v.finding.span for v in verdicts if v.finding is not None and v.finding.span is not None), None),
        Severity.WARNING,
        why=f"not decided are {rules}; their categories stand in the manifest as unproved",
        fix="write the loop or the stage in a form that docs/proof.md names, or run it on the event machine",
    )


def covered(rules: tuple[Rule, ...], verdicts: list[Verdict]) -> frozenset[str]:
    """Categories that the verdicts prove: nothing of what covers them is missing, broken or undecided."""
    good = {v.rule.id for v in verdicts} - {v.rule.id for v in verdicts if v.outcome not in (Outcome.PROVED, Outcome.INAPPLICABLE)}
    return frozenset(c for r in rules for c in r.covers) - {c for r in rules if r.id not in good for c in r.covers}
