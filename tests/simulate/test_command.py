"""`cake run FILE --on sim`: what it takes, what it prints, how it ends."""

import builtins
import json
import time

import jsonschema
import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner
from simulated_texts import KERNELS, derived, edited, launch, without

from cake_core.cli.app import app
from cake_core.diagnostics.json import SCHEMA_FILE
from cake_core.machine import threads
from cake_core.trace import chrome

GEMM = KERNELS / "gemm" / "gemm_sm90.cake"
SHAPE = ("--shape", "M=130,N=264,K=72")


def cake(*args):
    return CliRunner().invoke(app, ["run", *map(str, args), "--on", "sim"], prog_name="cake")


@pytest.fixture
def wrong(tmp_path):
    """A text that hands a slot back too early."""
    path = tmp_path / "wrong.cake"
    path.write_text(without(derived("gemm/gemm_sm90.cake"), "wgmma.wait 1"), encoding="utf-8")
    return path


def test_a_right_kernel():
    result = cake(GEMM, *SHAPE, "--schedule", "random:3")
    assert result.exit_code == 0, result.output
    assert "gemm_sm90 for sm90, its derived form simulated, seed 0" in result.output
    assert "M=130 N=264 K=72  D       ok" in result.output


def test_what_goes_wrong_stands_at_its_line(wrong):
    result = cake(wrong, "--reference", GEMM.with_suffix(".py"), "--shape", "M=256,N=256,K=328", "--schedule", "adversarial")
    assert result.exit_code == 1
    assert "error[core/slot-race]" in result.output
    line = 1 + [x.strip()[:6] for x in wrong.read_text().split("\n")].index("wgmma ")
    assert f"wrong.cake:{line}:" in result.output
    assert "schedule adversarial" in result.output
    assert "fault" in result.output


def test_json_has_runs_and_findings(wrong):
    result = cake(wrong, "--reference", GEMM.with_suffix(".py"), "--shape", "M=128,N=256,K=328", "--json")
    document = json.loads(result.output)
    jsonschema.validate(document, json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))
    assert "core/slot-race" in {d["code"] for d in document["diagnostics"]}
    assert document["runs"][0]["device"]["name"] == "simulator"


def test_a_shape_that_the_contract_refuses():
    result = cake(GEMM, "--shape", "M=1,N=9,K=8")
    assert result.exit_code == 1
    assert "requires N % 8 == 0" in result.output


def test_an_artifact_is_no_text(tmp_path):
    result = cake(tmp_path)
    assert result.exit_code == 2
    assert "'--on sim' takes a text" in result.output


def test_a_cluster_that_waits_for_a_later_one_is_not_simulated(tmp_path, monkeypatch):
    monkeypatch.setattr(threads, "INSTRUCTIONS", 5_000)
    path = tmp_path / "spin.cake"
    path.write_text(
        """cake 1 derived
kernel spin(F: inout i32[2], Y: out f32[1])
  target sm90
{
  launch 2
  role main: 1 warp at 0 {
    let last = 1 - cluster.id
    if last == 1 {
      var seen = 0
      while seen < 1 {
        seen = atomic.add(F[0], 0)
      }
    }
    red.add F[cluster.id] <- 1 by 4
  }
}
""",
        encoding="utf-8",
    )
    path.with_suffix(".py").write_text(
        """import numpy as np
shapes = lambda: [{}]
inputs = lambda shape, rng: {"F": np.zeros(2, np.int32)}
reference = lambda inputs: {"F": np.ones(2), "Y": np.zeros(1)}
tolerance = {"F": (0, 0), "Y": (0, 0)}
""",
        encoding="utf-8",
    )
    result = cake(path)
    assert result.exit_code == 1
    assert "runtime/not-simulated" in result.output
    assert "runs for ever" in result.output


def test_an_operation_that_says_nothing_of_data_is_named(offered, monkeypatch):
    from cake_core.primitive.simulated import Simulated

    monkeypatch.setattr(type(offered.operations["wgmma"]), "simulate", Simulated.simulate)
    result = cake(GEMM, *SHAPE)
    assert result.exit_code == 1
    assert "error[runtime/not-simulated]: 'wgmma' of" in result.output
    assert "gemm_sm90.cake" in result.output


