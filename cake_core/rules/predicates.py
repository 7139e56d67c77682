"""What rules may ask about order, phases and addresses: one method a predicate, `Predicates`. A prover implements them; rules see
neither cuts nor solvers.

A predicate is a statement about all runs, all parameters that `require` admits, and all instances of its facts (each time that
the statements run, in each instance of their roles, in each CTA). Under `given` it speaks of those instances alone for which the
conditions hold too: `implies(same_slot(a, b) and overlap(a, b), ordered(a, b))` asks `ordered(a, b, given=(same_slot(a, b), overlap(a, b)))`.
"""

from __future__ import annotations

import inspect
from enum import StrEnum
from typing import Protocol

from cake_core.facts import Row
from cake_core.frozen import frozen
from cake_core.ir.nodes import Expr
from cake_core.rules.sorts import CONDITION, HAPPENING, INTEGER, WORD, Sort, fact
from cake_core.source import Span

#: Raised when a predicate changes its meaning or goes; a new one does not raise it.
VERSION = 1


class Standing(StrEnum):
    PROVED = "proved"
    VIOLATED = "violated"
    UNKNOWN = "unknown"


@frozen
class Answer:
    """`reason`: why it is unknown, or what is violated, in words that end a finding's `why`. `values`: parameters and positions of
    a counterexample. `story`: a short interleaving, one line an agent, that shows it, and `story_places` where each stands; `stage`, `iteration`: of what is concerned;
    `confirmed`: whether executing it showed a fault of the same kind (None: not executed); `fault`: which one it showed, of that kind or another. `outside`: unknown because the method does not speak of such a
    kernel: not analysed, as a category of which nothing is known; `at`: the statement that it does not speak of. `span`, `role`, `resource`:
    where the counterexample goes wrong, if that is elsewhere than where the asked fact stands; `places`: what else of the text it concerns, and in
    which way; `fix`: advice that fits it better than the rule's."""

    standing: Standing
    reason: str = ""
    values: tuple[tuple[str, int], ...] = ()
    story: tuple[str, ...] = ()
    story_places: tuple[Span | None, ...] = ()
    stage: str | None = None
    iteration: str | None = None
    confirmed: bool | None = None
    fault: str = ""
    outside: bool = False
    at: Span | None = None
    span: Span | None = None
    role: str | None = None
    resource: str | None = None
    places: tuple[tuple[Span, str], ...] = ()
    fix: str | None = None


PROVED = Answer(Standing.PROVED)


def unknown(reason: str) -> Answer:
    return Answer(Standing.UNKNOWN, reason)


@frozen
class Given:
    """A predicate as a condition on the instances that another one speaks of."""

    name: str
    args: tuple[object, ...]


Conditions = tuple[Given | Expr, ...]


