"""sm100: its data against its README and the core's needs, and its backend against the assembler. Nothing is executed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cake_core.architecture import Launch
from cake_core.assemble import assemble, find_assembler
from cake_core.diagnostics import CakeError
from cake_core.plugins import load_registry
from cake_core.plugins.offers import REQUIRED_LIMITS
from cake_core.ptx.builder import Addr, Builder
from cake_core.ptx.module import Module
from cake_sm100.architecture import SM100

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def needs_assembler():
    try:
        find_assembler()
    except CakeError:
        return pytest.mark.skip(reason="no ptxas")
    return lambda test: test


def section(title: str) -> str:
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", README, re.M | re.S).group(1)


def test_it_is_registered_under_its_name():
    arch = load_registry(environ={"CAKE_LOAD_PLUGINS": ""}).architecture("sm100")
    assert arch == SM100 and arch.source.plugin == "sm100"


def test_the_readme_lists_exactly_the_capabilities():
    assert re.findall(r"^\| `(\w+)` \|", section("Capabilities"), re.M) == sorted(SM100.capabilities)


def test_the_readme_lists_exactly_the_limits():
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", section("Limits"), re.M)
    assert dict(rows) == {name: str(limit.value) for name, limit in SM100.limits.items()}


def test_limits_have_sources_and_the_core_finds_those_that_it_reads():
    assert set(REQUIRED_LIMITS) <= set(SM100.limits)
    for name, limit in SM100.limits.items():
        assert re.search(r"PTX ISA|CUDA|ptxas", limit.source), name


def test_limits_agree_with_each_other():
    limit = SM100.limit
    assert limit("shared_bytes_per_block") + limit("shared_bytes_reserved") == limit("shared_bytes_per_sm")
    assert limit("tensor_columns") % limit("tensor_granule") == 0
    assert limit("cluster_ctas") <= limit("cluster_ctas_nonportable")


def test_it_is_exact_and_says_that_it_was_not_executed():
    assert (SM100.target, SM100.ptx_version, SM100.compute_capability) == ("sm_100a", "8.7", (10, 0))
    assert "not executed" in SM100.summary and "wgmma" not in SM100.capabilities


def test_identity_with_a_cluster():
    b = Builder()
    identity = SM100.backend().cluster_identity(b, 2)
    assert [str(i) for i in b.body] == [
        f"mov.u32 {identity.rank}, %cluster_ctarank;",
        f"mov.u32 {identity.index}, %clusterid.x;",
        f"mov.u32 {identity.count}, %nclusterid.x;",
    ]


@needs_assembler()
@pytest.mark.parametrize("cluster", [1, 2, 8])
def test_the_entry_assembles_without_a_word(cluster):
    given = Launch(256, cluster, 0, 255, 1)
    m = Module(SM100.ptx_version, SM100.target, "k", directives=SM100.backend().entry_directives(given))
    SM100.backend().cluster_identity(m.builder, cluster)
    m.builder.emit("ret")
    assert assemble(m.print()[0], SM100.assembler_target, "k").diagnostics == ()


@needs_assembler()
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (32, None),
        (512, None),
        (16, "multiple of 32|out of range"),
        (48, "multiple of 32|power of 2"),
        (96, "power of 2"),
        (1024, "out of range"),
    ],
)
def test_the_assembler_agrees_with_the_limits_of_tensor_memory(columns, message):
    m = Module(SM100.ptx_version, SM100.target, "k", directives=(".reqntid 32",))
    m.builder.emit("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32", Addr(m.builder.mov(0)), columns)
    m.builder.emit("ret")
    if message is None:
        assert assemble(m.print()[0], SM100.assembler_target, "k").diagnostics == ()
    else:
        with pytest.raises(CakeError, match=message):
            assemble(m.print()[0], SM100.assembler_target, "k")
