"""Turns in the derived form: their barriers behind those of the roles, and the token held and given up on every path."""

from __future__ import annotations

import pytest

from cake_core.check import check
from cake_core.derive import derive
from cake_core.diagnostics import CakeError
from cake_core.elaborate import elaborate
from cake_core.ir.nodes import Program
from cake_core.ir.printer import program_text
from cake_core.plugins import load_registry
from cake_core.source import Source
from cake_core.syntax import parse

REGISTRY = load_registry(environ={"CAKE_LOAD_PLUGINS": ""})
SM90 = REGISTRY.architectures["sm90"]
TEXT = """cake 1
kernel k(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 1000
  target sm90
{{
  tiles t = persistent(r: R)
  turn token over main
  turn other over main
  role main[{instances}]: 2 warps {{
    frag x: f32[256] vec 4
    x = 0
    for r in t {{
      {body}
    }}
  }}
}}
"""


def derived(body, instances=2):
    text = TEXT.format(body="\n      ".join(body.split("; ")), instances=instances)
    kernel = derive(elaborate(parse(Source("k.cake", text)).kernels[0], REGISTRY, SM90, derived=False), REGISTRY, SM90)
    out = program_text(Program(1, True, (kernel,)))
    typed = elaborate(parse(Source("derived.cake", out)).kernels[0], REGISTRY, SM90, derived=True)
    assert check(typed, REGISTRY, SM90) == []
    return out


def lines(text, *names):
    return [line.strip() for line in text.splitlines() if line.strip().startswith(names)]


def test_take_and_pass_are_barriers_of_two_instances():
    text = derived("sync main; take token; x = load(X[r, 0 +: 256]); pass token; store Y[r, 0 +: 256] <- x")
    turns = [
        "bar.arrive 1 threads 128",
        "bar.sync 3 + main.i threads 64",
        "bar.sync 1 + main.i threads 128",
        "bar.arrive 1 + (main.i + 1) % 2 threads 128",
    ]
    assert lines(text, "bar.") == turns
    assert lines(text, "if") == ["if main.i == 1 {"]


@pytest.mark.parametrize("instances", [3, 4])
def test_the_token_goes_through_all_instances(instances):
    text = derived("take token; pass token; store Y[r, 0 +: 256] <- x", instances)
    assert f"bar.arrive 1 + (main.i + 1) % {instances} threads 128" in text and f"if main.i == {instances - 1} {{" in text


def test_two_turns_have_barriers_of_their_own():
    text = derived("take token; pass token; take other; pass other; store Y[r, 0 +: 256] <- x")
    assert lines(text, "bar.sync") == ["bar.sync 1 + main.i threads 128", "bar.sync 3 + main.i threads 128"]
    assert lines(text, "bar.arrive")[:2] == ["bar.arrive 1 threads 128", "bar.arrive 3 threads 128"]


def test_one_instance_needs_no_token():
    text = derived("take token; pass token; store Y[r, 0 +: 256] <- x", 1)
    assert "bar." not in text


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        ("pass token", "derive/not-held", "gives up the token that the role may not hold"),
        ("take token; take token; pass token", "derive/held-too-many", "may ask for the token that the instance has"),
        ("take token", "derive/held-too-many", "may ask for the token that the instance has"),
        ("if r > 3 { take token }; pass token", "derive/not-held", "gives up the token"),
        ("if main.i == 0 { take token; pass token }", "derive/verb-guard", "stands under a condition that differs among threads"),
        ("take token; pass other; pass token", "derive/not-held", "`pass other`"),
    ],
)
def test_a_token_that_is_lost(body, code, says):
    with pytest.raises(CakeError) as caught:
        derived(body)
    found = {d.code: d.message for d in caught.value.diagnostics}
    assert says in found.get(code, ""), found


def test_the_token_of_the_last_item_is_not_kept():
    with pytest.raises(CakeError, match="ends while it holds the token of 'token'"):
        text = TEXT.format(body="store Y[r, 0 +: 256] <- x", instances=2).replace("    for r in t", "    take token\n    for r in t")
        derive(elaborate(parse(Source("k.cake", text)).kernels[0], REGISTRY, SM90, derived=False), REGISTRY, SM90)


def test_turns_of_too_many_instances():
    with pytest.raises(CakeError) as caught:
        derived("take token; pass token", 16)
    assert "derive/barrier-ids" in [d.code for d in caught.value.diagnostics]
