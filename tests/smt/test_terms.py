"""Terms and solvers of our own layer against those of z3's Python layer: the same text, the same answers."""

from __future__ import annotations

import gc
import os
import signal
import threading
import weakref

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_core import smt

NAMES = ("x", "y", "z!1", "at A0! 3")
SMALL = st.integers(-(2**40), 2**40)
FAR = st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**30, -(10**30)])


def trees(depth: int = 4):
    """Terms as data: an integer, a name, or an operator with its operands."""
    leaf = st.one_of(SMALL, FAR, st.sampled_from(NAMES))
    inner = lambda of: st.tuples(st.sampled_from(("+", "-", "*", "/", "%", "neg", "if", "f")), of, of)
    return st.recursive(leaf, inner, max_leaves=2**depth)


def conditions():
    compare = st.tuples(st.sampled_from(("<", "<=", ">", ">=", "==", "!=")), trees(2), trees(2))
    inner = lambda of: st.tuples(st.sampled_from(("and", "or", "implies", "not")), of, of)
    return st.recursive(compare, inner, max_leaves=6)


#: By their methods: of z3's Python layer `x < 3` is `3 > x`, because numbers are a class below terms.
OPERATORS = {
    "+": "__add__",
    "-": "__sub__",
    "*": "__mul__",
    "<": "__lt__",
    "<=": "__le__",
    ">": "__gt__",
    ">=": "__ge__",
    "==": "__eq__",
    "!=": "__ne__",
}


class Ours:
    Term = smt.Term
    Int, IntVal, And, Or, Not, If, Implies = smt.Int, smt.IntVal, smt.And, smt.Or, smt.Not, smt.If, smt.Implies

    @staticmethod
    def f(a):
        return smt.apply("f", [a])


class Theirs:
    Term = z3.ArithRef
    Int, IntVal, And, Or, Not, If, Implies = z3.Int, z3.IntVal, z3.And, z3.Or, z3.Not, z3.If, z3.Implies

    @staticmethod
    def f(a):
        return z3.Function("f", z3.IntSort(), z3.IntSort())(a)


def made(tree, by):
    """The term of a tree, by either layer."""
    match tree:
        case int():
            return by.IntVal(tree)
        case str():
            return by.Int(tree)
    op, a, b = tree[0], made(tree[1], by), made(tree[2], by)
    match op:
        case "+" | "-" | "*" | "<" | "<=" | ">" | ">=" | "==" | "!=":
            return getattr(by.Term, OPERATORS[op])(a, b)
        case "/":
            return a / 7
        case "%":
            return a % 12 + b
        case "neg":
            return -a
        case "if":
            return by.If(by.Term.__lt__(a, b), a, b)
        case "f":
            return by.f(a)
        case "and":
            return by.And(a, b)
        case "or":
            return by.Or([a, b])
        case "implies":
            return by.Implies(a, b)
        case "not":
            return by.Not(a)
    raise AssertionError(op)


@given(trees())
@settings(max_examples=150, deadline=None)
def test_terms_have_the_same_text(tree):
    ours, theirs = made(tree, Ours), made(tree, Theirs)
    assert ours.sexpr() == theirs.sexpr() and ours.is_int
    assert len(ours.args) == theirs.num_args() and [a.sexpr() for a in ours.args] == [a.sexpr() for a in theirs.children()]
    assert (ours.kind, ours.name) == (theirs.decl().kind(), theirs.decl().name())
    assert ours.is_free == (theirs.decl().kind() == z3.Z3_OP_UNINTERPRETED)
    assert ours.value == (theirs.as_long() if z3.is_int_value(theirs) else None)


@given(trees())
@settings(max_examples=100, deadline=None)
def test_normal_forms_mean_the_same(tree):
    """The order of operands may differ by context; the values may not."""
    for sums in (False, True):
        ours = smt.simplify(made(tree, Ours), sums=sums)
        solver = z3.SolverFor("QF_UFNIA")
        solver.set("rlimit", 200_000)
        solver.from_string(_declared() + f"(assert (not (= {ours.sexpr()} {made(tree, Theirs).sexpr()})))")
        assert solver.check() != z3.sat


