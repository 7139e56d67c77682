"""A run with a clock: what waits ends behind what it waited for, no track does two things at once, and who is stuck stays so to the end of the picture."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import jsonschema
import pytest
from machine_texts import TEXTS, derived, read

from cake_core.machine import Kind as Fault
from cake_core.machine import Scenario
from cake_core.machine.timeline import telling, timeline
from cake_core.trace import Kind, chrome_trace
from cake_core.trace.chrome import SCHEMA_FILE

ROOT = Path(__file__).resolve().parents[2] / "kernels"
#: Copies that go to two CTAs, groups of a warpgroup and of each thread, engines of tensor memory, messages between CTAs, table and registers alone.
ZOO = {
    "gemm/gemm_sm90": {"M": 4, "N": 16, "K": 576},
    "gemm/gemm_sm80": {"M": 128, "N": 256, "K": 224},
    "gemm/gemm_sm100": {"M": 300, "N": 256, "K": 200},
    "gemm/gemm_sm100_pair": {"M": 400, "N": 256, "K": 200},
    "softmax/softmax_cluster": {"R": 3, "C": 100},
    "elementwise/silu_mul_bias": {"R": 3, "C": 100},
}


def text_of(name: str) -> str:
    return (ROOT / f"{name}.cake").read_text(encoding="utf-8")


def facts_of(name: str):
    text = text_of(name)
    return read(text, text.split("  target ", 1)[1].split()[0].strip(","))


def shown(t, kind: Kind, start: str = ""):
    """(track's name, slice) of all tracks of a kind."""
    tracks = t.trace.tracks
    return [(tracks[s.track].name, s) for s in t.trace.slices if tracks[s.track].kind is kind and s.name.startswith(start)]


@pytest.mark.parametrize("name", ZOO)
def test_time_goes_forward(name):
    t = timeline(facts_of(name), Scenario(ZOO[name]))
    trace = t.trace
    assert (t.faults, t.cut) == ((), False)
    by_track: dict[int, list] = {}
    for s in trace.slices:
        assert 0 <= s.start < s.end <= trace.end and 0 <= s.waited < s.end - s.start
        assert s.what != "stuck"
        by_track.setdefault(s.track, []).append(s)
    assert len(by_track) == len(trace.tracks)
    for slices in by_track.values():
        assert all(a.end <= b.start for a, b in pairwise(slices)), "a track does one thing at a time"
    for a in trace.arrows:
        source, target = trace.slices[a.source], trace.slices[a.target]
        if a.last and target.what == "wait":
            met = "sync" in target.name  # who comes last passes with the others
            assert source.end < target.end + met, "a wait is over behind the last that it waited for"
        if target.what == "engine":
            assert source.end <= target.start, "an engine starts when it was given something"


@pytest.mark.parametrize("name", ["gemm/gemm_sm90", "softmax/softmax_cluster"])
def test_the_file_is_what_viewers_read(name):
    whole = chrome_trace(timeline(facts_of(name), Scenario(ZOO[name])).trace)
    jsonschema.validate(whole, json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))
    slices = [e for e in whole["traceEvents"] if e["ph"] == "X"]
    around = lambda e: [s for s in slices if (s["pid"], s["tid"]) == (e["pid"], e["tid"]) and s["ts"] <= e["ts"] <= s["ts"] + s["dur"]]
    flows = [e for e in whole["traceEvents"] if e["ph"] in "sf"]
    assert all(around(e) for e in flows)
    assert (len(flows) > 100) == (name == "gemm/gemm_sm90")


