"""The instructions of every operation, each assembled."""

from __future__ import annotations

import pytest
from cake_barriers.mbarrier import Arrive, Expect, Init, InitFence, Wait
from cake_barriers.proxy import FENCES
from cake_barriers.rendezvous import BarSync, CtaSync, WarpSync
from cake_core.diagnostics import CakeError
from cake_core.ir.build import op, words
from cake_core.ir.nodes import Op


def test_init_counts_every_barrier_of_the_array(lowered, ir):
    assert lowered(Init(), op("mbarrier.init", ir.barrier("full", 3)), counts={"full": 4}) == [
        "mbarrier.init.shared::cta.b64 [%r0], 4;",
        "mbarrier.init.shared::cta.b64 [%r0+8], 4;",
        "mbarrier.init.shared::cta.b64 [%r0+16], 4;",
    ]


def test_init_of_a_single_barrier(lowered, ir):
    assert lowered(Init(), op("mbarrier.init", ir.barrier("full")), counts={"full": 1}) == ["mbarrier.init.shared::cta.b64 [%r0], 1;"]


def test_init_without_a_count_is_an_error(ir, lowered):
    with pytest.raises(CakeError, match="states no arrival count"):
        lowered(Init(), op("mbarrier.init", ir.barrier("full", 3)))


@pytest.mark.parametrize(("parity", "text"), [("p", "%r1"), (1, "1")])
def test_wait_spins(lowered, ir, parity, text):
    statement = op("mbarrier.wait", ir.barrier("full", 4, ir.integer("s")), parity=ir.integer(parity))
    assert lowered(Wait(), statement) == [
        "$wait_0:",
        f"mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r0], {text};",
        "@!%p0 bra $wait_0;",
    ]


def test_expect(lowered, ir):
    statement = op("mbarrier.expect", ir.barrier("full", 4, ir.integer("s")), bytes=ir.integer(49152))
    assert lowered(Expect(), statement) == ["mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 49152;"]


def test_expect_in_the_cluster(lowered, ir):
    statement = Op("mbarrier.expect", (ir.barrier("full", 4, ir.integer("s")),), words=words(bytes=ir.integer(49152), at=ir.integer(0)))
    assert lowered(Expect(), statement) == [
        "mapa.shared::cluster.u32 %r1, %r0, 0;",
        "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%r1], 49152;",
    ]


def test_arrive_here(lowered, ir):
    statement = op("mbarrier.arrive", ir.barrier("empty", 4, ir.integer("s")))
    assert lowered(Arrive(), statement) == ["mbarrier.arrive.shared::cta.b64 _, [%r0];"]


@pytest.mark.parametrize(("rank", "text"), [(1, "1"), ("r", "%r1")])
def test_arrive_in_the_cluster_carries_no_release_of_the_cluster(lowered, ir, rank, text):
    statement = Op("mbarrier.arrive", (ir.barrier("empty", 4, ir.integer("s")),), words=words(at=ir.integer(rank)))
    d = "%r1" if text == "1" else "%r2"
    assert lowered(Arrive(), statement) == [
        f"mapa.shared::cluster.u32 {d}, %r0, {text};",
        f"mbarrier.arrive.shared::cluster.b64 _, [{d}];",
    ]


@pytest.mark.parametrize(
    ("primitive", "statement", "text"),
    [
        (InitFence(), op("fence.mbarrier_init"), "fence.mbarrier_init.release.cluster;"),
        (BarSync(), op("bar.sync", 2, threads=128), "bar.sync 2, 128;"),
        (CtaSync(), op("cta.sync"), "bar.sync 0;"),
        (WarpSync(), op("warp.sync"), "bar.warp.sync -1;"),
        (FENCES[0], op("fence.proxy.async"), "fence.proxy.async.shared::cta;"),
        (FENCES[1], op("fence.proxy.async.global"), "fence.proxy.async.global;"),
    ],
    ids=lambda x: getattr(x, "name", None),
)
def test_plain_instructions(lowered, primitive, statement, text):
    assert lowered(primitive, statement) == [text]
