"""The kernels of the zoo are read back on all their targets: nothing is told of them, and what is not followed is known."""

from __future__ import annotations

import json

import pytest
from read_back_zoo import REGISTRY, ZOO, read_back, targets

from cake_core.pipeline import build
from cake_core.source import Source

#: Roles that go by messages of others, or by what an atomic gives.
NOT_FOLLOWED = {"moe_grouped_dynamic_sm90": {"load", "math", "t_sched"}}


@pytest.mark.parametrize(("name", "arch"), [(n, a) for n in ZOO for a in targets(n)])
def test_nothing_is_told_of_the_zoo(name, arch):
    reading = read_back(name, arch)
    assert reading.findings == ()
    assert dict(reading.left).keys() == NOT_FOLLOWED.get(name, set()), reading.left
    assert reading.sizes


def test_the_manifest_says_what_was_read_back():
    path = ZOO["gemm_sm90"]
    built = build(Source(path.name, path.read_text(encoding="utf-8")), REGISTRY)
    said = json.loads(built.files["manifest.json"])["reread"]
    assert said["roles"] == ["load", "math"] and said["not_followed"] == {}
    assert all(s.keys() == {"M", "N", "K"} for s in said["sizes"])


def test_the_manifest_says_what_was_not_followed():
    path = ZOO["moe_grouped_dynamic_sm90"]
    said = build(Source(path.name, path.read_text(encoding="utf-8")), REGISTRY).manifest.reread
    assert said["roles"] == [] and said["not_followed"].keys() == {"load", "math", "t_sched"}
    assert all("of the PTX" in why for why in said["not_followed"].values())


def test_an_opcode_that_nobody_reads():
    """A kernel is not half read: an instruction of which nothing is known might be about barriers."""
    from read_back_zoo import lowered

    text = lowered("gemm_sm90", "sm90")[0].ptx.replace("wgmma.fence.sync.aligned", "acme.fence.sync.aligned")
    reading = read_back("gemm_sm90", "sm90", text)
    assert reading.findings == () and reading.roles == ()
    assert all("no plugin says what 'acme.fence.sync.aligned' does" in why for _, why in reading.left)
