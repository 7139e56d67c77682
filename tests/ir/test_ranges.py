"""Ranges are sound: whatever values the variables of an expression take, the expression's value lies in its range."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cake_core.ir import ranges
from cake_core.ir.build import arithmetic, integer_call
from cake_core.ir.nodes import Call, Int, Name
from cake_core.ir.ranges import ANY, LARGEST, Range
from cake_core.ir.types import I32, Level, Scalar
from cake_core.source import NOWHERE

SMALL = st.integers(-40, 40)


def holds(r: Range, v: int) -> bool:
    inside = (r.lo is None or r.lo <= v) and (r.hi is None or v <= r.hi)
    return inside and (v == r.rem if r.mod == 0 else (v - r.rem) % r.mod == 0)


@st.composite
def values_in_ranges(draw) -> tuple[int, Range]:
    """A value, and a range that holds it: known exactly, by bounds, by a congruence, or by both."""
    v = draw(SMALL)
    if draw(st.booleans()):
        mod = draw(st.integers(0, 12))
        if mod == 0:
            return v, ranges.constant(v)
    else:
        mod = 1
    lo = draw(st.none() | st.integers(v - 9, v))
    hi = draw(st.none() | st.integers(v, v + 9))
    return v, Range(lo, hi, mod, v % mod)


FUNCTIONS = {
    "+": (ranges.add, lambda a, b: a + b),
    "-": (ranges.sub, lambda a, b: a - b),
    "*": (ranges.mul, lambda a, b: a * b),
    "/": (ranges.floordiv, lambda a, b: a // b),
    "%": (ranges.mod, lambda a, b: a % b),
    "min": (ranges.minimum, min),
    "max": (ranges.maximum, max),
    "ceildiv": (ranges.ceildiv, lambda a, b: -(-a // b)),
}


@given(st.sampled_from(sorted(FUNCTIONS)), values_in_ranges(), values_in_ranges())
@settings(max_examples=150, deadline=None)
def test_every_operator(name, a, b):
    of_ranges, of_values = FUNCTIONS[name]
    assume(name not in ("/", "%", "ceildiv") or b[0] != 0)
    assert holds(of_ranges(a[1], b[1]), of_values(a[0], b[0]))


@given(values_in_ranges(), values_in_ranges(), values_in_ranges())
@settings(max_examples=100, deadline=None)
def test_negation_choice_and_clamp(a, b, c):
    assert holds(ranges.neg(a[1]), -a[0])
    assert holds(a[1].join(b[1]), a[0]) and holds(a[1].join(b[1]), b[0])
    assert holds(ranges.clamp(a[1], b[1], c[1]), min(max(a[0], b[0]), c[0]))


@settings(max_examples=60, deadline=None)
@given(st.tuples(st.integers(1, 24), st.integers(1, 24)), st.integers(-200, 200), st.integers(0, 30), st.integers(0, 30))
def test_a_meeting_holds_what_both_hold_and_no_more(mods, v, below, above):
    m, n = mods
    a, b = Range(v - below, None, m, v % m), Range(None, v + above, n, v % n)
    both = a.meet(b)
    assert holds(both, v) and not both.empty
    for x in range(v - 40, v + 40):
        assert holds(both, x) == (holds(a, x) and holds(b, x))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 12), st.integers(-20, 20), st.integers(0, 12), st.integers(-20, 20))
def test_a_meeting_is_empty_only_where_nothing_is_common(m, r, n, s):
    a, b = (Range(None, None, k, x % k if k else x) for k, x in ((m, r), (n, s)))
    common = [x for x in range(-300, 300) if holds(a, x) and holds(b, x)]
    assert a.meet(b).empty == (not common)


def test_numbers_stay_of_bounded_size():
    r = Range(3, 2**31, 8, 3)
    for _ in range(400):
        r = ranges.mul(r, r)
        assert (r.lo is None or abs(r.lo) <= LARGEST) and (r.hi is None or abs(r.hi) <= LARGEST) and r.mod <= LARGEST
    assert r.multiple_of(1) and not r.multiple_of(2)  # 3 to any power is odd: nothing false is known
    r = ranges.constant(2**20)
    for _ in range(400):
        r = ranges.mul(r, r)
    assert r.multiple_of(2**10)


# --- whole expressions, as elaboration types them


TREES = st.recursive(
    SMALL | st.sampled_from("xyz"),
    lambda part: st.tuples(st.sampled_from(["+", "-", "*", "/", "%", "min", "max", "ceildiv"]), part, part),
    max_leaves=8,
)


def evaluated(tree, env: dict[str, int]) -> int:
    match tree:
        case (name, a, b):
            return FUNCTIONS[name][1](evaluated(a, env), evaluated(b, env))
    return env[tree] if isinstance(tree, str) else tree


def build(tree, types):
    match tree:
        case int():
            return Int(tree, type=Scalar(I32, Level.CTA, ranges.constant(tree)))
        case str():
            return Name(tree, type=Scalar(I32, Level.CTA, types[tree]))
        case (op, a, b) if op in "+-*/%":
            return arithmetic(op, build(a, types), build(b, types), NOWHERE)
        case (name, a, b):
            return integer_call(Call(Name(name), (build(a, types), build(b, types))))


@given(TREES, st.tuples(values_in_ranges(), values_in_ranges(), values_in_ranges()))
@settings(max_examples=150, deadline=None)
def test_expressions_fold_to_their_value_and_keep_to_their_range(tree, variables):
    env = {n: v for n, (v, _) in zip("xyz", variables, strict=True)}
    try:
        expected = evaluated(tree, env)
    except ZeroDivisionError:
        assume(False)
    typed = build(tree, {n: r for n, (_, r) in zip("xyz", variables, strict=True)})
    assert holds(typed.type.range, expected)
    if isinstance(typed, Int):
        assert typed.value == expected


def test_nothing_is_known_of_anything():
    for name, (f, _) in FUNCTIONS.items():
        r = f(ANY, ANY)
        assert (r.lo, r.hi) == (None, None), name
