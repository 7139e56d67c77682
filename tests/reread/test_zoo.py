"""The kernels of the zoo are read back on all their targets: nothing is told of them, and what is not followed is known."""

from __future__ import annotations

import json
import re

import pytest
from read_back_zoo import REGISTRY, ROOT, ZOO, read_back, targets

from cake_core.facts import facts_of
from cake_core.lower import lower
from cake_core.pipeline import build, frontend
from cake_core.ptx.acts import Reread
from cake_core.reread import reread
from cake_core.source import Source


@pytest.mark.parametrize(("name", "arch"), [(n, a) for n in ZOO for a in targets(n)])
def test_nothing_is_told_of_the_zoo(name, arch):
    reading = read_back(name, arch)
    assert reading.findings == ()
    assert reading.left == () and reading.roles and reading.sizes


def test_the_manifest_says_what_was_read_back():
    path = ZOO["gemm_sm90"]
    built = build(Source(path.name, path.read_text(encoding="utf-8")), REGISTRY)
    said = json.loads(built.files["manifest.json"])["reread"]
    assert said["roles"] == ["load", "math"] and said["not_followed"] == {} and said["accesses"] is True
    assert all(s.keys() == {"M", "N", "K"} for s in said["sizes"])


def test_the_manifest_says_what_was_not_followed():
    """A message that comes from another CTA."""
    path = ROOT / "tests" / "derive" / "texts" / "on_demand_cluster.cake"
    said = build(Source(path.name, path.read_text(encoding="utf-8")), REGISTRY, "sm90").manifest.reread
    assert "take" not in said["roles"] and said["not_followed"].keys() == {"take"}
    assert re.match(r"line \d+ of the PTX: what a branch goes by is not known", said["not_followed"]["take"])


def test_an_opcode_that_nobody_reads():
    """A kernel is not half read: an instruction of which nothing is known might be about barriers."""
    from read_back_zoo import lowered

    text = lowered("gemm_sm90", "sm90")[0].ptx.replace("wgmma.fence.sync.aligned", "acme.fence.sync.aligned")
    reading = read_back("gemm_sm90", "sm90", text)
    assert reading.findings == () and reading.roles == ()
    assert all("no plugin says what 'acme.fence.sync.aligned' does" in why for _, why in reading.left)


BY_VOTE = """cake 1 derived
kernel k(N: i32)
  require 1 <= N, N <= 1024
  target sm90
{
  launch 1
  role main: 1 warp at 0 {
    var n = 0
    while vote.any(n < N) {
      warp.sync
      n = n + 1
    }
  }
}
"""


def test_what_facts_know_nothing_of_is_no_difference():
    """The event machine has to choose what a vote gives; who can follow the vote in machine code does not find an error by that."""

    def voted(s, at):
        at.give(s.operands[0], at.known(s.operands[1]))
        return ()

    def reading(rereads):
        front = frontend(Source("k.cake", BY_VOTE), REGISTRY)
        return reread(lower(front.typed, REGISTRY, front.arch), facts_of(front.typed, REGISTRY, front.arch), rereads, front.arch)

    found = reading(REGISTRY.rereads)
    assert found.findings == () and "a branch goes by" in dict(found.left)["main"]
    found = reading({**REGISTRY.rereads, "vote": Reread("vote", voted, acts=False, writes=True)})
    assert found.findings == () and dict(found.left)["main"] == "what its text does goes by a value of which facts say nothing"
