"""Predicates about addresses: what follows is so for all numbers, what is denied has an example, and the corpus comes out red and green."""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path

import pytest

from cake_core.facts import facts_of, rows_of
from cake_core.ir.nodes import Binary, Call, Cond, Expr, Int, Name
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.prove.entailment import Entailment, Follows
from cake_core.prove.memory import Memory
from cake_core.prove.polynomials import Poly
from cake_core.prove.prover import Prover
from cake_core.prove.quantities import Quantities
from cake_core.rules import Outcome, Standing, judge, rulebook
from cake_core.source import Source
from cake_core.syntax import parse

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "corpus"
REGISTRY = load_registry()
RULES = [r for r in rulebook().rules if r.id in ("core/index-bounds", "core/barrier-bounds", "core/index-overflow")]
HEAD = "cake 1 derived\nkernel k(A: i32, B: i32, C: i32, X: in f32[A, B], Y: out f32[A])\n  require {}\n  target sm90\n{{\n  launch {}\n  role main: 1 warp at 0 {{\n{}\n  }}\n}}\n"
SMALL = "1 <= A, A <= 4, 0 <= B, B <= 5, 1 <= C, C <= 3"


def rows_from(text: str):
    front = frontend(Source("case.cake", text), REGISTRY)
    return rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)


# --- what follows, against all numbers -----------------------------------------------------------------------------


def expression(text: str) -> Expr:
    kernel = parse(Source("e.cake", HEAD.format(text, "A", "    store Y[0] <- 1.0"))).kernels[0]
    (e,) = kernel.clauses[0].exprs
    return e


