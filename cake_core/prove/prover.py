"""The prover behind the predicates of the rule language (`rules/predicates.py`): what was proved before is known, the rest is asked
(`answers.py` about order, `memory.py` about addresses). The solver is imported when something is not known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cake_core.facts import Row, Rows
from cake_core.frozen import thawed
from cake_core.ir.printer import expr_text
from cake_core.prove.cache import Proofs, content
from cake_core.prove.effort import asked
from cake_core.rules.engine import judge, predicates_of
from cake_core.rules.predicates import PROVED, Answer, Conditions, Given, Standing, unknown

if TYPE_CHECKING:
    from cake_core.prove.answers import Answers
    from cake_core.prove.beside import Beside
    from cake_core.prove.memory import Memory
    from cake_core.rules import Rule

#: Predicates about addresses and what launches are admitted, and about order. Others are decided by the rules' own room.
ADDRESSES = frozenset({"in_bounds", "fits", "aligned", "disjoint", "bank_degree", "may_hold", "may_run", "meant", "exclusive"})
ORDER = frozenset({"deadlock_free", "ordered", "completes", "phase_safe", "drained", "written"})


@thawed
class Prover:
    """Answers for one kernel. `rules`: those that will ask; with two `cores` copies of this process prove a part of what they ask."""

    rows: Rows
    rules: tuple[Rule, ...] = ()
    cores: int = 1
    keep: bool = True  # what is proved, and take what was
    examples: bool = True  # of what is violated
    _addresses: Beside | None = None  # who proves what is asked of addresses
    _sweeps: Beside | None = None  # who proves a part of what is asked of order
    _copy: bool = False  # this process is the one that proves what is asked of addresses, and no more
    _shared: bool = False  # whether the other core was thought of
    _heard: bool = False  # whether it told what it proved of addresses
    _answers: Answers | None = None
    _memory: Memory | None = None
    _proofs: Proofs | None = None

    def begin(self) -> None:
        """Let other processes prove their part, if there are any, while rules are judged that ask nothing of it."""
        if self.cores > 1:
            self._share()

    def deadlock_free(self, kernel: Row, given: Conditions = ()) -> Answer:
        return self._once("deadlock_free", (), given, lambda: self._asked.deadlock_free(given))

    def ordered(self, a: Row, b: Row, given: Conditions = ()) -> Answer:
        return self._once("ordered", (a, b), given, lambda: self._asked.ordered(a, b, given))

    def completes(self, access: Row, before: Row, given: Conditions = ()) -> Answer:
        return self._once("completes", (access, before), given, lambda: self._asked.completes(access, before, given))

    def served(self, kernel: Row, given: Conditions = ()) -> Answer:
        return self._once("served", (), given, lambda: self._asked.served(given))

    def phase_safe(self, sync: Row, given: Conditions = ()) -> Answer:
        return self._once("phase_safe", (sync,), given, lambda: self._asked.phase_safe(sync, given))

    def drained(self, kernel: Row, given: Conditions = ()) -> Answer:
        return self._once("drained", (), given, lambda: self._asked.drained(given))

    def written(self, access: Row, given: Conditions = ()) -> Answer:
        return self._once("written", (access,), given, lambda: self._asked.written(access, given))

    def exclusive(self, access: Row, other: Row, given: Conditions = ()) -> Answer:
        if given:
            return unknown("agents of one CTA, under conditions")

        def ask() -> Answer:
            from cake_core.prove.within import Turn, Within, exclusive

            apart = self._places.common(access, other, Within)
            turns = lambda: self._places.common(access, other, Turn)
            return apart if apart.standing is Standing.PROVED or self._copy else exclusive(access, other, apart, turns, self._asked)

        return self._address("exclusive", (access, other), given, ask)

    def in_bounds(self, place: Row, given: Conditions = ()) -> Answer:
        return self._address("in_bounds", (place,), given, lambda: self._places.in_bounds(place, given))

    def fits(self, event: Row, given: Conditions = ()) -> Answer:
        return self._address("fits", (event,), given, lambda: self._places.fits(event, given))

    def disjoint(self, access: Row, other: Row, given: Conditions = ()) -> Answer:
        return self._address("disjoint", (access, other), given, lambda: self._places.disjoint(access, other, given))

    def meant(self, access: Row, other: Row, given: Conditions = ()) -> Answer:
        if given:
            return unknown("flags under conditions")
        from cake_core.prove.flags import meant

        return self._address("meant", (access, other), given, lambda: meant(access, other, self._places))

    def bank_degree(self, access: Row, most: int, given: Conditions = ()) -> Answer:
        return self._address(f"bank_degree {most}", (access,), given, lambda: self._places.bank_degree(access, most, given))

    def aligned(self, access: Row, bytes: int, given: Conditions = ()) -> Answer:
        return self._address(f"aligned {bytes}", (access,), given, lambda: self._places.aligned(access, bytes, given))

    def may_hold(self, kernel: Row, given: Conditions = ()) -> Answer:
        return self._address("may_hold", (), given, lambda: self._places.may_hold(given))

    def may_run(self, role: Row, given: Conditions = ()) -> Answer:
        return self._address("may_run", (role,), given, lambda: self._places.may_run(role, given))

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, given=(): unknown(f"no prover is at hand that decides '{name}'")

    def close(self) -> None:
        """Keep what was proved for the next time."""
        for beside in (self._addresses, self._sweeps):
            if beside is not None:
                beside.close()
        if self._proofs is not None:
            self._proofs.save()

    @property
    def _asked(self) -> Answers:
        if self._answers is None:
            from cake_core.prove.answers import Answers

            self._answers = Answers(self.rows, examples=self.examples)
        return self._answers

    @property
    def _places(self) -> Memory:
        if self._memory is None:
            from cake_core.prove.memory import Memory

            self._memory = Memory(self.rows)
        return self._memory

    def _once(self, name: str, rows: tuple[Row, ...], given: Conditions, ask: Callable[[], Answer]) -> Answer:
        """An answer, or that it was proved before."""
        question = " ".join((name, *(r.id for r in rows), *map(_condition, given)))
        if self.keep and self._kept.has(question):
            return PROVED
        self._share()
        if (effort := asked()) is not None:
            effort.begin()
        answer = ask()
        if effort is not None:
            effort.end()
        if self.keep and answer.standing is Standing.PROVED:
            self._kept.add(question)
        return answer

    @property
    def kept(self) -> Proofs | None:
        """What was proved of the kernel before; None: nothing is taken from there."""
        return self._kept if self.keep else None

    @property
    def _kept(self) -> Proofs:
        if self._proofs is None:
            self._proofs = Proofs(content(self.rows))
        return self._proofs

    # --- the other core --------------------------------------------------------------------------------------------

    def _share(self) -> None:
        """Start the other core's part, where nothing is known of the kernel yet and there is enough to prove: addresses at once, while this
        process makes the cuts, and then a part of what is asked of these."""
        if self._shared:
            return
        self._shared = True
        if self.cores > 1 and not self._kept.questions and (self.rows["wait"] or self.rows["drain"]):
            from cake_core.prove.beside import Beside

            self._addresses = Beside.start(self._of_addresses)
            self._asked.prepare()
            self._sweeps = self._asked.beside = Beside.start(self._of_order)

    def _of_addresses(self, beside: Beside) -> None:
        self._copy = True
        judge((r for r in self.rules if (names := predicates_of(r)) & ADDRESSES and not names & ORDER), self.rows, self)
        beside.tell("proved", sorted(self._kept.fresh))

    def _of_order(self, beside: Beside) -> None:
        self._asked.beside = beside
        self._asked.sweep()

    def _address(self, name: str, rows: tuple[Row, ...], given: Conditions, ask: Callable[[], Answer]) -> Answer:
        """Asked here only where the other core has not proved it."""

        def after() -> Answer:
            if self._addresses is not None and not self._heard:
                self._heard = True
                self._asked.settle()
                self._kept.fresh.update(self._addresses.hear("proved") or ())
                return self._once(name, rows, given, ask)
            return ask()

        return self._once(name, rows, given, after)


def _condition(g) -> str:
    return f"{g.name}({', '.join(x.id if isinstance(x, Row) else str(x) for x in g.args)})" if isinstance(g, Given) else expr_text(g)
