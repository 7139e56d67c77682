"""Asynchronous groups, against runs of random role bodies for every trip count.

A body starts work on fragments, closes and waits for groups, and touches fragments, under guards on loop positions. A run keeps the
queue as the hardware does. The check has a finding where some run touches a fragment in flight or ends with one, and with one loop
only there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_core.check.groups import LONGEST, Queue, Use, _Run
from cake_core.diagnostics import Sink
from cake_core.effects import Access, CommitGroup, InGroup, Mode, WaitGroup
from cake_core.ir.nodes import Assign, Binary, For, If, Int, Name, Op, Role, Words
from cake_core.ir.types import F32, Tile
from cake_core.source import Span

TRIPS = range(12)
FRAGMENTS = ("f", "g")


def effects(s) -> tuple:
    match s:
        case Op("start", (Name() as fragment,)):
            return (Access(fragment, Mode.WRITE, completion=InGroup("q")),)
        case Op("commit"):
            return (CommitGroup("q"),)
        case Op("wait", (Int(n),)):
            return (WaitGroup("q", n),)
    return ()


SUBJECT = SimpleNamespace(
    effects=effects,
    kernel=SimpleNamespace(params=()),
    plan=SimpleNamespace(tensors={}),
    registry=SimpleNamespace(functions={}),
)


def fragment(name: str) -> Name:
    return Name(name, type=Tile("frag", F32, ((64, 64),)))


@st.composite
def blocks(draw, index: str | None, depth: int):
    out = []
    for _ in range(draw(st.integers(1, 4))):
        line = draw(st.integers(1, 10**6))  # a place of its own: findings are told apart by it
        at = Span("t", line, 1, line, 2)
        kind = draw(st.sampled_from(["group", "start", "commit", "wait", "touch", *(["if", "for"] if depth else [])]))
        name = draw(st.sampled_from(FRAGMENTS))
        if kind == "group":
            out += [Op("start", (fragment(name),), span=at), Op("commit", span=at)]
        elif kind == "start":
            out.append(Op("start", (fragment(name),), span=at))
        elif kind == "commit":
            out.append(Op("commit", span=at))
        elif kind == "wait":
            out.append(Op("wait", (Int(draw(st.integers(0, 3))),), span=at))
        elif kind == "touch":
            out.append(Assign(fragment(name), Int(0), span=at))
        elif kind == "if" and index is not None:
            op, c = draw(st.sampled_from([">", "==", "<"])), draw(st.integers(0, 2))
            right = Int(c) if draw(st.booleans()) else Binary("-", Name("n"), Int(c))
            out.append(If(Binary(op, Name(index), right), draw(blocks(index, depth - 1)), draw(st.none() | blocks(index, depth - 1)), span=at))
        elif kind == "for" and index is None:
            out.append(For(("k",), Int(0), Name("n"), Words(), draw(blocks("k", depth - 1)), span=at))
    return tuple(out)


@dataclass
class Run:
    n: int
    k: int = 0
    open: set[str] = field(default_factory=set)
    queue: list[set[str]] = field(default_factory=list)
    faulty: bool = False

    def value(self, e) -> int:
        match e:
            case Int(v):
                return v
            case Name(id):
                return {"n": self.n, "k": self.k}[id]
            case Binary("-", a, b):
                return self.value(a) - self.value(b)

    def block(self, block) -> None:
        for s in block:
            match s:
                case Op("start", (Name(id),)):
                    self.open.add(id)
                case Op("commit"):
                    self.queue.append(self.open)
                    self.open = set()
                case Op("wait", (Int(pending),)):
                    del self.queue[: max(0, len(self.queue) - pending)]
                case Assign(Name(id)):
                    self.faulty |= id in self.open.union(*self.queue)
                case If(Binary(op, a, b), then, other):
                    x, y = self.value(a), self.value(b)
                    self.block(then if {">": x > y, "==": x == y, "<": x < y}[op] else other or ())
                case For():
                    for self.k in range(self.n):
                        self.block(s.body)


@given(blocks(None, 3))
@settings(max_examples=200, deadline=None)
def test_findings_are_the_faults_of_runs(body):
    sink = Sink()
    _Run(SUBJECT, Role("r", None, Int(1), "warp", Words(), body), sink).analyse()
    faulty = False
    for n in TRIPS:
        run = Run(n)
        run.block(body)
        faulty |= run.faulty or bool(run.open.union(*run.queue))
    loops = sum(isinstance(s, For) for s in body)
    assert bool(sink.errors) == faulty or loops > 1 and not faulty  # that two loops run equally often is not seen


def use(name: str) -> Use:
    return Use(name, "start", Span("t", 1, 1, 1, 2))


@pytest.mark.parametrize(("groups", "pending", "left"), [(0, 2, ""), (1, 3, "a"), (2, 3, "ab"), (3, 4, "abc"), (3, 1, "c"), (3, 0, "")])
def test_a_wait_keeps_the_newest_groups(groups, pending, left):
    queue = Queue(tuple(frozenset({use(n)}) for n in "abc"[:groups]), frozenset({use("o")}))
    after = queue.wait(pending)
    assert "".join(sorted(u.name for g in after.groups for u in g)) == left
    assert after.open == queue.open


def test_a_long_queue_loses_no_group():
    queue = Queue()
    for i in range(3 * LONGEST):
        queue = Queue(queue.groups, frozenset({use(f"f{i}")})).commit()
    assert len(queue.groups) == LONGEST and len(queue.uses()) == 3 * LONGEST
    assert {u.name for u in queue.wait(2).uses()} == {f"f{3 * LONGEST - 2}", f"f{3 * LONGEST - 1}"}
