"""Who executes a statement, and under which condition each of its expressions is evaluated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from cake_core.facts.schema import By
from cake_core.ir import nodes as ir
from cake_core.ir.flow import conjuncts
from cake_core.ir.nodes import Binary, Cond, Expr, If, Int, Name, Unary


def executing(s: If, by: By, warp: int | None) -> tuple[By, int | None, list[Expr]]:
    """Who of those that come to a condition execute what it guards, and what is left of its test: conditions on the executing thread say who."""
    rest = []
    for test in conjuncts(s.test):
        match test:
            case Name("leader"):
                by = By.LEADER
            case Name("warp.leader") if by is By.ALL:
                by = By.WARP_LEADERS
            case Name("warp.leader"):
                pass
            case Binary("==", Name("warp"), Int(w)) if s.other is None:
                warp = w
            case _:
                rest.append(test)
    if s.other is not None and len(rest) != len(conjuncts(s.test)):
        return By.ALL, warp, [s.test]  # `else` of a leader's condition: nothing is known of who
    return by, warp, rest


def chosen_in(roots: Iterable) -> dict[int, Expr]:
    """The condition under which each place is touched that stands in an arm of `c ? a : b`, by the identity of its expression: the
    arm that is not chosen reads nothing."""
    out: dict[int, Expr] = {}

    def look(node, under: Expr | None) -> None:
        match node:
            case Cond(test, then, other):
                look(test, under)
                for arm, c in ((then, test), (other, Unary("not", test, type=test.type))):
                    look(arm, c if under is None else Binary("and", under, c, type=test.type))
            case tuple():
                for x in node:
                    look(x, under)
            case Expr() | ir.Binding() | ir.Words() | ir.Word():
                if under is not None:
                    out[id(node)] = under
                for f in fields(node):
                    if f.name not in ("span", "type"):
                        look(getattr(node, f.name), under)

    for x in roots:
        look(x, None)
    return out
