"""Two versions of one rule: in which parts they differ, and whether the new one lets something pass that the old one did not.

What a rule judges is compared as logic (`logic.py`): the new version is not looser if what violates the old one violates it too. What is not
shown so counts as looser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from cake_core.frozen import frozen
from cake_core.review.failing import Failing
from cake_core.review.inline import Inliner, TooLarge, key
from cake_core.review.logic import Beyond, Logic
from cake_core.rules.automaton import Automaton, automaton
from cake_core.rules.schema import Also, Kind, Level, Path, Pattern, Protocol, Relation, Rule, Status, Template
from cake_core.rules.shapes import ENDS


class Direction(StrEnum):
    """`unknown`: neither is shown to follow from the other, and it counts as looser. `words`: what is judged is the same."""

    LOOSER = "looser"
    UNKNOWN = "unknown"
    TIGHTER = "tighter"
    WORDS = "words"
    SAME = "same"

    @property
    def dangerous(self) -> bool:
        return self in (Direction.LOOSER, Direction.UNKNOWN)


@frozen
class Change:
    """One part of a rule that is another one than before. `part`: a key of the rule, or what else decides about it; `say`: how it changed."""

    part: str
    direction: Direction
    say: str


LEVELS = (Level.OFF, Level.INFO, Level.WARNING, Level.ERROR)
#: How much a rule's findings weigh, by its status; those of a deprecated rule as those of a stable one.
WEIGHT = {Status.DRAFT: 1, Status.PREVIEW: 2, Status.DEPRECATED: 3, Status.STABLE: 4}
#: Kinds of which nothing may be let pass.
STRICT = (Kind.SAFETY, Kind.LEGALITY)
#: Who must execute what a path passes, the one that accepts more behind.
WHO = {("writer", "anyone"), ("issuer", "anyone")}


def binding(rule: Rule) -> bool:
    """Whether the rule's findings can end a build: to let more pass then is what a reader of proofs must know."""
    return rule.status in (Status.STABLE, Status.DEPRECATED) and rule.level is not Level.OFF


def changes(old: Rule, new: Rule) -> tuple[Change, ...]:
    """What differs, in what the rules judge and how much it weighs; words alone as one change."""
    out = [
        *_ranked("level", LEVELS.index, old.level, new.level),
        *_ranked("status", WEIGHT.get, old.status, new.status),
        *_kind(old, new),
        *_capabilities(old, new),
        *_covers(old, new),
        *_budget(old, new),
    ]
    direction = judged(old, new)
    if direction is not Direction.SAME or _keys(old) != _keys(new):
        out.append(Change(_part(old, new), direction, _SAID[direction]))
    if not out and _words(old) != _words(new):
        out.append(Change("words", Direction.WORDS, "what it says, or who answers for it"))
    return tuple(out)


_SAID = {
    Direction.LOOSER: "it now judges less: what violates the new version violated the old one, and not the other way round",
    Direction.UNKNOWN: "it is not shown that what violated the old version violates the new one, and this counts as looser",
    Direction.TIGHTER: "what violated the old version violates the new one, which judges more",
    Direction.SAME: "written otherwise; the same violates it",
}


def _ranked(part: str, rank: Callable, old, new) -> list[Change]:
    if old == new:
        return []
    direction = Direction.LOOSER if rank(new) < rank(old) else Direction.TIGHTER
    return [Change(part, direction, f"{old} -> {new}")]


def _kind(old: Rule, new: Rule) -> list[Change]:
    if old.kind is new.kind:
        return []
    strict = (old.kind in STRICT, new.kind in STRICT)
    direction = Direction.LOOSER if strict == (True, False) else Direction.TIGHTER if strict == (False, True) else Direction.WORDS
    return [Change("kind", direction, f"{old.kind} -> {new.kind}")]


def _capabilities(old: Rule, new: Rule) -> list[Change]:
    a, b = set(old.capabilities), set(new.capabilities)
    if a == b:
        return []
    direction = Direction.TIGHTER if b < a else Direction.LOOSER
    return [Change("applies", direction, f"capabilities {_listed(a)} -> {_listed(b)}")]


def _covers(old: Rule, new: Rule) -> list[Change]:
    """A category is proved where every rule that covers it holds: with one less, or a new one, more or other kernels are told as proved."""
    a, b = set(old.covers), set(new.covers)
    return [] if a == b else [Change("covers", Direction.UNKNOWN, f"{_listed(a)} -> {_listed(b)}")]


def _budget(old: Rule, new: Rule) -> list[Change]:
    if old.rlimit == new.rlimit:
        return []
    return [Change("budget", Direction.TIGHTER, f"{old.rlimit} -> {new.rlimit} steps")]  # with less it decides less, with more it asks more


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _part(old: Rule, new: Rule) -> str:
    """The keys in which the two differ, their definitions written out."""
    a, b = _keys(old), _keys(new)
    return ", ".join(sorted(k for k in a.keys() | b.keys() if a.get(k) != b.get(k))) or "define"


