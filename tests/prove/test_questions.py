"""Which questions are asked of the solver: what is said by another one is not asked again, and what is not asked is so."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_core.facts import facts_of, rows_of
from cake_core.ir.ranges import Range
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.prove.entailment import Entailment, Follows
from cake_core.prove.memory import Memory
from cake_core.prove.polynomials import AtLeast, Poly
from cake_core.prove.quantities import Quantities
from cake_core.rules import Standing
from cake_core.source import Source

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = load_registry()
TEXT = """cake 1 derived
kernel k(A: i32, B: i32, X: in f32[A, B], Y: out f32[A])
  require 1 <= A, A <= {most}, 1 <= B, B <= 65536
  target sm90
{{
  launch A
  role main: 1 warp at 0 {{
    var i = 0
    {body}
    store Y[0] <- 1.0 by 4
  }}
}}
"""


def memory_of(body: str, most: int = 512) -> tuple[Memory, list]:
    front = frontend(Source("case.cake", TEXT.format(most=most, body=body)), REGISTRY)
    rows = rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)
    return Memory(rows), [r for r in rows["event"] if r.site.event.sets]


# --- polynomials ---------------------------------------------------------------------------------------------------

NAMES = ("a", "b", "c")
POLYS = st.dictionaries(
    st.lists(st.sampled_from(NAMES), max_size=2).map(lambda m: tuple(sorted(m))), st.integers(-6, 6).filter(bool), max_size=4
).map(Poly)
VALUES = list(itertools.product(range(-2, 3), repeat=3))


def value(p: Poly, at: tuple[int, ...]) -> int:
    of, out = dict(zip(NAMES, at, strict=True)), 0
    for m, c in p.terms.items():
        for a in m:
            c *= of[a]
        out += c
    return out


@given(p=POLYS, q=POLYS, n=st.integers(-3, 3))
@settings(max_examples=100, deadline=None)
def test_polynomials_are_what_they_stand_for(p, q, n):
    for made, meant in (
        (p + q, lambda x, y: x + y),
        (p - q, lambda x, y: x - y),
        (p * q, lambda x, y: x * y),
        (p + n, lambda x, _: x + n),
        (p - n, lambda x, _: x - n),
        (p * n, lambda x, _: x * n),
        (-p, lambda x, _: -x),
    ):
        assert all(made.terms.values()), "no coefficient is 0"
        assert all(value(made, at) == meant(value(p, at), value(q, at)) for at in VALUES[::7])
    again = Poly(dict(reversed(p.terms.items())))
    assert again == p and hash(again) == hash(p) and again.text == p.text and (p - q == Poly.of(0)) is (p == q)


# --- what says less ------------------------------------------------------------------------------------------------


@given(p=POLYS, known=POLYS, bounds=st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 2)), min_size=3, max_size=3))
@settings(max_examples=300, deadline=None)
def test_what_says_less_is_so_wherever_the_other_is(p, known, bounds):
    entailment = EMPTY
    for name, (lo, more) in zip(NAMES, bounds, strict=True):
        entailment.quantities.free(name, name, Range(lo, lo + more))
    if entailment.weaker(p, known):
        for at in itertools.product(*(range(lo, lo + more + 1) for lo, more in bounds)):
            assert value(known, at) < 0 or value(p, at) >= 0


EMPTY = Entailment(Quantities(memory_of("i = A")[0].rows.facts))


@pytest.mark.parametrize(
    "p, known, less",
    [
        ({(): 9, ("a",): -1}, {(): 9, ("a",): -2}, True),  # a <= 9 where 2*a <= 9
        ({(): 9, ("a",): -2}, {(): 9, ("a",): -1}, False),
        ({(): 9, ("a",): -1}, {(): 9, ("a",): -1, ("b",): -1}, True),  # ... where a + b <= 9, for b >= 0
        ({(): 9, ("a",): -1, ("b",): -1}, {(): 9, ("a",): -1}, False),
        ({(): 9, ("a",): -1}, {(): 9, ("a",): 1}, False),
        ({(): 8, ("a",): -1}, {(): 9, ("a",): -1}, False),
        ({(): 9}, {(): 9, ("a",): -1}, False),  # no unknown in common
    ],
)
def test_what_says_less(p, known, less):
    for name in ("a", "b"):
        EMPTY.quantities.free(name, name, Range(0, None))
    assert EMPTY.weaker(Poly(p), Poly(known)) is less


def test_what_was_found_holds_where_as_much_does():
    """And not under other conditions."""
    memory, _ = memory_of("i = A", most=4)
    e = Entailment(memory.places().quantities)
    a, b = Poly.atom("A"), Poly.atom("B")
    small = (AtLeast(Poly.of(3) - b),)  # B <= 3
    assert e.follows(AtLeast(Poly.of(12) - a * b), small).follows is Follows.YES
    assert e.follows(AtLeast(Poly.of(13) - a * b), small).follows is Follows.YES
    assert e.follows(AtLeast(Poly.of(13) - a * b), ()).follows is Follows.NO


# --- numbers of 32 bits --------------------------------------------------------------------------------------------

LINES = "i = A * B\n    i = A * B * 8\n    i = A * B * 64 + 7\n    i = (A * B + 1) * 4"


@pytest.mark.parametrize("most, standing", [(500, Standing.PROVED), (512, Standing.VIOLATED)])
def test_of_numbers_that_are_parts_of_one_the_largest_is_asked(most, standing, monkeypatch):
    """512 * 65536 * 64 is 2**31; all others are less."""
    asked = []
    own = Entailment._asked
    monkeypatch.setattr(
        Entailment, "_asked", lambda self, goal, path, denials: asked.append((goal.poly.text, denials)) or own(self, goal, path, denials)
    )
    memory, events = memory_of(LINES, most)
    found = {e.id: memory.fits(e) for e in events}
    wrong = [a for a in found.values() if a.standing is not Standing.PROVED]
    assert {a.standing for a in wrong} == ({standing} if standing is Standing.VIOLATED else set())
    assert [a.reason for a in wrong] == ([] if not wrong else ["`A * B * 64` is 2147483648"])
    assert len(asked) == len(set(asked)) and len([a for a, _ in asked]) <= (1 if not wrong else 6)
