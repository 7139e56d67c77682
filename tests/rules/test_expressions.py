"""Expressions of rules: what they parse to, what types refuse, and what they are worth over facts."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from cake_core.diagnostics import CakeError
from cake_core.facts.relations import RELATIONS
from cake_core.rules import ast, predicates
from cake_core.rules.check import Scope, checked
from cake_core.rules.evaluate import Evaluator, OverBudget, Undecidable
from cake_core.rules.formula import And, Arithmetic, Not, Or, TooLarge, clauses, negated
from cake_core.rules.functions import FUNCTIONS
from cake_core.rules.parser import GRAMMAR, parse, passage
from cake_core.rules.predicates import SIGNATURES, Given
from cake_core.rules.sorts import fact

TEXT = """cake 1 derived
kernel k(N: i32, A: in bf16[N, 64])
  require 1 <= N, N <= 4096, N % 8 == 0
  target sm90
{
  launch N
  shared a: bf16[2][64, 64] at 0 swizzle 128
  barrier full: mbarrier[2] count 1 at 16384, spare: mbarrier[1] count 3 at 16400
  if leader {
    mbarrier.init full
  }
  cta.sync
  role load: 2 warps at 0 {
    for i in 0 .. N {
      if leader {
        mbarrier.expect full[i % 2] bytes 8192
        tma.load a[i % 2] <- A[i * 64 +: 64, 0 +: 64] signal full[i % 2]
      }
    }
  }
  role math[2]: 1 warpgroup at 4 {
    mbarrier.wait full[0] parity 0
  }
}
"""


@pytest.fixture(scope="module")
def rows(rows_from):
    return rows_from(TEXT)


def typed(text: str, expected=None, asks=False, **variables):
    return checked(parse(passage(text)), Scope({n: fact(r) for n, r in variables.items()}, {}, asks), expected)


@pytest.fixture(scope="module")
def value(rows):
    """`value(text, bar=row)`: what an expression is worth; variables are rows."""

    def run(text: str, **env):
        node = typed(text, asks=True, **{n: r.relation for n, r in env.items()})
        return Evaluator(rows, {}).value(node, env)

    return run


# --- reading -----------------------------------------------------------------------------------------------------


def test_the_stored_tables_belong_to_the_grammar():
    stored = json.loads(GRAMMAR.with_suffix(".tables.json").read_text())
    assert stored["grammar"] == hashlib.sha256(GRAMMAR.read_bytes()).hexdigest(), "python -m cake_core.syntax.tables cake_core/rules/rules.lark"


def test_precedence():
    both = parse(passage("not a.x == 1 or b.y + 2 * 3 in [9] and c.z"))
    assert isinstance(both, ast.Binary) and both.op == "or" and isinstance(both.left, ast.Unary)
    assert isinstance(both.right, ast.Binary) and both.right.op == "and" and isinstance(both.right.left, ast.Member)


def test_a_keyword_behind_a_point_is_a_column():
    assert parse(passage("m.count")) == ast.Field(ast.Name("m"), "count")


def test_a_quantifier_may_stand_in_a_condition_of_another():
    node = parse(passage("forall a in role where exists b in wait: b.role == a: a.warps == 1"))
    assert isinstance(node.over.where, ast.Quantified) and isinstance(node.body, ast.Binary)


@pytest.mark.parametrize(
    "text, said, column",
    [
        ("a ==", "ends too early", 5),
        ("a == b == c", "'==' can not stand here", 8),
        ("(a", "ends too early", 3),
        ("a && b", "'&' has no meaning", 3),
        ("a = b", "'=' has no meaning", 3),
        ("'a", "''' has no meaning", 1),
        ("count(x)", "')' can not stand here", 8),
        ("forall x: y", "':' can not stand here", 9),
        ("[" * 70, "nest more than", 61),
        ("1 + " * 2500 + "1", "characters", 1),
        ("import('os')", "", None),
        ("__class__.x", "", None),
    ],
)
def test_what_can_not_be_read_is_a_finding_at_its_place(text, said, column):
    try:
        checked(parse(passage(text)), Scope({}, {}))
    except CakeError as error:
        (found,) = error.diagnostics
        assert found.code.startswith("rules/") and said in found.message
        assert column is None or found.span.column == column
    else:
        raise AssertionError("it was read")


@pytest.mark.parametrize(
    "text",
    ["not " * 1900 + "a", "a or " * 1500 + "a", "a ? " * 900 + "a" + " : a" * 900, "[" * 59 + "]" * 59 + " in " + "a.b" * 9, "a" + ".b" * 3000],
)
def test_deep_expressions_are_refused_not_overflowed(text):
    try:
        checked(parse(passage(text)), Scope({}, {}))
    except CakeError as error:
        assert all(d.code.startswith("rules/") for d in error.diagnostics)


# --- types -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, code, fix",
    [
        ("bar.cuont == 1", "rules/unknown-column", "'count'"),
        ("a.mode == wirte", "rules/unknown-word", "'write'"),
        ("a.mode == 'generic'", "rules/unknown-word", "read, write"),
        ("a.mode in [read, wrote]", "rules/unknown-word", "'write'"),
        ("ba.count == 1", "rules/unknown-name", "'bar'"),
        ("write", "rules/unknown-name", ""),
        ("count(x in acess) == 1", "rules/unknown-name", "'access'"),
        ("orderd(a, a)", "rules/unknown-name", "'ordered'"),
        ("bar.count == 'x'", "rules/sort", ""),
        ("bar == a", "rules/sort", ""),
        ("bar + 1 == 2", "rules/sort", ""),
        ("not bar.count", "rules/sort", ""),
        ("bar.count", "rules/sort", ""),
        ("1 in 2", "rules/sort", ""),
        ("bar.count in ['x']", "rules/sort", ""),
        ("bar.count.x == 1", "rules/sort", ""),
        ("a.atomic ? 1 : 'x'", "rules/sort", ""),
        ("bits(1, 2) == [1]", "rules/arguments", ""),
        ("bits('x') == [1]", "rules/arguments", ""),
        ("covers(bar, a)", "rules/arguments", ""),
        ("implies(a.atomic)", "rules/arguments", ""),
        ("exists bar in role: true", "rules/repeated", ""),
    ],
)
def test_what_does_not_fit_is_told_with_the_nearest_right_one(text, code, fix):
    with pytest.raises(CakeError) as caught:
        checked(parse(passage(text)), Scope({"bar": fact("barrier"), "a": fact("access")}, {}))
    (found,) = caught.value.diagnostics
    assert found.code == code and fix in (found.fix or "") and found.span.line == 1


@pytest.mark.parametrize(
    "text, fits",
    [
        ("ordered(a, b)", True),
        ("implies(same_slot(a, b), ordered(a, b))", True),
        ("implies(same_slot(a, b) and a.atomic, ordered(a, b) and overlap(a, b))", True),
        ("exists x in wait: happens_before(a, x)", True),
        ("a.atomic ? ordered(a, b) : happens_before(a, b)", True),
        ("not ordered(a, b)", False),
        ("ordered(a, b) == true", False),
        ("implies(ordered(a, b), a.atomic)", False),
        ("implies(implies(ordered(a, b), overlap(a, b)), ordered(a, b))", False),
        ("count(x in wait where ordered(a, x)) == 1", False),
        ("ordered(a, b) ? true : false", False),
    ],
)
def test_a_predicate_stands_where_it_can_be_asked(text, fits):
    scope = Scope({"a": fact("access"), "b": fact("access")}, {}, asks=True)
    try:
        checked(parse(passage(text)), scope)
    except CakeError as error:
        assert not fits and [d.code for d in error.diagnostics] == ["rules/predicate"]
    else:
        assert fits
    with pytest.raises(CakeError):
        checked(parse(passage(text)), Scope(scope.variables, {}))


def test_every_predicate_is_documented_and_takes_facts():
    page = (Path(__file__).parents[2] / "docs" / "rules.md").read_text()
    for name, parameters in SIGNATURES.items():
        assert getattr(predicates.Predicates, name).__doc__ and parameters
        assert re.search(rf"`{name}\(", page), name
        assert all(p.sort is not None or p.relations <= RELATIONS.keys() for p in parameters)
    for name in FUNCTIONS:
        assert f"`{name}" in page, name


# --- values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, worth",
    [
        ("count(b in barrier)", 2),
        ("count(b in barrier where b.count > 1)", 1),
        ("sum(b.count for b in barrier)", 4),
        ("max(b.count for b in barrier) - min(b.count for b in barrier)", 2),
        ("sum(b.count for b in barrier where b.count > 7)", 0),
        ("set(b.id for b in barrier)", ("full", "spare")),
        ("forall b in barrier: exists i in init: i.barrier == b", False),
        ("forall b in barrier where b.id == full: exists i in init: i.barrier == b", True),
        ("exists w in wait: w.barrier == 'full' and w.role.instances == 2 and w.index == 0", True),
        ("-7 / 2 == -4 and -7 % 2 == 1", True),
        ("bits(5)", (0, 2)),
        ("size(bits(5)) == 2 ? 'two' : 'not'", "two"),
        ("none == none", True),
        ("exists e in event: e.role == none and e.part == before", True),
        ("exists a in access: a.barrier == none and a.mode == read", False),
        ("text('a', 1, true, none, [1, 2])", "a1yesnone1, 2"),
        ("ceildiv(7, 2) + min(3, 4) * max(1, 2)", 10),
        ("set(r.ctas for r in role) == [[0], [0]]", False),
        ("0 in [1, 2] or 'x' in ['x']", True),
        ("exists a in access, true", None),
    ],
)
def test_what_facts_decide(value, text, worth):
    if worth is None:
        with pytest.raises(CakeError):
            value(text)
    else:
        assert value(text) == worth


def test_what_a_role_decides_is_left_as_arithmetic(value, rows):
    (write,) = [r for r in rows["access"] if r["mode"] == "write"]
    left = value("sum(a.index for a in access where a.mode == write) < 2", x=write)
    assert not isinstance(left, bool) and left.op == "<"


@pytest.mark.parametrize("text", ["max(b.count for b in barrier where b.count > 9)", "1 / 0", "sum(a.bytes for a in access)", "bits(m.warp) == [1]"])
def test_what_has_no_value_is_undecidable(value, rows, text):
    env = {"m": rows["meet"][0]} if "m." in text else {}
    if "a.bytes" in text:
        text = "sum(m.count for m in meet)"
    with pytest.raises(Undecidable):
        value(text, **env)


def test_a_rule_has_a_budget(rows):
    deep = "count(a in event where (exists b in event: (exists c in event: (exists d in event: a.order > 1000)))) == 0"
    with pytest.raises(OverBudget, match="looks at more than"):
        Evaluator(rows, {}, most=1000).value(typed(deep), {})


# --- formulas ----------------------------------------------------------------------------------------------------

P, Q, R = (Given(n, ()) for n in ("ordered", "overlap", "same_slot"))


def test_clauses_hold_if_and_only_if_the_formula_does():
    from itertools import product

    f = Or((And((P, Q)), negated(Or((Q, And((R, P)))))))
    for held in product((False, True), repeat=3):
        worth = dict(zip((P, Q, R), held, strict=True))

        def literal(x, worth=worth):
            return not worth[x.of] if isinstance(x, Not) else worth[x]

        p, q, r = held
        assert all(any(map(literal, c)) for c in clauses(f)) == (p and q or not (q or r and p))


def test_a_formula_that_explodes_is_refused():
    wide = Or(tuple(And((Given("ordered", (i,)), Given("overlap", (i,)))) for i in range(20)))
    with pytest.raises(TooLarge):
        clauses(wide)


def test_arithmetic_is_a_literal():
    from cake_core.ir.nodes import Bool

    assert clauses(Arithmetic(Bool(True))) == [(Arithmetic(Bool(True)),)]
