"""Who says that a text still goes wrong: a finding that is still told, a fault that the event machine still shows, a command that still ends so.

A smaller text must not go wrong in another way: a finding of a code that the whole text had not is a slip, and does not hold.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cake_core.architecture import Architecture
from cake_core.check import checked
from cake_core.diagnostics import CakeError, Diagnostic, Severity
from cake_core.facts import Facts, Rows, facts_of, rows_of
from cake_core.ir.nodes import Kernel
from cake_core.machine import Fault, Kind, MachineError, Scenario, replay, scenarios_of
from cake_core.prove.prover import Prover
from cake_core.rules import Outcome, Rule, Rulebook, Verdict, asking, judge
from cake_core.source import Source

#: Whether a text, and its repaired twin where there is one, still are what they are taken for.
Oracle = Callable[[str, str | None], bool]

#: Bounds of one run of the event machine; no clock, so that the answer is the same everywhere.
BOUNDS = {"seconds": None, "limit_states": 2000, "limit_picks": 20_000}
SILENT = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
#: Sizes at which the event machine is asked of one text.
SCENARIOS = 4


@dataclass(slots=True)
class Check:
    """What is found in a text, without the finding's words. `front` gives a text's elaborated kernel and architecture; `book`: the rules."""

    front: Callable[[Source], tuple[Kernel, Architecture]]
    registry: object
    book: Rulebook
    _kept: dict[str, tuple[Kernel, Architecture] | tuple[Diagnostic, ...]] = field(default_factory=dict)

    def typed(self, text: str) -> tuple[Kernel, Architecture] | tuple[Diagnostic, ...]:
        """The kernel, or the findings for which it is none."""
        if text not in self._kept:
            if len(self._kept) > 4:  # asked of a text and its twin at a time
                self._kept.clear()
            try:
                self._kept[text] = self.front(Source("text.cake", text))
            except CakeError as error:
                self._kept[text] = error.diagnostics
        return self._kept[text]

    def facts(self, text: str) -> Facts | None:
        found = self.typed(text)
        if not isinstance(found[0], Kernel):
            return None
        try:
            return facts_of(found[0], self.registry, found[1])
        except CakeError:
            return None

    def told(self, text: str, rules: Sequence[Rule], prove: bool = True, allow: Collection[str] | None = None) -> tuple[Diagnostic, ...]:
        """What is found: of these rules, or, without `prove`, of those that ask no prover; of the checks that are no rules too. `allow`: categories
        that may be unproved, all of them where it is None."""
        found = self.typed(text)
        if not isinstance(found[0], Kernel):
            return found
        book = Rulebook(self.book.packs, tuple(r for r in rules if prove or not asking(r)))
        prover = (lambda rows, judged: Prover(rows, judged)) if prove else None
        try:
            return tuple(checked(found[0], self.registry, found[1], book, prover, allow=_all(self.book) if allow is None else allow).findings)
        except CakeError as error:
            return error.diagnostics

    def codes(self, text: str, rules: Sequence[Rule], prove: bool = True, allow: Collection[str] | None = None) -> frozenset[str]:
        """Codes of what is found; arguments as of `told`."""
        return frozenset(d.code for d in self.told(text, rules, prove, allow))

    def rows(self, text: str) -> Rows | None:
        facts = self.facts(text)
        return rows_of(facts, self.typed(text)[1], self.registry) if facts is not None else None

    def errors(self, text: str) -> bool:
        """Whether all checks and the whole proof find an error."""
        return any(d.severity is Severity.ERROR for d in self.told(text, self.book.rules, allow=()))

    def verdicts(self, text: str, rules: Sequence[Rule]) -> list[Verdict]:
        """Of these rules, by the prover; none of what is no kernel."""
        rows = self.rows(text)
        if rows is None:
            return []
        return judge(rules, rows, Prover(rows, tuple(rules)))

    def outcomes(self, text: str, rules: Sequence[Rule]) -> frozenset[Outcome]:
        return frozenset(v.outcome for v in self.verdicts(text, rules))

    def cheap(self, text: str) -> frozenset[str]:
        """What is found without a prover."""
        return self.codes(text, self.book.rules, prove=False)


def _all(book: Rulebook) -> frozenset[str]:
    """Every category: what is not proved of a text is no finding here."""
    return frozenset(c for r in book.rules for c in r.covers)


def finding_oracle(check: Check, code: str, bad: str, good: str | None = None) -> Oracle:
    """The finding `code` is told of the bad text, of the same resource and role, and not of the good one; of neither is anything told that was not of the
    whole `bad` and `good`. Of a rule, the good text keeps what the whole one keeps: that it is not decided is not enough."""
    rules = [r for p in check.book.packs for r in p.rules if r.id == code]
    whole = _about(check, code, bad, rules)
    quiet = tuple(check.cheap(t) if t is not None else frozenset() for t in (bad, good))
    kept = check.outcomes(good, rules) if good is not None else frozenset()

    def holds(text: str, good: str | None) -> bool:
        if not check.cheap(text) <= quiet[0] | {code} or not _about(check, code, text, rules) & whole:
            return False
        if good is None:
            return True
        return check.cheap(good) <= quiet[1] - {code} and (check.outcomes(good, rules) == kept if rules else not _about(check, code, good, rules))

    return holds


def _about(check: Check, code: str, text: str, rules: Sequence[Rule]) -> frozenset[tuple]:
    """Resource and role of each finding of a code."""
    if rules:
        told = [v.finding for v in check.verdicts(text, rules) if v.finding is not None]
    else:
        told = check.told(text, check.book.rules, prove=False)
    return frozenset((d.resource, d.role) for d in told if d.code == code)


def fault_oracle(check: Check, kind: Kind, bad: str, sizes: Sequence[Scenario] = (), accepted: bool = False) -> Oracle:
    """The event machine shows a fault of this kind in the bad text and none of it in the good one, and of neither is anything told that was not of
    the whole `bad`. `accepted`: the proof is asked too. `sizes`: at these alone, where they still are the text's."""
    quiet = check.cheap(bad)
    proved = check.codes(bad, check.book.rules, allow=()) if accepted else frozenset()

    def holds(text: str, good: str | None) -> bool:
        if not check.cheap(text) <= quiet or kind not in faults(check, text, sizes):
            return False
        if good is not None and (not check.cheap(good) <= quiet or kind in faults(check, good, sizes)):
            return False
        return not accepted or all(check.codes(t, check.book.rules, allow=()) <= proved for t in (text, good) if t is not None)

    return holds


