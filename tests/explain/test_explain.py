"""Why a kernel is proved: the contracts that are named are enough, and none of them can be left out."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest
from click.testing import CliRunner

from cake_core.check import checked
from cake_core.cli.app import app
from cake_core.diagnostics import CakeError
from cake_core.diagnostics.json import SCHEMA_FILE
from cake_core.explain import Explanation, explain
from cake_core.pipeline import frontend, prover
from cake_core.plugins import load_registry
from cake_core.prove.effort import asked
from cake_core.prove.solve import RLIMIT
from cake_core.rules import rulebook
from cake_core.source import Source

REGISTRY = load_registry()
CONTRACTS = ("0 <= R", "R <= 65536", "1 <= C", "C <= 4096", "C % 4 == 0", "1 <= D", "D <= 7", "R <= S", "S <= 60000")
TEXT = """cake 1 derived
kernel k(R: i32, C: i32, D: i32, S: i32, P: in i32[S], X: in f32[R, 256], Y: out f32[S, 256], Z: out i32[S * C])
  CONTRACTS
  assume P[0] == 0
  target sm90
{
  launch R persistent
  shared s: f32[2][256] at 0
  role work: 2 warps at 0 {
    var n = 0
    frag x: f32[256] vec 4 layout vector, y: f32[256] vec 1 layout vector
    for r in cluster.id .. R step cluster.count {
      x = load(X[r, 0 +: 256], by = 16)
      store s[n % 2] <- x by 16
      bar.sync 1 threads 64
      y = load(s[n % 2], by = 4)
      store Y[r, 0 +: 256] <- y by 4
      if warp == 0 {
        store Z[r * C] <- 1 by 4
      }
      n = n + 1
    }
  }
}
"""


def text(contracts=CONTRACTS) -> str:
    return TEXT.replace("  CONTRACTS\n", "".join(f"  require {c}\n" for c in contracts))


def front(contracts=CONTRACTS):
    return frontend(Source("k.cake", text(contracts)), REGISTRY)


@pytest.fixture(scope="module")
def explained() -> Explanation:
    f = front()
    return explain(f.derived, REGISTRY, f.arch, rulebook())


def proved(contracts) -> set[str]:
    """What the check of a text with these contracts alone proves."""
    try:
        f = front([c for c in CONTRACTS if c in contracts])
    except CakeError:
        return set()
    return set(checked(f.typed, REGISTRY, f.arch, rulebook(), prover()).account.proved)


def test_all_that_is_proved_is_explained(explained):
    assert {c.category for c in explained.categories} == proved(CONTRACTS) and len(explained.categories) == 8


def test_what_is_named_is_enough_and_each_of_it_is_needed(explained):
    """By checks of texts that have these contracts and no others."""
    for c in explained.categories:
        named = {*explained.form, *c.requires}
        assert c.category in proved(named), c
        for one in c.requires:
            assert c.category not in proved(named - {one}), (c.category, one)


def test_contracts_that_have_nothing_to_do_with_it_are_not_named(explained):
    by = {c.category: c for c in explained.categories}
    assert not any({"1 <= D", "D <= 7"} & set(c.requires) for c in explained.categories)
    assert by["deadlock"].requires == by["data races"].requires == (), "how the warps meet depends on no size"
    assert "R <= S" in by["bounds of unclipped accesses"].requires
    assert "C <= 4096" in by["index overflow"].requires and "1 <= C" not in by["deadlock"].requires


def test_it_is_the_same_each_time(explained):
    f = front()
    again = explain(f.derived, REGISTRY, f.arch, rulebook())
    still = lambda e: [(c.category, c.requires, c.assumes, c.questions) for c in e.categories]
    assert still(again) == still(explained) and again.form == explained.form


def test_what_it_took_is_counted(explained):
    by = {c.category: c for c in explained.categories}
    assert by["data races"].questions["solver"] > 0 and by["data races"].checks > 0
    assert all(0 <= c.most <= c.steps and c.most <= RLIMIT and c.seconds > 0 for c in explained.categories)
    assert all(set(c.questions) <= {"closed", "linear", "solver"} and sum(c.questions.values()) > 0 for c in explained.categories)
    assert asked() is None, "nobody counts by default"


def test_an_assume_that_a_proof_needs_is_named():
    """Rows of a group lie between its ends because of what is assumed of the ends."""
    body = (
        "kernel g(T: i32, E: i32, OFF: in i32[E + 1], X: in i32[T + 1], Y: out i32[E])\n  require 0 <= T, T <= 65536, 1 <= E, E <= 64\n"
        "  assume OFF[0] == 0, OFF[E] == T, monotone(OFF)\n  target sm90\n"
        "{\n  launch E persistent\n  role main: 1 warp at 0 {\n    for e in cluster.id .. E step cluster.count {\n"
        "      let at = load(OFF[e + 1], by = 4)\n      store Y[e] <- load(X[at], by = 4) + 0 by 4\n    }\n  }\n}\n"
    )
    f = frontend(Source("g.cake", f"cake 1 derived\n{body}"), REGISTRY)
    book = rulebook(preview=True)
    found = {c.category: c for c in explain(f.derived, REGISTRY, f.arch, book).categories}
    assert set(found["bounds of indices that are read from memory"].assumes) == {"OFF[0] == 0", "OFF[E] == T", "monotone(OFF)"}
    assert found["deadlock"].assumes == ()


def test_the_command_line(tmp_path):
    path = tmp_path / "k.cake"
    path.write_text(text())
    run = lambda *args: CliRunner().invoke(app, ["check", str(path), *args], prog_name="cake")
    found = run("--explain-proof")
    assert found.exit_code == 0 and "Proof of k for sm90" in found.output and "R <= S" in found.output and found.output.endswith("1 text clean\n")
    data = json.loads(run("--explain-proof", "--json").output)
    jsonschema.validate(data, json.loads(SCHEMA_FILE.read_text()))
    (kernel,) = data["files"][0]["kernels"]
    assert [c["category"] for c in kernel["explained"]["categories"]] == kernel["proved"]
    assert "explained" not in json.loads(run("--json").output)["files"][0]["kernels"][0]


def test_constants_that_are_set_are_those_that_are_explained(tmp_path):
    path = tmp_path / "k.cake"
    path.write_text(text().replace("  require 0 <= R\n", "  const MOST = 65536\n  require 0 <= R\n").replace("R <= 65536", "R <= MOST"))
    found = CliRunner().invoke(app, ["check", str(path), "--explain-proof", "--set", "MOST=100", "--json"], prog_name="cake")
    (kernel,) = json.loads(found.output)["files"][0]["kernels"]
    assert kernel["explained"]["categories"], found.output


def test_what_is_not_proved_is_not_explained():
    f = front()
    rules = tuple(r for r in rulebook().rules if "deadlock" not in r.covers)
    found = explain(f.derived, REGISTRY, f.arch, replace(rulebook(), rules=rules))
    assert "deadlock" not in {c.category for c in found.categories}
