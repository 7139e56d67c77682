"""Votes: types, instructions and errors; every text is assembled."""

from __future__ import annotations

import re

import pytest

from cake_core.assemble import assemble
from cake_core.diagnostics import CakeError
from cake_core.elaborate import elaborate
from cake_core.ir.nodes import If, Let
from cake_core.ir.types import BOOL, U32, Level, Scalar
from cake_core.lower import lower
from cake_core.plugins import load_registry
from cake_core.source import Source
from cake_core.syntax import parse

TEXT = """cake 1 derived
kernel k(N: i32, X: in f32[N], Y: out f32[N])
  require 1 <= N, N <= 1024
  target {arch}
{{
  launch 1
  shared seen: u32[8] at 0
  role main: 2 warps at 0 {{
    frag x: f32[256] vec 4 layout vector
    var n = 0
    x = load(X[0 +: 256], by = 4)
    {statement}
  }}
}}
"""


@pytest.fixture(scope="module")
def registry():
    return load_registry(environ={"CAKE_LOAD_PLUGINS": ""})


@pytest.fixture
def typed(registry):
    def made(statement, arch="sm90"):
        text = TEXT.format(arch=arch, statement=statement)
        return elaborate(parse(Source("k.cake", text)).kernels[0], registry, registry.architectures[arch], derived=True)

    return made


@pytest.fixture
def votes(typed, registry):
    """From the first comparison of the statement on: votes, and what makes their predicates."""

    def made(statement, arch="sm90"):
        target = registry.architectures[arch]
        lowered = lower(typed(statement, arch), registry, target)
        assert assemble(lowered.ptx, target.target, "k", lines=lowered.lines).cubin
        # The leader of several warps is made by a conjunction, in front of the statement.
        statement = lowered.ptx.partition("and.pred")[2] if "elect.sync" in lowered.ptx else lowered.ptx
        return re.findall(r"^  ((?:vote|and\.pred|or\.pred|setp\.\w+\.f32) ?.*|vote\S+ .*);", statement, re.M)

    return made


@pytest.mark.parametrize("arch", ["sm80", "sm90", "sm100"])
@pytest.mark.parametrize("name", ["any", "all"])
def test_of_a_condition(votes, name, arch):
    (vote,) = (v for v in votes(f"if vote.{name}(leader) {{ n = n + 1 }}", arch) if v.startswith("vote"))
    assert re.fullmatch(rf"vote\.sync\.{name}\.pred %p\d+, %p\d+, -1", vote)


@pytest.mark.parametrize(("name", "fold"), [("any", "or"), ("all", "and")])
def test_of_a_mask(votes, name, fold):
    """A lane's four elements are combined as they are compared, then the warp votes."""
    lines = votes(f"if vote.{name}(x > 0) {{ n = n + 1 }}")
    assert [line.split()[0] for line in lines] == ["setp.gt.f32", *["setp.gt.f32", f"{fold}.pred"] * 3, f"vote.sync.{name}.pred"]


def test_a_ballot_is_a_word(votes, typed):
    (vote,) = votes("store seen[warp] <- vote.ballot(leader) by 4")
    assert re.fullmatch(r"vote\.sync\.ballot\.b32 %r\d+, %p\d+, -1", vote)


def test_a_constant_condition_takes_a_register(votes):
    assert len(votes("if vote.all(true) { n = n + 1 }")) == 1


@pytest.mark.parametrize(("expression", "elem"), [("vote.any(leader)", BOOL), ("vote.all(x < 1)", BOOL), ("vote.ballot(leader)", U32)])
def test_types(typed, expression, elem):
    let = next(s for s in typed(f"let v = {expression}").roles[0].body if isinstance(s, Let))
    assert let.bindings[0].value.type == Scalar(elem, Level.WARP)


def test_a_vote_is_a_condition_of_a_warp(typed):
    guard = next(s for s in typed("if vote.any(x > 1) { n = n + 1 }").roles[0].body if isinstance(s, If))
    assert guard.test.type.level is Level.WARP


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("vote.any(n)", "type/not-a-condition"),
        ("vote.any(x)", "type/not-a-condition"),
        ("vote.ballot(x > 0)", "type/operand"),
        ("vote.any(leader, leader)", "type/arguments"),
        ("vote.any()", "type/arguments"),
    ],
)
def test_errors(typed, expression, code):
    with pytest.raises(CakeError) as error:
        typed(f"let v = {expression}")
    (d,) = error.value.diagnostics
    assert d.code == code


def test_sources(registry):
    offered = {n: f for n, f in registry.functions.items() if n.startswith("vote.")}
    assert set(offered) == {"vote.any", "vote.all", "vote.ballot"}
    assert all(f.capabilities == {"shuffle"} and "vote.sync" in f.doc for f in offered.values())
