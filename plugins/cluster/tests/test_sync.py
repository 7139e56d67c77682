"""`cluster.sync`: what it says of itself, and what it lowers to."""

from __future__ import annotations

from types import SimpleNamespace

from cake_core.effects import Rendezvous
from cake_core.ir import build
from cake_core.plugins import load_registry
from cake_core.primitive import Form
from cake_core.ptx.builder import Builder


def sync():
    return load_registry(environ={"CAKE_LOAD_PLUGINS": ""}).operations["cluster.sync"]


def test_signature():
    op = sync()
    assert (op.operands, op.arrows, op.words, op.flags, op.form) == ((), (), (), (), Form.BOTH)
    assert op.capabilities == {"cluster"} and "PTX ISA" in op.doc


def test_it_is_a_rendezvous_of_the_cluster_and_nothing_else():
    assert sync().effects(build.op("cluster.sync")) == (Rendezvous("cluster"),)


def test_it_derives_to_itself():
    op = build.op("cluster.sync")
    assert sync().derive(op, None) == (op,)


def test_arrive_releases_and_wait_acquires_and_neither_is_aligned():
    b = Builder()
    sync().lower(build.op("cluster.sync"), SimpleNamespace(b=b))
    assert [str(i) for i in b.body] == ["barrier.cluster.arrive.release;", "barrier.cluster.wait.acquire;"]