def _keys(rule: Rule) -> dict[str, object]:
    match rule.shape:
        case Relation(match, where, assume, require):
            return {
                "match": tuple((n, _pattern(p)) for n, p in match),
                **{k: _written(v, rule) for k, v in {"where": where, "assume": assume, "require": require}.items()},
            }
        case Path(start, end, passes, of, where, hand_offs, met):
            within = "kernel" if hand_offs else "agent"
            patterns = {"from": _pattern(start), "to": _pattern(end), "must_pass": tuple(map(_pattern, passes))}
            return {**patterns, "of": of, "within": within, "met": met, "where": _written(where, rule)}
        case Protocol(resource, events, text, where, _):
            return {
                "resource": _pattern(resource),
                "events": tuple((n, _pattern(p)) for n, p in events),
                "automaton": text,
                "where": _written(where, rule),
            }
    raise AssertionError(type(rule.shape).__name__)


def _defined(rule: Rule) -> tuple:
    return tuple((n, d.of, key(d.body, [p for p, _ in d.of])) for n, d in sorted(rule.definitions.items()))


def edited(old: Rule, new: Rule) -> bool:
    """Whether what is judged is written in another way, be it the same or not."""
    return _keys(old) != _keys(new) or old.capabilities != new.capabilities


def _pattern(p: Pattern) -> tuple:
    return p.relation, tuple((n, tuple((type(v).__name__, v) for v in values)) for n, values in p.columns)


def _words(rule: Rule) -> tuple:
    def said(t: Template | None, *more: str):
        return None if t is None else tuple(p if isinstance(p, str) else _written(p, rule, *more) for p in t.pieces)

    def place(a: Also) -> tuple:
        if a.over is None:
            return a.at, said(a.say)
        return a.over.var, a.over.relation, _written(a.over.where, rule, a.over.var), said(a.say, a.over.var)

    also = tuple(map(place, rule.also))
    plain = (rule.title, rule.precision, rule.since, rule.owner, rule.fix, rule.why, rule.limits, rule.at, rule.references, rule.tags, rule.category)
    return (*plain, rule.authors, rule.related, rule.until, rule.replaced_by, also, said(rule.message), said(rule.help), said(rule.detail))


def _written(node, rule: Rule, *more: str) -> tuple:
    """The expression, its variables by their place among those of the rule and `more`: `a.warps > 1` is not `b.warps > 1`."""
    if node is None:
        return ()
    match rule.shape:
        case Relation(match):
            free = [n for n, _ in match]
        case Path():
            free = ["from", "to"]
        case _:
            free = ["resource", "event"]
    try:
        return key(Inliner(rule.definitions).of(node, {}), [*free, *more])
    except TooLarge:
        return key(node, [*free, *more])


# --- what is judged ----------------------------------------------------------------------------------------------


def judged(old: Rule, new: Rule) -> Direction:
    """How what the new version finds wrong lies to what the old one did."""
    if _keys(old) == _keys(new) and _defined(old) == _defined(new):
        return Direction.SAME  # of expressions too large to be compared this is seen too
    try:
        match old.shape, new.shape:
            case Relation(), Relation():
                return _relations(old, new)
            case Path(), Path():
                return _paths(old, new)
            case Protocol(), Protocol():
                return _protocols(old, new)
    except (TooLarge, Beyond):
        pass
    return Direction.UNKNOWN


def _both(tighter: bool, looser: bool) -> Direction:
    """`tighter`: what violated the old version violates the new one; `looser`: the other way round."""
    if tighter:
        return Direction.SAME if looser else Direction.TIGHTER
    return Direction.LOOSER if looser else Direction.UNKNOWN


def _relations(old: Rule, new: Rule) -> Direction:
    logic = Logic()
    paired = _paired(old.shape, new.shape)
    tighter = _follows(logic, old, new, paired)
    return _both(tighter, _follows(logic, new, old, {b: a for a, b in paired.items()}))


def _paired(old: Relation, new: Relation) -> dict[str, str]:
    """Variables of the old version to those of the new one that mean the same: by name, or by place."""
    a, b = dict(old.match), dict(new.match)
    named = {n: n for n, p in a.items() if n in b and b[n].relation == p.relation}
    if len(named) == min(len(a), len(b)):
        return named
    return {n: m for (n, p), (m, q) in zip(old.match, new.match, strict=False) if p.relation == q.relation}


def _follows(logic: Logic, a: Rule, b: Rule, paired: Mapping[str, str]) -> bool:
    """Whether for each way to violate `a` there is one to violate `b`, with the same facts for variables that are paired."""
    env = {n: logic.a_fact(f"m.{n}") for n, _ in a.shape.match}
    own = {m: env[n] for n, m in paired.items()}
    others = {m: logic.a_fact(f"o.{m}") for m, _ in b.shape.match if m not in own}
    there = logic.z3.And(*_violated(logic, b, own | others))
    if others:
        there = logic.z3.Exists(list(others.values()), there)
    return logic.follows(_violated(logic, a, env), there)


