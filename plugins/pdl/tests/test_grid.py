"""`grid.wait` and `grid.launch`: instructions, effects, and what the launch is told."""

from __future__ import annotations

import re

import pytest

from cake_core.assemble import assemble
from cake_core.diagnostics import CakeError
from cake_core.effects import GridOrder
from cake_core.elaborate import elaborate
from cake_core.ir import build
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
  role main: 1 warp at 0 {{
    frag x: f32[128] vec 4 layout vector
    {before}
    x = load(X[0 +: 128], by = 4)
    {after}
    store Y[0 +: 128] <- x by 4
  }}
}}
"""


@pytest.fixture(scope="module")
def registry():
    return load_registry(environ={"CAKE_LOAD_PLUGINS": ""})


@pytest.fixture
def lowered(registry):
    def made(before="", after="", arch="sm90"):
        target = registry.architectures[arch]
        kernel = elaborate(parse(Source("k.cake", TEXT.format(arch=arch, before=before, after=after))).kernels[0], registry, target, derived=True)
        found = lower(kernel, registry, target)
        assert assemble(found.ptx, target.target, "k", lines=found.lines).cubin
        return found

    return made


def test_a_kernel_that_waits_starts_early(lowered):
    found = lowered("grid.wait", "grid.launch")
    lines = [m for m in re.findall(r"griddepcontrol\.\w+|ld\.global|st\.global", found.ptx)]
    assert lines[0] == "griddepcontrol.wait" and lines.count("griddepcontrol.wait") == 1
    assert "griddepcontrol.launch_dependents" in lines[1:] and lines[-1] == "st.global"
    assert found.launch.starts_early


@pytest.mark.parametrize("after", ["", "grid.launch"])
def test_one_that_does_not_wait_starts_in_its_turn(lowered, after):
    assert not lowered("", after).launch.starts_early


def test_effects(registry):
    assert registry.operations["grid.wait"].effects(build.op("grid.wait")) == (GridOrder(True),)
    assert registry.operations["grid.launch"].effects(build.op("grid.launch")) == (GridOrder(False),)


def test_a_target_without_it_is_an_error_that_names_it(lowered):
    with pytest.raises(CakeError) as error:
        lowered("grid.wait", arch="sm80")
    (d,) = error.value.diagnostics
    assert (d.code, d.resource) == ("type/missing-capability", "dependent_launch")


def test_sources(registry):
    assert all("griddepcontrol" in registry.operations[n].doc for n in ("grid.wait", "grid.launch"))
