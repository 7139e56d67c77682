"""The instructions of every operation, each assembled."""

from __future__ import annotations

import pytest
from cake_tma.load import Load
from cake_tma.prefetch import Prefetch
from cake_tma.store import REDUCTIONS, Commit, Store, Wait

from cake_core.ir.build import op
from cake_core.ir.types import I32

LOAD = "cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes"


def load(ir, **words):
    source = ir.at(ir.tensor("A", "M", "K"), ir.part("m", 128), ir.part("k", 64))
    return op("tma.load", ir.at(ir.shared("a", (4,), (128, 64)), "s"), arrow="<-", value=source, signal=ir.barrier("full"), **words)


def test_load(lowered, ir):
    lines, maps = lowered(Load(), load(ir), swizzles={"a": 128})
    assert lines == [f"{LOAD.format(2)} [%r2], [%d0, {{%r1, %r0}}], [%r3];"]
    assert maps == [("A", (128, 64), 128)]


def test_load_multicast(lowered, ir):
    lines, _ = lowered(Load(), load(ir, mask=ir.integer(3)), swizzles={"a": 128})
    assert lines == ["mov.b16 %h0, 3;", f"{LOAD.format(2)}.multicast::cluster [%r2], [%d0, {{%r1, %r0}}], [%r3], %h0;"]


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_load_of_every_rank(lowered, ir, rank):
    source = ir.at(ir.tensor("A", *"VWXYZ"[:rank]), *range(rank - 1), ir.part("k", 64))
    statement = op("tma.load", ir.shared("a", (64,)), arrow="<-", value=source, signal=ir.barrier("full"))
    lines, maps = lowered(Load(), statement)
    coordinates = ", ".join(["%r0", *map(str, reversed(range(rank - 1)))])
    assert lines == [f"{LOAD.format(rank)} [%r1], [%d0, {{{coordinates}}}], [%r2];"]
    assert maps == [("A", (1,) * (rank - 1) + (64,), 0)]


def test_store(lowered, ir):
    to = ir.at(ir.tensor("D", "M", "N"), ir.part("m", 64), ir.part("n", 64))
    lines, maps = lowered(Store(), op("tma.store", to, arrow="<-", value=ir.at(ir.shared("d", (2,), (64, 64)), 0)), swizzles={"d": 128})
    assert lines == ["cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d0, {%r1, %r0}], [%r2];"]
    assert maps == [("D", (64, 64), 128)]


@pytest.mark.parametrize("primitive", REDUCTIONS, ids=lambda p: p.name)
def test_reductions(lowered, ir, primitive):
    to = ir.at(ir.tensor("D", "M", "N", elem=I32), ir.part("m", 64), ir.part("n", 32))
    statement = op(primitive.name, to, arrow="<-", value=ir.at(ir.shared("d", (2,), (64, 32), elem=I32), 0))
    lines, maps = lowered(primitive, statement, swizzles={"d": 128})
    assert lines == [f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{primitive.reduction}.bulk_group [%d0, {{%r1, %r0}}], [%r2];"]
    assert maps == [("D", (64, 32), 128)]


def test_a_prefetch(lowered, ir):
    lines, maps = lowered(Prefetch(), op("tma.prefetch", ir.at(ir.tensor("A", "L", "M", "K"), 1, ir.part("m", 128), ir.part("k", 64))))
    assert lines == ["cp.async.bulk.prefetch.tensor.3d.L2.global [%d0, {%r1, %r0, 1}];"]
    assert maps == [("A", (1, 128, 64), 0)]


@pytest.mark.parametrize(
    ("primitive", "statement", "line"),
    [
        (Commit(), op("tma.store.commit"), "cp.async.bulk.commit_group;"),
        (Wait(name="tma.store.wait", reads_only=False), op("tma.store.wait", 0), "cp.async.bulk.wait_group 0;"),
        (Wait(name="tma.store.wait.read", reads_only=True), op("tma.store.wait.read", 1), "cp.async.bulk.wait_group.read 1;"),
    ],
    ids=lambda x: getattr(x, "name", None),
)
def test_groups(lowered, primitive, statement, line):
    assert lowered(primitive, statement)[0] == [line]
