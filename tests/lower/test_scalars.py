"""Scalars: what the machine code computes is what the language says, for every sign and every known part."""

import math
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cake_core.ir import ranges
from cake_core.ir.nodes import Binary, Call, Cond, Float, Int, Name, Unary
from cake_core.ir.types import BOOL, F32, I32, Scalar
from cake_core.lower import scalars
from cake_core.lower.context import Context
from cake_core.ptx.builder import Builder, Reg

VALUES = {"x": -7, "y": 5, "z": 12, "w": -1}
SMALL = st.integers(-9, 9)


def truth(e):
    """The language's meaning of an integer expression or condition, in Python."""
    match e:
        case Int(v):
            return v
        case Name(n):
            return VALUES[n]
        case Unary("-", a):
            return -truth(a)
        case Unary("not", a):
            return not truth(a)
        case Cond(t, a, b):
            return truth(a) if truth(t) else truth(b)
        case Call():
            args = [truth(a) for a in e.positional]
            return {
                "ceildiv": lambda a, b: -(-a // b),
                "min": min,
                "max": max,
                "clamp": lambda x, lo, hi: min(max(x, lo), hi),
            }[e.name](*args)
        case Binary(op, a, b):
            a, b = truth(a), truth(b)
            return {
                "+": lambda: a + b,
                "-": lambda: a - b,
                "*": lambda: a * b,
                "/": lambda: a // b,
                "%": lambda: a % b,
                "<": lambda: a < b,
                "<=": lambda: a <= b,
                ">": lambda: a > b,
                ">=": lambda: a >= b,
                "==": lambda: a == b,
                "!=": lambda: a != b,
                "and": lambda: a and b,
                "or": lambda: a or b,
            }[op]()


def integer(node, exact: bool):
    """The node typed with a range that holds its value: the value itself, a half line, or nothing known."""
    v = truth(node)
    known = ranges.at_least(0) if v >= 0 else ranges.Range(None, -1)
    return replace(node, type=Scalar(I32, range=known if exact else ranges.ANY))


def condition(node):
    return replace(node, type=Scalar(BOOL))


@st.composite
def integers(draw, depth=3):
    exact = draw(st.booleans())
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        leaf = draw(st.one_of(SMALL.map(Int), st.sampled_from(sorted(VALUES)).map(Name)))
        return integer(leaf, exact)
    part = integers(depth - 1)
    kind = draw(st.sampled_from(["+", "-", "*", "/", "%", "neg", "cond", "ceildiv", "min", "max", "clamp"]))
    if kind in ("/", "%", "ceildiv"):
        a, b = draw(part), draw(part.filter(lambda e: truth(e) != 0))
        return integer(Binary(kind, a, b) if kind != "ceildiv" else Call(Name(kind), (a, b)), exact)
    if kind == "neg":
        return integer(Unary("-", draw(part)), exact)
    if kind == "cond":
        return integer(Cond(draw(conditions(depth - 1)), draw(part), draw(part)), exact)
    if kind in ("min", "max", "clamp"):
        return integer(Call(Name(kind), tuple(draw(part) for _ in range(3 if kind == "clamp" else 2))), exact)
    return integer(Binary(kind, draw(part), draw(part)), exact)


@st.composite
def conditions(draw, depth=2):
    kind = draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!="] + (["and", "or", "not"] if depth else [])))
    if kind == "not":
        return condition(Unary("not", draw(conditions(depth - 1))))
    side = conditions(depth - 1) if kind in ("and", "or") else integers(max(depth - 1, 0))
    return condition(Binary(kind, draw(side), draw(side)))


def evaluate(expr, machine, registry):
    """Lower `expr` with its names in registers, run it, give what comes out."""
    b = Builder()
    names = {n: b.reg("b32") for n in VALUES}
    cx = Context(b, None, registry, None, None, {}, None, names, 1, 0, 0, 0)
    result = scalars.value(cx, expr)
    m = machine(registers={r.name: VALUES[n] & 0xFFFFFFFF for n, r in names.items()})
    m.run("{\n" + "".join(f"{i.name}:\n" if hasattr(i, "name") and not hasattr(i, "opcode") else f"{i}\n" for i in b.body) + "ret;\n}\n")
    if isinstance(result, Reg):
        value = m.registers[result.name]
        return value if isinstance(value, bool) else (value ^ 0x80000000) - 0x80000000
    return result


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(integers())
def test_integers(machine, registry, expr):
    """Floor division, remainder with the divisor's sign, whatever is known of the operands."""
    if abs(truth(expr)) < 2**31:
        assert evaluate(expr, machine, registry) == truth(expr)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(conditions())
def test_conditions(machine, registry, expr):
    assert evaluate(expr, machine, registry) == truth(expr)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 2**31 - 1])
@pytest.mark.parametrize("d", [1, 64, 63, 2**20])
def test_ceildiv_reaches_the_largest_integer(trace, n, d):
    """The sum inside may leave the signed range; the quotient may not be hurt by it."""
    assert trace(f"trace ceildiv(N, {d})", require="0 <= N", N=n) == [-(-n // d)]
    assert trace("trace ceildiv(N, D)", require="0 <= N, 1 <= D", N=n, D=d) == [-(-n // d)]


@pytest.mark.parametrize(
    "text, x, expected",
    [
        ("E + 1.0", 2.5, 3.5),
        ("-E", 2.5, -2.5),
        ("E * E - 2.0", 3.0, 7.0),
    ],
)
def test_floats(trace, text, x, expected):
    """Scalar floats go through the functions that plugins register under the operators' names."""
    assert trace(f"trace {text}", E=x) == [expected]


def test_negation_of_a_float_keeps_the_sign_of_zero(machine, registry):
    """-x is a function of one argument, not 0 - x."""
    f32 = Scalar(F32)
    result = evaluate(Unary("-", Float(0.0, type=f32), type=f32), machine, registry)
    assert math.copysign(1, result) == -1


def test_a_let_is_the_value_at_that_point(trace):
    assert trace("var a = N\nlet b = a\nlet c = a + 1\na = 9\ntrace b\ntrace c\ntrace a", N=4) == [4, 5, 9]


def test_conditions_are_values(trace):
    body = "let p = N > 3\nvar q = p and N < 9\ntrace p\ntrace q\nq = not q\ntrace q"
    assert trace(body, N=5) == [True, True, False]
    assert trace(body, N=1) == [False, False, True]


@pytest.mark.parametrize("n, expected", [(1, [1, 10]), (0, [2, 20])])
def test_only_the_chosen_arm_reads_memory(trace, n, expected):
    """`peek` has an effect and records that it ran; arms without effects may both be evaluated."""
    assert trace("trace N > 0 ? peek(1) * 10 : peek(2) * 10", N=n) == expected