def test_a_ring_goes_round():
    """Nine blocks of k through four slots: the first is filled three times, handed over to both instances, and each time handed back by four."""
    t = timeline(facts_of("gemm/gemm_sm90"), Scenario(ZOO["gemm/gemm_sm90"]))
    phases = Counter(name for name, _ in shown(t, Kind.BARRIER, "phase"))
    assert phases["ab_full[0]"] == 2 * 3 and phases["ab_full[1]"] == 2 * 2  # one of each name in either CTA
    waits = [s for name, s in shown(t, Kind.ROLE, "mbarrier.wait ab_full[0]") if name == "math[0]"]
    assert [dict(s.details)["k"] for s in waits] == [0, 4, 8] * 2
    written = [s for name, s in shown(t, Kind.MEMORY) if name == "a[0]" and s.what == "write"]
    assert len(written) == 2 * 3 and {s.name for s in written} == {"written by load"}
    back = next(s for name, s in shown(t, Kind.ROLE, "mbarrier.wait ab_empty[0]") if dict(s.details)["k"] == 4)
    read_until = max(s.end for name, s in shown(t, Kind.MEMORY) if name == "a[0]" and s.what == "read" and s.end <= back.end)
    assert read_until < back.end, "a slot is filled again when it has been read"
    copies = {name for name, _ in shown(t, Kind.ENGINE)}
    assert copies == {"load: copies", "math[0]: wgmma", "math[1]: wgmma", "math[0]: bulk", "math[1]: bulk"}


def test_a_drain_ends_behind_the_groups_that_it_waits_for():
    t = timeline(facts_of("gemm/gemm_sm90"), Scenario(ZOO["gemm/gemm_sm90"]))
    (drain,) = [s for name, s in shown(t, Kind.ROLE, "wgmma.wait 0") if name == "math[0]"][:1]
    ends = [s.end for name, s in shown(t, Kind.ENGINE) if name == "math[0]: wgmma"]
    assert max(e for e in ends[:9]) == drain.end - 1 and drain.waited > 0


def test_who_waits_for_ever_is_stuck_to_the_end():
    text = derived(text_of("gemm/gemm_sm90"))
    wrong = text.replace("ab_empty: mbarrier[4] count 4", "ab_empty: mbarrier[4] count 5", 1)
    assert wrong != text
    t = timeline(read(wrong), Scenario(ZOO["gemm/gemm_sm90"]))
    assert {f.kind for f in t.faults} == {Fault.DEADLOCK}
    stuck = [(name, s) for name, s in shown(t, Kind.ROLE) if s.what == "stuck"]
    assert {name for name, _ in stuck} == {"load", "math[0]", "math[1]"}
    assert all(s.end == t.trace.end and s.waited == s.end - s.start for _, s in stuck)
    assert {s.name for name, s in stuck if name == "load"} == {"mbarrier.wait ab_empty[0]"}


def test_a_fault_ends_the_picture_where_it_happens():
    text = derived(text_of("gemm/gemm_sm90"))
    t = timeline(read(text.replace("ab_empty: mbarrier[4] count 4", "ab_empty: mbarrier[4] count 1", 1)), Scenario(ZOO["gemm/gemm_sm90"]))
    assert t.faults and t.trace.slices


def test_sizes_that_show_much_are_found():
    """A ring of which every barrier goes round, and every line that can be executed."""
    facts = facts_of("gemm/gemm_sm90")
    t = telling(facts)
    phases = Counter((t.trace.tracks[s.track].group, name) for name, s in shown(t, Kind.BARRIER, "phase"))
    assert min(phases[group, f"ab_{of}[{n}]"] for group in ("CTA 0", "CTA 1") for of in ("full", "empty") for n in range(4)) >= 2
    assert telling(facts).trace == t.trace


def test_a_run_that_is_too_long_is_cut():
    t = timeline(facts_of("gemm/gemm_sm90"), Scenario({"M": 400, "N": 512, "K": 6400}), picks=500)
    assert t.cut and t.faults == () and len(t.trace.slices) < 2000
    roles = [k.name for k in t.trace.tracks if k.kind is Kind.ROLE and k.group == "CTA 0"]
    assert roles == ["load", "math[0]", "math[1]"], "a warp that is ahead where the run is cut does nothing else than the others"
    assert "stuck" not in {s.what for s in t.trace.slices}, "who waits there does not wait for ever"


def test_texts_of_one_thing_each(facts):
    """Every text of this room has a picture at sizes that are found."""
    for path in sorted(TEXTS.glob("*.cake")):
        t = telling(facts(path.stem))
        assert t.trace.slices, path.stem
