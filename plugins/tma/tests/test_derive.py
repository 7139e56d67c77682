"""The derived statements of loads and stores, as text."""

from __future__ import annotations

import pytest
from cake_tma.load import Load
from cake_tma.store import Store, Wait

from cake_core.diagnostics import CakeError
from cake_core.ir.build import add, mul, op
from cake_core.ir.nodes import Name
from cake_core.ir.printer import stmt_text
from cake_core.source import Span

AT = Span("k.cake", 7, 5, 7, 40)


def text(block) -> str:
    return "\n".join(stmt_text(s).rstrip() for s in block)


def a_load(ir, **words):
    source = ir.at(ir.tensor("A", "M", "K"), ir.part(mul("m", 128), 128), ir.part(mul("k", 64), 64))
    return op("tma.load", ir.at(ir.shared("a", (4,), (128, 64)), "s"), arrow="<-", value=source, at=AT, **words)


def test_load_is_one_box_of_the_leader(ir):
    out = Load().derive(a_load(ir), ir.Context(swizzles={"a": 128}))
    assert text(out) == "if leader {\n  tma.load a[s] <- A[m * 128 +: 128, k * 64 +: 64] signal ab_full[s]\n}"
    assert out[0].span == AT and out[0].then[0].span == AT


def test_multicast_loads_a_part_into_every_cta(ir):
    source = ir.at(ir.tensor("B", "N", "K"), ir.part(mul("n", 256), 256), ir.part(mul("k", 64), 64))
    load = op("tma.load", ir.at(ir.shared("b", (4,), (256, 64)), "s"), arrow="<-", value=source, multicast=Name("m"))
    out = Load().derive(load, ir.Context(swizzles={"b": 128}))
    assert text(out) == (
        "if leader {\n"
        "  tma.load b[s][128 * cluster.m +: 128, :] <- B[n * 256 + 128 * cluster.m +: 128, k * 64 +: 64] signal ab_full[s] mask 3\n"
        "}"
    )


def test_multicast_in_a_cluster_of_one_is_a_load(ir):
    out = Load().derive(a_load(ir, multicast=Name("m")), ir.Context(swizzles={"a": 128}, cluster_size=1))
    assert "mask" not in text(out) and "cluster" not in text(out)


def test_one_statement_a_panel(ir):
    """Rows of 256 bytes of one head: two boxes, on both sides, and the index that picks the head stays."""
    source = ir.at(ir.tensor("Q", "T", "H", 128), ir.part("r", 64), "h", ir.ALL)
    load = op("tma.load", ir.at(ir.shared("q", (1,), (64, 128)), 0), arrow="<-", value=source)
    assert text(Load().derive(load, ir.Context(swizzles={"q": 128}))) == (
        "if leader {\n"
        "  tma.load q[0][:, 0 +: 64] <- Q[r +: 64, h, 0 +: 64] signal ab_full[s]\n"
        "  tma.load q[0][:, 64 +: 64] <- Q[r +: 64, h, 64 +: 64] signal ab_full[s]\n"
        "}"
    )


def test_offsets_add_to_those_that_are_written(ir):
    source = ir.at(ir.tensor("A", "M", "K"), ir.part(add("r", 8), 512), ir.part("c", 64))
    load = op("tma.load", ir.at(ir.shared("a", (2,), (1024, 64)), "s"), arrow="<-", value=source)
    load = op("tma.load", ir.at(load.operands[0], ir.part(512, 512), ir.ALL), arrow="<-", value=source)
    assert text(Load().derive(load, ir.Context(swizzles={"a": 128}))) == (
        "if leader {\n"
        "  tma.load a[s][512 +: 256, :] <- A[r + 8 +: 256, c +: 64] signal ab_full[s]\n"
        "  tma.load a[s][768 +: 256, :] <- A[r + 8 + 256 +: 256, c +: 64] signal ab_full[s]\n"
        "}"
    )


def test_load_outside_a_pipeline(ir):
    with pytest.raises(CakeError) as caught:
        Load().derive(a_load(ir), ir.Context(swizzles={"a": 128}, in_pipeline=False))
    assert caught.value.diagnostics[0].code == "derive/no-hand-off" and caught.value.diagnostics[0].fix


def test_store_is_one_group(ir):
    d = ir.at(ir.shared("d", (2,), (2,), (64, 128)), "i")
    store = op("tma.store", ir.at(ir.tensor("D", "M", "N"), ir.part("m", 64), ir.part("n", 128)), arrow="<-", value=ir.at(d, 0), at=AT)
    out = Store().derive(store, ir.Context(swizzles={"d": 128}))
    assert text(out) == (
        "if leader {\n"
        "  tma.store D[m +: 64, n +: 64] <- d[i][0][:, 0 +: 64]\n"
        "  tma.store D[m +: 64, n + 64 +: 64] <- d[i][0][:, 64 +: 64]\n"
        "  tma.store.commit\n"
        "}"
    )
    assert all(s.span == AT for s in out[0].then)


def test_waits_are_the_leaders(ir):
    wait = Wait(name="tma.store.wait.read", reads_only=True)
    assert text(wait.derive(op("tma.store.wait.read", 1), ir.Context())) == "if leader {\n  tma.store.wait.read 1\n}"
