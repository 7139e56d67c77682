"""A mistake in a text is found, in the code that the verifier has for it, and shows in the data where a schedule lets it."""

import numpy as np
import pytest
from simulated_texts import KERNELS, PLOTS, derived, edited, launch, without

from cake_core.diagnostics import CakeError
from cake_core.runtime.companion import load_companion

GEMM = "gemm/gemm_sm90.cake"
SIZES = {"M": 256, "N": 512, "K": 264}
BAR = "bar.sync 1 + math.i threads 128"
ADVERSARIAL, ROUND_ROBIN, _ = PLOTS


@pytest.fixture(scope="module")
def gemm():
    """The derived text of a kernel, inputs of it, and what it computes."""
    companion = load_companion((KERNELS / GEMM).with_suffix(".py"))
    inputs = companion.call("inputs", dict(SIZES), np.random.default_rng(0))
    return derived(GEMM), inputs, companion.call("reference", inputs)["D"]


def wrong(ran, want) -> int:
    """Elements that are far from the reference, or not there."""
    with np.errstate(invalid="ignore"):
        return int((~(np.abs(ran.outputs["D"].astype(np.float64) - want) < 0.5)).sum())


#: What is taken out of the kernel, and by which code it is found.
LEFT_OUT = {
    "wait for a full slot": ("mbarrier.wait ab_full[s] parity ab_wait / 4 % 2", 0, "core/unwritten-read"),
    "wait for an empty slot": ("mbarrier.wait ab_empty[s] parity (ab_fill / 4 + 1) % 2", 0, "core/arrival-count"),
    "wait for the product before": ("wgmma.wait 1", 0, "core/slot-race"),
    "wait for the last product": ("wgmma.wait 0", 0, "core/register-fence"),
    "fence of registers": ("wgmma.fence", 0, "core/register-fence"),
    "proxy fence": ("fence.proxy.async", 0, "core/missing-proxy-fence"),
    "meeting in front of the store": (BAR, 0, "core/slot-refill"),
    "meeting behind the store": (BAR, 1, "core/slot-race"),
    "wait for the store's reads": ("tma.store.wait.read 1", 1, "core/slot-refill"),
    "last wait": ("tma.store.wait.read 0", 0, "core/exit-in-flight"),
    "fence of the start": ("fence.mbarrier_init", 0, "core/barrier-init-visible"),
    "meeting of the start": ("cluster.sync", 0, "core/barrier-init-visible"),
    "meeting at the end": ("cluster.sync", 1, "core/cluster-exit"),
}


@pytest.mark.parametrize("what", LEFT_OUT)
def test_what_is_left_out_is_found(gemm, what):
    line, nth, code = LEFT_OUT[what]
    text, inputs, _ = gemm
    assert code in launch(without(text, line, nth), SIZES, inputs).codes


CHANGED = {
    "a count": ("ab_empty: mbarrier[4] count 4", "ab_empty: mbarrier[4] count 3", "core/arrival-phase"),
    "bytes": ("bytes 49152", "bytes 49168", "core/deadlock"),
    "a slot that is not there": ("let s = ab_fill % 4", "let s = ab_fill % 5", "core/barrier-bounds"),
    "a parity": ("parity ab_wait / 4 % 2", "parity (ab_wait / 4 + 1) % 2", "core/unwritten-read"),
}


@pytest.mark.parametrize("what", CHANGED)
def test_what_is_changed_is_found(gemm, what):
    old, new, code = CHANGED[what]
    text, inputs, _ = gemm
    assert code in launch(edited(text, old, new), SIZES, inputs).codes


def test_the_text_itself_is_clean_and_right(gemm):
    text, inputs, want = gemm
    for plot in PLOTS:
        ran = launch(text, SIZES, inputs, plot)
        assert ran.found == []
        assert wrong(ran, want) == 0


def test_a_wrong_number_is_a_wrong_result_and_no_finding(gemm):
    text, inputs, want = gemm
    ran = launch(edited(text, "a[s][64 * math.i +: 64, :]", "a[s][0 +: 64, :]"), SIZES, inputs)
    assert ran.found == []
    assert wrong(ran, want) > want.size // 3


def test_reads_come_as_late_as_the_order_allows(gemm):
    """A slot that is handed back too early is overwritten before the product reads it, if engines are late; if they are at once nobody sees it."""
    text, inputs, want = gemm
    early = without(text, "wgmma.wait 1")
    assert wrong(launch(early, SIZES, inputs, ADVERSARIAL), want) > 0
    assert wrong(launch(early, SIZES, inputs, ROUND_ROBIN), want) == 0