def faults(check: Check, text: str, sizes: Sequence[Scenario] = ()) -> tuple[Kind, ...]:
    """Kinds of the faults that the event machine shows first, at each of some sizes; none of what it can't execute."""
    return tuple(dict.fromkeys(f.kind for f in shown(check, text, sizes)))


def shown(check: Check, text: str, sizes: Sequence[Scenario] = ()) -> Iterator[Fault]:
    """The faults that the event machine shows first, at each of some sizes."""
    facts = check.facts(text)
    if facts is None:
        return
    fitting = [s for s in sizes if set(s.params) == set(facts.scalars)]
    try:
        scenarios = fitting or scenarios_of(facts)[:SCENARIOS]
    except MachineError:
        return
    for scenario in scenarios:
        try:
            yield from replay(facts, scenario, **BOUNDS).faults
        except MachineError:
            continue


def command_oracle(command: str, code: int, seconds: float = 60.0) -> Oracle:
    """A shell command ends with `code` on the bad text, and otherwise on the good one. `{}` in it is the file; without it the file comes last."""

    def ends(text: str) -> int | None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "text.cake")
            file.write_text(text, encoding="utf-8")
            line = command.replace("{}", str(file)) if "{}" in command else f"{command} {file}"
            try:
                return subprocess.run(line, shell=True, check=False, timeout=seconds, **SILENT).returncode
            except subprocess.TimeoutExpired:
                return None

    return lambda text, good: ends(text) == code and (good is None or ends(good) != code)
