"""What the method does not speak of is unknown, and no way to end makes it a proof."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from cake_core import smt
from cake_core.facts import facts_of, rows_of
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.prove.answers import Answers
from cake_core.rules.predicates import Given, Standing
from cake_core.source import Source

REGISTRY = load_registry()
TEXT = """cake 1 derived
kernel k(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R persistent
  shared s: f32[2][256] at 0
  barrier full: mbarrier[1] count 1 at 2048
  if leader {
    mbarrier.init full
    fence.mbarrier_init
  }
  cta.sync
  SETUP
  role work: 2 warps at 0 {
    var n = 0
    frag x: f32[256] vec 4 layout vector
    for r in cluster.id .. R step cluster.count {
      x = load(X[r, 0 +: 256], by = 16)
      store s[n % 2] <- x by 16
      bar.sync 1 threads 64
      x = load(s[n % 2], by = 16)
      store Y[r, 0 +: 256] <- x by 16
      n = n + 1
    }
  }
}
"""


def rows(setup: str):
    front = frontend(Source("k.cake", TEXT.replace("  SETUP\n", f"  {setup}\n" if setup else "")), REGISTRY)
    return rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)


@pytest.mark.parametrize("setup", ["mbarrier.wait full[0] parity 0", "if leader { mbarrier.arrive full[0] }"])
def test_what_is_handed_over_in_front_of_the_roles_is_not_counted(setup):
    answer = Answers(rows(setup)).deadlock_free(())
    assert answer.standing is Standing.UNKNOWN and answer.outside and "outside of the roles" in answer.reason
    assert Answers(rows("")).deadlock_free(()).standing is Standing.PROVED


BEGUN = Path(__file__).parents[1] / "corpus" / "C-08-ring-parity-on-single-barrier" / "bad.cake"


@pytest.mark.parametrize("text, outside", [(TEXT.replace("  SETUP\n", ""), False), (BEGUN.read_text(), True)])
def test_what_a_proof_made_goes_with_it(text, outside):
    """At once, cuts that were begun and are outside of the method too: no collector sees how much of a solver a cycle holds."""
    front = frontend(Source("k.cake", text), REGISTRY)
    gc.disable()
    try:
        answers = Answers(rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY), examples=False)
        assert answers.deadlock_free(()).outside is outside
        gone = weakref.ref(smt.context())
        smt.use(smt.Context())
        del answers
        assert gone() is None
    finally:
        gc.enable()


SENDS = """cake 1 derived
kernel k(X: in f32[4, 32])
  target sm90
  cluster c = 2
{
  launch 1
  shared part: f32[2] at 0
  barrier full: mbarrier[1] count 1 at 8
  if leader {
    mbarrier.init full
    fence.mbarrier_init
  }
  cluster.sync
  role main: 1 warp at 0 {
    frag x: f32[32] vec 1 layout vector
    x = load(X[0, 0 +: 32], fill = 0, by = 4)
    let s = warpsum(x)
    if leader {
      mbarrier.expect full[0] bytes 8
    }
    for k in 0 .. 2 {
      cluster.send part[cluster.c] <- s at k signal full[0]
    }
    mbarrier.wait full[0] parity 0
  }
  cluster.sync
}
"""


def test_bytes_for_a_cta_that_a_loop_names():
    front = frontend(Source("k.cake", SENDS), REGISTRY)
    answer = Answers(rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)).deadlock_free(())
    assert answer.standing is Standing.UNKNOWN and answer.outside and "CTA that bytes go to" in answer.reason


def test_a_sweep_that_breaks_off_proves_nothing(monkeypatch):
    def broken(*_):
        raise RecursionError

    found = rows("")
    answers = Answers(found)
    monkeypatch.setattr(Answers, "_common", lambda self, cuts: iter([(("x",), broken)]))
    a, b = (r for r in found["access"] if r.site.act.region.name == "s")
    given = (Given("same_slot", (a, b)), Given("overlap", (a, b)))
    with pytest.raises(RecursionError):
        answers.ordered(a, b, given)
    assert answers._cuts.collecting is None


def test_a_wait_touches_no_bytes():
    found = rows("")
    access, meeting = found["access"][0], found["meet"][0]
    given = (Given("same_slot", (access, meeting)), Given("overlap", (access, meeting)))
    assert Answers(found).ordered(access, meeting, given).standing is Standing.UNKNOWN
    assert Answers(found).completes(access, meeting, given).standing is Standing.UNKNOWN


@pytest.mark.parametrize(("between", "outside"), [("", True), ("  cta.sync\n", False)])
def test_what_is_touched_behind_the_roles_by_warps_that_no_run_is_of(between, outside):
    """Pads come there while roles run, and a warp's number is one of the CTA's."""
    text = f"""cake 1 derived
kernel k(X: in f32[8, 64], Y: out f32[8, 64])
  target sm90
{{
  launch 1
  shared p: f32[4] at 0
  role a: 1 warp at 0 pad 3 {{
    store p[1] <- 1.0 by 4
  }}
{between}  let y = load(p[1], by = 4)
  store Y[1, 0] <- y by 4
}}
"""
    front = frontend(Source("k.cake", text), REGISTRY)
    answer = Answers(rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)).deadlock_free(())
    assert answer.outside is outside and answer.standing is (Standing.UNKNOWN if outside else Standing.PROVED)


@pytest.mark.parametrize(
    "act",
    [
        "cluster.store box[0] <- 1.0 at cluster.m + 1",
        "mbarrier.arrive b[0] at cluster.m - 1",
        "cluster.send box[0] <- 1.0 at cluster.m + 1 signal b[0]",
    ],
)
def test_a_rank_that_no_cta_of_the_cluster_has_is_unknown(act):
    text = (
        "cake 1 derived\nkernel k(N: i32)\n  target sm90\n  cluster m = 2\n{\n  launch 1\n  shared box: f32[4] at 0\n  barrier b: mbarrier[1] count 1 at 16\n"
        f"  if leader {{ mbarrier.init b; fence.mbarrier_init }}\n  cluster.sync\n  role r: 1 warp at 0 {{\n    if leader {{ {act} }}\n  }}\n  cluster.sync\n}}\n"
    )
    front = frontend(Source("k.cake", text), REGISTRY)
    found = rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)
    told = [a for a in (Answers(found).deadlock_free(()), Answers(found).drained(())) if a.standing is not Standing.PROVED]
    assert told and all(a.standing is Standing.UNKNOWN and "is none of the cluster: rank " in a.reason for a in told)
