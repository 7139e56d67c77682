"""Tile schedules written out: the derived text is evaluated for every CTA, and the tiles that come out are counted (S9)."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_core.ir.nodes import Binary, Call, For, Int, Let, Name, Op, Unary

TEXT = """cake 1
kernel k(L: i32, M: i32, N: i32)
  require 0 <= L, L <= 1024, 0 <= M, M <= 1024, 0 <= N, N <= 1024
  target sm90{cluster}
{{
  tiles t = {kind}({dims}{raster})
  role main: 2 warps {{
    for {pattern} in t {{
      sync main
    }}
  }}
}}
"""
DIMS = {1: ("m",), 2: ("m", "n"), 3: ("m", "n", "l")}


def value(e, env: dict[str, int]) -> int:
    match e:
        case Int(v):
            return v
        case Name(id):
            return env[id]
        case Unary("-", a):
            return -value(a, env)
        case Binary(op, a, b):
            x, y = value(a, env), value(b, env)
            return {"+": int.__add__, "-": int.__sub__, "*": int.__mul__, "/": int.__floordiv__, "%": int.__mod__}[op](x, y)
        case Call():
            args = [value(a, env) for a in e.args]
            match e.name:
                case "ceildiv":
                    return -(-args[0] // args[1])
                case "clamp":
                    return min(max(args[0], args[1]), args[2])
            return {"min": min, "max": max}[e.name](*args)
    raise TypeError(e)


@pytest.fixture(scope="session")
def schedule(compiled):
    """`schedule(..)`: the body of a derived kernel with that schedule."""

    @cache
    def run(kind: str, dims: int, raster: int | None, cluster: int):
        names = DIMS[dims]
        text = TEXT.format(
            kind=kind,
            cluster=f"\n  cluster m = {cluster}" if cluster > 1 else "",
            dims=", ".join(f"{n}: {n.upper()}" for n in names),
            raster=f", raster = {raster}" if raster else "",
            pattern=names[0] if dims == 1 else f"({', '.join(names)})",
        )
        return compiled(text, lowering=False).derived.body

    return run


def items(body, sizes: dict[str, int], names: tuple[str, ...], cluster_id: int, clusters: int | None, rank: int) -> list[tuple[int, ...]]:
    """The items of one CTA, by interpreting the text. `clusters` None: one cluster an item."""
    env = {**sizes, "cluster.id": cluster_id, "cluster.m": rank}
    lets(body, env)
    launch = next(s for s in body if isinstance(s, Op) and s.name == "launch")
    env["cluster.count"] = clusters if clusters is not None else value(launch.operands[0], env)
    (role,) = (s for s in body if hasattr(s, "group"))
    loop = next((s for s in role.body if isinstance(s, For)), None)
    if loop is None:
        lets(role.body, env)
        return [tuple(env[n] for n in names)]
    found = []
    for i in range(value(loop.lo, env), value(loop.hi, env), value(loop.words.get("step"), env)):
        inner = {**env, loop.pattern[0]: i}
        lets(loop.body, inner)
        found.append(tuple(inner[n] for n in names))
    return found


def lets(block, env: dict[str, int]) -> None:
    for s in block:
        if isinstance(s, Let):
            for b in s.bindings:
                env[b.name] = value(b.value, env)


def total(body, sizes: dict[str, int]) -> int:
    env = dict(sizes)
    lets(body, env)
    return value(next(s for s in body if isinstance(s, Op) and s.name == "launch").operands[0], env)


SCHEDULES = st.one_of(
    st.tuples(st.sampled_from(["persistent", "grid"]), st.sampled_from([1, 2, 3]), st.none(), st.sampled_from([1, 2, 4])),
    st.tuples(st.sampled_from(["persistent", "grid"]), st.just(2), st.sampled_from([1, 2, 3, 8]), st.sampled_from([1, 2, 4])),
)


@given(SCHEDULES, st.tuples(st.integers(0, 13), st.integers(0, 6), st.integers(0, 3)), st.integers(1, 5))
@settings(max_examples=120, deadline=None)
def test_every_tile_once(schedule, asked, extents, clusters):
    kind, dims, raster, cluster = asked
    names = DIMS[dims]
    sizes = dict(zip(("M", "N", "L"), extents, strict=True))
    body = schedule(kind, dims, raster, cluster)
    resident = min(clusters, total(body, sizes)) if kind == "persistent" else None
    here = resident if resident is not None else total(body, sizes)
    mine = {(c, r): items(body, sizes, names, c, resident, r) for c in range(here) for r in range(cluster)}

    wanted = set(product(*(range(sizes[n.upper()]) for n in names)))
    everything = [i for found in mine.values() for i in found]
    inside = [i for i in everything if i in wanted]
    assert sorted(inside) == sorted(wanted)  # each exactly once
    # past the end lies only what a cluster takes beyond the first dimension, and never twice
    outside = [i for i in everything if i not in wanted]
    assert len(set(outside)) == len(outside)
    assert all(sizes["M"] <= i[0] < -(-sizes["M"] // cluster) * cluster and i[1:] == tuple(min(x, sizes[n.upper()] - 1) for x, n in zip(i[1:], names[1:], strict=True)) for i in outside)
    # the CTAs of a cluster have as many items, which differ along its axis alone
    for c in range(here):
        ranks = [mine[c, r] for r in range(cluster)]
        for together in zip(*ranks, strict=True):
            assert len({i[1:] for i in together}) == 1
            assert [i[0] for i in together] == list(range(together[0][0], together[0][0] + cluster)) and together[0][0] % cluster == 0


@given(st.integers(1, 13), st.integers(1, 6), st.sampled_from([None, 1, 2, 3, 8]), st.sampled_from([1, 2]))
@settings(max_examples=60, deadline=None)
def test_the_order_of_a_raster(schedule, m, n, raster, cluster):
    """Groups of `raster` clusters of the first dimension; inside one the first dimension fastest, then the second."""
    body = schedule("persistent", 2, raster, cluster)
    found = items(body, {"M": m, "N": n, "L": 1}, ("m", "n"), 0, 1, 0)
    rows = -(-m // cluster)
    height = raster or rows
    expected = [(i * cluster, j) for start in range(0, rows, height) for j in range(n) for i in range(start, min(start + height, rows))]
    assert found == expected
