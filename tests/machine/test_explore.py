"""What is asked and answered: places of a fault, the interleaving, bounds, values that are missing, and that all is the same twice."""

import pytest

from cake_core.machine import Kind, MachineError, Scenario, explore, replay
from cake_core.machine.clocks import layout_of
from cake_core.machine.explore import orders
from cake_core.machine.schedule import Schedule
from cake_core.machine.threads import cluster_of
from cake_core.machine.worlds import worlds

RING = Scenario({"R": 5})
UNORDERED = ("      warp.sync\n", "")


def cluster(facts, scenario=RING):
    return cluster_of(facts, next(iter(worlds(facts, scenario, 0))))


def test_a_race_names_both_accesses_with_their_iterations(facts):
    fault = next(f for f in explore(facts("ring", *UNORDERED), RING).faults if f.kind is Kind.RACE)
    assert (fault.resource, fault.slot, fault.cta) == ("s", (0,), 0)
    assert (fault.first.role, fault.first.op, fault.first.lane) == ("work", "load", "all")
    assert (fault.second.role, fault.second.op, fault.second.lane) == ("load", "tma.load", "leader")
    assert fault.first.iteration == (("t_i", 0),) and fault.second.iteration == (("t_i", 2),)
    assert fault.first.event.span.line == 34
    assert str(fault).splitlines() == [
        "race: write of 's'[0] in CTA 0 after a read: nothing orders the two",
        "  work[0] warp 0 of CTA 0: load t_i=0",
        "  load[0] warp 0 of CTA 0: tma.load t_i=2",
    ]


def test_the_interleaving_ends_with_the_fault(facts):
    for mode in ("adversarial", "exhaustive"):
        for fault in explore(facts("ring", *UNORDERED), RING, mode=mode).faults:
            assert {"init", "expect", "wait"} <= {s.op.split(".")[-1] for s in fault.trail} | {"init"}
            assert fault.trail[-1].role in {fault.first.role, fault.second.role}


def test_a_deadlock_says_who_waits_for_what(facts):
    (fault,) = explore(facts("ring", "        mbarrier.arrive empty[i]\n", ""), RING, mode="adversarial").faults
    assert (fault.kind, fault.resource, fault.slot, fault.phase) == (Kind.DEADLOCK, "empty", (0,), 0)
    assert [(s.role, s.warp, s.op, what) for s, what in fault.blocked] == [
        ("load", 0, "mbarrier.wait", "parity 0 of 'empty'[0] in CTA 0, whose phase 0 is short of 2 of 2 arrivals"),
        ("work", 0, "mbarrier.wait", "parity 1 of 'full'[0] in CTA 0, whose phase 1 is short of 1 of 1 arrivals"),
        ("work", 1, "mbarrier.wait", "parity 1 of 'full'[0] in CTA 0, whose phase 1 is short of 1 of 1 arrivals"),
    ]


def test_bytes_that_no_one_announced_are_named(facts):
    edits = ("tma.load s[i] <- X[t_i, 0 +: 256] signal full[i]", "tma.load s[i] <- X[t_i, 0 +: 256] signal full[1 - i]")
    deadlock = next(f for f in explore(facts("ring", *edits), RING).faults if f.kind is Kind.DEADLOCK)
    assert "'full'[0] of CTA 0 by 1024 bytes" in deadlock.message


def test_two_runs_find_the_same(facts):
    wrong = facts("multicast", "mbarrier[2] count 2", "mbarrier[2] count 1")
    first, second = (explore(wrong, Scenario({"M": 2, "N": 3}), seed=5) for _ in range(2))
    assert [str(f) for f in first.faults] == [str(f) for f in second.faults] != []
    assert [f.trail for f in first.faults] == [f.trail for f in second.faults]


def test_a_replay_ends_with_the_first_fault(facts):
    wrong = facts("ring", "      mbarrier.wait empty[i] parity (fill / 2 + 1) % 2\n", "")
    found = replay(wrong, RING)
    assert len(found.faults) == 1 and found.schedules == 1
    assert len(explore(wrong, RING).faults) > 1


