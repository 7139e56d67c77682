"""Each mechanism by pairs: a right text, and one that differs in a word or a line and goes wrong in a known way."""

import pytest

from cake_core.machine import Kind, Policy, Scenario, explore
from cake_core.machine.places import apart

SIZES = {
    "ring": {"R": 5},
    "lagged": {"M": 64, "N": 64, "K": 320},
    "epilogue": {"R": 3},
    "turns": {"R": 3},
    "multicast": {"M": 2, "N": 3},
    "groups": {"R": 1, "N": 4},
    "columns": {"M": 256, "K": 192},
    "windows": {},
}

K = Kind
WAIT_EMPTY = "      mbarrier.wait empty[i] parity (fill / 2 + 1) % 2\n"
EXPECT = "        mbarrier.expect full[i] bytes 1024\n"
LOAD = "        tma.load s[i] <- X[t_i, 0 +: 256] signal full[i]\n"
WAIT_FULL = "      mbarrier.wait full[i] parity done / 2 % 2\n"
READ = "      x = load(s[i], by = 16)\n"
SYNC = "      warp.sync\n"
ARRIVE = "        mbarrier.arrive empty[i]\n"
RELEASE = "      if warp.leader {\n        mbarrier.arrive empty[i]\n      }\n"

PAIRS = [
    # mbarriers: arrivals, parity, bytes
    ("ring", (WAIT_EMPTY, ""), {K.RACE, K.ARRIVALS}),
    ("ring", (WAIT_FULL, ""), {K.ASYNC}),
    ("ring", (ARRIVE, ""), {K.DEADLOCK}),
    ("ring", (ARRIVE, ARRIVE + ARRIVE), {K.RACE, K.OVERRUN}),
    ("ring", ("      if warp.leader {\n        mbarrier", "      if leader {\n        mbarrier"), {K.DEADLOCK}),
    ("ring", ("empty: mbarrier[2] count 2", "empty: mbarrier[2] count 1"), {K.RACE, K.OVERRUN}),
    ("ring", ("empty: mbarrier[2] count 2", "empty: mbarrier[2] count 3"), {K.DEADLOCK}),
    ("ring", ("full: mbarrier[2] count 1", "full: mbarrier[2] count 2"), {K.DEADLOCK}),
    ("ring", ("empty[i] parity (fill / 2 + 1) % 2", "empty[i] parity fill / 2 % 2"), {K.DEADLOCK}),
    ("ring", ("full[i] parity done / 2 % 2", "full[i] parity (done / 2 + 1) % 2"), {K.ASYNC}),
    ("ring", ("bytes 1024", "bytes 2048"), {K.DEADLOCK}),
    ("ring", ("bytes 1024", "bytes 512"), {K.DEADLOCK}),
    ("ring", (LOAD, LOAD + LOAD), {K.ASYNC}),
    ("ring", (EXPECT, EXPECT + EXPECT), {K.ARRIVALS}),
    ("ring", (EXPECT, 2 * EXPECT.replace("1024", "600000"), "full: mbarrier[2] count 1", "full: mbarrier[2] count 2"), {K.BYTES}),
    ("ring", (RELEASE, "", READ, RELEASE + READ), {K.RACE}),
    ("ring", ("      if warp.leader {\n        mbarrier.arrive empty[i]\n      }\n", "      mbarrier.arrive empty[i]\n"), {K.ARRIVALS}),
    ("ring", ("tma.load s[i] <-", "tma.load s[0] <-"), {K.RACE}),
    ("ring", ("let i = done % 2", "let i = done % 3"), {K.BOUNDS}),
    # lanes of a warp
    ("ring", (SYNC, ""), {K.RACE}),
    # starts of barriers
    ("ring", ("    fence.mbarrier_init\n", ""), {K.INIT}),
    ("ring", ("    mbarrier.init full\n", ""), {K.INIT}),
    ("ring", ("    mbarrier.init full\n", "    mbarrier.init full\n    mbarrier.init full\n"), {K.INIT}),
    ("ring", ("  cta.sync\n", ""), {K.INIT}),
    ("multicast", ("    fence.mbarrier_init\n  }\n  cluster.sync\n", "    fence.mbarrier_init\n  }\n  cta.sync\n"), {K.INIT}),
    # ends
    (
        "ring",
        (
            "    for t_i in cluster.id .. R step cluster.count {\n      let i = done",
            "    for t_i in cluster.id .. R - 1 step cluster.count {\n      let i = done",
        ),
        {K.IN_FLIGHT},
    ),
    ("epilogue", ("      tma.store.wait.read 0\n", "      tma.store.wait.read 1\n"), {K.IN_FLIGHT}),
    ("epilogue", ("        tma.store.commit\n", ""), {K.IN_FLIGHT}),
    ("multicast", ("  }\n  cluster.sync\n}", "  }\n  cta.sync\n}"), {K.EXIT}),
    # groups
    ("lagged", ("wgmma.wait 1", "wgmma.wait 2"), {K.RACE}),
    ("lagged", ("        wgmma.wait 1\n", ""), {K.RACE}),
    ("lagged", ("    wgmma.wait 0\n", "", "      wgmma.commit\n", ""), {K.ASYNC}),
    ("lagged", ("    wgmma.wait 0\n", "    wgmma.wait 1\n"), {K.ASYNC}),
    ("epilogue", ("tma.store.wait.read 1", "tma.store.wait.read 2"), {K.ASYNC}),
    ("groups", ("cp.async.wait 1", "cp.async.wait 2"), {K.ASYNC}),
    ("groups", ("      bar.sync 1 threads 64\n", ""), {K.RACE}),
    # proxies
    ("epilogue", ("      fence.proxy.async\n", ""), {K.FENCE}),
    ("epilogue", ("      fence.proxy.async\n", "", "      x = load(", "      fence.proxy.async\n      x = load("), {K.FENCE}),
    # meetings
    ("epilogue", ("      bar.sync 1 threads 128\n      store", "      store"), {K.ASYNC}),
    ("epilogue", ("      fence.proxy.async\n      bar.sync 1 threads 128\n", "      fence.proxy.async\n"), {K.RACE}),
    ("epilogue", ("      bar.sync 1 threads 128\n      store", "      bar.sync 1 threads 96\n      store"), {K.NAMED}),
    ("epilogue", ("      bar.sync 1 threads 128\n      store", "      bar.sync 1 threads 256\n      store"), {K.DEADLOCK}),
    ("turns", ("      bar.arrive 1 + (work.i + 1) % 2 threads 64\n", ""), {K.DEADLOCK}),
    ("turns", ("      bar.sync 1 + work.i threads 64\n", ""), {K.RACE}),
    ("turns", ("    if work.i == 1 {\n      bar.arrive 1 threads 64\n    }\n", ""), {K.DEADLOCK}),
    ("turns", ("bar.sync 1 + work.i threads 64", "bar.sync 1 threads 64"), {K.NAMED}),
    # clusters
    ("multicast", ("        mbarrier.arrive empty[i] at 1\n", "", "mbarrier[2] count 2", "mbarrier[2] count 1"), {K.RACE}),
    ("multicast", ("        mbarrier.arrive empty[i] at 1\n", ""), {K.DEADLOCK}),
    ("multicast", ("mask 3", "mask 1"), {K.DEADLOCK}),
    ("multicast", ("empty[i] at 1", "empty[i] at cluster.m + 1"), {K.BOUNDS}),
    # an engine and tensor memory
    ("columns", ("          tcgen05.commit empty[s]\n", "          mbarrier.arrive empty[s]\n"), {K.RACE}),
    ("columns", ("        tcgen05.commit acc_full[0]\n", "        mbarrier.arrive acc_full[0]\n"), {K.ASYNC, K.RACE}),
    ("columns", ("      mbarrier.wait acc_empty[0] parity (filled + 1) % 2\n", ""), {K.RACE}),
    ("columns", ("      tcgen05.fence.before\n", ""), {K.FENCE}),
    ("columns", ("      tcgen05.fence.after\n      waited", "      waited"), {K.FENCE}),
    ("columns", ("      tcgen05.wait.ld\n", ""), {K.ASYNC, K.TENSOR}),
    ("columns", ("tcgen05.alloc tmem_at[0] columns 64", "tcgen05.alloc tmem_at[0] columns 32"), {K.TENSOR}),
    ("columns", ("    tcgen05.dealloc tmem_base columns 64\n", ""), {K.TENSOR}),
    ("columns", ("tcgen05.dealloc tmem_base columns 64", "tcgen05.dealloc tmem_base columns 32"), {K.TENSOR}),
    (
        "columns",
        ("  warp.sync\n  cta.sync\n  if warp == 0 {\n    warp.sync\n    tcgen05.fence", "  if warp == 0 {\n    warp.sync\n    tcgen05.fence"),
        {K.TENSOR},
    ),
    ("windows", ("    tcgen05.wait.st\n", ""), {K.ASYNC}),
    ("windows", ("    tcgen05.wait.ld\n", ""), {K.ASYNC, K.TENSOR}),
    ("columns", ("    for last in 0 .. 2 {", "    for last in 0 .. 0 {"), {K.IN_FLIGHT}),
]


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("mode", ["adversarial", "exhaustive"])
def test_right_texts_have_no_fault(facts, name, mode):
    outcome = explore(facts(name), Scenario(SIZES[name]), mode=mode)
    assert [str(f) for f in outcome.faults] == []
    assert outcome.complete == (mode == "exhaustive")
    assert outcome.states > 1 if mode == "exhaustive" else outcome.schedules > 4


