"""What is checked of a derived kernel: the rules of the default suites, and what still needs a walk of its own over registers.

Rules (`rules/`) read facts; registers and the groups that use them are followed here, since fragments are no facts. All of it reads
the derived form alone, so it holds for what the compiler derived and for what a person wrote.
"""

from __future__ import annotations

from collections.abc import Callable

from cake_core.architecture import Architecture
from cake_core.check import groups, registers
from cake_core.check.subject import Subject
from cake_core.diagnostics import Diagnostic, Sink
from cake_core.facts import Rows, facts_of, rows_of
from cake_core.ir.nodes import Kernel
from cake_core.rules import Predicates, Rulebook, judge, rulebook


def check(
    kernel: Kernel, registry, arch: Architecture, book: Rulebook | None = None, prover: Callable[[Rows], Predicates] | None = None
) -> list[Diagnostic]:
    """All findings about an elaborated derived-form kernel: those of rules by their ids, then those of registers and groups.

    `book`: the rules, without it the default suites. `prover` makes who answers predicates for a kernel's rows; without one they
    are unknown. Raises CakeError where a pack can't be read.
    """
    book = book or rulebook()
    sink = Sink()
    with sink.collecting():
        rows = rows_of(facts_of(kernel, registry, arch), arch, registry)
        found = judge(book.rules, rows, prover(rows) if prover is not None else None)
        sink.add(*(v.finding for v in found if v.finding is not None))
        subject = Subject(kernel, registry, arch)
        for one in (registers.check, groups.check):
            with sink.collecting():
                one(subject, rows, sink)
    return sink.items
