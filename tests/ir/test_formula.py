"""Launch formulas say what the text says: evaluated by the runtime they give the value of the expression, lets written out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_core.diagnostics import CakeError
from cake_core.ir.formula import DEEPEST, LARGEST, formula
from cake_core.ir.nodes import Attr, Binary, Bool, Call, Cond, Float, Index, Int, Name, Unary
from cake_core.ir.printer import expr_text
from cake_core.runtime.formula import compile_formula, formula_text
from cake_core.source import Source, Span
from cake_core.syntax import parse

PARAMS = frozenset("xy")
LETS = {"a": Binary("+", Name("x"), Int(1)), "b": Binary("*", Name("a"), Name("a"))}


def conditions(part):
    compared = st.builds(Binary, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), part, part)
    return st.recursive(
        compared | st.builds(Bool, st.booleans()),
        lambda c: st.builds(Binary, st.sampled_from(["and", "or"]), c, c) | st.builds(lambda a: Unary("not", a), c),
        max_leaves=3,
    )


DIVISORS = st.integers(1, 9).map(Int)
LEAVES = st.integers(-9, 9).map(Int) | st.sampled_from("xyab").map(Name)
INTEGERS = st.recursive(
    LEAVES,
    lambda part: st.one_of(
        st.builds(Binary, st.sampled_from("+-*"), part, part),
        st.builds(Binary, st.sampled_from("/%"), part, DIVISORS),
        st.builds(lambda a: Unary("-", a), part),
        st.builds(lambda f, a, b: Call(Name(f), (a, b)), st.sampled_from(["min", "max"]), part, part),
        st.builds(lambda a, n: Call(Name("ceildiv"), (a, n)), part, DIVISORS),
        st.builds(lambda a, b, c: Call(Name("clamp"), (a, b, c)), part, part, part),
        st.builds(lambda x, y, a, b: Cond(Binary("<", x, y), a, b), part, part, part, part),
    ),
    max_leaves=10,
)
FORMULAS = INTEGERS | conditions(INTEGERS)


def value(e, env):
    match e:
        case Int(v) | Bool(v):
            return v
        case Name(id):
            return value(LETS[id], env) if id in LETS else env[id]
        case Unary("-", a):
            return -value(a, env)
        case Unary("not", a):
            return not value(a, env)
        case Cond(test, then, other):
            return value(then if value(test, env) else other, env)
        case Call():
            args = [value(a, env) for a in e.args]
            if e.name == "ceildiv":
                return -(-args[0] // args[1])
            return min(max(args[0], args[1]), args[2]) if e.name == "clamp" else {"min": min, "max": max}[e.name](*args)
        case Binary(op, a, b):
            x, y = value(a, env), value(b, env)
            match op:
                case "and":
                    return x and y
                case "or":
                    return x or y
                case "/":
                    return x // y
            return eval(f"x {op} y")  # Python's operators are the language's


@given(FORMULAS, st.integers(-20, 20), st.integers(-20, 20))
@settings(max_examples=150, deadline=None)
def test_a_formula_has_the_value_of_its_expression(e, x, y):
    env = {"x": x, "y": y}
    tree = json.loads(json.dumps(formula(e, LETS, PARAMS)))
    found = compile_formula(tree, PARAMS)(env)
    assert found == value(e, env) and type(found) is type(value(e, env))


@given(FORMULAS)
@settings(max_examples=60, deadline=None)
def test_a_formula_reads_back(e):
    """As a text it parses, and gives the same formula: what messages show is what is evaluated."""
    tree = formula(e, LETS, PARAMS)
    text = formula_text(tree)
    (clause,) = parse(Source("t", f"cake 1\nkernel k(x: i32)\n  require {text}\n{{\n}}\n")).kernels[0].clauses
    assert formula_text(formula(clause.exprs[0], {}, PARAMS)) == text


def test_numbers_of_all_kinds():
    assert formula(Binary("<", Float(0.5), Name("x")), {}, PARAMS) == ["<", 0.5, "x"]


@pytest.mark.parametrize(
    "e",
    [
        Name("z"),
        Name("cluster.id"),
        Index(Name("x"), (Int(0),)),
        Attr(Name("x"), "T"),
        Call(Name("load"), (Name("x"),)),
        Binary("@", Name("x"), Name("y")),
        Binary("+", Name("x"), Name("z")),
    ],
    ids=expr_text,
)
def test_what_is_not_known_at_launch(e):
    at = Span("t", 3, 1, 3, 9)
    with pytest.raises(CakeError) as caught:
        formula(Binary("+", Name("x"), e, span=at), {}, PARAMS)
    (d,) = caught.value.diagnostics
    assert d.code == "derive/not-a-launch-formula" and d.span == at


def test_lets_that_double_do_not_fill_memory():
    lets = {f"a{i}": Binary("+", Name(f"a{i - 1}"), Name(f"a{i - 1}")) for i in range(1, 60)} | {"a0": Name("x")}
    with pytest.raises(CakeError) as caught:
        formula(Name("a59"), lets, PARAMS)
    assert str(LARGEST) in caught.value.diagnostics[0].why


def test_lets_that_nest_do_not_exhaust_the_stack():
    lets = {f"a{i}": Binary("+", Name(f"a{i - 1}"), Name("x")) for i in range(1, 5000)} | {"a0": Name("x")}
    with pytest.raises(CakeError):
        formula(Name("a4999"), lets, PARAMS)
    tree = formula(Name(f"a{DEEPEST // 2 - 1}"), lets, PARAMS)
    assert compile_formula(tree, PARAMS)({"x": 1}) == DEEPEST // 2
