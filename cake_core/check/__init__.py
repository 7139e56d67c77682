"""What is checked of a derived kernel: the rules of the default suites, and what still needs a walk of its own over registers.

Rules (`rules/`) read facts; registers and the groups that use them are followed here, since fragments are no facts, and so is what the bytes
of buffers that share them hold. All of it reads
the derived form alone, so it holds for what the compiler derived and for what a person wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from cake_core.architecture import Architecture
from cake_core.check import aliases, filled, groups, registers
from cake_core.check.safety import Account, account, not_analysed, told
from cake_core.check.subject import Subject
from cake_core.check.suppressions import Suppressions
from cake_core.diagnostics import Diagnostic, Sink, Suppressed
from cake_core.facts import Facts, Rows, facts_of, rows_of
from cake_core.frozen import frozen
from cake_core.ir.nodes import Kernel
from cake_core.rules import Predicates, Rule, Rulebook, asking, judge, rulebook


def check(
    kernel: Kernel, registry, arch: Architecture, book: Rulebook | None = None, prover: Callable[[Rows, tuple[Rule, ...]], Predicates] | None = None
) -> list[Diagnostic]:
    """All findings of `checked`."""
    return checked(kernel, registry, arch, book, prover).findings


@frozen
class Checked:
    """`account`: which safety categories are proved. `suppressed`: findings that are let pass. `facts`: what was judged; None of a
    text that no facts could be read off."""

    findings: list[Diagnostic]
    account: Account = Account()
    suppressed: tuple[Suppressed, ...] = ()
    facts: Facts | None = None


def checked(
    kernel: Kernel,
    registry,
    arch: Architecture,
    book: Rulebook | None = None,
    prover: Callable[[Rows, tuple[Rule, ...]], Predicates] | None = None,
    allow: Collection[str] = (),
    suppressions: Suppressions | None = None,
) -> Checked:
    """An elaborated derived-form kernel, judged: findings of rules by their ids, then those of registers and groups, then what has to be
    proved and is not.

    `book`: the rules, without it the default suites. `prover` makes who answers predicates for a kernel's rows; without one the rules
    that ask them are left out, and what they cover is unproved without a word. `allow`: safety categories that may be. `suppressions`: findings
    that are let pass. Raises CakeError where a pack can't be read.
    """
    book = book or rulebook()
    sink, of, passed, facts = Sink(), Account(), [], None
    with sink.collecting():
        facts = facts_of(kernel, registry, arch)
        rows = rows_of(facts, arch, registry)
        rules = book.rules if prover is not None else tuple(r for r in book.rules if not asking(r))
        asked = prover(rows, rules) if prover is not None else None
        try:
            found = judge(rules, rows, asked, most=None, kept=getattr(asked, "kept", None))
        finally:
            if asked is not None:
                asked.close()
        shown, passed = (suppressions or Suppressions()).split(found)
        sink.add(*told(shown, allow))
        subject = Subject(kernel, registry, arch)
        for one in (registers.check, groups.check, filled.check, aliases.check):
            with sink.collecting():
                one(subject, rows, sink)
        of = account(book.rules, found, rows)
        if asked is not None and not sink.errors:  # what is violated is mended first
            sink.add(*not_analysed(of, found, rows, allow))
    return Checked(sink.items, of, tuple(passed), facts)
