"""`disjoint` against all pairs of CTAs: what is proved holds at every small size, and what is violated shows at the sizes that are told."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from cake_core.diagnostics import CakeError
from cake_core.facts import facts_of, rows_of
from cake_core.pipeline import build, frontend
from cake_core.plugins import load_registry
from cake_core.prove.memory import Memory
from cake_core.rules import Standing
from cake_core.source import Source

REGISTRY = load_registry()


def disjoint(text: str):
    front = frontend(Source("case.cake", text), REGISTRY)
    rows = rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)
    stores = [r for r in rows["access"] if r["buffer"] == "Y" and r["mode"] == "write"]
    answers = [Memory(rows).disjoint(a, b) for a, b in itertools.combinations_with_replacement(stores, 2)]
    return next((a for a in answers if a.standing is not Standing.PROVED), answers[0])


def kernel(outer: str, inner: str, items: str = "A * B", body: str = "let t = cluster.id", persistent: str = "") -> str:
    return f"""cake 1 derived
kernel k(A: i32, B: i32, Y: out f32[512, 512])
  require 1 <= A, A <= 5, 1 <= B, B <= 5
  target sm90
{{
  launch {items} {persistent}
  role main: 1 warp at 0 {{
    frag y: f32[4, 32] vec 4 layout vector
    y = 0.0
    {body}
    let u = t / A, v = t % A
    store Y[{outer} +: 4, {inner} +: 32] <- y by 16
  }}
}}
"""


def drawn(rng: random.Random) -> tuple[str, str]:
    """Rows and columns of a tile, from what is left of an item's number divided once or twice."""
    parts = ["t", "u", "v", "t / B", "t % B", "u % 2", "u / 2", "v % 3", "v / 3", "min(u, 2)", "(t + 1) / A", "clamp(B - u, 1, 3)"]

    def one(step: int) -> str:
        terms = [f"({p}) * {step * rng.choice((1, 1, 2, 3))}" for p in rng.sample(parts, rng.choice((1, 1, 2)))]
        return " + ".join(terms)

    return one(4), one(32)


def python(e: str) -> str:
    return e.replace("/", "//")


@pytest.mark.parametrize("seed", range(60))
def test_what_is_proved_holds_at_every_size(seed):
    outer, inner = drawn(random.Random(seed))
    answer = disjoint(kernel(outer, inner))
    names = {"min": min, "clamp": lambda x, lo, hi: min(max(x, lo), hi)}
    meets = False
    for a, b in itertools.product(range(1, 6), repeat=2):
        at = []
        for t in range(a * b):
            env = {**names, "A": a, "B": b, "t": t, "u": t // a, "v": t % a}
            at.append((eval(python(outer), env), eval(python(inner), env)))
        for (x, y), (z, w) in itertools.combinations(at, 2):
            meets |= abs(x - z) < 4 and abs(y - w) < 32 and max(x, z) < 512 and max(y, w) < 512
    assert answer.standing is not (Standing.PROVED if meets else Standing.VIOLATED), (outer, inner, answer)


@pytest.mark.parametrize(
    ("text", "standing"),
    [
        (kernel("u * 4", "v * 32"), Standing.PROVED),
        (kernel("u * 4", "v * 28"), Standing.VIOLATED),
        (kernel("v * 4", "0"), Standing.VIOLATED),
        (kernel("(v * 5 + u) * 4", "0"), Standing.PROVED),
        (kernel("(v * 4 + u) * 4", "0"), Standing.VIOLATED),
        (kernel("cluster.m * 4", "t * 32").replace("target sm90", "target sm90\n  cluster m = 2"), Standing.PROVED),
        (kernel("u * 4", "v * 32").replace("target sm90", "target sm90\n  cluster m = 2"), Standing.VIOLATED),
        (kernel("u * 4", "0").replace("store", "if v == 0 { store").replace("by 16", "by 16 }"), Standing.PROVED),
        (kernel("u * 4", "0").replace("store", "if v < 2 { store").replace("by 16", "by 16 }"), Standing.VIOLATED),
    ],
)
def test_by_hand(text, standing):
    assert disjoint(text).standing is standing


def test_items_that_clusters_take_in_turns():
    loop = "for t in cluster.id .. A * B step cluster.count {"
    text = kernel("u * 4", "v * 32", body=loop, persistent="persistent").replace("by 16\n", "by 16\n    }\n")
    assert disjoint(text).standing is Standing.PROVED
    assert disjoint(text.replace("cluster.id ..", "0 ..")).standing is Standing.VIOLATED
    assert disjoint(text.replace("step cluster.count", "step 1")).standing is Standing.VIOLATED


#: Conditions on an item, and the rows that are written there: two items collide, by numbers that are no constants.
BY_UNKNOWNS = {
    "quotient and remainder by two numbers": {"true": "t_i / D * D + t_i % (D + 1)"},
    "an item and the row in front of another one's": {"t_i % D == t_i / D % D": "t_i / D", "t_i % D == 0 and t_i / D % 2 == 1": "t_i / D - 1"},
}


@pytest.mark.parametrize("kind", BY_UNKNOWNS)
def test_what_two_clusters_write_where_sizes_are_unknown_is_told_truly(kind):
    rows = BY_UNKNOWNS[kind]
    stores = "\n".join(f"      if {test} {{ store Y[{row}, 0 +: 32] <- y by 4 }}" for test, row in rows.items())
    told = disjoint(f"""cake 1 derived
kernel k(R: i32, D: i32, Y: out f32[8192, 32])
  require 1 <= R, R <= 4096, 1 <= D, D <= 64
  target sm90
{{
  launch R * D persistent
  role main: 1 warp at 0 {{
    frag y: f32[32] vec 1 layout vector
    y = 0.0
    for t_i in cluster.id .. R * D step cluster.count {{
{stores}
    }}
  }}
}}
""")
    assert told.standing is Standing.VIOLATED
    at = dict(told.values)

    def written(item: str, cluster: str) -> set[int]:
        assert at[item] % at["cluster.count"] == at[cluster] and at[item] < at["R"] * at["D"]
        env = {"D": at["D"], "t_i": at[item], "true": True}
        return {eval(python(row), env) for test, row in rows.items() if eval(python(test), env)}

    assert at["cluster.id"] != at["cluster.id'"]
    assert written("t_i", "cluster.id") & written("t_i'", "cluster.id'")


def test_what_rests_on_a_quotient_by_zero_is_undecided():
    """A divisor that may be 0 leaves its quotient open, and a common element that needs one is none that was found."""
    path = Path(__file__).resolve().parents[2] / "kernels" / "gemm" / "gemm_sm90.cake"
    text = path.read_text(encoding="utf-8")
    assert "1 <= N, " in text
    with pytest.raises(CakeError) as raised:
        build(Source("gemm.cake", text.replace("1 <= N, ", "")), load_registry(), prove=True)
    assert {d.code for d in raised.value.diagnostics} == {"rules/undecided"}
