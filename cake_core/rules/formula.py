"""What is left of a condition when everything that the facts decide is decided: predicates to ask and arithmetic over parameters."""

from __future__ import annotations

from cake_core.frozen import frozen
from cake_core.ir.nodes import Expr
from cake_core.rules.predicates import Given


@frozen
class Arithmetic:
    """A condition over the kernel's names; each name of a role stands for its value where one fact's statement runs."""

    condition: Expr


@frozen
class Not:
    of: Formula


@frozen
class And:
    parts: tuple[Formula, ...]


@frozen
class Or:
    parts: tuple[Formula, ...]


Formula = bool | Given | Arithmetic | Not | And | Or

#: Clauses that one formula may be taken apart into.
MAX_CLAUSES = 4096


def negated(f: Formula) -> Formula:
    match f:
        case bool():
            return not f
        case Not(of):
            return of
        case And(parts):
            return Or(tuple(map(negated, parts)))
        case Or(parts):
            return And(tuple(map(negated, parts)))
    return Not(f)


def conjunction(parts) -> Formula:
    kept: list[Formula] = []
    for p in parts:
        if p is False:
            return False
        if p is not True:
            kept += p.parts if isinstance(p, And) else (p,)
    return True if not kept else kept[0] if len(kept) == 1 else And(tuple(kept))


def disjunction(parts) -> Formula:
    kept: list[Formula] = []
    for p in parts:
        if p is True:
            return True
        if p is not False:
            kept += p.parts if isinstance(p, Or) else (p,)
    return False if not kept else kept[0] if len(kept) == 1 else Or(tuple(kept))


class TooLarge(Exception):
    """A formula with more clauses than `MAX_CLAUSES`."""


def clauses(f: Formula) -> list[tuple[Formula, ...]]:
    """The formula as clauses, all of which must hold; the literals of one are alternatives: a predicate, arithmetic, or one's
    denial. Raises TooLarge."""
    match f:
        case True:
            return []
        case False:
            return [()]
        case And(parts):
            out = []
            for p in parts:
                out += clauses(p)
                if len(out) > MAX_CLAUSES:
                    raise TooLarge
        case Or(parts):
            out = [()]
            for p in parts:
                own = clauses(p)
                if len(out) * len(own) > MAX_CLAUSES:
                    raise TooLarge
                out = [(*a, *b) for a in out for b in own]
        case _:
            return [(f,)]
    if len(out) > MAX_CLAUSES:
        raise TooLarge
    return out
