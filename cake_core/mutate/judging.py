"""One mutant before its judges: the compiler's own checks, the proof, and the event machine at small sizes, each asked for itself.

A mutant is *agreed* on where proof and machine say the same, *missed* where the machine shows a fault that neither a check nor the proof
finds, *alarm* where the proof rejects it and the machine finds nothing at all the sizes that are tried.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from cake_core.architecture import Architecture
from cake_core.check import check
from cake_core.diagnostics import CakeError, Severity
from cake_core.effects import Mode
from cake_core.elaborate import elaborate
from cake_core.facts import Facts, Rows, facts_of, rows_of
from cake_core.frozen import frozen
from cake_core.ir.nodes import Kernel
from cake_core.machine import Fault, Kind, MachineError, Scenario, explore, replay
from cake_core.mutate.sites import Edit
from cake_core.prove.answers import Answers
from cake_core.rules.predicates import Answer, Given, Standing

#: What the proof speaks of. Other faults are for rules about text, fences and addresses.
PROVED_KINDS = frozenset(
    {Kind.DEADLOCK, Kind.RACE, Kind.UNWRITTEN, Kind.ASYNC, Kind.PHASE, Kind.OVERRUN, Kind.IN_FLIGHT, Kind.ARRIVALS, Kind.NAMED, Kind.BYTES}
)


class Outcome(StrEnum):
    REFUSED = "refused"  # the compiler does not take the text
    REJECTED = "rejected"  # by proof or checks, and the machine shows the fault
    SAFE = "safe"  # proved, and the machine finds nothing
    CHECKED = "checked"  # by a check alone: not of the proof's kinds, or nothing that the machine executes
    MISSED = "missed"  # the machine shows a fault, and no one else
    ALARM = "alarm"  # the proof rejects, and the machine finds nothing
    UNKNOWN = "unknown"  # outside of the method, as the proof says
    UNRUN = "unrun"  # what the machine can't execute


@frozen
class Case:
    """What became of one mutant. `codes`: of the compiler's findings; `proof`: its question and answer; `fault`: the machine's first of the proof's
    kinds, or any; `at`: the sizes there; `unrun`: why the machine could execute it at no sizes; `seconds`: of proof and machine."""

    edit: Edit | None
    outcome: Outcome
    codes: tuple[str, ...] = ()
    proof: tuple[str, Answer] | None = None
    fault: Fault | None = None
    at: dict[str, int] | None = None
    unrun: str = ""
    seconds: tuple[float, float] = (0.0, 0.0)

    def record(self) -> dict:
        """As JSON."""
        e, p = self.edit, self.proof
        return {
            "operator": e.operator if e else "none",
            "what": e.what if e else "",
            "line": e.span.line if e else 0,
            "outcome": str(self.outcome),
            "codes": list(self.codes),
            "proof": None if p is None else {"question": p[0], "answer": str(p[1].standing), "reason": p[1].reason, "values": dict(p[1].values)},
            "machine": None if self.fault is None else {"kind": str(self.fault.kind), "fault": str(self.fault), "at": self.at},
            "unrun": self.unrun,
            "seconds": [round(s, 3) for s in self.seconds],
        }


@dataclass(slots=True)
class Judge:
    """Of mutants of one kernel. `scenarios`: sizes for the machine; `seconds` and `states` bound each."""

    registry: object
    arch: Architecture
    scenarios: Sequence[Scenario]
    seconds: float = 4.0
    states: int = 4000

    def case(self, edit: Edit | None, kernel: Kernel) -> Case:
        """What becomes of `kernel`, a derived form that is not elaborated yet. Raises nothing for a text that can be refused."""
        try:
            typed = elaborate(kernel, self.registry, self.arch, derived=True, overrides={})
            facts = facts_of(typed, self.registry, self.arch)
            rows = rows_of(facts, self.arch, self.registry)
        except CakeError as error:
            return Case(edit, Outcome.REFUSED, _codes(error.diagnostics))
        try:
            codes = _codes(d for d in check(typed, self.registry, self.arch) if d.severity is Severity.ERROR)
        except CakeError as error:
            codes = _codes(error.diagnostics)
        t = time.process_time()
        question, answer = verdict(rows)
        middle = time.process_time()
        fault, at, unrun = self.machine(facts, answer)
        spent = middle - t, time.process_time() - middle
        return Case(edit, _outcome(codes, answer, fault, unrun), codes, (question, answer), fault, at, unrun, spent)

    def machine(self, facts: Facts, answer: Answer) -> tuple[Fault | None, dict | None, str]:
        """The first fault of the proof's kinds, where the proof says that it goes wrong and at the scenarios, else any other, and where;
        last, why none of them could be executed."""
        other, ran, why = (None, None), False, ""
        for scenario in (*_witness(facts, answer), *self.scenarios):
            try:
                found = self.faults(facts, scenario)
            except MachineError as error:
                why = str(error)
                continue
            ran = True
            for f in found:
                if f.kind in PROVED_KINDS:
                    return f, dict(scenario.params), ""
                if other[0] is None:
                    other = f, dict(scenario.params)
        return *other, "" if ran else why

    def faults(self, facts: Facts, scenario: Scenario) -> tuple[Fault, ...]:
        """The first fault; all of them where that is none of the proof's kinds."""
        bounds = {"seconds": self.seconds, "limit_states": self.states}
        found = replay(facts, scenario, **bounds).faults
        if found and found[0].kind not in PROVED_KINDS:
            found = explore(facts, scenario, **bounds).faults
        return found


