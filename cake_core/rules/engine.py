"""Rules on one kernel: every rule gets verdicts, and no way to end goes without one.

`judge` runs rules over rows. What a rule's shape needs, matching, paths or protocols, is decided here and in the rooms beside; what
speaks of order goes to the predicates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, reduce
from typing import Protocol as Interface

from cake_core.diagnostics import CakeError
from cake_core.facts import Row, Rows
from cake_core.frozen import thawed
from cake_core.ir.nodes import Binary, Expr, Unary
from cake_core.rules.check import asked
from cake_core.rules.decide import Judge
from cake_core.rules.evaluate import MAX_STEPS, Evaluator, OverBudget, Undecidable
from cake_core.rules.formula import And, Arithmetic, Formula, Not, Or
from cake_core.rules.matching import fits, matches
from cake_core.rules.paths import missed
from cake_core.rules.predicates import PROVED, VACUITY, Answer, Given, Predicates, Standing, Unanswered, unknown
from cake_core.rules.protocols import broken
from cake_core.rules.schema import Level, Path, Protocol, Relation, Rule
from cake_core.rules.verdict import Outcome, Verdict, finding, undecided
from cake_core.rules.ways import WAYS

#: Of a kernel that no launch runs; a rule tells it once, and here it is outside of what can be judged.
CONTRADICTORY = Answer(Standing.UNKNOWN, "the kernel's 'require's can't hold together, so anything would be proved", outside=True)

#: What all rules of one pack may look at on one kernel (`MAX_STEPS`: one rule).
MAX_OF_PACK = 3 * MAX_STEPS
#: What one rule may find on one kernel, and how much of it is told: more of one kind are more of the same.
MAX_BAD = 1000
MOST = 20


class Kept(Interface):
    """Rules that hold on a kernel, known from before."""

    def of(self, rule: Rule) -> tuple[int, int] | None:
        """Of a rule that holds, its matches and what it looked at; None: not known."""

    def judged(self, rule: Rule, matches: int, steps: int) -> None:
        """That a rule holds."""


def judge(
    rules: Iterable[Rule], rows: Rows, predicates: Predicates | None = None, most: int | None = MOST, kept: Kept | None = None
) -> list[Verdict]:
    """Verdicts of every rule, in the order of the rules, at most `most` bad ones each. Raises nothing. What asks no prover is judged first: other
    processes may prove something meanwhile (`prove/beside.py`). `kept`: what need not be judged again."""
    predicates = predicates or Unanswered()
    judged = [rule for rule in rules if rule.level is not Level.OFF]
    spent: Counter[str] = Counter()

    @cache
    def contradictory() -> bool | None:
        """Whether the kernel's contracts surely can't hold together; None: a prover does not say."""
        kernel = next(iter(rows["kernel"]), None)
        standing = predicates.may_hold(kernel).standing if kernel is not None else Standing.UNKNOWN
        return None if standing is Standing.UNKNOWN else standing is Standing.VIOLATED

    def verdicts(rule: Rule) -> list[Verdict]:
        matches, steps = (kept and kept.of(rule)) or (None, 0)
        if matches is None or spent[rule.pack] + steps > MAX_OF_PACK:
            return _rule(rule, rows, predicates, contradictory, spent, kept)
        spent[rule.pack] += steps
        return [_held(rule, matches)]

    found = {n: verdicts(rule) for n, rule in sorted(enumerate(judged), key=lambda of: asking(of[1]))}
    return [v for n in range(len(judged)) for v in found[n][:most]]


def asking(rule: Rule) -> bool:
    """Whether a rule asks predicates that a prover must answer: those that are read off the text are answered anyway."""
    return not predicates_of(rule) <= WAYS.keys()


def predicates_of(rule: Rule) -> frozenset[str]:
    """The predicates that a rule asks."""
    return asked(rule.shape.require, rule.definitions) if isinstance(rule.shape, Relation) else frozenset()


def _rule(
    rule: Rule, rows: Rows, predicates: Predicates, contradictory: Callable[[], bool | None], spent: Counter[str], kept: Kept | None
) -> list[Verdict]:
    """`spent`: what the rules of each pack have looked at; a pack may not look at more by having more rules."""
    if {r.id for r in rows["capability"]}.issuperset(rule.capabilities):
        evaluator = Evaluator(rows, rule.definitions)
        if (left := MAX_OF_PACK - spent[rule.pack]) < evaluator.most:
            evaluator.most, evaluator.counted = left, f"the rules of its pack look at more than {MAX_OF_PACK:,} facts and expressions together"
        run = _Run(rule, rows, predicates, evaluator, contradictory)
        bad, matched = run.bad()
        spent[rule.pack] += evaluator.steps
    else:
        return [Verdict(rule, Outcome.INAPPLICABLE, answer=unknown("the target lacks what the rule is about"))]
    if bad:
        return _distinct(bad)
    if kept is not None:
        kept.judged(rule, matched, evaluator.steps)
    return [_held(rule, matched)]


def _held(rule: Rule, matches: int) -> Verdict:
    return Verdict(rule, Outcome.PROVED if matches else Outcome.INAPPLICABLE, answer=PROVED if matches else None, matches=matches)


def _distinct(verdicts: list[Verdict]) -> list[Verdict]:
    """One verdict for what is told at one place in one way."""
    seen: dict[tuple, Verdict] = {}
    for v in verdicts:
        seen.setdefault((v.outcome, v.finding.message, v.finding.span), v)
    return list(seen.values())


@thawed
class _Run:
    rule: Rule
    rows: Rows
    predicates: Predicates
    evaluator: Evaluator
    contradictory: Callable[[], bool | None]

    def bad(self) -> tuple[list[Verdict], int]:
        """The verdicts that are neither proved nor without a match, and how many matches are proved."""
        bad: list[Verdict] = []
        matched = 0
        for v in self.verdicts():
            if v.outcome in (Outcome.PROVED, Outcome.INAPPLICABLE):
                matched += v.matches
            elif len(bad) < MAX_BAD:
                bad.append(v)
            else:
                return [*bad, self.failed({}, f"it finds more than {MAX_BAD} things wrong", "rules/budget")], matched
        return bad, matched

    def verdicts(self) -> Iterator[Verdict]:
        try:
            match self.rule.shape:
                case Relation():
                    yield from self.relation(self.rule.shape)
                case Path():
                    yield from self.path(self.rule.shape)
                case Protocol():
                    yield from self.protocol(self.rule.shape)
        except OverBudget as fault:
            yield self.failed({}, str(fault), "rules/budget")
        except Undecidable as fault:
            yield self.failed({}, f"{fault} ({fault.span})")
        except RecursionError:
            yield self.failed({}, "the kernel or the rule nests too deep")
        except CakeError as error:
            yield self.failed({}, str(error))

    # --- relations -------------------------------------------------------------------------------------------------

    def relation(self, shape: Relation) -> Iterator[Verdict]:
        judge = Judge(self.rows, self.predicates, self.evaluator.origins, self.rule.rlimit)
        for env, left in matches(shape, self.rows, self.evaluator):
            try:
                yield self.one(shape, env, left, judge)
            except OverBudget:
                raise
            except Undecidable as fault:
                yield self.failed(env, f"{fault} ({fault.span})")

    def one(self, shape: Relation, env: dict[str, Row], left: Formula, judge: Judge) -> Verdict:
        assume = True if shape.assume is None else self.evaluator.condition(shape.assume, env)
        assumed = (*_terms(left), *_terms(assume))
        if assume is False:
            return Verdict(self.rule, Outcome.INAPPLICABLE, env)
        require = self.evaluator.condition(shape.require, env)
        if judge.at_once(require):
            return self.told(env, PROVED)
        if assumed or not (isinstance(require, bool) or isinstance(require, Given) and require.name in VACUITY):
            nothing = self.contradictory()
            if nothing or nothing is None and judge.arithmetic().consistent() is False:
                return self.told(env, CONTRADICTORY)
            for e in assumed:
                if judge.arithmetic().satisfiable(e) is False:
                    return Verdict(self.rule, Outcome.INAPPLICABLE, env)
        if require is False and assumed:
            return self.told(env, unknown("it is violated where a condition holds that depends on values of the run"))
        return self.told(env, judge.decide(require, assumed))

    # --- paths and protocols ---------------------------------------------------------------------------------------

    def path(self, shape: Path) -> Iterator[Verdict]:
        def concerned(start: Row | None, end: Row | None) -> bool:
            return self.evaluator.holds(shape.where, {n: r for n, r in (("from", start), ("to", end)) if r is not None})

        ways, met = missed(shape, self.rows, concerned)
        for way in ways:
            bindings = {n: r for n, r in (("from", way.start), ("to", way.end)) if r is not None}
            yield self.told(bindings, Answer(Standing.VIOLATED), f"handed over by {' and '.join(way.over)}" if way.over else "")
        yield Verdict(self.rule, Outcome.PROVED, matches=met - len(ways))

    def protocol(self, shape: Protocol) -> Iterator[Verdict]:
        for resource in self.rows[shape.resource.relation]:
            if not fits(resource, shape.resource):
                continue

            def concerned(resource: Row, event: Row) -> bool:
                return self.evaluator.holds(shape.where, {"resource": resource, "event": event})

            wrong, undecided_why = broken(shape, self.rows, resource, concerned)
            for b in wrong:
                bindings = {"resource": resource} | ({"event": b.event} if b.event is not None else {})
                yield self.told(bindings | {"came": b.name, "expected": b.expected or "nothing more"}, Answer(Standing.VIOLATED))
            if not wrong and undecided_why:
                yield self.told({"resource": resource}, unknown(undecided_why))
            if not wrong and not undecided_why:
                yield self.told({"resource": resource}, PROVED)

    # --- telling ---------------------------------------------------------------------------------------------------

    def told(self, bindings: dict[str, Row | str], answer: Answer, extra: str = "") -> Verdict:
        match answer.standing:
            case Standing.PROVED:
                return Verdict(self.rule, Outcome.PROVED, bindings, answer, matches=1)
            case Standing.VIOLATED:
                why = "; ".join(p for p in (extra, answer.reason) if p)
                return Verdict(self.rule, Outcome.VIOLATED, bindings, answer, 1, finding(self.rule, bindings, answer, self.evaluator, why))
        return Verdict(self.rule, Outcome.UNKNOWN, bindings, answer, 1, undecided(self.rule, bindings, answer, self.rows))

    def failed(self, bindings: dict[str, Row], reason: str, code: str = "rules/failed") -> Verdict:
        return Verdict(self.rule, Outcome.ERROR, bindings, unknown(reason), 1, undecided(self.rule, bindings, unknown(reason), self.rows, code))


def _terms(f: Formula) -> tuple[Expr, ...]:
    """The arithmetic of a condition on facts. Predicates do not stand there."""
    match f:
        case bool():
            return ()
        case Arithmetic(condition):
            return (condition,)
        case And(parts):
            return tuple(t for p in parts for t in _terms(p))
    return (_term(f),)


def _term(f: Formula) -> Expr:
    match f:
        case Arithmetic(condition):
            return condition
        case Not(of):
            return Unary("not", _term(of))
        case And(parts) | Or(parts):
            return reduce(lambda a, b: Binary("and" if isinstance(f, And) else "or", a, b), map(_term, parts))
    raise AssertionError("predicates do not stand in conditions on facts")
