"""Guards of the item: conditions under which verbs stand and that keep their values all through an item (S10c).

An analysis that follows such a guard both ways, but each time the same way, sees that what is taken under it is given back
under it. A slot that is named under a guard and used again under it (S4) gets its name before the guard: it is known there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from cake_core.ir.flow import conjuncts, walk
from cake_core.ir.nodes import Assign, Block, Expr, For, If, Let, Name, Op, Stmt, Var, While
from cake_core.ir.places import names, root
from cake_core.ir.types import Level, Scalar
from cake_core.ir.visit import nested, own_expressions

#: Guards told apart in one block: each doubles the ways through it.
MOST = 4


def item_guards(body: Block, mine: Callable[[Op], bool]) -> dict[int, tuple[Expr, ...]]:
    """By identity of the block of an item, or of a role's body: the guards in it whose value does not change there.

    `mine`: the verbs that count, of operations with one operand.
    """
    bound = Counter(n for s in walk(body) for n in _binds(s))
    found: dict[int, tuple[Expr, ...]] = {}
    for block in _blocks(body):
        inner = {n for s in walk(block) if isinstance(s, For | While) for t in (s, *walk(s.body)) for n in _binds(t)}
        guards: list[Expr] = []
        for s in _within(block):
            if isinstance(s, If) and any(isinstance(x, Op) and len(x.operands) == 1 and mine(x) for b in nested(s) for x in walk(b)):
                guards += [c for c in conjuncts(s.test) if _steady(c, bound, inner) and c not in guards]
        found[id(block)] = tuple(guards[:MOST])
    return found


def _blocks(body: Block) -> Iterator[Block]:
    yield body
    yield from (s.body for s in body if isinstance(s, For) and s.hi is None)


def _within(block: Block) -> Iterator[Stmt]:
    """The statements of a block that belong to it and not to the items of a loop in it."""
    for s in block:
        yield s
        if not (isinstance(s, For) and s.hi is None):
            for inner in nested(s):
                yield from _within(inner)


def _binds(s: Stmt) -> Iterator[str]:
    match s:
        case Let(bindings) | Var(bindings):
            yield from (b.name for b in bindings)
        case For():
            yield from s.pattern
        case Assign(target) if (name := root(target)) is not None:
            yield name.id
        case Op() if isinstance(s.words.get("as"), Name):
            yield s.words.get("as").id


def _steady(test: Expr, bound: Counter, inner: set[str]) -> bool:
    """All threads decide alike, by names that are bound once and in no loop inside."""
    uniform = isinstance(test.type, Scalar) and test.type.level <= Level.CTA
    return uniform and all(bound[n.id] <= 1 and n.id not in inner for n in names(test))


# --- slot names ----------------------------------------------------------------------------------------------------


def slots_first(s: Stmt, derived: Block, later: Block) -> Block:
    """`derived`, which stands for `s`: names of slots that a guard's block binds and later statements use go before the guard."""
    if not isinstance(s, If):
        return derived
    bound = {n for x in s.then if isinstance(x, Op) for n in _binds(x)}
    wanted = bound & {n.id for x in walk(later) for e in own_expressions(x) for n in names(e)}
    out: list[Stmt] = []
    for d in derived:
        if wanted and isinstance(d, If):
            mine = tuple(x for x in d.then if isinstance(x, Let) and all(b.name in wanted for b in x.bindings))
            out += mine
            d = replace(d, then=tuple(x for x in d.then if x not in mine))
        out.append(d)
    return tuple(out)