@pytest.mark.parametrize("name", [n for n in SIZES if SIZES[n]])
@pytest.mark.parametrize("small", [0, 1, 2])
def test_small_trips_have_no_fault(facts, name, small):
    last = list(SIZES[name])[-1]
    least = 1 if name == "columns" else 0  # its `require` wants a product in each accumulator that is read
    sizes = SIZES[name] | {last: max(small, least) * (64 if last == "K" else 1)}
    assert [str(f) for f in explore(facts(name), Scenario(sizes)).faults] == []


@pytest.mark.parametrize(("name", "edits", "kinds"), PAIRS, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(PAIRS)])
def test_wrong_texts_show_their_fault(facts, name, edits, kinds):
    outcome = explore(facts(name, *edits), Scenario(SIZES[name]))
    assert kinds <= outcome.found, [str(f) for f in outcome.faults]


def test_a_fence_of_the_issuer_is_enough_unless_the_policy_is_strict(facts):
    edits = ("      fence.proxy.async\n", "", "        tma.store Y", "        fence.proxy.async\n        tma.store Y")
    assert explore(facts("epilogue", *edits), Scenario({"R": 3})).faults == ()
    assert explore(facts("epilogue", *edits), Scenario({"R": 3}, policy=Policy(strict=True))).found == {Kind.FENCE}


