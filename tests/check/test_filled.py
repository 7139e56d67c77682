"""Fragments that are filled on every path to a read, in the ways of kernels, and near misses of each."""

from __future__ import annotations

import pytest

from cake_core.check import filled
from cake_core.check.subject import Subject
from cake_core.diagnostics import Sink
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.source import Source

TEXT = """cake 1
kernel k(R: i32, C: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 0 <= R, R <= 1000, 0 <= C, C <= 1000
  target sm90
{
  tiles t = persistent(r: R)
  role main: 4 warps {
    frag x: f32[256] vec 2, y: f32[256] vec 2, p: f32[2][256] vec 2
    for r in t {
      BODY
    }
  }
}
"""
LOAD, STORE = "x = load(X[r, 0 +: 256])", "store Y[r, 0 +: 256] <- x"
#: Body, and what is to be changed to make it wrong.
WAYS = {
    "at once": (f"{LOAD}; {STORE}", (LOAD, "y = 0")),
    "both branches": (f"if r > C {{ {LOAD} }} else {{ x = 0 }}; {STORE}", ("x = 0", "y = 0")),
    "one branch, in it": (f"if r > C {{ {LOAD} }}; if r > C {{ {STORE} }}", ("if r > C { store", "if r >= C { store")),
    "a conjunction": (f"if r > C and C > 3 {{ {LOAD} }}; if r > C and C > 3 {{ {STORE} }}", ("if r > C and C > 3 { store", "if r > C { store")),
    "the entry of a loop": (f"if 0 < C {{ {LOAD} }}; for k in 0 .. C {{ {STORE} }}", ("if 0 < C", "if 1 < C")),
    "a loop that has a turn": (f"for k in 0 .. 2 {{ {LOAD} }}; {STORE}", ("0 .. 2", "0 .. C")),
    "the first turn": (f"for k in 0 .. C {{ if k == 0 {{ {LOAD} }}; {STORE} }}", ("k == 0", "k == 1")),
    "the first item": (f"if t.n == 0 {{ {LOAD} }}; {STORE}", ("t.n == 0", "t.n == 1")),
    "the turn before": (f"y = 0; for k in 0 .. C {{ x = y * 2.0; y = load(X[r, 0 +: 256]); {STORE} }}", ("y = 0; ", "")),
    "a copy": (f"y = 0; x = y; {STORE}", ("y = 0; ", "")),
    "a slot": (f"p[1] = 0; x = p[1] * 2.0; {STORE}", ("p[1] = 0", "p[0] = 0")),
    "all slots": (f"for k in 0 .. 2 unroll {{ p[k] = 0 }}; x = p[0] + p[1]; {STORE}", ("0 .. 2", "0 .. 1")),
    "a value": (f"{LOAD}; let m = x * 2.0; {STORE}", (LOAD, "y = 0")),
    "a variable": (f"var n = 0; if n == 0 {{ {LOAD} }}; n = n + 1; {STORE}", ("if n == 0", "if n == 1")),
    "not": (f"if not r > C {{ {LOAD} }}; if not r > C {{ {STORE} }}", ("if not r > C { store", "if r > C { store")),
}
REGISTRY = load_registry()


def found(body: str) -> list[str]:
    front, sink = frontend(Source("k.cake", TEXT.replace("BODY", body.replace("; ", "\n      "))), REGISTRY), Sink()
    filled.check(Subject(front.typed, REGISTRY, front.arch), None, sink)
    return [d.code for d in sink.items]


@pytest.mark.parametrize("way", WAYS)
def test_a_fragment_is_filled(way):
    body, (old, new) = WAYS[way]
    assert found(body) == []
    assert body.count(old) == 1 and found(body.replace(old, new)) == ["core/unfilled-fragment"]


def test_a_guard_of_a_name_that_has_another_value_is_another_guard():
    text = f"var n = r; if n > C {{ {LOAD} }}; n = n + 1; if n > C {{ {STORE} }}"
    assert found(text) == ["core/unfilled-fragment"] and found(text.replace("; n = n + 1", "")) == []


def test_a_name_is_told_once():
    assert found(f"{STORE}; {STORE}; y = x * 2.0") == ["core/unfilled-fragment"]
