"""A safety category that is not proved ends a check and a build, unless it is asked to let it pass; then the manifest says so."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest
from click.testing import CliRunner

from cake_core import pipeline
from cake_core.check.safety import CATEGORIES, REQUIRED, SAFETY, named
from cake_core.cli.app import app
from cake_core.diagnostics import CakeError, Severity
from cake_core.diagnostics.json import SCHEMA_FILE
from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.prove.prover import Prover
from cake_core.rules import rulebook
from cake_core.rules.predicates import Answer, Standing, unknown
from cake_core.rules.schema import Status
from cake_core.source import Source

REGISTRY = load_registry()
RIGHT = """cake 1 derived
kernel k(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R persistent
  shared s: f32[2][256] at 0
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
WRONG = (
    RIGHT.replace("      bar.sync 1 threads 64\n", "")
    .replace("frag x: f32[256] vec 4 layout vector", "frag x: f32[256] vec 4 layout vector, y: f32[256] vec 1 layout vector")
    .replace("x = load(s[n % 2], by = 16)", "y = load(s[n % 2], by = 4)")
    .replace("<- x by 16\n      n =", "<- y by 4\n      n =")
)
#: A wait in front of the roles, which the method does not speak of.
OUTSIDE = RIGHT.replace(
    "  role work",
    """  barrier full: mbarrier[1] count 1 at 2048
  if leader {
    mbarrier.init full
    fence.mbarrier_init
  }
  cta.sync
  mbarrier.wait full[0] parity 1
  role work""",
).replace("      n = n + 1", "      if leader {\n        mbarrier.arrive full[0]\n      }\n      n = n + 1")
HANDED = ("deadlock", "data races", "barrier phases", "completion of asynchronous operations", "reads of what no one has written")


def built(text: str, **more):
    return build(Source("k.cake", text), REGISTRY, **({"prove": True} | more))


def refused(text: str, **more):
    with pytest.raises(CakeError) as raised:
        built(text, **more)
    return raised.value.diagnostics


def cake(tmp_path, text: str, *args: str):
    path = tmp_path / "k.cake"
    path.write_text(text)
    return CliRunner().invoke(app, [args[0], str(path), *args[1:]], prog_name="cake")


def test_a_proved_kernel_leaves_nothing_to_allow():
    b = built(RIGHT)
    assert b.diagnostics == () and b.manifest.allowed_unproved == () and b.account.proved == REQUIRED[:8]
    assert b.manifest.unproved == (), "it reads no index, has no workspace, shares no bytes, and no engine fills what threads read"


def test_what_the_method_does_not_speak_of_is_an_error():
    (d,) = refused(OUTSIDE)
    assert (d.code, d.severity) == ("rules/not-analysed", Severity.ERROR)
    assert "outside of the roles" in d.message and d.span.line == 14
    assert all(c in d.why for c in HANDED) and all(f"--allow-unproved {c.replace(' ', '-')}" in d.fix for c in HANDED)


def test_it_passes_if_all_of_it_is_allowed_and_the_manifest_says_so():
    b = built(OUTSIDE, allow_unproved=HANDED)
    assert b.manifest.allowed_unproved == HANDED and set(HANDED) <= set(b.manifest.unproved)
    (d,) = b.diagnostics
    assert (d.code, d.severity) == ("rules/not-analysed", Severity.WARNING)


@pytest.mark.parametrize("left", HANDED)
def test_each_is_allowed_by_itself(left):
    found = refused(OUTSIDE, allow_unproved=[c for c in HANDED if c != left])
    (error,) = [d for d in found if d.severity is Severity.ERROR]
    assert f"left open: {left};" in error.why and error.fix.count("--allow-unproved") == 1


def test_what_is_violated_is_not_allowed():
    found = refused(WRONG, allow_unproved=SAFETY)
    assert {d.code for d in found} == {"core/slot-race"}


def test_without_a_proof_the_manifest_says_what_was_let_pass():
    b = built(RIGHT, prove=False)
    assert b.diagnostics == () and set(b.manifest.allowed_unproved) == {
        "deadlock",
        "data races",
        "barrier phases",
        "completion of asynchronous operations",
        "reads of what no one has written",
        "races between CTAs",
        "bounds of unclipped accesses",
        "index overflow",
    }
    assert b.files["kernel.ptx"] == built(RIGHT).files["kernel.ptx"]


def prover(monkeypatch, **answers):
    """A prover that gives these answers, and the right ones else."""

    class Some(Prover):
        pass

    for name, answer in answers.items():
        setattr(Some, name, lambda self, *args, answer=answer, given=(): answer)
    monkeypatch.setenv("CAKE_CACHE", "")  # what it proved when it was another one
    monkeypatch.setattr(pipeline, "prover", lambda cores=1: Some)


def test_what_the_solver_does_not_decide_is_an_error_that_says_how_to_go_on(monkeypatch):
    prover(monkeypatch, deadlock_free=unknown("the solver gave up"))
    (d,) = refused(RIGHT)
    assert (d.code, d.severity) == ("rules/undecided", Severity.ERROR) and "gave up" in d.message
    assert "--allow-unproved deadlock" in d.fix and d.fix.count("--allow-unproved") == 1
    b = built(RIGHT, allow_unproved=["deadlock"])
    assert [(d.code, d.severity) for d in b.diagnostics] == [("rules/undecided", Severity.WARNING)]
    assert b.manifest.allowed_unproved == ("deadlock",)


def test_a_violation_stays_one_whatever_is_allowed(monkeypatch):
    prover(monkeypatch, deadlock_free=Answer(Standing.VIOLATED, "it hangs"))
    assert {d.code for d in refused(RIGHT, allow_unproved=SAFETY)} == {"core/deadlock"}


def book(**changes):
    """The default rules; of `core/deadlock` another one, or of what covers hangs none."""
    of = rulebook()
    rules = tuple(replace(r, **changes) if r.id == "core/deadlock" else r for r in of.rules if changes or "deadlock" not in r.covers)
    return replace(of, rules=rules)


def test_a_category_without_a_rule_is_not_proved():
    (d,) = refused(RIGHT, book=book())
    assert d.code == "rules/not-analysed" and "no rule" in d.message and d.why == "left open: deadlock"


def test_a_rule_that_fails_nothing_proves_nothing_either(monkeypatch):
    prover(monkeypatch, deadlock_free=unknown("the solver gave up"))
    found = refused(RIGHT, book=book(status=Status.PREVIEW))
    assert sorted((d.code, d.severity) for d in found) == [("rules/not-analysed", "error"), ("rules/undecided", "warning")]


def test_only_what_a_kernel_has_stands_in_its_manifest():
    data = RIGHT.replace("kernel k(R: i32,", "kernel k(R: i32, P: in i32[R],").replace("X[r, 0 +: 256]", "X[load(P[r], by = 4), 0 +: 256]")
    assert built(data).manifest.unproved == ("bounds of indices that are read from memory", "overflow of numbers that are read from memory")
    work = RIGHT.replace("kernel k(R: i32,", "kernel k(R: i32, W: workspace i32[R],")
    assert built(work).manifest.unproved == ("what workspaces hold at the end",)
    where = RIGHT.replace("kernel k(R: i32,", "kernel k(R: i32, P: in i32[R],").replace("store Y[r, ", "store Y[load(P[r], by = 4), ")
    assert where != RIGHT and "order in a CTA of what touches global memory, where numbers from memory decide" in built(where).manifest.unproved
    loop = RIGHT.replace("      n = n + 1", "      n = n + 1\n      var k = 0\n      while k < R {\n        k = k + 1\n      }")
    assert built(loop).manifest.unproved == ()
    assert built(loop.replace("k = k + 1", "k = k * 2 + 1")).manifest.unproved == ("that loops end which go by what they read",)
    mates = RIGHT.replace("  role work", "  shared t: f32[2][256] at 0 alias s\n  role work")
    assert built(mates).manifest.unproved == ("what one buffer holds behind writes to another one in its bytes",)
    assert "that buffers which share bytes are in use at different times" in built(mates).account.proved


def test_categories_are_typed_with_hyphens_or_blanks():
    assert [named(c.replace(" ", "-").upper()) for c in SAFETY] == [named(c) for c in SAFETY] == list(SAFETY) == [c.name for c in CATEGORIES]
    assert named("data") is None


def test_the_command_line(tmp_path):
    for command in (["check"], ["build", "--emit", "ptx", "-o", str(tmp_path / "k.ptx")]):
        found = cake(tmp_path, OUTSIDE, *command)
        assert found.exit_code == 1 and "error[rules/not-analysed]" in found.output, found.output
        found = cake(tmp_path, OUTSIDE, *command, *(x for c in HANDED for x in ("--allow-unproved", c.replace(" ", "-"))))
        assert found.exit_code == 0 and "warning[rules/not-analysed]" in found.output, found.output
        found = cake(tmp_path, OUTSIDE, *command, "--allow-unproved", "nonsense")
        assert found.exit_code == 2 and "data-races" in found.output
    (tmp_path / "art").mkdir()
    found = CliRunner().invoke(app, ["run", str(tmp_path / "art"), "--allow-unproved", "deadlock"], prog_name="cake")
    assert found.exit_code == 2 and "--allow-unproved" in found.output


def test_check_says_what_is_proved_and_for_which_sizes(tmp_path):
    found = cake(tmp_path, RIGHT, "check")
    assert found.output == (
        "k for sm90\n"
        "  sizes     all with 1 <= R, R <= 65536\n"
        "  proved    deadlock, data races, barrier phases, completion of asynchronous operations, "
        "reads of what no one has written, races between CTAs, "
        "bounds of unclipped accesses, index overflow\n"
        "1 text clean\n"
    )
    assumed = RIGHT.replace("kernel k(R: i32,", "kernel k(R: i32, P: in i32[R],").replace("  target", "  assume monotone(P)\n  target")
    data = json.loads(cake(tmp_path, assumed, "check", "--json").output)
    jsonschema.validate(data, json.loads(SCHEMA_FILE.read_text()))
    (p,) = data["files"][0]["kernels"]
    assert p == {
        "kernel": "k",
        "arch": "sm90",
        "requires": ["1 <= R", "R <= 65536"],
        "assumes": ["monotone(P)"],
        "proved": list(REQUIRED[:8]),
        "waived": [],
        "unproved": [],
        "allowed_unproved": [],
    }
    assert "  given     monotone(P)\n" in cake(tmp_path, assumed, "check").output
    data = json.loads(cake(tmp_path, WRONG, "check", "--json").output)
    assert data["files"] == [{"file": str(tmp_path / "k.cake"), "state": "errors", "kernels": []}]