def _outcome(codes: tuple[str, ...], answer: Answer, fault: Fault | None, unrun: str) -> Outcome:
    spoken = fault is not None and fault.kind in PROVED_KINDS
    if unrun:
        return Outcome.CHECKED if codes else Outcome.UNRUN
    match answer.standing:
        case Standing.UNKNOWN:
            return Outcome.CHECKED if codes else Outcome.UNKNOWN
        case Standing.VIOLATED:
            return Outcome.REJECTED if spoken else Outcome.CHECKED if codes else Outcome.ALARM
    if spoken:
        return Outcome.CHECKED if codes else Outcome.MISSED
    if codes:
        return Outcome.CHECKED
    return Outcome.SAFE if fault is None else Outcome.MISSED


def verdict(rows: Rows) -> tuple[str, Answer]:
    """The proof's first question that is violated, else one that it does not know the answer of, else that all hold."""
    undecided = None
    for question, answer in _answers(Answers(rows), rows):
        if answer.standing is Standing.VIOLATED:
            return question, answer
        if answer.standing is Standing.UNKNOWN:
            undecided = undecided or (question, answer)
            if question == "deadlock":
                break  # all others ask that first
    return undecided or ("", Answer(Standing.PROVED))


def _answers(proof: Answers, rows: Rows) -> Iterator[tuple[str, Answer]]:
    """Of the proof itself: what was proved before and kept is asked again."""
    yield "deadlock", proof.deadlock_free()
    for relation in ("wait", "arrive", "engine_arrive"):
        for row in rows[relation]:
            if row.site.part != "before":
                yield "phase", proof.phase_safe(row, ())
    accesses = [r for r in rows["access"] if r.site.act.region.memory in ("shared", "tensor")]
    for n, a in enumerate(accesses):
        for b in accesses[n:]:
            if "write" in (a.site.act.mode, b.site.act.mode):
                yield "race", proof.ordered(a, b, (Given("same_slot", (a, b)), Given("overlap", (a, b))))
    for row in accesses:
        if row.site.act.mode is Mode.READ or row.site.act.atomic:
            yield "unwritten", proof.written(row, ())
    yield "in flight", proof.drained(())


def _witness(facts: Facts, answer: Answer) -> Iterator[Scenario]:
    """Where the proof says that it goes wrong, if that is small enough to be run."""
    sizes = dict(answer.values)
    cluster, clusters = sizes.pop("cluster.id", 0), sizes.pop("cluster.count", 1)
    if sizes and set(facts.scalars) <= set(sizes) and max(sizes.values()) <= 1 << 14:
        yield Scenario({n: sizes[n] for n in facts.scalars}, cluster, clusters)


def _codes(diagnostics) -> tuple[str, ...]:
    return tuple(dict.fromkeys(d.code for d in diagnostics))
