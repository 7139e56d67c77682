"""Symmetries: agents change places only where nothing tells them apart, and what is found does not depend on it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import pytest

from cake_core.diagnostics import CakeError
from cake_core.effects import Issuer, Mode, Proxy
from cake_core.facts import facts_of, rows_of
from cake_core.facts.schema import Access, AtOnce, Extent, Region
from cake_core.ir.nodes import Int
from cake_core.pipeline import build, frontend
from cake_core.plugins import load_registry
from cake_core.prove import alike
from cake_core.prove.answers import Answers
from cake_core.prove.solve import Cuts
from cake_core.prove.uses import meeting_form
from cake_core.rules import Standing
from cake_core.rules.predicates import Given
from cake_core.source import Source

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = load_registry()


def cuts(source: Source) -> Cuts:
    front = frontend(source, REGISTRY)
    return Cuts(facts_of(front.typed, REGISTRY, front.arch))


def of(path: str) -> Source:
    return Source(path, (ROOT / path).read_text(encoding="utf-8"))


def test_ctas_that_do_the_same_and_instances_change_places():
    form = cuts(of("kernels/gemm/gemm_sm90.cake")).alike.form
    first = form(("load.0.a@0", "math.0.a@0"), (0,))
    assert form(("load.0.a@1", "math.0.a@1"), (1,)) == first  # the other CTA
    assert form(("load.0.a@0", "math.1.a@0"), (0,)) == first  # the other instance
    assert form(("load.0.a@0", "math.0.a@1"), (0,)) != first  # the load of one CTA and the math of another
    assert form(("load.0.a@0", "math.0.a@0"), (1,)) != first
    assert form(("load.0.a@0", "math.0.b@0"), (0,)) != first  # the warps behind the first have no leader
    assert form(("math.0.a@0", "math.0.a@0"), ()) != form(("math.0.a@0", "math.1.a@0"), ())


TEXT = """cake 1 derived
kernel k(R: i32, Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R persistent
  shared s: f32[2][256] at 0
  barrier full: mbarrier[1] count COUNT at 2048
  if leader {
    mbarrier.init full
    fence.mbarrier_init
  }
  cta.sync
  role work[2]: 2 warps at 0 {
    frag x: f32[256] vec 4 layout vector
    x = 0.0
    for r in cluster.id .. R step cluster.count {
      store s[work.i] <- x by 16
      bar.sync 1 + work.i threads 64
      x = load(s[work.i], by = 16)
      bar.sync 1 + work.i threads 64
      SIGNAL
    }
  }
}
"""


@pytest.mark.parametrize(
    ("signal", "count", "same"),
    [
        ("", 1, True),
        ("if leader { mbarrier.arrive full[0] }", 2, True),
        ("if leader and work.i == 0 { mbarrier.arrive full[0] }", 1, False),
        ("if work.i == 1 { bar.sync 2 threads 64 }", 1, False),
    ],
)
def test_what_one_instance_does_alone_tells_it_apart(signal, count, same):
    form = cuts(Source("k.cake", TEXT.replace("SIGNAL", signal).replace("COUNT", str(count)))).alike.form
    assert (form(("work.0.a@0",)) == form(("work.1.a@0",))) is same


@pytest.mark.parametrize(
    "case",
    [
        "F2-slot-released-before-product/bad_sm90",
        "M1-turn-lost/bad_lost",
        "C-29-multicast-into-reading-peer/bad",
        "C-48-exit-while-peer-reads/bad_arrivals",
        "C-50-arrivals-of-one-cta-in-a-cluster/bad",
    ],
)
def test_what_is_found_does_not_depend_on_symmetries(case, monkeypatch):
    path = ROOT / f"tests/corpus/{case}.cake"
    monkeypatch.setenv("CAKE_CACHE", "")

    def found() -> list:
        try:
            return list(build(of(str(path.relative_to(ROOT))), REGISTRY, prove=True).diagnostics)
        except CakeError as error:
            return list(error.diagnostics)

    with_them = found()
    monkeypatch.setattr(alike, "MOST", 1)  # the identity alone
    assert with_them == found()
    assert with_them


def tile(text: str) -> Access:
    slot, lo, size = (Int(int(n)) for n in text.split())
    return Access(Region("shared", "s", (slot,), (Extent(lo, size),)), Mode.WRITE, Proxy.GENERIC, AtOnce(), Issuer.LEADER)


@dataclass(frozen=True)
class OfOne:
    access: Access


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("0 0 64", "0 0 64"), ("1 0 64", "1 0 64"), True),  # one slot each
        (("0 0 64", "0 0 64"), ("0 0 64", "1 0 64"), False),  # two slots
        (("0 0 64", "0 0 64"), ("0 0 64", "0 64 64"), False),  # parts that do not meet
        (("0 0 64", "0 0 64"), ("0 0 64", "0 32 64"), False),  # parts that meet and begin elsewhere
        (("0 0 64", "0 64 64"), ("0 64 64", "0 0 64"), True),
    ],
)
def test_places_meet_alike_only_where_they_do(one, other, same):
    forms = [meeting_form(*(OfOne(tile(t)) for t in pair)) for pair in (one, other)]
    assert (forms[0] == forms[1]) is same


WARPS = """cake 1 derived
kernel warps(R: i32, X: in f32[R, 1536], Y: out f32[R])
  require 0 <= R, R <= 65536
  target sm90
{
  launch R persistent
  shared top: f32[6] at 0, total: f32[6] at 16
  role work: 6 warps at 0 {
    frag x: f32[1536] vec 4 layout vector
    for r in cluster.id .. R step cluster.count {
      x = load(X[r, 0 +: 1536], by = 16)
      store top[warp] <- warpmax(x) by 4
      bar.sync 1 threads 192
      let most = maximum(load(top, by = 4))
      BETWEEN
      store total[warp] <- warpsum(x) by 4
      bar.sync 1 threads 192
      let all = sum(load(total, by = 4))
      bar.sync 1 threads 192
      ALONE
    }
  }
}
"""


@pytest.mark.parametrize(("alone", "same"), [("", True), ("if warp == 3 {\n bar.sync 2 threads 32\n }", False)])
def test_warps_that_their_numbers_tell_apart_change_places_where_only_their_elements_differ(alone, same):
    form = cuts(Source("warps.cake", WARPS.replace("BETWEEN", "").replace("ALONE", alone))).alike.form
    first, *others = (f"work.0.b{n}@0" for n in range(1, 6))
    assert form((first, others[0])) == form((others[0], first)) and form((first, others[0])) != form((first, first))
    assert form(("work.0.a@0",)) != form((first,))  # it has the leader
    assert (form((first,)) == form(("work.0.b3@0",))) is same
    assert all(form((first,)) == form((o,)) for o in others) is same


@pytest.mark.parametrize("between", ["", "bar.sync 1 threads 192"])
def test_what_is_found_of_warps_does_not_depend_on_symmetries(between, monkeypatch):
    front = frontend(Source("warps.cake", WARPS.replace("BETWEEN", between).replace("ALONE", "")), REGISTRY)
    rows = rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)

    def found() -> list:
        proof, touched = Answers(rows), rows["access"]
        races = [proof.ordered(a, b, (Given("same_slot", (a, b)), Given("overlap", (a, b)))) for a, b in itertools.combinations(touched, 2)]
        asked.append(proof._cuts.asked)
        return [(a.standing, a.reason) for a in (*races, *(proof.written(r, ()) for r in touched if r["mode"] == "read"))]

    asked: list[int] = []
    with_them = found()
    monkeypatch.setattr(alike, "_sisters", lambda *of: {})
    assert with_them == found()
    assert asked[0] < asked[1]
    assert any(standing is Standing.VIOLATED for standing, _ in with_them) == (not between)
