"""Ragged schedules of clusters, and what a role knows of its next item: the derived text, followed statement by statement.

Every CTA of every cluster visits its part of each item once, all roles' items are the same sequence, and `t.next` is the item after.
"""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_core.derive import derive
from cake_core.diagnostics import CakeError
from cake_core.elaborate import elaborate
from cake_core.ir.nodes import Assign, Binary, Bool, Call, Cond, For, If, Index, Int, Let, Name, Op, Var, While
from cake_core.ir.printer import program_text
from cake_core.ir.recipe import plan_info
from cake_core.plugins import load_registry
from cake_core.runtime.plan import _items
from cake_core.source import Source
from cake_core.syntax import parse

BLOCK = 4
TEXT = """cake 1
kernel visit(E: i32, T: i32, H: i32, OFF: in i32[E + 1], N: out i32[8, 100])
  require 0 <= E, E <= 1000, 0 <= T, T <= 100000, 0 <= H, H <= 1000
  assume OFF[E] == T
  target sm90{cluster}
{{
  tiles t = ragged(rows: OFF, block = 4{each}){grid}{order} {{
    let cost = 2 * min(r1 - r0, 4) + 1
  }}
  role main: 1 warp {{
    for (g, first, behind{h}) in t {{
      store N[0, 0] <- g + first + behind{plus}
      store N[1, 1] <- t.next.b + t.next.r0 + t.next.r1{ahead}
    }}
  }}
}}
"""
REGISTRY = load_registry(environ={"CAKE_LOAD_PLUGINS": ""})
SM90 = REGISTRY.architectures["sm90"]
ORDERS = (None, "group_major", "longest_first(cost)", "balanced(cost, section = 3)")
AXES = {
    "alone": ("", ""),
    "rows": ("\n  cluster rows = 2", ""),
    "dimension": ("\n  cluster h = 3", ""),
    "each": ("\n  cluster x = 2", ", each = cluster"),
}


def kernels(axis, order, grid=True):
    """(schedule form, derived form)."""
    cluster, each = AXES[axis]
    parts = (
        {"grid": " * grid(h: H)", "h": ", h", "plus": " + h", "ahead": " + t.next.h"}
        if grid
        else dict.fromkeys(("grid", "h", "plus", "ahead"), "")
    )
    program = parse(Source("v.cake", TEXT.format(cluster=cluster, each=each, order=f" order {order}" if order else "", **parts)))
    schedule = elaborate(program.kernels[0], REGISTRY, SM90, derived=False)
    kernel = derive(schedule, REGISTRY, SM90)
    printed = program_text(replace(program, derived=True, kernels=(kernel,)))
    assert elaborate(parse(Source("d.cake", printed)).kernels[0], REGISTRY, SM90, derived=True)
    return schedule, kernel


