"""What the method does not speak of is executed at small sizes: a fault that is found there is told, and none that is found proves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_core.facts import facts_of, rows_of
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.prove.answers import Answers
from cake_core.rules.predicates import Given, Standing
from cake_core.source import Source

REGISTRY = load_registry()
CORPUS = Path(__file__).resolve().parents[1] / "corpus"
RESET = (CORPUS / "C-09-phase-starts-anew-each-tile" / "bad.cake").read_text(encoding="utf-8")
WHOLE = (CORPUS / "not-bugs" / "N-6-reset-that-divides" / "good.cake").read_text(encoding="utf-8")


def rows(text: str):
    front = frontend(Source("k.cake", text), REGISTRY)
    return rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)


def test_a_count_that_starts_anew_is_told_at_its_wait():
    found = rows(RESET)
    answers = Answers(found)
    said = [answers.phase_safe(w, ()) for w in found["wait"]]
    (wrong,) = [a for a in said if a.standing is Standing.VIOLATED]
    assert wrong is said[0] and wrong.confirmed and wrong.fix
    assert dict(wrong.values).keys() == {"M", "N", "K"} and wrong.iteration == "t_i: 1, k: 0"
    assert said[1].outside


def test_a_count_that_starts_anew_in_whole_rounds_is_proved():
    """Eight iterations a tile are two rounds of four slots: each tile starts at slot 0 with the first parity."""
    found = rows(WHOLE)
    assert {Answers(found).phase_safe(s, ()).standing for s in (*found["wait"], *found["arrive"])} == {Standing.PROVED}
    found = rows(WHOLE.replace("K % 512 == 0", "K % 256 == 0"))
    assert Standing.VIOLATED in {Answers(found).phase_safe(s, ()).standing for s in (*found["wait"], *found["arrive"])}


def test_where_no_run_goes_wrong_nothing_is_known():
    """Whole rounds again, by a number that only the memory knows."""
    text = WHOLE.replace("M: i32,", "M: i32, T: in i32[1],").replace("K % 512 == 0", "K % 512 == 0\n  assume T[0] == 8")
    found = rows(text.replace("0 .. nk", "0 .. min(load(T[0], by = 4), nk)"))
    answers = Answers(found)
    assert {answers.phase_safe(w, ()).outside for w in found["wait"]} == {True}
    assert answers.deadlock_free(()).outside


DIVIDED = """cake 1 derived
kernel k(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R persistent
  shared s: f32[2][512] at 0
  role work: 2 warps at 0 {
    var n = 0
    frag x: f32[256] vec 4 layout vector, y: f32[256] vec 4 layout vector, z: f32[256] vec 2 layout vector
    for r in cluster.id .. R step cluster.count {
      x = load(X[r, 0 +: 256], by = 16)
      store s[n % 2][0 +: 256] <- x by 16
      READ
      n = n + 1
    }
  }
}
"""


@pytest.mark.parametrize(
    ("read", "apart"),
    [
        ("y = load(s[n % 2][0 +: 256], by = 16)", True),  # each thread reads what it wrote
        ("y = load(s[(n + 1) % 2][0 +: 256], by = 16)", True),  # what it wrote a turn before
        ("z = load(s[n % 2][0 +: 256], by = 8)", False),  # another layout
        ("y = load(s[n % 2][4 +: 256], by = 16)", False),  # another place
    ],
)
def test_threads_that_divide_equal_tiles_alike_need_no_barrier(read, apart):
    found = rows(DIVIDED.replace("READ", read))
    write, reads = (r for r in found["access"] if r.site.act.region.name == "s")
    answer = Answers(found).ordered(write, reads, (Given("same_slot", (write, reads)), Given("overlap", (write, reads))))
    assert (answer.standing is Standing.PROVED) is apart