def _declared() -> str:
    return "".join(f"(declare-const {z3.Int(n).sexpr()} Int)" for n in NAMES) + "(declare-fun f (Int) Int)"


@given(st.lists(conditions(), min_size=1, max_size=4))
@settings(max_examples=100, deadline=None)
def test_solvers_say_the_same(found):
    ours, theirs = smt.Solver("QF_UFLIA", smt.context(), rlimit=300_000), z3.SolverFor("QF_UFLIA")
    theirs.set("rlimit", 300_000)
    terms = [made(c, Ours) for c in found]
    ours.add(*terms)
    theirs.add([made(c, Theirs) for c in found])
    answers = {ours.check(), getattr(smt, str(theirs.check()).upper())}
    assert len(answers - {smt.UNKNOWN}) <= 1
    if ours.check() is smt.SAT:
        model = ours.model()
        assert all(model.holds(t, True) for t in terms)


def test_equal_terms_are_one():
    x = smt.Int("x")
    assert (x + 1).eq(smt.Int("x") + 1) and (x + 1).ast == (x + 1).ast and hash(x + 1) == hash(x + 1)
    assert not (x + 1).eq(x + 2)


def test_a_term_has_no_truth_of_its_own():
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(smt.Int("x") == smt.Int("x"))
    with pytest.raises(TypeError, match="no term"):
        smt.Int("x") + "y"


def test_what_is_refused_is_raised_before_an_answer_rests_on_it():
    context = smt.Context()
    x = context.int("x")
    solver = smt.Solver("QF_UFLIA", context, rlimit=10_000)
    with pytest.raises(smt.SmtError):
        solver.add(smt.And(x, x > 0))  # an integer is no truth value
        solver.check()
    with pytest.raises(smt.SmtError):
        solver.check()  # nor does the next one say anything


def test_terms_of_two_contexts_never_meet():
    """z3 would read memory that is not its own."""
    mine, other = smt.Context(), smt.Context()
    x, y = mine.int("x"), other.int("y")
    solver = smt.Solver("QF_UFLIA", mine, rlimit=10_000)
    for meet in (
        lambda: x + y, lambda: x < y, lambda: x == y, lambda: smt.And(x > 0, y > 0), lambda: smt.Or([x > 0, y > 0]), lambda: smt.If(x > 0, x, y),
        lambda: smt.Implies(x > 0, y > 0), lambda: smt.substitute(x, (x, y)), lambda: solver.add(y > 0),
    ):  # fmt: skip
        with pytest.raises(smt.SmtError):
            meet()
    assert solver.check() is smt.SAT
    with pytest.raises(smt.SmtError):
        solver.model().eval(y)


def test_a_text_that_can_not_be_read_is_no_empty_question():
    solver = smt.Solver("QF_LIA", smt.Context(), rlimit=10_000)
    with pytest.raises(smt.SmtError):
        solver.read("(declare-const x Int)(assert (> x")
        solver.check()


def test_a_constant_is_of_the_context_at_hand():
    zero = smt.Constant(0)
    for _ in range(2):
        context = smt.use(smt.Context())
        solver = smt.Solver("QF_UFLIA", context, rlimit=10_000)
        solver.add(smt.Int("x") == zero, smt.Int("x") > zero - 1)
        assert solver.check() is smt.SAT and solver.model().number(smt.Int("x")) == 0


def test_a_context_goes_with_the_last_that_was_made_in_it():
    """At once: what z3 has of it is nothing that a collector of cycles would see."""
    gc.disable()
    try:
        context = smt.Context()
        gone, x = weakref.ref(context), context.int("x")
        solver = smt.Solver("QF_UFLIA", context, rlimit=10_000)
        solver.add(x > 3, context.bool("b"), context.true, context.number(2**70) > x)
        assert solver.check() is smt.SAT
        model = solver.model()
        del context, solver, x
        assert gone() is not None and model.number(gone().int("x")) > 3
        del model
        assert gone() is None
    finally:
        gc.enable()