def test_a_text_with_a_static_error_is_run_too(tmp_path):
    """The checks' errors are told beside what the run shows."""
    path = tmp_path / "wrong.cake"
    path.write_text(edited(derived("gemm/gemm_sm90.cake"), "ab_empty: mbarrier[4] count 4", "ab_empty: mbarrier[4] count 3"), encoding="utf-8")
    result = cake(path, "--reference", GEMM.with_suffix(".py"), "--shape", "M=256,N=256,K=328")
    assert result.exit_code == 1
    assert "error[core/arrival-count]" in result.output
    assert "error[core/arrival-phase]" in result.output


@pytest.mark.parametrize("name", ["KeyError", "ZeroDivisionError", "IndexError", "RecursionError", "AttributeError", "MemoryError"])
def test_a_primitive_that_fails_is_told_with_its_plugin(offered, monkeypatch, name):
    def fails(self, op, cx):
        raise getattr(builtins, name)("here")

    monkeypatch.setattr(type(offered.operations["wgmma"]), "simulate", fails)
    result = cake(GEMM, *SHAPE)
    assert result.exit_code == 3
    assert "error[plugin/primitive-failed]: 'wgmma' of" in result.output
    assert f"failed in 'simulate': {name}" in result.output


@pytest.mark.parametrize("place", ["d[0][j / (M - M)]", "d[0][j % (M - M)]"])
def test_a_division_of_the_text_by_zero_is_no_fault_of_a_plugin(tmp_path, place):
    path = tmp_path / "divides.cake"
    path.write_text(edited(GEMM.read_text(encoding="utf-8"), "store d[math.i][j % 2]", f"store {place}"), encoding="utf-8")
    result = cake(path, "--reference", GEMM.with_suffix(".py"), *SHAPE)
    assert result.exit_code == 1 and "primitive-failed" not in result.output
    assert "a division by zero" in result.output


def test_what_a_check_tells_too_is_told_once(tmp_path):
    path = tmp_path / "unfenced.cake"
    path.write_text(without(derived("gemm/gemm_sm90.cake"), "fence.proxy.async"), encoding="utf-8")
    result = cake(path, "--reference", GEMM.with_suffix(".py"), *SHAPE)
    assert result.output.count("error[core/missing-proxy-fence]") == 1
    assert "for example: M = 130, N = 264, K = 72; the event machine goes wrong there too (missing fence: read of 'd'" in result.output


def test_one_cta_takes_a_fraction_of_a_second():
    """A product of 128 x 256 at K = 512; the two CTAs of its cluster run together."""
    text = GEMM.read_text(encoding="utf-8")
    sizes = {"M": 256, "N": 256, "K": 512}
    inputs = {n: np.ones((256, 512), ml_dtypes.bfloat16) for n in "AB"}
    seconds = []
    for _ in range(3):
        start = time.process_time()
        assert launch(text, sizes, inputs).found == []
        seconds.append(time.process_time() - start)
    assert min(seconds) < 1.0, "0.5 seconds each"


def labelled(tmp_path):
    path = tmp_path / "labelled.cake"
    path.write_text(edited(GEMM.read_text(encoding="utf-8"), "wgmma.wait 0", "@done wgmma.wait 0"), encoding="utf-8")
    return path


def test_what_is_where_at_a_label(tmp_path):
    result = cake(labelled(tmp_path), "--reference", GEMM.with_suffix(".py"), "--shape", "M=128,N=256,K=128", "--break", "done")
    assert result.exit_code == 0, result.output
    first, *rest = result.output.split("@done: ")[1:]
    assert [x.split("\n")[0] for x in (first, *rest)] == [f"math[{i}] of CTA {c} t_i=0" for c in (0, 1) for i in (0, 1)]
    words = " ".join(first.split())
    assert "ab_wait 2 " in words
    assert "acc f32[64, 256] [" in words
    assert "a[2] bf16[128, 64], nothing written" in words
    assert "ab_full[1] in phase 1, short of 1 arrival ab_full[2] in phase 0" in words