def test_reads_and_the_next_copy_need_a_fence_where_the_policy_is_strict(facts):
    scenario = Scenario(SIZES["ring"], policy=Policy(strict=True))
    assert explore(facts("ring"), scenario).found == {Kind.FENCE}
    assert explore(facts("ring", SYNC, "      fence.proxy.async\n" + SYNC), scenario).faults == ()


def test_without_lanes_a_warp_is_one_thread(facts):
    without = Scenario(SIZES["ring"], policy=Policy(lanes=False))
    for mode in ("adversarial", "exhaustive"):
        assert explore(facts("ring", SYNC, ""), without, mode=mode).faults == ()
    assert explore(facts("ring", ARRIVE, ""), without).found >= {Kind.DEADLOCK}


def test_a_warp_reaches_a_quarter_of_the_lanes():
    """One of four warps and another: of tensor memory, what their numbers name; of other memory, all."""
    assert apart("tensor", (4, 1), (5, 3)) and apart("tensor", (0, 1), (5, 1))
    assert not apart("tensor", (4, 1), (8, 1)) and not apart("tensor", (5, 3), (2, 1))
    assert not apart("shared", (4, 1), (5, 3))


@pytest.mark.parametrize(
    ("at", "meets", "kinds"),
    [
        (0, True, set()),
        (0, False, {Kind.RACE}),
        (896, False, {Kind.RACE}),  # the last bytes of the slot that is written
        (1024, False, set()),
    ],
)
def test_buffers_that_share_bytes_conflict_by_their_bytes(facts, at, meets, kinds):
    edits = ("shared d: f32[2][256] at 0", f"shared d: f32[2][256] at 0, e: f32[256] at {at}", "<- d[n % 2]\n", "<- e\n")
    barrier = "      fence.proxy.async\n      bar.sync 1 threads 128\n"
    edits += () if meets else (barrier, barrier.splitlines(keepends=True)[0])
    for mode in ("adversarial", "exhaustive"):
        found = explore(facts("epilogue", *edits), Scenario({"R": 1}), mode=mode).found - {Kind.UNWRITTEN}  # 'e' itself is not written
        assert found == kinds if not kinds else kinds <= found


@pytest.mark.parametrize(("pending", "kinds"), [(0, set()), (1, {Kind.ASYNC})])
@pytest.mark.parametrize("mode", ["adversarial", "exhaustive"])
def test_a_group_of_all_warps_is_over_for_who_has_waited(facts, pending, kinds, mode):
    """Each warp writes over what products have read, as soon as it has waited for itself: the products were those of all warps."""
    edits = ("at 24576 swizzle 128", "at 24576 swizzle 128, c: f32[64, 64] at 0", "    store D[", "    store c <- acc by 8\n    store D[")
    edits += ("    wgmma.wait 0\n", f"    wgmma.wait {pending}\n")
    assert kinds <= (found := explore(facts("lagged", *edits), Scenario({"M": 64, "N": 64, "K": 320}), mode=mode).found)
    assert bool(found) == bool(kinds)