class Run:
    """One CTA's role, statement by statement; `visited`: the values that each `store` was given, two to an item."""

    def __init__(self, env, tensors):
        self.env, self.tensors, self.visited = dict(env), tensors, []

    def block(self, body):
        for s in body:
            self.statement(s)

    def statement(self, s):
        match s:
            case Let(bindings) | Var(bindings):
                for b in bindings:
                    self.env[b.name] = self.value(b.value)
            case Assign(Name(n), e):
                self.env[n] = self.value(e)
            case If(test, then, other):
                self.block(then if self.value(test) else other or ())
            case While(test):
                while self.value(test):
                    self.block(s.body)
            case For(pattern, lo, hi, words):
                step = words.get("step")
                for i in range(self.value(lo), self.value(hi), self.value(step) if step is not None else 1):
                    self.env[pattern[0]] = i
                    self.block(s.body)
            case Op("store"):
                self.visited.append(dict(self.env))
            case _:
                raise AssertionError(s)

    def value(self, e):
        match e:
            case Int(v) | Bool(v):
                return v
            case Name(n):
                return self.env[n]
            case Cond(test, then, other):
                return self.value(then if self.value(test) else other)
            case Binary("and", a, b):
                return self.value(a) and self.value(b)
            case Binary(op, a, b):
                x, y = self.value(a), self.value(b)
                return {"+": x + y, "-": x - y, "*": x * y, "<": x < y, ">=": x >= y, "/": x // y if y else 0, "%": x % y if y else 0}[op]
            case Call() if e.name == "load":
                place = e.positional[0]
                assert isinstance(place, Index)
                at = tuple(self.value(i) for i in place.indices)
                held = self.tensors[place.base.id]
                assert all(0 <= i < n for i, n in zip(at, held.shape, strict=True)), (place.base.id, at)
                return int(held[at])
            case Call():
                args = [self.value(a) for a in e.positional]
                return {"max": max, "min": min, "ceildiv": lambda x, y: -(-x // y)}[e.name](*args)
        raise AssertionError(e)


def followed(axis, order, off, heads, clusters, grid=True):
    """By (cluster, rank): the items (group, first row, end, h) with what was said of the next one."""
    schedule, kernel = kernels(axis, order, grid)
    size = kernel.cluster.axis.value.value if kernel.cluster else 1
    env = {"E": len(off) - 1, "T": off[-1], "H": heads}
    tensors = {"OFF": np.asarray(off)}
    info = plan_info(schedule, kernel.params[len(schedule.params) :])
    if info is not None:
        tensors["t_items"] = _items(info, env, tensors, clusters)
        env["t_count"] = len(tensors["t_items"])
        clusters = min(clusters, env["t_count"])
    out = {}
    for c in range(clusters):
        for rank in range(size):
            run = Run(env | {"cluster.id": c, "cluster.count": clusters, "warp": 0}, tensors)
            if kernel.cluster:
                run.env[f"cluster.{kernel.cluster.axis.name}"] = rank
            for s in kernel.body:
                if isinstance(s, Let):
                    run.statement(s)
            run.block(kernel.roles[0].body)
            items = [tuple(v[n] for n in ("g", "first", "behind", *(("h",) if grid else ()))) for v in run.visited[::2]]
            ahead = [
                tuple(v[n] for n in ("t_next_b", "t_next_r0", "t_next_r1", *(("t_next_h",) if grid else ()))) for v in run.visited[1::2]
            ]
            out[c, rank] = items, ahead
    return out, size


def wanted(axis, off, heads, size, rank, grid=True):
    """The items that CTAs of a rank visit, in any order."""
    block = BLOCK * size if axis == "rows" else BLOCK
    every = range(0, heads, size) if axis == "dimension" else range(heads)
    found = []
    for g in range(len(off) - 1):
        for r in range(off[g], off[g + 1], block):
            row = r + BLOCK * rank if axis == "rows" else r
            found += [(g, row, off[g + 1], h + rank if axis == "dimension" else h) for h in every] if grid else [(g, row, off[g + 1])]
    return sorted(found)


OFFSETS = st.lists(st.sampled_from([0, 0, 1, 3, 4, 5, 9, 17]), min_size=0, max_size=6).map(lambda sizes: [0, *np.cumsum(sizes).tolist()])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("axis", AXES)
@settings(max_examples=6, deadline=None)
@given(off=OFFSETS, heads=st.integers(1, 4), clusters=st.integers(1, 4))
def test_items_and_the_ones_after(axis, order, off, heads, clusters):
    found, size = followed(axis, order, off, heads, clusters)
    for rank in range(size):
        visited = sorted(i for (_, r), (items, _) in found.items() if r == rank for i in items)
        assert visited == wanted(axis, off, heads, size, rank)
    for (c, rank), (items, ahead) in found.items():
        assert ahead[:-1] == items[1:]
        assert len(items) == len(found[c, 0][0])  # the CTAs of a cluster have sequences of one length
        if ahead:
            assert ahead[-1][1] == ahead[-1][2]  # behind the last item: no rows


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("axis", ["alone", "rows", "each"])
def test_rows_alone(axis, order):
    off = [0, 5, 5, 14, 15]
    found, size = followed(axis, order, off, 1, 2, grid=False)
    for rank in range(size):
        assert sorted(i for (_, r), (items, _) in found.items() if r == rank for i in items) == wanted(axis, off, 1, size, rank, grid=False)
    assert all(ahead[:-1] == items[1:] and ahead[-1][1] == ahead[-1][2] for items, ahead in found.values())


def test_a_text_that_does_not_ask_walks_once():
    plain = TEXT.replace("      store N[1, 1] <- t.next.b + t.next.r0 + t.next.r1{ahead}\n", "")
    program = parse(Source("v.cake", plain.format(cluster="", each="", order="", grid="", h="", plus="")))
    kernel = derive(elaborate(program.kernels[0], REGISTRY, SM90, derived=False), REGISTRY, SM90)
    assert "t_next_" not in program_text(replace(program, derived=True, kernels=(kernel,)))


@pytest.mark.parametrize("part", ["rows", "block", "g"])
def test_the_next_item_has_the_parts_of_an_item(part):
    text = TEXT.replace("t.next.b", f"t.next.{part}").format(cluster="", each="", order="", grid="", h="", plus="", ahead="")
    with pytest.raises(CakeError, match=f"t.next.{part}"):
        elaborate(parse(Source("v.cake", text)).kernels[0], REGISTRY, SM90, derived=False)


def test_the_recipe_of_a_cluster_stands_in_the_manifest():
    infos = {axis: asdict(plan_info(s, k.params[len(s.params) :])) for axis in AXES for s, k in [kernels(axis, "longest_first(cost)")]}
    assert {a: (i["block"], i["step"]) for a, i in infos.items()} == {"alone": (4, 1), "rows": (8, 1), "dimension": (4, 3), "each": (4, 1)}


def test_the_host_checks_that_the_number_of_a_next_item_fits(compiled):
    """A table's length is the caller's; the launch contract bounds it, whether the text has a `require` of its own or not."""
    text = TEXT.format(cluster="", each="", grid="", order=" order longest_first(cost)", h="", plus="", ahead="")
    for written in (text, text.replace("  require 0 <= E, E <= 1000, 0 <= T, T <= 100000, 0 <= H, H <= 1000\n", "")):
        assert [c.text for c in compiled(written).lowered.requires][-2:] == ["0 <= t_count", "t_count <= 1073741824"]
