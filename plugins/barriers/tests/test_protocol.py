"""The derived statements of both hand-offs, as text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cake_barriers.protocol import MBARRIER
from cake_core.diagnostics import CakeError
from cake_core.ir.build import mod
from cake_core.ir.nodes import Name
from cake_core.ir.printer import expr_text, stmt_text
from cake_core.primitive import PipelinePlan, Signal

PLAN = PipelinePlan(
    name="ab",
    slots=4,
    buffers=("a", "b"),
    commits={"load": Signal.BYTES},
    releases={"math": Signal.COLLECTIVE},
    full_count=1,
    empty_count=4,
    bytes={"load": 49152},
    empty_at=(0, 1),
)
FILL = Name("ab_fill")


def text(block) -> str:
    return "\n".join(stmt_text(s).rstrip() for s in block)


def test_declarations_carry_counts():
    assert text(MBARRIER.declare(PLAN)) == "barrier ab_full: mbarrier[4] count 1\nbarrier ab_empty: mbarrier[4] count 4"


def test_initialise_and_publish():
    assert text(MBARRIER.initialise(PLAN) + MBARRIER.publish(2)) == "mbarrier.init ab_full\nmbarrier.init ab_empty\nfence.mbarrier_init"


def test_full():
    assert expr_text(MBARRIER.full(PLAN, Name("s"))) == "ab_full[s]"


def test_acquire():
    assert text(MBARRIER.acquire(PLAN, Name("s"), FILL)) == "mbarrier.wait ab_empty[s] parity (ab_fill / 4 + 1) % 2"


def test_the_leader_announces_the_bytes():
    assert text(MBARRIER.announce(PLAN, Name("s"), 49152)) == "if leader {\n  mbarrier.expect ab_full[s] bytes 49152\n}"


def test_without_bytes_nothing_is_announced():
    assert text(MBARRIER.announce(PLAN, Name("s"), 0)) == ""


def test_one_slot_changes_phase_at_every_use():
    plan = replace(PLAN, slots=1)
    slot = mod(FILL, 1)
    assert text(MBARRIER.acquire(plan, slot, FILL)).endswith("parity (ab_fill + 1) % 2")
    assert text(MBARRIER.wait(plan, slot, FILL)).endswith("parity ab_fill % 2")


def test_wait():
    assert text(MBARRIER.wait(PLAN, Name("s"), Name("ab_wait"))) == "mbarrier.wait ab_full[s] parity ab_wait / 4 % 2"


def test_commit_by_bytes_is_nothing():
    assert MBARRIER.commit(PLAN, Name("s"), Signal.BYTES) == ()


@pytest.mark.parametrize("commit", [Signal.WARPS, Signal.WARPS | Signal.BYTES])
def test_commit_by_warps(commit):
    assert text(MBARRIER.commit(PLAN, Name("s"), commit)) == "warp.sync\nif warp.leader {\n  mbarrier.arrive ab_full[s]\n}"


def test_release_collective_reaches_every_destination():
    assert text(MBARRIER.release(PLAN, Name("s"), Signal.COLLECTIVE)) == (
        "if leader {\n  mbarrier.arrive ab_empty[s] at 0\n  mbarrier.arrive ab_empty[s] at 1\n}"
    )


def test_release_to_oneself_names_no_rank():
    plan = replace(PLAN, empty_at=())
    assert text(MBARRIER.release(plan, Name("s"), Signal.COLLECTIVE)) == "if leader {\n  mbarrier.arrive ab_empty[s]\n}"
    assert text(MBARRIER.release(plan, Name("s"), Signal.WARPS)) == "warp.sync\nif warp.leader {\n  mbarrier.arrive ab_empty[s]\n}"


def test_a_fill_counts_where_its_reader_is():
    """Two CTAs fill for a reader in one of them: each announces what it brings, to that CTA's barrier."""
    plan = replace(PLAN, full_count=2, full_at=(0,))
    assert text(MBARRIER.announce(plan, Name("s"), 32768)) == "if leader {\n  mbarrier.expect ab_full[s] bytes 32768 at 0\n}"
    assert text(MBARRIER.commit(plan, Name("s"), Signal.WARPS)) == "warp.sync\nif warp.leader {\n  mbarrier.arrive ab_full[s] at 0\n}"


@pytest.mark.parametrize(("at", "mask"), [((), ""), ((0, 1), " mask 3"), ((1,), " mask 2")])
def test_an_engine_arrives_by_itself(at, mask):
    plan = replace(PLAN, full_at=at, empty_at=at)
    assert text(MBARRIER.commit(plan, Name("s"), Signal.ENGINE, "engine.commit")) == f"if leader {{\n  engine.commit ab_full[s]{mask}\n}}"
    assert text(MBARRIER.release(plan, Name("s"), Signal.ENGINE, "engine.commit")) == f"if leader {{\n  engine.commit ab_empty[s]{mask}\n}}"


def test_kinds_that_do_not_exist():
    with pytest.raises(CakeError, match="cannot be committed"):
        MBARRIER.commit(PLAN, Name("s"), Signal.COLLECTIVE)
    with pytest.raises(CakeError, match="cannot be released"):
        MBARRIER.release(PLAN, Name("s"), Signal.BYTES)
