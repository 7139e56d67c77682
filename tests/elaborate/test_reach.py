"""An index that leaves its dimension for a value that it surely takes is an error, wherever an index can stand; others pass."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cake_core.diagnostics import CakeError

TEXT = """cake 1
kernel k(R: i32, C: i32, X: in f32[R, 4], P: in f32[C], OFF: in i32[C + 1], Y: out f32[R, 256])
  const END = 4
  require 0 <= R, R <= 65536, 1 <= C, C <= 1024
  target sm90{cluster}
{{
  tiles t = persistent(r: R)
  shared s: f32[4][256], p: f32[2][4], w: f32[8]
  role main[{instances}]: {warps} warps {{
    frag x: f32[256] vec 1, set: f32[4][256] vec 1
    for r in t {{
      x = 0
      set[0] = 0
{body}
      store Y[r, 0 +: 256] <- x
    }}
  }}
}}
"""

#: Places of an index of 0 .. 4.
PLACES = {
    "slot": "x = load(s[{i}])",
    "slot that is written": "store s[{i}] <- x",
    "element": "let v = load(p[0][{i}])",
    "start of a slice": "let v = sum(load(w[{i} +: 5]))",
    "element of a tensor": "let v = load(X[r, {i}])",
    "bare element": "let v = X[r, {i}] + 1.0",
    "operand of a function": "let v = max(load(p[0][{i}]), 0.0)",
}
#: What leaves 0 .. 4 for one of its values, and what stays inside.
OUTSIDE = {
    "number": ("4", "3"),
    "const": ("END", "END - 1"),
    "negative": ("-1", "0"),
    "instance": ("2 * main.i + 1", "main.i"),
    "let": ("twice", "once"),
    "choice": ("main.i == 2 ? 4 : 0", "main.i == 3 ? 4 : 0"),
    "function": ("max(main.i, 2) + 2", "min(main.i, 3)"),
    "remainder": ("main.i % 3 * 2", "main.i * 2 % 4"),
}


def text(body: str, instances: int = 3, warps: int = 1, cluster: str = "") -> str:
    lines = ("let once = main.i", "let twice = once * 2", body)
    return TEXT.format(
        body="".join(f"      {line}\n" for line in "\n".join(lines).splitlines()), instances=instances, warps=warps, cluster=cluster
    )


def codes(compiled, body: str, **parts) -> list[str]:
    try:
        compiled(text(body, **parts), lowering=False)
    except CakeError as error:
        return [d.code for d in error.diagnostics]
    return []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("what", OUTSIDE)
def test_every_place_and_every_kind_of_index(place, what, compiled):
    outside, inside = OUTSIDE[what]
    assert codes(compiled, PLACES[place].format(i=outside)) == ["type/out-of-range"]
    assert codes(compiled, PLACES[place].format(i=inside)) == []


@pytest.mark.parametrize(
    "body",
    [
        "for j in 0 .. 5 { let v = load(p[0][j]) }",
        "for j in 0 .. 5 unroll { let v = load(p[0][j]) }",
        "for j in 0 .. 3 { for l in 0 .. 3 { let v = load(p[0][j + l]) } }",
        "for j in 0 .. 2 unroll { let at = 4 * j\nlet v = load(p[0][at]) }",
        "for j in 0 .. 8 { if j % 2 == 0 { let v = load(p[0][j]) } }",
        "for j in 0 .. 8 { if R > 5 { let v = load(p[0][j]) } }",
        "for k in 0 .. C { for j in 0 .. 8 { if k > 2 { let v = load(p[0][j]) } } }",
        "let v = warp < 3 ? 0.0 : load(p[0][warp + 1])",
        "if warp == 3 { let v = load(p[0][warp + 1]) }",
        "if warp < 3 { let v = load(p[0][warp]) } else { let v = load(p[0][warp + 1]) }",
        "if r > 2 { let v = load(p[0][main.i + warp]) }",
        "set[warp + 1] = 0",
        "let v = load(OFF[C + 1])",
        "let v = load(P[C])",
        "let last = C\nlet v = load(P[last + 2])",
        "let v = load(OFF[-1])",
    ],
)
def test_what_is_surely_outside(body, compiled):
    assert codes(compiled, body, warps=4)[:1] in (["type/out-of-range"], ["type/not-constant"])
    assert "type/out-of-range" in codes(compiled, body, warps=4) or "set[" in body


@pytest.mark.parametrize(
    "body",
    [
        "for j in 0 .. 5 { if j < 4 { let v = load(p[0][j]) } }",
        "for j in 0 .. 8 { if j < C { let v = load(p[0][j]) } }",  # C may keep it inside
        "for j in 0 .. 8 { for k in j .. C { let v = load(p[0][j]) } }",
        "for j in 0 .. 8 { let few = j < C\nif few { let v = load(p[0][j]) } }",
        "if warp < 3 { let v = load(p[0][warp + 1]) }",
        "if main.i < 2 and warp < 2 { let v = load(p[0][main.i + warp]) }",
        "let v = warp < 3 ? load(p[0][warp + 1]) : 0.0",
        "var j = 5\nj = j - 2\nif j < 4 { let v = load(p[0][j]) }",
        "for k in 0 .. C { let v = load(p[0][k]) }",
        "if END > 4 { let v = load(p[0][END]) }",  # one of several builds of a text
        "if END == 4 { let v = load(p[0][END - 1]) } else { let v = load(p[0][7]) }",
        "let v = load(OFF[C])",
        "let v = load(P[C - 1])",
        "let v = load(X[r, 0])",
        "for j in 0 .. 4 { let at = j\nfor j in 0 .. 9 { let v = load(p[0][at]) } }",
        "for j in 0 .. 0 { let v = load(p[0][j + 3]) }",
    ],
)
def test_what_may_stay_inside(body, compiled):
    assert "type/out-of-range" not in codes(compiled, body, warps=4)


def test_ranks_of_a_cluster_all_run(compiled):
    derived = "cake 1 derived\nkernel k(R: i32)\n  target sm90\n  cluster m = 4\n{\n  launch 1\n  shared p: f32[4] at 0\n  role r: 1 warp at 0 {\n    let v = load(p[cluster.m + 1], by = 4)\n  }\n  cluster.sync\n}\n"
    with pytest.raises(CakeError) as error:
        compiled(derived)
    assert [(d.code, d.why) for d in error.value.diagnostics] == [("type/out-of-range", "where `cluster.m` is 3")]
    assert compiled(derived.replace("cluster.m + 1", "cluster.m"))


def test_a_role_of_one_cta_of_a_pair_has_one_rank(compiled):
    pair = "cake 1\nkernel k(A: in bf16[2, 64])\n  target sm100\n  cluster m = 2 pair m\n{{\n  shared p: f32[4]\n  role r: 1 warp on pair{rank} {{\n    let v = load(p[4 * pair.i])\n  }}\n}}\n"
    with pytest.raises(CakeError, match="outside 0 .. 4"):
        compiled(pair.format(rank=""))
    with pytest.raises(CakeError, match="outside 0 .. 4"):
        compiled(pair.format(rank="[1]"))
    assert compiled(pair.format(rank="[0]"))


def both(cake: str, python: str | None = None) -> tuple[str, str]:
    return cake, python or cake


LEAVES = st.one_of(st.integers(-2, 6).map(lambda n: both(f"({n})")), st.sampled_from([both("main.i", "instance"), both("warp"), both("j")]))
INDEX = st.recursive(
    LEAVES,
    lambda e: st.one_of(
        st.tuples(e, st.sampled_from("+-*"), e).map(lambda x: tuple(f"({a} {x[1]} {b})" for a, b in zip(x[0], x[2], strict=True))),
        st.tuples(e, st.integers(1, 4)).map(lambda x: both(f"({x[0][0]} / {x[1]})", f"({x[0][1]} // {x[1]})")),
        st.tuples(e, st.integers(1, 4)).map(lambda x: tuple(f"({a} % {x[1]})" for a in x[0])),
        st.tuples(st.sampled_from(["min", "max"]), e, e).map(lambda x: tuple(f"{x[0]}({a}, {b})" for a, b in zip(x[1], x[2], strict=True))),
        st.tuples(e, e, e, e).map(
            lambda x: both(f"({x[0][0]} < {x[1][0]} ? {x[2][0]} : {x[3][0]})", f"({x[2][1]} if {x[0][1]} < {x[1][1]} else {x[3][1]})")
        ),
    ),
    max_leaves=5,
)
GUARD = st.tuples(INDEX, st.sampled_from(["<", "<=", "==", "!=", ">"]), INDEX).map(
    lambda x: tuple(f"{a} {x[1]} {b}" for a, b in zip(x[0], x[2], strict=True))
)


@settings(max_examples=100, deadline=None)
@given(index=INDEX, guard=st.one_of(st.just(both("0 == 0")), GUARD))
def test_it_says_what_running_it_says(index, guard, compiled):
    """With names of few values the question has an answer: try them all."""
    cases = [{"instance": i, "warp": w, "j": j, "min": min, "max": max} for i in range(2) for w in range(3) for j in range(4)]
    outside = any(eval(guard[1], {}, c) and not 0 <= eval(index[1], {}, c) < 4 for c in cases)
    assume(any(eval(guard[1], {}, c) for c in cases))  # a statement that never runs may be told of, and may not
    body = f"for j in 0 .. 4 {{ if {guard[0]} {{ let v = load(p[0][{index[0]}]) }} }}"
    assert ("type/out-of-range" in codes(compiled, body, instances=2, warps=3)) == outside
