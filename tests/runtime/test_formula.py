"""Launch formulas against Python's own arithmetic, and everything that is no formula."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cake_core.runtime.formula import DEPTH, FormulaError, compile_formula, formula_text

NAMES = ("M", "N", "K")
PYTHON = {
    "+": "({} + {})", "-": "({} - {})", "*": "({} * {})", "/": "({} // {})", "%": "({} % {})",
    "min": "min({}, {})", "max": "max({}, {})", "ceildiv": "(-(-{} // {}))",
    "==": "({} == {})", "!=": "({} != {})", "<": "({} < {})", "<=": "({} <= {})", ">": "({} > {})", ">=": "({} >= {})",
    "and": "({} and {})", "or": "({} or {})", "not": "(not {})", "if": "({1} if {0} else {2})",
}
BOOLS = ("==", "!=", "<", "<=", ">", ">=")


def grown(pair):
    integers, conditions = pair
    number = st.one_of(
        *(st.tuples(st.just(op), integers, integers).map(list) for op in ("+", "-", "*", "/", "%", "min", "max", "ceildiv")),
        st.tuples(st.just("if"), conditions, integers, integers).map(list),
    )
    condition = st.one_of(
        *(st.tuples(st.just(op), integers, integers).map(list) for op in BOOLS),
        *(st.tuples(st.just(op), conditions, conditions).map(list) for op in ("and", "or")),
        st.tuples(st.just("not"), conditions).map(list),
    )
    return number, condition


leaves = (st.one_of(st.integers(-100, 100), st.sampled_from(NAMES)), st.booleans())
level = grown(grown(grown(leaves)))
trees = st.one_of(level)


def python(tree):
    match tree:
        case [op, *args]:
            return PYTHON[op].format(*map(python, args))
    return str(tree)


@given(trees, st.fixed_dictionaries({n: st.integers(-1000, 1000) for n in NAMES}))
def test_a_formula_is_pythons_value(tree, values):
    f = compile_formula(tree, NAMES)
    try:
        expected = eval(python(tree), {"min": min, "max": max}, values)
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            f(values)
        return
    assert f(values) == expected


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=6), st.sampled_from(["+", "*", "min", "max"]))
def test_associative_operations_take_any_number(args, op):
    expected = {"+": sum, "*": math.prod, "min": min, "max": max}[op](args)
    assert compile_formula([op, *args], ())({}) == expected


@given(trees)
def test_the_text_of_a_formula_reads_back_as_its_value(tree):
    """Precedence: with the language's operators spelled in Python, the text evaluates to the tree's value."""
    values = {"M": 7, "N": -3, "K": 12}
    text = formula_text(tree)
    if "?" in text:  # Python has no such conditional
        return
    text = text.replace("/", "//").replace("true", "True").replace("false", "False")
    names = {"min": min, "max": max, "ceildiv": lambda a, b: -(-a // b)}
    try:
        expected = compile_formula(tree, NAMES)(values)
    except ZeroDivisionError:
        return
    assert eval(text, names, values) == expected


def test_and_or_if_evaluate_what_they_need_only():
    zero = ["/", 1, 0]
    assert compile_formula(["and", False, zero], ())({}) is False
    assert compile_formula(["or", True, zero], ())({}) is True
    assert compile_formula(["if", True, 5, zero], ())({}) == 5


def test_division_of_floats_does_not_floor():
    assert compile_formula(["/", 1.0, 4], ())({}) == 0.25


@pytest.mark.parametrize(
    "tree",
    ["X", None, [], {}, ["+", 1], ["not", 1, 2], ["**", 1, 2], ["-", 1, 2, 3], [1, 2], ["and", True], ["if", 1, 2], [["+"], 1, 2]],
    ids=str,
)
def test_what_is_no_formula_is_refused(tree):
    with pytest.raises(FormulaError):
        compile_formula(tree, NAMES)


def test_a_tree_too_deep_is_refused_and_does_not_exhaust_the_stack():
    tree = 1
    for _ in range(DEPTH + 5):
        tree = ["+", tree, 1]
    with pytest.raises(FormulaError, match="nested"):
        compile_formula(tree, ())