def test_a_label_that_is_not_there(tmp_path):
    result = cake(labelled(tmp_path), "--break", "dome")
    assert result.exit_code == 2
    assert "no label 'dome'; its labels are done" in result.output
    assert "--break prints text" in cake(labelled(tmp_path), "--break", "done", "--json").output


def traced(path):
    """(tracks by process and thread, complete events) of a file that viewers must open: slices of a track that begin inside of another end there."""
    whole = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.validate(whole, json.loads(chrome.SCHEMA_FILE.read_text(encoding="utf-8")))
    events = whole["traceEvents"]
    named = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    slices = [e for e in events if e["ph"] == "X"]
    by = {}
    for e in slices:
        by.setdefault((e["pid"], e["tid"]), []).append((e["ts"], -e["dur"]))
    for where, rows in by.items():
        open_until = []
        for start, minus in sorted(rows):
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or start - minus <= open_until[-1], (named[where], start)
            open_until.append(start - minus)
    return named, slices


@pytest.mark.parametrize("schedule", ["round-robin", "adversarial", "random:5"])
def test_a_trace_has_roles_engines_and_barriers(tmp_path, schedule):
    file = tmp_path / "run.json"
    result = cake(GEMM, "--shape", "M=256,N=256,K=200", "--schedule", schedule, "--trace", file)
    assert result.exit_code == 0, result.output
    named, slices = traced(file)
    assert {"load", "load: copies", "math[0]", "math[1]: wgmma", "ab_full[0]", "ab_empty[3]"} <= set(named.values())
    phases = [e["name"] for e in slices if named[e["pid"], e["tid"]] == "ab_full[0]" and e["pid"] == 0]
    assert phases == ["phase 0"]  # of four slots, each is filled once
    waits = [e for e in slices if e["name"] == "mbarrier.wait ab_full[0]"]
    ends = {e["pid"]: e["ts"] + e["dur"] for e in slices if named[e["pid"], e["tid"]] == "ab_full[0]" and e["name"] == "phase 0"}
    assert waits and all(e["ts"] + e["dur"] > ends[e["pid"]] for e in waits)  # nobody passes in front of the phase's end
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


def test_a_trace_changes_nothing_of_what_is_found(wrong, tmp_path):
    file = tmp_path / "run.json"
    args = (wrong, "--reference", GEMM.with_suffix(".py"), "--shape", "M=256,N=256,K=328", "--schedule", "random:2", "--json")
    plain, with_trace = json.loads(cake(*args).output), json.loads(cake(*args, "--trace", file).output)
    assert plain["diagnostics"] == with_trace["diagnostics"] != []
    assert traced(file)[1]


def test_who_hangs_is_shown_to_the_end(tmp_path):
    path, file = tmp_path / "stuck.cake", tmp_path / "run.json"
    path.write_text(edited(derived("gemm/gemm_sm90.cake"), "ab_full: mbarrier[4] count 1", "ab_full: mbarrier[4] count 2"), encoding="utf-8")
    result = cake(path, "--reference", GEMM.with_suffix(".py"), "--shape", "M=256,N=256,K=64", "--trace", file)
    assert result.exit_code == 1, result.output
    named, slices = traced(file)
    assert any(named[e["pid"], e["tid"]] == "math[0]" and e["cat"] == "stuck" for e in slices)


def test_clusters_stand_beside_each_other(tmp_path):
    file = tmp_path / "run.json"
    assert cake(GEMM, "--shape", "M=1024,N=256,K=64", "--trace", file).exit_code == 0
    events = json.loads(file.read_text())["traceEvents"]
    assert {e["args"]["name"] for e in events if e["name"] == "process_name"} >= {"cluster 0, CTA 0", "cluster 1, CTA 1"}


@pytest.mark.parametrize(
    ("file", "says"), [("gone/run.json", "no folder"), (".", "is a folder"), ("-", "goes to a file"), ("x" * 300, "name too long")]
)
def test_a_trace_that_has_no_place(tmp_path, monkeypatch, file, says):
    monkeypatch.chdir(tmp_path)
    result = cake(GEMM, *SHAPE, "--trace", file)
    assert result.exit_code == 2 and says in result.output.lower(), result.output
    assert not list(tmp_path.iterdir())
