"""Derivation of `sync`, effects, and what is refused."""

from __future__ import annotations

import pytest
from cake_barriers.mbarrier import COUNT_MAX, Arrive, Expect, Init, Wait
from cake_barriers.plugin import cake_primitives
from cake_barriers.rendezvous import BarSync, Sync
from cake_core.diagnostics import CakeError
from cake_core.effects import BarrierArrive, BarrierInit, BarrierWait, Rendezvous
from cake_core.ir.build import op, words
from cake_core.ir.nodes import Name, Op
from cake_core.ir.printer import stmt_text
from cake_core.ir.ranges import Range
from cake_core.source import Span


def code(primitive, statement, cx) -> str:
    with pytest.raises(CakeError) as caught:
        primitive.check(statement, cx)
    return caught.value.diagnostics[0].code


def test_sync_fences_first_then_meets(ir):
    at = Span("k.cake", 3, 1, 3, 10)
    cx = ir.Derive()
    out = Sync().derive(op("sync", "math", at=at), cx)
    assert [stmt_text(s) for s in out] == ["fence.proxy.async", "bar.sync 1 threads 128"]
    assert out[-1].span == at and cx.asked == ["instance"]


def test_sync_all_meets_every_instance(ir):
    cx = ir.Derive(fences=())
    (out,) = Sync().derive(op("sync", "math", flag="all"), cx)
    assert stmt_text(out) == "bar.sync 1 threads 256" and cx.asked == ["role"]


@pytest.mark.parametrize(("flag", "instances", "named"), [(None, 2, False), ("all", 1, False), ("all", 2, True)])
def test_one_warp_takes_no_named_barrier(ir, flag, instances, named):
    cx = ir.Derive(warps=1, instances=instances, fences=())
    (out,) = Sync().derive(op("sync", "math", flag=flag), cx)
    assert (out.name == "bar.sync") is named and bool(cx.asked) is named


def test_sync_of_another_role(ir):
    with pytest.raises(CakeError, match="'math' syncs 'load'"):
        Sync().derive(op("sync", "load"), ir.Derive())


def test_effects(ir):
    one = ir.barrier("full", 4, ir.integer("s"))
    parity, rank = ir.integer("p"), ir.integer(1)
    assert Init().effects(op("mbarrier.init", Name("full"))) == (BarrierInit(Name("full")),)
    assert Wait().effects(op("mbarrier.wait", one, parity=parity)) == (BarrierWait(one, parity),)
    assert Expect().effects(op("mbarrier.expect", one, bytes=ir.integer(64))) == (BarrierArrive(one, None, 64),)
    assert Arrive().effects(Op("mbarrier.arrive", (one,), words=words(at=rank))) == (BarrierArrive(one, rank),)
    assert BarSync().effects(op("bar.sync", 3, threads=64))[0] == Rendezvous("instance", 64, op("bar.sync", 3).operands[0])
    assert Sync().effects(op("sync", "math", flag="all")) == (Rendezvous("role"),)


@pytest.mark.parametrize("count", [0, COUNT_MAX + 1])
def test_count_outside_the_barrier(ir, count):
    assert code(Init(), op("mbarrier.init", ir.barrier("full", 4)), ir.Check(counts={"full": count})) == "ptx/mbarrier-count"


@pytest.mark.parametrize("count", [1, COUNT_MAX])
def test_count_at_its_limits(ir, count):
    Init().check(op("mbarrier.init", ir.barrier("full", 4)), ir.Check(counts={"full": count}))


def test_init_of_one_member(ir):
    assert code(Init(), op("mbarrier.init", ir.barrier("full", 4, ir.integer(0))), ir.Check()) == "type/barrier-index"


def test_parity_is_a_bit(ir):
    one = ir.barrier("full", 4, ir.integer(0))
    assert code(Wait(), op("mbarrier.wait", one, parity=ir.integer(2)), ir.Check()) == "ptx/mbarrier-parity"
    Wait().check(op("mbarrier.wait", one, parity=ir.integer(1)), ir.Check())


def test_bytes_of_a_phase(ir):
    one = ir.barrier("full", 4, ir.integer(0))
    assert code(Expect(), op("mbarrier.expect", one, bytes=ir.integer(COUNT_MAX + 1)), ir.Check()) == "ptx/mbarrier-bytes"
    Expect().check(op("mbarrier.expect", one, bytes=ir.integer(COUNT_MAX)), ir.Check())


@pytest.mark.parametrize("rank", [-1, 2])
def test_rank_outside_the_cluster(ir, rank):
    one = ir.barrier("empty", 4, ir.integer(0))
    assert code(Arrive(), Op("mbarrier.arrive", (one,), words=words(at=ir.integer(rank))), ir.Check()) == "ptx/cluster-rank"


def test_named_barriers_count_whole_warps(ir):
    for threads in (0, 48):
        assert code(BarSync(), op("bar.sync", ir.integer(1), threads=ir.integer(threads)), ir.Check()) == "ptx/barrier-threads"


def test_named_barrier_ids(ir):
    last = ir.integer("id", Range(1, 15))
    BarSync().check(op("bar.sync", last, threads=ir.integer(64)), ir.Check())
    for r in (Range(1, 16), Range(-1, 3)):
        assert code(BarSync(), op("bar.sync", ir.integer("id", r), threads=ir.integer(64)), ir.Check()) == "ptx/barrier-id"


def test_every_primitive_cites_the_isa():
    for p in cake_primitives():
        assert "PTX ISA" in p.doc and p.capabilities