def _violated(logic: Logic, rule: Rule, env: dict) -> list:
    """A match is violated, or the rule fails there, which lets nothing pass either."""
    shape, failing = rule.shape, Failing(logic)
    fits = [logic.fits(p, env[n]) for n, p in shape.match]
    where, assume, require = (logic.condition(x, rule.definitions, env) for x in (shape.where, shape.assume, shape.require))
    bad = logic.z3.Not(require)
    for condition, held in ((shape.require, None), (shape.assume, assume)):
        fails = failing.condition(condition, rule.definitions, env)
        bad = bad if held is None else logic.z3.And(held, bad)
        bad = bad if fails is False else logic.z3.Or(fails, bad)
    return [*fits, _or_fails(logic, logic.z3.And(where, bad), failing.where(shape.where, rule.definitions, env))]


def _or_fails(logic: Logic, holds, fails):
    return holds if fails is False else logic.z3.Or(holds, fails)


def _concerned(logic: Logic, rule: Rule, env: dict) -> tuple:
    """Of what the `where` of a path or a protocol holds, and of what it has no value: there the rule fails, whatever else is right."""
    where = rule.shape.where
    fails = Failing(logic).decided(where, rule.definitions, env)
    return logic.condition(where, rule.definitions, env), logic.z3.BoolVal(False, logic.ctx) if fails is False else fails


def _paths(old: Rule, new: Rule) -> Direction:
    """A way is wrong if it leads from a start to an end and passes nothing that is accepted."""
    logic = Logic()
    return _both(_path(logic, old, new), _path(logic, new, old))


def _path(logic: Logic, a: Rule, b: Rule) -> bool:
    """Whether every way that is wrong by `a` is wrong by `b`."""
    x, y = a.shape, b.shape
    ends = [(n, p, q) for n, p, q in (("from", x.start, y.start), ("to", x.end, y.end))]
    if any((p.relation in ENDS or q.relation in ENDS) and p.relation != q.relation for _, p, q in ends):
        return False
    env = {n: logic.a_fact(n) for n, p, _ in ends if p.relation not in ENDS}

    mine, theirs = ([logic.fits(p, env[n]) for n, p in patterns if n in env] for patterns in ([e[:2] for e in ends], [e[::2] for e in ends]))
    (held, fails), (other, fail) = (_concerned(logic, r, env) for r in (a, b))
    if not logic.follows([*mine, held], logic.z3.And(*theirs, logic.z3.Or(other, fail))):
        return False
    if not logic.follows([*mine, fails], logic.z3.And(*theirs, fail)):
        return False
    passed = logic.a_fact("passed")
    accepted = logic.z3.Or(*(logic.fits(p, passed) for p in x.must_pass), logic.z3.BoolVal(False, logic.ctx))
    if not all(logic.follows([logic.fits(p, passed)], accepted) for p in y.must_pass):
        return False
    who = x.of == y.of or (y.of, x.of) in WHO
    return who and (y.hand_offs or not x.hand_offs) and (y.met or not x.met)


def _protocols(old: Rule, new: Rule) -> Direction:
    logic = Logic()
    return _both(_protocol(logic, old, new), _protocol(logic, new, old))


def _protocol(logic: Logic, a: Rule, b: Rule) -> bool:
    """Whether each run that is wrong by `a` is by `b`: of at least the same resources, the same events, in at most the same orders."""
    x, y = a.shape, b.shape
    resource, event = logic.a_fact("resource"), logic.a_fact("event")
    env = {"resource": resource, "event": event}
    if not logic.follows([logic.fits(x.resource, resource)], logic.fits(y.resource, resource)):
        return False
    if [n for n, _ in x.events] != [n for n, _ in y.events]:
        return False
    for (_, p), (_, q) in zip(x.events, y.events, strict=True):
        mine, theirs = logic.fits(p, event, resource), logic.fits(q, event, resource)
        if not (logic.follows([mine], theirs) and logic.follows([theirs], mine)):
            return False
    for mine, theirs in zip(*(_concerned(logic, r, env) for r in (a, b)), strict=True):
        if not (logic.follows([mine], theirs) and logic.follows([theirs], mine)):
            return False
    return accepts_no_more(automaton(y.automaton), automaton(x.automaton), tuple(n for n, _ in x.events))


def accepts_no_more(a: Automaton, b: Automaton, names: tuple[str, ...]) -> bool:
    """Whether each order of events that `a` accepts `b` accepts, and each that `a` may go on with `b` may: a run is also wrong where it
    comes upon an event that nothing accepts."""
    seen, left = {(0, 0)}, [(0, 0)]
    while left:
        s, t = left.pop()
        if s in a.accepting and t not in b.accepting:
            return False
        for name in names:
            if (to := a.steps[s].get(name)) is None:
                continue
            if (other := b.steps[t].get(name)) is None:
                return False
            if (to, other) not in seen:
                seen.add((to, other))
                left.append((to, other))
    return True
