"""sm80: its data against its README and the core's needs, its backend against the assembler, clusters refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cake_core.architecture import Launch
from cake_core.assemble import assemble, find_assembler
from cake_core.diagnostics import CakeError
from cake_core.elaborate import elaborate
from cake_core.plugins import load_registry
from cake_core.plugins.offers import REQUIRED_LIMITS
from cake_core.ptx.builder import Builder
from cake_core.ptx.module import Module
from cake_core.source import Source
from cake_core.syntax import parse
from cake_sm80.architecture import SM80

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def needs_assembler():
    try:
        find_assembler()
    except CakeError:
        return pytest.mark.skip(reason="no ptxas")
    return lambda test: test


def section(title: str) -> str:
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", README, re.M | re.S).group(1)


@pytest.fixture(scope="module")
def registry():
    return load_registry(environ={"CAKE_LOAD_PLUGINS": ""})


def test_it_is_registered_under_its_name(registry):
    arch = registry.architecture("sm80")
    assert arch == SM80 and arch.source.plugin == "sm80"


def test_the_readme_lists_exactly_the_capabilities():
    rows = re.findall(r"^\| `(\w+)` \|", section("Capabilities"), re.M)
    assert rows == sorted(SM80.capabilities)


def test_the_readme_lists_exactly_the_limits():
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", section("Limits"), re.M)
    assert dict(rows) == {name: str(limit.value) for name, limit in SM80.limits.items()}


def test_limits_have_sources_and_the_core_finds_those_that_it_reads():
    assert set(REQUIRED_LIMITS) <= set(SM80.limits)
    for name, limit in SM80.limits.items():
        assert re.search(r"PTX ISA|CUDA|ptxas", limit.source), name


def test_shared_memory_adds_up():
    limit = SM80.limit
    assert limit("shared_bytes_per_block") + limit("shared_bytes_reserved") == limit("shared_bytes_per_sm")


def test_a_text_for_it_is_portable_and_one_for_hopper_is_not(registry):
    assert registry.architecture("sm80").portable and not registry.architecture("sm90").portable


@pytest.mark.parametrize(("min_ctas", "directives"), [(None, (".reqntid 256, 1, 1",)), (2, (".reqntid 256, 1, 1", ".minnctapersm 2"))])
def test_entry_directives(min_ctas, directives):
    assert SM80.backend().entry_directives(Launch(256, 1, 0, 255, min_ctas)) == directives


def test_identity_of_a_cta():
    b = Builder()
    identity = SM80.backend().cluster_identity(b, 1)
    assert identity.rank == 0
    assert [str(i) for i in b.body] == [f"mov.u32 {identity.index}, %ctaid.x;", f"mov.u32 {identity.count}, %nctaid.x;"]


def test_a_cluster_is_an_error_that_names_the_capability(registry):
    kernel = parse(
        Source("k.cake", "cake 1\nkernel k(N: i32)\n  target sm80\n  cluster m = 2\n{\n  role main: 1 warp {\n  }\n}\n")
    ).kernels[0]
    with pytest.raises(CakeError) as raised:
        elaborate(kernel, registry, SM80, derived=False)
    (d,) = raised.value.diagnostics
    assert d.code == "type/missing-capability" and d.resource == "cluster" and "sm80" in d.message


@needs_assembler()
def test_the_entry_assembles_without_a_word():
    given = Launch(256, 1, 0, 255, 1)
    m = Module(SM80.ptx_version, SM80.target, "k", directives=SM80.backend().entry_directives(given))
    SM80.backend().cluster_identity(m.builder, 1)
    m.builder.emit("ret")
    assert assemble(m.print()[0], SM80.assembler_target, "k").diagnostics == ()
