"""The token of a turn: statements, their machine code, and that it goes round whatever the order of the instances."""

from __future__ import annotations

import random

import pytest
from cake_barriers.rendezvous import BarArrive, BarSync
from cake_barriers.turn import NAMED_BARRIERS

from cake_core.ir.build import op
from cake_core.ir.nodes import If
from cake_core.ir.printer import expr_text
from cake_core.ir.ranges import Range
from cake_core.primitive import TurnPlan


def plan(instances, threads=128, first=3):
    return TurnPlan("order", "math", instances, threads, first)


def texts(block):
    return [f"{s.name} {expr_text(s.operands[0])} threads {s.words.get('threads').value}" for s in block]


def test_statements_of_two_instances():
    p = plan(2)
    assert texts(NAMED_BARRIERS.take(p)) == ["bar.sync 3 + math.i threads 256"]
    assert texts(NAMED_BARRIERS.pass_on(p)) == ["bar.arrive 3 + (math.i + 1) % 2 threads 256"]
    (first,) = NAMED_BARRIERS.start(p)
    assert isinstance(first, If) and expr_text(first.test) == "math.i == 1"
    assert texts(first.then) == ["bar.arrive 3 threads 256"]


@pytest.mark.parametrize("instances", [2, 3, 5])
def test_one_barrier_an_instance(instances):
    assert NAMED_BARRIERS.barriers(instances) == instances


def test_machine_code(lowered, ir):
    assert lowered(BarSync(), op("bar.sync", ir.integer(3), threads=256)) == ["bar.sync 3, 256;"]
    assert lowered(BarArrive(), op("bar.arrive", ir.integer(4), threads=256)) == ["bar.arrive 4, 256;"]


def test_machine_code_of_a_role_that_is_written_once(lowered, ir):
    """One instruction for each barrier that the operand may be."""
    identity = ir.integer("id", Range(4, 6))
    assert lowered(BarSync(), op("bar.sync", identity, threads=96)) == [
        "setp.eq.s32 %p0, %r0, 4;",
        "@%p0 bar.sync 4, 96;",
        "setp.eq.s32 %p1, %r0, 5;",
        "@%p1 bar.sync 5, 96;",
        "setp.eq.s32 %p2, %r0, 6;",
        "@%p2 bar.sync 6, 96;",
    ]


def test_an_arrival_is_no_wait():
    (effect,) = BarArrive().effects(op("bar.arrive", 1, threads=64))
    assert (effect.threads, effect.waits) == (64, False)
    assert BarSync().effects(op("bar.sync", 1, threads=64))[0].waits


@pytest.mark.parametrize("instances", [2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_the_token_goes_round(instances, seed):
    """Barriers as the ISA has them: a phase ends when its count is reached; who arrives only goes on at once."""
    arrived, phase, holder, taken = [0] * instances, [0] * instances, [], []

    def arrive(barrier):
        arrived[barrier] += 1
        if arrived[barrier] == 2:
            arrived[barrier], phase[barrier] = 0, phase[barrier] + 1
        assert arrived[barrier] < 2

    def instance(i):
        if i == instances - 1:
            arrive(0)
        for _ in range(7):
            before = phase[i]
            arrive(i)
            while phase[i] == before:
                yield
            holder.append(i)
            assert len(holder) == 1, "two have the token"
            taken.append(i)
            yield
            holder.remove(i)
            arrive((i + 1) % instances)
            yield

    rng, live = random.Random(seed), [instance(i) for i in range(instances)]
    for _ in range(10_000):
        runner = rng.choice(live)
        if next(runner, "done") == "done":
            live.remove(runner)
        if not live:
            break
    assert taken == list(range(instances)) * 7
