"""Reads of what no one has written: the predicate `written`, beside the event machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_core.facts import rows_of
from cake_core.machine import Kind, Scenario, explore
from cake_core.prove.prover import Prover
from cake_core.rules import Outcome, judge, rulebook
from tests.machine.machine_texts import derived, read, registry

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
UNWRITTEN = [r for r in rulebook().rules if r.id == "core/unwritten-read"]


def told(text: str, arch: str) -> list[tuple[Outcome, str | None]]:
    rows = rows_of(read(text, arch), registry().architectures[arch], registry())
    return [(v.outcome, v.finding and v.finding.resource) for v in judge(UNWRITTEN, rows, Prover(rows, keep=False))]


def machine(text: str, arch: str, sizes: dict[str, int]) -> set[str]:
    return {f.resource for f in explore(read(text, arch), Scenario(sizes)).faults if f.kind is Kind.UNWRITTEN}


@pytest.mark.parametrize(
    ("kernel", "arch", "old", "new", "buffer", "sizes"),
    [
        ("gemm/gemm_sm100", "sm100", "init k == 0", "init k == 1", "acc", {"M": 128, "N": 256, "K": 128}),  # the first product adds to what was there
        ("gemm/gemm_sm100", "sm100", "init k == 0", "", "acc", {"M": 128, "N": 256, "K": 64}),
        ("gemm/gemm_sm80", "sm80", "      cp.async b[", "      # cp.async b[", "b", {"M": 128, "N": 128, "K": 64}),
        ("rmsnorm/rmsnorm", "sm80", "store part", "# store part", "part", {"R": 1, "C": 512}),
        ("softmax/softmax", "sm90", "store total", "# store total", "total", {"R": 1, "C": 512}),
    ],
)
def test_a_write_that_is_left_out_of_a_kernel_is_missed(kernel, arch, old, new, buffer, sizes):
    text = derived((KERNELS / f"{kernel}.cake").read_text(encoding="utf-8"), arch)
    assert old in text
    wrong = text.replace(old, new)
    assert {outcome for outcome, _ in told(text, arch)} == {Outcome.PROVED} and not machine(text, arch, sizes)
    assert (Outcome.VIOLATED, buffer) in told(wrong, arch)
    assert buffer in machine(wrong, arch, sizes)


TEXT = """cake 1 derived
kernel k(R: i32, X: in f32[R, 128], Y: out f32[R, 128])
  require 1 <= R, R <= 65536
  target sm90
{{
  launch 1
  shared s: f32[3][128] at 0
  {before}
  role main: 1 warp at 0 {{
    frag x: f32[128] vec 4 layout vector
    {body}
  }}
}}
"""


@pytest.mark.parametrize(
    ("before", "body", "outcome"),
    [
        (
            "",
            "for r in 0 .. R { x = load(X[r, 0 +: 128], by = 16) store s[r % 3] <- x by 16 warp.sync x = load(s[r % 3], by = 16) warp.sync }",
            "proved",
        ),
        (
            "",
            "for r in 0 .. R { x = load(X[r, 0 +: 128], by = 16) store s[r % 3] <- x by 16 warp.sync x = load(s[(r + 1) % 3], by = 16) warp.sync }",
            "violated",
        ),
        (
            "",
            "x = 0.0 store s[1] <- x by 16 warp.sync for r in 0 .. R { store s[(r + 2) % 3] <- x by 16 warp.sync x = load(s[(r + 1) % 3], by = 16) warp.sync }",
            "proved",
        ),
        (
            "",
            "x = 0.0 store s[0] <- x by 16 warp.sync for r in 0 .. R { store s[(r + 2) % 3] <- x by 16 warp.sync x = load(s[(r + 1) % 3], by = 16) warp.sync }",
            "violated",
        ),
        (
            "",
            "for r in 0 .. R { x = load(X[r, 0 +: 128], by = 16) if r > 0 { store s[0] <- x by 16 } warp.sync x = load(s[0], by = 16) warp.sync }",
            "violated",
        ),
        (
            "",
            "for r in 0 .. R { x = load(X[r, 0 +: 128], by = 16) if r == 0 { store s[0] <- x by 16 } warp.sync x = load(s[0], by = 16) warp.sync }",
            "proved",
        ),
        ("store s[0][5] <- 0.0 by 4 cta.sync", "let v = load(s[0][5], by = 4) x = v", "proved"),
        ("store s[0][5] <- 0.0 by 4 cta.sync", "let v = load(s[0][6], by = 4) x = v", "violated"),
        ("store s[0][5] <- 0.0 by 4 cta.sync", "let v = load(s[1][5], by = 4) x = v", "violated"),
        ("store s[0][5] <- 0.0 by 4 cta.sync", "for r in 0 .. 2 { let v = load(s[r][5], by = 4) x = v }", "violated"),
        ("store s[0][5] <- 0.0 by 4 cta.sync", "for r in 0 .. 1 { let v = load(s[r][5], by = 4) x = v }", "proved"),
        ("let v = load(s[0][5], by = 4)", "x = v", "violated"),
    ],
)
def test_slots_and_parts(before, body, outcome):
    for word in ("store", "warp.sync", "x = load", "if r", "for r", "}", "cta.sync", "x = v"):
        before, body = (t.replace(f" {word}", f"\n{word}") for t in (before, body))
    text = TEXT.format(before=before, body=body)
    assert {str(o) for o, _ in told(text, "sm90")} == {outcome}, text
    assert machine(text, "sm90", {"R": 4}) == ({"s"} if outcome == "violated" else set())