def test_a_failed_call_is_told_to_its_context_alone():
    one, other = smt.Context(), smt.Context()
    smt.Term(one.z3.mk_eq(one.handle, one.int("x").ast, one.int("y").ast), one)
    with pytest.raises(smt.SmtError):
        smt.Solver("QF_LIA", one, tactics=("no-such-tactic",))
    other.sound()
    with pytest.raises(smt.SmtError):
        one.sound()


def test_contexts_go_with_what_was_made_in_them():
    """Solvers, models and terms are collected together with their context, in whatever order."""
    for _ in range(20):
        context = smt.use(smt.Context())
        solver = smt.Solver("QF_UFLIA", context, rlimit=10_000)
        solver.add(smt.Int("x") > 3)
        assert solver.check() is smt.SAT
        context.held = [solver, solver.model(), context]  # a cycle
    smt.use(smt.Context())
    gc.collect()


def test_one_of_many():
    places = [smt.Bool(f"p{n}") for n in range(4)]
    solver = smt.Solver("QF_UFLIA", smt.context(), rlimit=10_000)
    solver.add(smt.one_of(places))
    assert solver.check() is smt.SAT
    assert sum(solver.model().holds(p, True) for p in places) == 1
    solver.add(places[0], places[2])
    assert solver.check() is smt.UNSAT


def test_steps_end_a_question_and_are_counted():
    context = smt.Context()
    x, y, z = map(context.int, "xyz")
    hard = smt.Solver("QF_NIA", context, rlimit=2_000)
    hard.add(x * x * x + y * y * y + z * z * z == 33, x > 10**6)
    with smt.spending() as spent:
        assert hard.check() is smt.UNKNOWN
    assert spent.checks == 1 and 0 < spent.most == spent.steps < 1_000_000 and hard.reason


def test_an_interrupt_from_the_keyboard_is_pythons():
    context = smt.Context()
    x, y, z = map(context.int, "xyz")
    hard = smt.Solver("QF_NIA", context, rlimit=2_000_000)
    hard.add(x * x * x + y * y * y + z * z * z == 33, x > 10**6)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    hurry = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    try:
        hurry.start()
        with pytest.raises(KeyboardInterrupt):
            hard.check()
            hurry.join()
    finally:
        hurry.cancel()
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("logic", ["QF_LIA", "QF_NIA", "QF_UFLIA", "QF_UFNIA"])
def test_no_strategy_of_z3_with_a_clock_in_it_is_asked(logic):
    """z3 uses its own strategies, which give some parts so many milliseconds, as long as no scope is open."""
    ctx = smt.Context()
    s = smt.Solver(logic, ctx)
    s.pop()
    ctx.sound()
    s.pop()
    with pytest.raises(smt.SmtError):
        ctx.sound()


def test_tactics_answer_as_a_logic_does():
    ctx = smt.Context()
    x, y = ctx.int("x"), ctx.int("y")
    for claims, found in (([x * y == 35, x > 1, y > x], smt.SAT), ([x * x == 2], smt.UNSAT), ([x * y > 0, x > 0, y < 0], smt.UNSAT)):
        for tactics in ((), ("simplify", "propagate-values", "smt"), ("simplify", "qfnra-nlsat")):
            s = smt.Solver("QF_NIA", ctx, tactics=tactics, rlimit=1_000_000)
            s.add(*claims)
            assert s.check() == found
            if found == smt.SAT:
                m = s.model()
                assert (m.number(x), m.number(y)) == (5, 7)
    with pytest.raises(smt.SmtError):
        smt.Solver("QF_NIA", ctx, tactics=("no such",))