class Predicates(Protocol):
    """The predicates of version `VERSION`. Rows are those of the facts that the rules are run on; each has its `site`."""

    def ordered(self, a: Row, b: Row, given: Conditions = ()) -> Answer:
        """No run has both in progress at once: one is complete, and known to be, before the other starts."""

    def happens_before(self, a: Row, b: Row, given: Conditions = ()) -> Answer:
        """`a` is complete, and known to be, when `b` starts."""

    def served(self, kernel: Row, given: Conditions = ()) -> Answer:
        """What waits are for is done: no one has to do it more often than he does in all."""

    def phase_safe(self, sync: Row, given: Conditions = ()) -> Answer:
        """The parity bit that a wait reads, or the phase that an arrival falls into, is the one that is meant: no waiter is two
        phases away, no arrival lands in an older phase; at a named barrier, in an older generation."""

    def completes(self, access: Row, before: Row, given: Conditions = ()) -> Answer:
        """An access is over when `before` starts: given `same_slot` and `overlap`, in the instances that share bytes; without, an
        asynchronous one, in all that were started."""

    def written(self, access: Row, given: Conditions = ()) -> Answer:
        """Of shared or tensor memory: what an access touches was written before, in the same buffer; that it is complete is another question."""

    def same_slot(self, a: Row, b: Row, given: Conditions = ()) -> Answer:
        """Both touch the same tile of a buffer, or the same barrier of an array."""

    def overlap(self, a: Row, b: Row, given: Conditions = ()) -> Answer:
        """Both touch a common element, in the same memory of the same CTA."""

    def in_bounds(self, place: Row, given: Conditions = ()) -> Answer:
        """An access stays inside the slots and the shape of its buffer, what is clipped left out; a barrier is one of its array."""

    def disjoint(self, access: Row, other: Row, given: Conditions = ()) -> Answer:
        """Of one tensor in global memory: different CTAs touch no common element by the two."""

    def exclusive(self, access: Row, other: Row, given: Conditions = ()) -> Answer:
        """Of one tensor in global memory: different threads of one CTA touch no common element by the two, or one after the other."""

    def meant(self, access: Row, other: Row, given: Conditions = ()) -> Answer:
        """Of a write and a read of one tensor: where different CTAs touch a common element, the flag that is acquired in front of the read is the one that
        was released behind the write, and a loop that waits for its count waits for all who release it."""

    def fits(self, event: Row, given: Conditions = ()) -> Answer:
        """The numbers that a statement, and the loops and conditions around it, compute in 32 bits stay in 32 bits."""

    def aligned(self, access: Row, bytes: int, given: Conditions = ()) -> Answer:
        """The address of the access's first element is a multiple of `bytes`."""

    def fenced(self, access: Row, before: Row, kind: str, given: Conditions = ()) -> Answer:
        """On every way from `access` to `before` a fence of this kind stands behind the access, executed by those who ran it."""

    def dominates(self, a: Row, b: Row, given: Conditions = ()) -> Answer:
        """Every way to `b` passes `a` first."""

    def drained(self, kernel: Row, given: Conditions = ()) -> Answer:
        """Nothing asynchronous is in flight when a CTA ends."""

    def deadlock_free(self, kernel: Row, given: Conditions = ()) -> Answer:
        """Every run ends."""

    def may_hold(self, kernel: Row, given: Conditions = ()) -> Answer:
        """Nothing shows that no launch keeps all `require`s and `assume`s: what is proved is proved of something."""

    def may_run(self, role: Row, given: Conditions = ()) -> Answer:
        """Nothing shows that no launch gives the role anything to do."""

    def bank_degree(self, access: Row, most: int, given: Conditions = ()) -> Answer:
        """No instruction of the access needs more than `most` turns at the banks of shared memory."""

    def close(self) -> None:
        """No more will be asked."""


@frozen
class Parameter:
    """An argument: a fact of one of `relations`, or a value of `sort`."""

    name: str
    relations: frozenset[str] = frozenset()
    sort: Sort | None = None

    def __str__(self) -> str:
        if self.sort is not None:
            return str(self.sort)
        return "a fact of something that happens" if self.relations == HAPPENING else " or ".join(str(fact(r)) for r in sorted(self.relations))


_KINDS = {
    "access": Parameter("access", frozenset({"access"})),
    "other": Parameter("other", frozenset({"access"})),
    "place": Parameter("place", frozenset({"access", "barrier_use"})),
    "event": Parameter("event", frozenset({"event"})),
    "sync": Parameter("sync", frozenset({"wait", "arrive", "engine_arrive", "meet"})),
    "role": Parameter("role", frozenset({"role"})),
    "kernel": Parameter("kernel", frozenset({"kernel"})),
    "bytes": Parameter("bytes", sort=INTEGER),
    "most": Parameter("most", sort=INTEGER),
    "kind": Parameter("kind", sort=WORD),
}


def _parameters(method) -> tuple[Parameter, ...]:
    given = [n for n in inspect.signature(method).parameters if n not in ("self", "given")]
    return tuple(_KINDS.get(n) or Parameter(n, HAPPENING) for n in given)


#: Each predicate's arguments, read off the protocol, so that the two can't differ.
SIGNATURES: dict[str, tuple[Parameter, ...]] = {
    n: _parameters(m) for n, m in vars(Predicates).items() if inspect.isfunction(m) and m.__annotations__.get("return") == "Answer"
}
RESULT = CONDITION
#: Predicates that ask whether there is anything to prove: of kernels that no launch runs too.
VACUITY = ("may_hold", "may_run")


class Unanswered:
    """Predicates where no prover is at hand: each is unknown, and says so."""

    def __getattr__(self, name: str):
        if name not in SIGNATURES:
            raise AttributeError(name)
        return lambda *args, given=(): unknown(f"no prover is at hand that decides '{name}'")
