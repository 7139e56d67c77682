"""Terms of two contexts never meet: the order of a tensor's accesses is asked of cuts of their own, more than once in a kernel."""

from __future__ import annotations

from cake_core.facts import facts_of, rows_of
from cake_core.pipeline import frontend
from cake_core.prove.prover import Prover
from cake_core.rules import Outcome, judge, rulebook
from cake_core.smt import terms
from cake_core.source import Source

#: An engine writes what the threads read back behind a meeting: two orders of one tensor, beside those of shared memory.
TEXT = """cake 1 derived
kernel pass(R: i32, X: in f32[R, 256], W: inout f32[R, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R
  shared s: f32[256] at 0
  role main: 1 warp at 0 {
    frag x: f32[256] vec 4 layout vector
    x = load(X[cluster.id, 0 +: 256], by = 16)
    store s <- x by 16
    fence.proxy.async
    warp.sync
    if 0 < R {
      tma.store W[cluster.id, 0 +: 256] <- s
      tma.store.commit
      tma.store.wait 0
    }
    warp.sync
    x = load(W[cluster.id, 0 +: 256], by = 16)
    store Y[cluster.id, 0 +: 256] <- x by 16
  }
}
"""


def test_orders_of_a_tensor_are_asked_in_one_context(offered, monkeypatch):
    two, mixed = terms.Term._two, []

    def watched(self, make, other):
        if terms._term(self, other).ctx is not self.ctx:
            mixed.append(make)
            return self  # the library would read memory of another context
        return two(self, make, other)

    monkeypatch.setattr(terms.Term, "_two", watched)
    front = frontend(Source("case.cake", TEXT), offered)
    rows = rows_of(facts_of(front.typed, offered, front.arch), front.arch, offered)
    rules = [r for r in rulebook().rules if r.id in ("core/slot-race", "core/agent-race")]
    found = judge(rules, rows, Prover(rows, rules))
    assert mixed == []
    assert len(rules) == 2 and {v.outcome for v in found} == {Outcome.PROVED}
