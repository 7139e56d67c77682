"""Hazards that one instance, one CTA or some warps alone have: what an agent's number tells is told by name or by a variable."""

from __future__ import annotations

import pytest

from cake_core.diagnostics import CakeError
from cake_core.facts import facts_of
from cake_core.pipeline import build, frontend
from cake_core.plugins import load_registry
from cake_core.prove.agents import agents_of
from cake_core.source import Source

REGISTRY = load_registry()

HEAD = """cake 1 derived
kernel k(X: in f32[4, 32], Y: out f32[8, 32])
  target sm90
{CLUSTER}{{
  launch 1
  shared p: f32[8]{SHAPE} at 0
{BODY}
}}
"""

READERS = """  SYNC
  role main{INSTANCES}: 1 warp at 0 {{
    frag y: f32[32] vec 1 layout vector
    var o = {NUMBER}
    y = load(p[o], by = 4)
    store Y[{NUMBER}, 0 +: 32] <- y by 4
  }}
  role other: 1 warp at {INSTANCES_} {{
    frag x: f32[32] vec 1 layout vector
    x = load(X[0, 0 +: 32], fill = 0, by = 4)
    store p[{WRITTEN}] <- x by 4
  }}
  SYNC"""


def codes(text: str) -> set[str]:
    """What is found; that some of what is read here was never written is another matter."""
    try:
        found = build(Source("k.cake", text), REGISTRY, prove=True).diagnostics
    except CakeError as error:
        found = error.diagnostics
    return {d.code for d in found} - {"core/unwritten-read"}


@pytest.mark.parametrize(("written", "found"), [(1, {"core/slot-race"}), (2, set())])
@pytest.mark.parametrize(("number", "instances", "cluster"), [("main.i", "[2]", ""), ("cluster.c", "", "  cluster c = 2\n")])
def test_a_variable_that_holds_who_an_agent_is(number, instances, cluster, written, found, monkeypatch):
    monkeypatch.setenv("CAKE_CACHE", "")
    body = READERS.format(INSTANCES=instances, INSTANCES_=2 if instances else 1, NUMBER=number, WRITTEN=written)
    body = body.replace("SYNC", "cluster.sync" if cluster else "")
    assert codes(HEAD.format(CLUSTER=cluster, SHAPE="[32]", BODY=body)) == found


def warps(body: str, other: str = "") -> str:
    roles = f"  role main: 4 warps at 0 {{\n{body}\n  }}"
    return HEAD.format(CLUSTER="", SHAPE="", BODY=roles + (f"\n  role other: 4 warps at 4 {{\n{other}\n  }}" if other else ""))


WRITE = "    store p[{}] <- 1.0 by 4"
READ = "    let y = load(p[{}], by = 4)\n    store Y[warp, 0] <- y by 4"
EACH = "    frag x: f32[128] vec 1 layout vector\n    x = 0.0\n    store p[{}] <- warpsum(x) by 4"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (warps(EACH.format("warp")), set()),
        (warps(EACH.format("3 - warp")), set()),
        (warps(EACH.format("(warp + 1) % 4")), set()),
        (warps(EACH.format("(warp + 1) / 2")), {"core/slot-race"}),  # warps 1 and 2 alone
        (warps(EACH.format("min(warp, 2)")), {"core/slot-race"}),
        (warps(f"    if warp == 1 {{\n{WRITE.format(0)}\n    }}\n    if warp == 2 {{\n{READ.format(0)}\n    }}"), {"core/slot-race"}),
        (warps(f"    if warp == 1 {{\n{WRITE.format(0)}\n    warp.sync\n    }}\n    if warp == 1 {{\n{READ.format(0)}\n    }}"), set()),
        (warps(f"    if warp >= 1 and warp < 2 {{\n{WRITE.format(1)}\n    }}\n    if warp > 2 {{\n{READ.format(1)}\n    }}"), {"core/slot-race"}),
        (warps(WRITE.format("warp == 0 ? 0 : warp % 3 + 1"), READ.format("warp == 0 ? 5 : (warp + 1) % 3 + 1")), {"core/slot-race"}),
        (warps(WRITE.format("warp"), READ.format("warp + 4")), set()),
    ],
)
def test_warps_behind_the_first_meet(text, found, monkeypatch):
    monkeypatch.setenv("CAKE_CACHE", "")
    assert codes(text) == found


@pytest.mark.parametrize(("index", "agents"), [("warp", 2), ("3 - warp", 4)])
def test_two_warps_stand_for_all_where_each_names_its_own_element_alone(index, agents):
    front = frontend(Source("k.cake", warps(EACH.format(index))), REGISTRY)
    assert len(agents_of(facts_of(front.typed, REGISTRY, front.arch))) == agents