def value(e: Expr, env: dict[str, int]):
    match e:
        case Int(v):
            return v
        case Name(id):
            return env[id]
        case Cond(c, a, b):
            return value(a if value(c, env) else b, env)
        case Call():
            x = [value(a, env) for a in e.positional]
            return {"min": min, "max": max, "ceildiv": lambda a, b: -(-a // b), "clamp": lambda v, lo, hi: min(max(v, lo), hi)}[e.name](*x)
        case Binary(op, a, b):
            x, y = value(a, env), value(b, env)
            return {
                "+": lambda: x + y,
                "-": lambda: x - y,
                "*": lambda: x * y,
                "/": lambda: x // y,
                "%": lambda: x % y,
                "<": lambda: x < y,
                "<=": lambda: x <= y,
                "==": lambda: x == y,
                "and": lambda: x and y,
                "or": lambda: x or y,
            }[op]()
    raise AssertionError(e)


@pytest.mark.parametrize(
    "claim",
    [
        "(A * B - 1) / A < B",
        "(A * B + A - 1) / A <= B",
        "B / A * A <= B",
        "B - B / A * A < A",
        "B % A < A",
        "B % A < C",
        "B / C / A * A * C <= B",
        "A * B < 20",
        "A * B <= 20",
        "A * B * C <= 60",
        "A * B * C <= 59",
        "min(A, B) * C <= A * C",
        "min(A, B) * C <= B * C - 1",
        "clamp(B, 1, C) <= 3",
        "clamp(B, A, C) <= B + A",
        "clamp(B, A, C) < C",
        "(A < B ? B - A : 0) * C <= B * C",
        "ceildiv(A, C) * C < A + C",
        "ceildiv(A, C) * C < A + C - 1",
        "(B - 3) / C * C <= B - 3",
        "(B - 3) % C <= C - 1",
        "(B - 3) % C < 2",
    ],
)
def test_it_follows_if_it_is_so_for_all_numbers(claim):
    """All numbers that `require` admits are tried: the answers agree, and an example that is given is one."""
    rows = rows_from(HEAD.format(SMALL, "A", "    store Y[0] <- 1.0 by 4"))
    q = Quantities(rows.facts)
    e = expression(claim)
    numbers = [dict(zip("ABC", x, strict=True)) for x in itertools.product(range(1, 5), range(6), range(1, 4))]
    found = Entailment(q).follows(q.condition(e, {}), ())
    assert found.follows is (Follows.YES if all(value(e, n) for n in numbers) else Follows.NO)
    if found.follows is Follows.NO:
        assert not value(e, {n: v for n, v in found.values if n in "ABC"} | {n: 1 for n in "ABC" if n not in dict(found.values)})


def test_polynomials_cancel():
    a, b = Poly.atom("a"), Poly.atom("b")
    assert (a + b) * (a - b) - a * a + b * b == Poly.of(0)
    assert (a * b * 6 + a * 4).common() == (2, ("a",))


# --- places --------------------------------------------------------------------------------------------------------


def standings(body: str, require: str = "1 <= A, A <= 65536, 1 <= B, B <= 65536, 1 <= C, C <= 65536", items: str = "A"):
    rows = rows_from(HEAD.format(require, items, body))
    memory = Memory(rows)
    return {memory.in_bounds(r).standing for r in rows["access"] if r["space"] != "registers"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    store Y[cluster.id] <- 1.0 by 4", Standing.PROVED),
        ("    store Y[cluster.id + 1] <- 1.0 by 4", Standing.VIOLATED),
        ("    if cluster.id + 1 < A { store Y[cluster.id + 1] <- 1.0 by 4 }", Standing.PROVED),
        ("    for i in 0 .. A { store Y[i] <- 1.0 by 4 }", Standing.PROVED),
        ("    for i in 0 .. A { store Y[A - 1 - i] <- 1.0 by 4 }", Standing.PROVED),
        ("    for i in 0 .. A { store Y[A - i] <- 1.0 by 4 }", Standing.VIOLATED),
        ("    for i in 0 .. B step 3 { store Y[i / B] <- 1.0 by 4 }", Standing.PROVED),
        ("    for i in 1 .. A step 2 { if i % 2 == 0 { store Y[C] <- 1.0 by 4 } }", Standing.PROVED),
        ("    var n = 0\n    for i in 0 .. B {\n      store Y[n % A] <- 1.0 by 4\n      n = n + 1\n    }", Standing.PROVED),
        ("    var n = 0\n    for i in 0 .. B {\n      store Y[n] <- 1.0 by 4\n      n = n + 1\n    }", Standing.VIOLATED),
        ("    var n = 0\n    while n < A {\n      store Y[n] <- 1.0 by 4\n      n = n + 1\n    }", Standing.PROVED),
        ("    var n = 0\n    while n < A {\n      n = n + 1\n    }\n    if n > 0 { store Y[n - 1] <- 1.0 by 4 }", Standing.PROVED),
        ("    var n = 0\n    for i in 0 .. A {\n      store Y[n] <- 1.0 by 4\n      n = n + 1\n    }", Standing.PROVED),
        ("    var n = 0\n    for i in cluster.id .. A step cluster.count {\n      store Y[n] <- 1.0 by 4\n      n = n + 1\n    }", Standing.PROVED),
        (
            "    var n = 0\n    for i in 0 .. A {\n      for j in 0 .. B { n = n + 1 }\n      if n % 5 == 4 { store Y[A + n % 5 - 4] <- 1.0 by 4 }\n    }",
            Standing.VIOLATED,
        ),
        ("    var n = 0\n    for i in 0 .. A { n = n + 1 }\n    if n > 0 { store Y[n - 1] <- 1.0 by 4 }", Standing.UNKNOWN),
        ("    let n = cluster.id > 0 ? cluster.id - 1 : 0\n    store Y[n] <- 1.0 by 4", Standing.PROVED),
    ],
)
def test_single_indices(body, expected):
    assert standings(body) == {expected}


def test_an_index_of_a_grouped_order_is_inside():
    body = (
        "    let g = C * 8, s = cluster.id / g * 8\n    let h = clamp(ceildiv(A, 128) - s, 1, 8), r = cluster.id % g\n"
        "    let m = s + r % h, n = r / h\n    if m * 128 < A { store Y[m * 128] <- 1.0 by 4 }\n    if n >= C { store Y[B] <- 1.0 by 4 }"
    )
    assert standings(body, items="ceildiv(A, 128) * C") == {Standing.PROVED}
    assert standings(body.replace("n >= C", "n >= C - 1"), items="ceildiv(A, 128) * C") == {Standing.PROVED, Standing.VIOLATED}


def test_tiles_are_clipped_and_single_indices_are_not():
    tile = "    frag x: f32[64] vec 2 layout vector\n    x = load(X[{}, cluster.id * 64 +: 64], by = 4)\n    store X2[0] <- 1.0 by 4"
    assert standings(tile.format("0").replace("X2", "Y")) == {Standing.PROVED}
    assert standings(tile.format("B").replace("X2", "Y")) == {Standing.PROVED, Standing.VIOLATED}


@pytest.mark.parametrize(("rows", "expected"), [("C % 4 == 0", Standing.PROVED), ("C % 2 == 0", Standing.VIOLATED)])
def test_alignment_is_what_rows_and_slots_make_it(rows, expected):
    text = (CORPUS / "C-69-vector-access-not-aligned" / "good.cake").read_text().replace("by = 16", "by = 8").replace("by 16", "by 8")
    found = rows_from(text.replace("C % 4 == 0", rows))
    reads = [r for r in found["access"] if r["buffer"] == "X"]
    assert [Memory(found).aligned(r, 16).standing for r in reads] == [expected]


# --- the corpus ----------------------------------------------------------------------------------------------------

CASES = [p.parent for p in sorted(CORPUS.glob("*/case.toml")) if tomllib.loads(p.read_text())["category"] in ("bounds", "overflow")]


@pytest.mark.parametrize("folder", CASES, ids=lambda f: f.name)
def test_cases_of_bounds_and_overflow(folder):
    for path in sorted(folder.glob("*.cake")):
        rows = rows_from(path.read_text())
        found = {v.rule.id for v in judge(RULES, rows, Prover(rows)) if v.outcome is not Outcome.PROVED and v.outcome is not Outcome.INAPPLICABLE}
        assert bool(found) == path.name.startswith("bad"), path
        assert found <= {"core/index-overflow" if folder.name.startswith("C-68") else "core/index-bounds"}


@pytest.mark.parametrize(
    ("step", "use", "fits"),
    [
        ("n + 1", "n % 4", True),  # a count of turns
        ("n + C", "n % 4", False),  # a sum of sizes
        ("n + 65536", "n % 4", False),
        ("n + 1", "n * 65536 % 4", False),  # a multiple of a count
    ],
)
def test_a_sum_that_a_loop_carries_need_not_fit(step, use, fits):
    body = f"    var n = 0\n    for r in 0 .. A {{\n      store Y[r] <- load(X[{use}, 0], by = 4) by 4\n      n = {step}\n    }}"
    rows = rows_from(HEAD.format("4 <= A, A <= 1048576, 1 <= B, B <= 8, 1 <= C, C <= 65536", "1", body))
    rule = next(r for r in RULES if r.id == "core/index-overflow")
    assert all(v.outcome in (Outcome.PROVED, Outcome.INAPPLICABLE) for v in judge([rule], rows, Prover(rows))) is fits


@pytest.mark.parametrize(
    ("start", "first", "fits"),
    [
        ("0", "n = n + 1", True),
        ("1073741824", "n = n + 8", True),
        ("A", "n = n + 1", False),  # it starts anywhere
        ("0", "n = A", False),  # it is set anew, to anything
        ("0", "if r == 1 { n = A }", False),
        ("0", "if r == 1 { n = 7 }", True),
        ("0", "for j in 0 .. A { n = n + 1 }", True),
        ("0", "for j in 0 .. A { n = A - r }", False),
    ],
)
def test_a_count_of_turns_starts_near_0(start, first, fits):
    body = f"    var n = {start}, m = 0\n    for r in 0 .. B {{\n      store Y[0] <- 1.0 by 4\n      m = n + 8\n      {first}\n    }}"
    rows = rows_from(HEAD.format("4 <= A, A <= 2147483647, 1 <= B, B <= 1048576", "1", body))
    rule = next(r for r in RULES if r.id == "core/index-overflow")
    assert all(v.outcome in (Outcome.PROVED, Outcome.INAPPLICABLE) for v in judge([rule], rows, Prover(rows))) is fits


@pytest.mark.parametrize(
    ("loop", "fits"),
    [
        ("0 .. A", True),
        ("B .. A", True),
        ("0 .. A step 1048576", True),  # compared without a sign behind the last turn
        ("B .. A step 1048576", False),
        ("B .. A - 1048576 step 1048576", True),
        ("B .. A step C", False),
    ],
)
def test_what_a_loop_counts_to_fits(loop, fits):
    body = f"    for r in {loop} {{\n      store Y[0] <- 1.0 by 4\n    }}"
    rows = rows_from(HEAD.format("4 <= A, A <= 2147483647, -8 <= B, B <= 8, 1 <= C, C <= 65536", "1", body).replace("A, B], Y", "A, 4], Y"))
    rule = next(r for r in RULES if r.id == "core/index-overflow")
    assert all(v.outcome in (Outcome.PROVED, Outcome.INAPPLICABLE) for v in judge([rule], rows, Prover(rows))) is fits


@pytest.mark.parametrize(
    ("body", "outcomes"),
    [
        ("let u = u32(B)\n    if u > 2147483647 { store Y[A + C] <- 1.0 by 4 }", {"core/index-bounds"}),
        ("let u = load(P[0], by = 4)\n    if u > 2147483647 { store Y[A + C] <- 1.0 by 4 }", {"core/index-bounds"}),
        ("let u = load(Q[0], by = 4)\n    if u > 2147483647 { store Y[A + C] <- 1.0 by 4 }", {"core/index-bounds"}),
        ("if load(Q[0], by = 4) > 2147483647 { store Y[A + C] <- 1.0 by 4 }", {"core/index-bounds"}),
        ("if load(Q[0], by = 4) < 0 { store Y[A + C] <- 1.0 by 4 }", set()),
        ("let u = u32(C)\n    if u > 2147483647 { store Y[A + C] <- 1.0 by 4 }", set()),
        ("let u = u32(C) - 2\n    if u > 2147483647 { store Y[A + C] <- 1.0 by 4 }", {"core/index-overflow"}),
        (
            "var u = u32(C)\n    for r in 0 .. A { u = load(Q[r], by = 4) }\n    if u > 2147483647 { store Y[A + C] <- 1.0 by 4 }",
            {"core/index-bounds"},
        ),
    ],
)
def test_a_u32_has_no_sign(body, outcomes):
    text = HEAD.format("1 <= A, A <= 4, -5 <= B, B <= 5, 1 <= C, C <= 3", "1", f"    {body}").replace(
        "X: in f32[A, B]", "P: in u32[A], Q: inout u32[A]"
    )
    rows = rows_from(text)
    assert {v.rule.id for v in judge(RULES, rows, Prover(rows)) if v.outcome not in (Outcome.PROVED, Outcome.INAPPLICABLE)} == outcomes