def test_a_finding_says_where_who_and_when(gemm):
    text, inputs, _ = gemm
    text = without(text, "fence.proxy.async")
    (found,) = launch(text, SIZES, inputs).found
    assert (found.resource, found.role, found.iteration) == ("d", "math", "t_i: 0")
    assert text.split("\n")[found.span.line - 1].strip().startswith("tma.store D[")
    assert "store" in text.split("\n")[found.related[0].span.line - 1]
    assert "M = 256, N = 512, K = 264, schedule adversarial" in found.why
    assert found.witness.confirmed


def test_a_deadlock_names_the_ring_of_those_who_wait(gemm):
    text, inputs, _ = gemm
    found = launch(edited(text, "bytes 49152", "bytes 49168"), SIZES, inputs).found
    (dead,) = [d for d in found if d.code == "core/deadlock"]
    assert "load waits for math waits for load" in dead.message or "math waits for load waits for math" in dead.message
    assert any("short of 4 of 4 arrivals" in line for line in dead.witness.story)


def test_one_schedule_gives_one_outcome(gemm):
    text, inputs, _ = gemm
    wrong_one = without(text, "tma.store.wait.read 1", 1)
    first, second = (launch(wrong_one, SIZES, inputs, PLOTS[2]) for _ in range(2))
    assert first.codes == second.codes
    assert first.outputs["D"].tobytes() == second.outputs["D"].tobytes()


# --- global memory ---------------------------------------------------------------------------------------------------

STORES = """cake 1 derived
kernel k(R: i32, X: in f32[R, 128], Y: {mode} f32[R, 128])
  require 1 <= R, R <= 64
  target sm90
{{
  launch {items}
  role main[2]: 1 warp at 0 {{
    frag x: f32[128] vec 4 layout vector
    x = load({of}[{row}, 0 +: 128], by = 16)
    store Y[{to}, 0 +: 128] <- x by 16
  }}
}}
"""


def stores(rows: int, clusters: str = "1", **edits) -> object:
    text = STORES.format(**{"mode": "out", "items": clusters, "of": "X", "row": "main.i", "to": "main.i", **edits})
    x = np.arange(rows * 128, dtype=np.float32).reshape(rows, 128)
    return launch(text, {"R": rows}, {"X": x} if "in" not in edits.get("mode", "") else {"X": x, "Y": x})


def test_rows_of_their_own_are_no_race():
    ran = stores(2)
    assert ran.found == []
    assert ran.outputs["Y"].tolist() == np.arange(256, dtype=np.float32).reshape(2, 128).tolist()


def test_two_instances_write_one_row():
    ran = stores(2, to="0")
    assert ran.codes == ["core/agent-race"]
    assert ran.found[0].resource == "Y"
    assert not ran.written["Y"][1].any()


def test_two_clusters_write_one_row():
    assert stores(4, clusters="2").codes == ["core/cta-race"]


def test_an_index_outside_of_a_tensor():
    ran = stores(2, row="main.i + 1")
    assert ran.codes == ["core/index-bounds"]
    assert "2 of 'X' is outside 0 .. 2" in ran.found[0].message


def test_a_tile_is_updated_in_place_by_the_warps_that_hold_it():
    text = """cake 1 derived
kernel k(R: i32, Y: inout f32[R, 512])
  require 1 <= R, R <= 64
  target sm90
{
  launch R
  role main: 4 warps at 0 {
    frag x: f32[512] vec 4 layout vector
    x = load(Y[cluster.id, 0 +: 512], by = 16)
    store Y[cluster.id, 0 +: 512] <- x + 1.0 by 16
  }
}
"""
    y = np.arange(1024, dtype=np.float32).reshape(2, 512)
    for plot in PLOTS:
        ran = launch(text, {"R": 2}, {"Y": y}, plot)
        assert ran.found == []
        assert (ran.outputs["Y"] == y + 1).all()


def test_a_fragment_that_nothing_has_filled():
    text = edited(STORES.format(mode="out", items="1", of="X", row="0", to="main.i"), "    x = load(X[0, 0 +: 128], by = 16)\n", "")
    with pytest.raises(CakeError) as error:
        launch(text, {"R": 2}, {"X": np.zeros((2, 128), np.float32)})
    (d,) = error.value.diagnostics
    assert (d.code, d.resource) == ("runtime/uninitialised-read", "x")
