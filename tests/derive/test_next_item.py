"""`t.next.D`: a coordinate of the item that the CTA takes next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cake_core.derive import derive
from cake_core.diagnostics import CakeError
from cake_core.elaborate import elaborate
from cake_core.ir.nodes import Binary, Call, Expr, For, Int, Let, Name
from cake_core.ir.printer import program_text
from cake_core.plugins import load_registry
from cake_core.source import Source
from cake_core.syntax import parse

TEXT = """cake 1
kernel k(P: i32, Q: i32, X: in f32[P, Q, 128], Y: out f32[P, Q, 128])
  require 1 <= P, P <= 1000, 1 <= Q, Q <= 1000
  target sm90{cluster}
{{
  tiles t = {schedule}
  role main: 1 warp {{
    frag x: f32[128] vec 4
    for ({pattern}) in t {{
      if t.next.{last} < {bound} {{
        x = load(X[min(t.next.{first}, P - 1), min(t.next.{last}, Q - 1), :])
      }}
      store Y[0, 0, :] <- x
    }}
  }}
}}
"""
REGISTRY = load_registry(environ={"CAKE_LOAD_PLUGINS": ""})
SM90 = REGISTRY.architectures["sm90"]


def derived(schedule, pattern="p, q", first="p", last="q", bound="Q", cluster=""):
    text = TEXT.format(schedule=schedule, pattern=pattern, first=first, last=last, bound=bound, cluster=cluster)
    program = parse(Source("k.cake", text))
    kernel = derive(elaborate(program.kernels[0], REGISTRY, SM90, derived=False), REGISTRY, SM90)
    printed = program_text(replace(program, derived=True, kernels=(kernel,)))
    assert elaborate(parse(Source("d.cake", printed)).kernels[0], REGISTRY, SM90, derived=True)
    return kernel


def value(e: Expr, env: dict[str, int]) -> int:
    match e:
        case Int(n):
            return n
        case Name(n):
            return env[n]
        case Binary(op, a, b):
            x, y = value(a, env), value(b, env)
            return {"+": x + y, "-": x - y, "*": x * y, "/": x // y if y else 0, "%": x % y if y else 0}[op]
        case Call():
            args = [value(a, env) for a in e.args]
            return {"clamp": lambda x, lo, hi: min(max(x, lo), hi), "ceildiv": lambda x, y: -(-x // y)}[e.name](*args)
    raise AssertionError(e)


def items(kernel, p: int, q: int, clusters: int, rank: int = 0):
    """(coordinates of an item, what the loop says of the next one) of one cluster, item by item."""
    env = {"P": p, "Q": q, "cluster.count": clusters, "cluster.p": rank}
    for s in kernel.body:
        if isinstance(s, Let):
            env |= {b.name: value(b.value, env) for b in s.bindings}
    loop = next(s for s in kernel.roles[0].body if isinstance(s, For))
    for index in range(1, value(loop.hi, env), clusters):
        here = env | {loop.pattern[0]: index}
        for s in loop.body:
            if isinstance(s, Let):
                for b in s.bindings:
                    here[b.name] = value(b.value, here)
        yield (here["p"], here["q"]), (here["t_next_p"], here["t_next_q"])


@pytest.mark.parametrize("schedule", ["persistent(p: P, q: Q)", "persistent(p: P, q: Q, raster = 3)"])
@pytest.mark.parametrize(("p", "q", "clusters"), [(5, 7, 4), (1, 9, 2), (8, 1, 3), (7, 7, 1)])
def test_it_is_the_item_that_comes_next(schedule, p, q, clusters):
    found = list(items(derived(schedule), p, q, clusters))
    assert len(found) > 1
    for (_, ahead), (here, _) in zip(found, found[1:], strict=False):
        assert ahead == here
    past = found[-1][1]
    assert past[1] >= q or "raster" in schedule and past[0] >= p


def test_in_a_cluster_it_is_this_ctas_part():
    kernel = derived("persistent(p: P, q: Q)", cluster="\n  cluster p = 2")
    for rank in (0, 1):
        found = list(items(kernel, 6, 5, 4, rank))
        assert all(here[0] % 2 == rank for here, _ in found)
        assert [ahead for _, ahead in found][:-1] == [here for here, _ in found][1:]


def test_a_text_that_does_not_ask_has_none():
    plain = TEXT.replace("if t.next.{last} < {bound}", "if q < Q").replace("t.next.", "")
    text = plain.format(schedule="persistent(p: P, q: Q)", pattern="p, q", first="p", last="q", bound="Q", cluster="")
    kernel = derive(elaborate(parse(Source("k.cake", text)).kernels[0], REGISTRY, SM90, derived=False), REGISTRY, SM90)
    loop = next(s for s in kernel.roles[0].body if isinstance(s, For))
    assert not any("next" in b.name for s in loop.body if isinstance(s, Let) for b in s.bindings)


@pytest.mark.parametrize(
    ("schedule", "first", "name"),
    [("grid(p: P, q: Q)", "p", "t.next.q"), ("persistent(p: P, q: Q)", "m", "t.next.m")],
)
def test_only_of_a_persistent_schedules_own_dimensions(schedule, first, name):
    with pytest.raises(CakeError) as error:
        derived(schedule, first=first)
    assert all(d.code == "type/unknown-name" for d in error.value.diagnostics)
    assert name in error.value.diagnostics[0].message
