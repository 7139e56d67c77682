"""How many slots a role holds, against runs of random role bodies for every trip count.

Where a run gives up a slot that it does not hold, takes one too many, or ends with one in its hands, there is a finding; where
there is none, every run holds before each `drain` a number in the interval that was found, and both its ends are taken by one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_core.derive.held import HeldSlots
from cake_core.diagnostics import Sink
from cake_core.ir.nodes import Binary, For, If, Int, Name, Op, Role, Words
from cake_core.ir.ranges import at_least
from cake_core.ir.types import BOOL, I32, Level, Scalar
from cake_core.source import Span

SLOTS = 3
TRIPS = range(13)  # more than a guard looks ahead at either end, and than there are slots


def verb(name: str) -> Op:
    return Op(name, (Name("p"),), span=Span("t", 1, 1, 1, 2))


def guard(op: str, left, right) -> Binary:
    return Binary(op, left, right, type=Scalar(BOOL, Level.CTA))


@st.composite
def guards(draw, index: str, opaque: bool):
    op = draw(st.sampled_from([">", ">=", "<", "<=", "==", "!="]))
    c = draw(st.integers(0, 3))
    kinds = ["start", "end", *(["opaque"] if opaque else [])]
    match draw(st.sampled_from(kinds)):
        case "start":
            return guard(op, Name(index), Int(c)) if draw(st.booleans()) else guard(op, Int(c), Name(index))
        case "end":
            return guard(op, Name(index), Binary("-", Name("n"), Int(c)))
        case _:
            return guard(">", Name("c"), Int(0))


@st.composite
def blocks(draw, index: str | None, depth: int, opaque: bool = True, drains: bool = True):
    out = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["wait", "release", "pair", *(["drain"] if drains else []), *(["if", "for"] if depth else [])]))
        if kind == "pair":
            out += [verb("wait"), verb("release")]
        elif kind == "if" and index is not None:
            test = draw(guards(index, opaque))
            out.append(If(test, draw(blocks(index, depth - 1, opaque, drains)), draw(st.none() | blocks(index, depth - 1, opaque, drains))))
        elif kind == "for":
            bound = Name("n") if index is None or draw(st.booleans()) else Int(draw(st.integers(0, 3)))
            inner = f"k{depth}"
            out.append(For((inner,), Int(draw(st.integers(0, 1))), bound, Words(), draw(blocks(inner, depth - 1, opaque, drains))))
        elif kind in ("wait", "release", "drain"):
            out.append(verb(kind))
    return tuple(out)


@dataclass
class Run:
    """Executes a body: `held` at each drain (by identity), and whether a rule was broken."""

    env: dict[str, int]
    held: int = 0
    broken: bool = False
    seen: dict[int, set[int]] = field(default_factory=dict)

    def value(self, e):
        match e:
            case Int(v):
                return v
            case Name(id):
                return self.env[id]
            case Binary("-", a, b):
                return self.value(a) - self.value(b)
            case Binary(op, a, b):
                x, y = self.value(a), self.value(b)
                return {">": x > y, ">=": x >= y, "<": x < y, "<=": x <= y, "==": x == y, "!=": x != y}[op]

    def block(self, block):
        for s in block:
            if self.broken:
                return
            match s:
                case Op("drain"):
                    self.seen.setdefault(id(s), set()).add(self.held)
                    self.held = 0
                case Op(name):
                    self.held += 1 if name == "wait" else -1
                    self.broken = not 0 <= self.held <= SLOTS
                case If(test, then, other):
                    self.block(then if self.value(test) else other or ())
                case For(pattern, lo, hi):
                    for i in range(self.value(lo), self.value(hi)):
                        self.env = {**self.env, pattern[0]: i}
                        self.block(s.body)


def analysed(body) -> tuple[HeldSlots, Sink]:
    sink = Sink()
    held = HeldSlots(Role("r", None, Int(1), "warp", Words(), body), {"p": SLOTS}, sink)
    held.analyse()
    return held, sink


def runs(body) -> tuple[bool, dict[int, set[int]]]:
    broken, seen = False, {}
    for n, c in product(TRIPS, (0, 1)):
        run = Run({"n": n, "c": c})
        run.block(body)
        broken |= run.broken or run.held > 0
        for at, held in run.seen.items():
            seen.setdefault(at, set()).update(held)
    return broken, seen


@given(blocks(None, 3))
@settings(max_examples=120, deadline=None)
def test_no_fault_is_missed(body):
    held, sink = analysed(body)
    broken, seen = runs(body)
    assert sink.errors or not broken
    if not sink.errors:
        for at, found in seen.items():
            lo, hi = held.at_drain[at]
            assert lo <= min(found) and max(found) <= hi


@given(blocks("k", 2, opaque=False, drains=False), st.booleans())
@settings(max_examples=120, deadline=None)
def test_positions_in_one_loop_are_told_apart_exactly(inside, drained):
    """Guards on both ends of a loop, and nothing else that is not known: no interval is wider than it must be."""
    if any(isinstance(s, For) for s in inside):
        inside = tuple(s for s in inside if not isinstance(s, For))
    drain = verb("drain")
    body = (For(("k",), Int(0), Name("n"), Words(), inside), *((drain,) if drained else ()))
    if _mixed(inside):
        return
    held, sink = analysed(body)
    broken, seen = runs(body)
    assert bool(sink.errors) == broken
    if drained and not broken:
        assert held.at_drain[id(drain)] == (min(seen[id(drain)]), max(seen[id(drain)]))


def _mixed(block) -> bool:
    """Loops inside are another test's."""
    return any(isinstance(s, For) or isinstance(s, If) and (_mixed(s.then) or _mixed(s.other or ())) for s in block)


LATE = If(guard(">=", Name("k"), Int(2)), (verb("release"),))
CASES = {
    "nothing": ((verb("wait"), verb("release")), (0, 0)),
    "all": ((verb("wait"), LATE), (0, 2)),
    "the last": ((verb("wait"), If(guard("<", Name("k"), Binary("-", Name("n"), Int(1))), (verb("release"),))), (0, 1)),
    "not the first": ((verb("wait"), If(guard("!=", Name("k"), Int(0)), (verb("release"),))), (0, 1)),
}


@pytest.mark.parametrize(("inside", "expected"), CASES.values(), ids=CASES)
def test_what_a_drain_finds(inside, expected):
    drain = verb("drain")
    held, sink = analysed((For(("k",), Int(0), Name("n"), Words(), inside), drain))
    assert (held.at_drain[id(drain)], sink.items) == (expected, [])


def test_a_constant_trip_count_is_followed():
    drain = verb("drain")
    held, sink = analysed((For(("k",), Int(0), Int(3), Words(), (verb("wait"),)), drain))
    assert (held.at_drain[id(drain)], sink.items) == ((3, 3), [])


def test_a_loop_that_surely_runs_leaves_what_its_last_iterations_leave():
    many = Name("n", type=Scalar(I32, Level.CTA, at_least(10)))
    last = If(guard("<", Name("k"), Binary("-", many, Int(1))), (verb("release"),))
    for inside, expected in (((verb("wait"), last), (1, 1)), ((verb("wait"), LATE), (2, 2))):
        drain = verb("drain")
        held, sink = analysed((For(("k",), Int(0), many, Words(), inside), drain))
        assert (held.at_drain[id(drain)], sink.items) == (expected, [])