def test_orders_drive_each_instance_to_both_ends(facts):
    made = list(orders(cluster(facts("turns"), Scenario({"R": 2})), 7))
    assert len(made) == len(set(made))
    for agent in (0, 1):
        assert {o.rank.index(max(o.rank)) for o in made if o.seed is None} >= {agent}
        assert {o.rank.index(min(o.rank)) for o in made if o.seed is None} >= {agent}
    assert [o.seed for o in made if o.seed is not None] == [7, 8, 9, 10]


def test_a_search_that_ends_early_is_not_complete(facts):
    outcome = explore(facts("lagged"), Scenario({"M": 64, "N": 64, "K": 320}), mode="exhaustive", limit_states=50)
    assert (outcome.faults, outcome.complete, outcome.limit) == ((), False, "50 states")
    outcome = explore(facts("lagged"), Scenario({"M": 64, "N": 64, "K": 320}), seconds=0)
    assert not outcome.complete and outcome.limit == "0 seconds" and outcome.schedules == 1


def test_schedules_alone_are_never_complete(facts):
    assert not explore(facts("ring"), RING, mode="adversarial").complete
    assert explore(facts("ring"), RING).complete


def test_a_large_kernel_is_not_searched_unless_asked(facts):
    outcome = explore(facts("ring"), Scenario({"R": 60}), limit_states=10)
    assert outcome.states == 0 and not outcome.complete


@pytest.mark.parametrize(
    ("edits", "params", "message"),
    [
        ((), {}, "the scenario gives no value for 'R'"),
        (("let i = done % 2", "let i = done % (R - 5)"), {"R": 5}, "a division by zero"),
        (("let i = done % 2", "let i = done % done"), {"R": 5}, "a division by zero in 'work'"),
        (
            ("let i = done % 2", "while done >= 0 {\n        done = done + 1\n      }\n      let i = done % 2"),
            {"R": 1},
            "runs for ever, or for more than",
        ),
    ],
)
def test_what_cannot_be_run_says_why(facts, edits, params, message):
    with pytest.raises(MachineError, match=message):
        explore(facts("ring", *edits), Scenario(params))


def test_warps_that_do_the_same_are_one_agent(facts):
    assert [(a.name, a.warp, a.warps) for a in cluster(facts("ring")).agents] == [("load", 0, 1), ("work", 0, 1), ("work", 1, 1)]
    agents = cluster(facts("columns"), Scenario({"M": 128, "K": 64})).agents
    assert [(a.name, a.warp, a.warps, a.first) for a in agents] == [
        ("load", 0, 1, 0),
        ("mma", 0, 1, 1),
        ("epi", 0, 1, 4),
        ("epi", 1, 3, 5),
        ("idle", 0, 2, 2),
    ]


def test_warps_that_the_text_tells_apart_are_agents(facts):
    edits = (
        "      done = done + 1\n",
        "      done = done + 1\n      if warp % 2 == 1 {\n        bar.sync 1 threads 32\n      }\n",
        "2 warps",
        "4 warps",
        "count 2 at 2064",
        "count 4 at 2064",
    )
    told = cluster(facts("ring", *edits))
    assert [(a.warp, a.warps) for a in told.agents if a.name == "work"] == [(0, 1), (1, 1), (2, 1), (3, 1)]


def test_a_wait_learns_no_more_than_it_must(facts):
    """In one schedule alone, in which the late role happens to come late: the missing wait shows all the same."""
    wrong = cluster(facts("ring", "      mbarrier.wait empty[i] parity (fill / 2 + 1) % 2\n", "      mbarrier.wait empty[i] parity 1\n"))
    slow = tuple({"load": 2, "work": 1}[a.name] for a in wrong.agents)
    found = Schedule(wrong, layout_of(wrong), next(o for o in orders(wrong, 0) if o.engines < 0)).run()
    assert len(slow) == 3 and {f.kind for f in found} >= {Kind.RACE}


def test_the_other_cluster_takes_the_other_items(facts):
    steps = {}
    for k in (0, 1):
        agents = cluster(facts("ring"), Scenario({"R": 5}, k, 2)).agents
        steps[k] = sum(s.do.name == "COPY" for a in agents for i in range(200) if (s := a.step(i)) is not None)
    assert steps == {0: 3, 1: 2}
