"""Functions of the rule language over facts and numbers: decided at once, no prover is asked."""

from __future__ import annotations

from collections.abc import Callable

from cake_core.facts import Row, Rows
from cake_core.facts.schema import By
from cake_core.frozen import frozen
from cake_core.ir.build import call
from cake_core.ir.nodes import Expr, Int
from cake_core.rules.predicates import Parameter
from cake_core.rules.sorts import CONDITION, HAPPENING, INTEGER, TERM, Sort, set_of


@frozen
class Function:
    """`apply` gets the rows and the arguments' values. `numeric`: takes and gives integers or expressions of the kernel."""

    parameters: tuple[Parameter, ...]
    result: Sort
    apply: Callable
    doc: str
    numeric: bool = False


def covers(rows: Rows, a: Row, b: Row) -> bool:
    """Whether every thread that executes `b` executes `a` too, where both run: of the same instance, as many lanes."""
    if a["role"] != b["role"] or a["part"] != b["part"]:
        return False
    wider = (str(By.LEADER), str(By.WARP_LEADERS), str(By.ALL))
    if a["warp"] is not None and a["warp"] != b["warp"] and not (b["by"] == By.LEADER and a["warp"] == 0):
        return False
    return wider.index(a["by"]) >= wider.index(b["by"])


def distinct_agents(rows: Rows, a: Row, b: Row) -> bool:
    """Whether different agents may execute them: two roles, two instances of one, two CTAs of a cluster."""
    if a["role"] != b["role"]:
        return True
    return rows.facts.cluster > 1 or a["role"] is not None and rows.find("role", a["role"])["instances"] > 1


def _numeric(name: str, value: Callable[..., int]) -> Callable:
    def apply(rows: Rows, *args):
        if any(isinstance(a, Expr) for a in args):
            if name == "ceildiv" and args[1] == 0:
                raise ZeroDivisionError
            return call(name, *(a if isinstance(a, Expr) else Int(a) for a in args))
        return value(*args)

    return apply


_ANY = Parameter("event", HAPPENING)
_NUMBER = Parameter("number", sort=TERM)

FUNCTIONS: dict[str, Function] = {
    "covers": Function((_ANY, _ANY), CONDITION, covers, "every thread that executes the second executes the first too"),
    "distinct_agents": Function((_ANY, _ANY), CONDITION, distinct_agents, "two roles, instances or CTAs may execute them"),
    "precedes": Function((_ANY, _ANY), CONDITION, lambda rows, a, b: a["order"] < b["order"], "the first stands before the second in the text"),
    "constant": Function((_NUMBER,), CONDITION, lambda rows, e: not isinstance(e, Expr), "the value is known from the text"),
    "bits": Function(
        (Parameter("mask", sort=INTEGER),),
        set_of(INTEGER),
        lambda rows, m: tuple(i for i in range(m.bit_length()) if m >> i & 1),
        "the numbers of the bits that are 1",
    ),
    "size": Function((Parameter("set", sort=set_of(None)),), INTEGER, lambda rows, s: len(s), "how many members a set has"),
    "ceildiv": Function((_NUMBER, _NUMBER), TERM, _numeric("ceildiv", lambda a, b: -(-a // b)), "quotient, rounded up", numeric=True),
    "min": Function((_NUMBER, _NUMBER), TERM, _numeric("min", min), "the smaller", numeric=True),
    "max": Function((_NUMBER, _NUMBER), TERM, _numeric("max", max), "the larger", numeric=True),
}
