"""An example where trips go by the item's number has the sums that a run has, so the event machine goes wrong there too."""

from __future__ import annotations

import pytest

from cake_core import smt
from cake_core.facts import facts_of, rows_of
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.prove.answers import Answers
from cake_core.prove.exact import FEW, Exact
from cake_core.prove.numbers import Numbers, solver
from cake_core.prove.sums import Sums
from cake_core.rules.predicates import Standing
from cake_core.source import Source

REGISTRY = load_registry()
#: A ring of three slots that is filled as often as the item's number says, modulo 3, and given back a turn late; what is left, behind the turns.
LAST = """      if given < seen {
        warp.sync
        if warp.leader {
          mbarrier.arrive empty[given % 3]
        }
        given = given + 1
      }
"""
TEXT = f"""cake 1 derived
kernel k(R: i32, X: in f32[R, 2, 256], Y: out f32[R, 256])
  require 0 <= R, R <= 65536
  target sm90
{{
  launch R persistent
  shared s: f32[3][256] at 0
  barrier full: mbarrier[3] count 1 at 3072
  barrier empty: mbarrier[3] count 1 at 3096
  if leader {{
    mbarrier.init full
    mbarrier.init empty
    fence.mbarrier_init
  }}
  cta.sync
  role load: 1 warp at 0 {{
    var fill = 0
    for t_i in cluster.id .. R step cluster.count {{
      for k in 0 .. t_i % 3 {{
        let i = fill % 3
        mbarrier.wait empty[i] parity (fill / 3 + 1) % 2
        if leader {{
          mbarrier.expect full[i] bytes 1024
          tma.load s[i] <- X[t_i, k, 0 +: 256] signal full[i]
        }}
        fill = fill + 1
      }}
    }}
  }}
  role work: 1 warp at 1 {{
    var seen = 0, given = 0
    frag x: f32[256] vec 2 layout vector
    for t_i in cluster.id .. R step cluster.count {{
      x = 0.0
      for k in 0 .. t_i % 3 {{
        let i = seen % 3
        mbarrier.wait full[i] parity seen / 3 % 2
        seen = seen + 1
        x = x + load(s[i], by = 8)
        if k > 0 {{
          warp.sync
          if warp.leader {{
            mbarrier.arrive empty[given % 3]
          }}
          given = given + 1
        }}
      }}
{LAST}      store Y[t_i, 0 +: 256] <- x by 8
    }}
  }}
}}
"""


def rows(text: str):
    front = frontend(Source("k.cake", text), REGISTRY)
    return rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)


def test_the_items_of_an_example_are_as_many_as_it_takes():
    """Without what stands behind the turns an item gives back a slot less than it took: the sixth item's turn, the fifth of all, waits for ever."""
    assert Answers(rows(TEXT)).deadlock_free().standing is Standing.PROVED
    answer = Answers(rows(TEXT.replace(LAST, ""))).deadlock_free()
    assert answer.standing is Standing.VIOLATED and answer.confirmed

    def hangs(items: int) -> bool:
        filled = given = 0
        for t in range(items):
            filled += t % 3
            given += max(t % 3 - 1, 0)
            if filled - (given if t % 3 < 2 else given - 1) > 3:  # an item gives its slot back in its second turn
                return True
        return False

    items = dict(answer.values)["R"]
    assert hangs(items) and not hangs(items - 1)


@pytest.mark.parametrize("items", range(1, FEW))
def test_a_sum_is_that_of_its_steps(items):
    """0 + 1 + 2 + 0 + 1 + .. is not known to linear arithmetic."""
    sums = Sums(Numbers(rows(TEXT).facts))
    index = smt.Int("it!0123456789")
    total = sums.sum(index % 3, index, smt.IntVal(items))
    s = solver(1_000_000)
    s.add(total != sum(t % 3 for t in range(items)))
    assert s.check() == smt.SAT
    s.add(*Exact(sums, sums.applications.of([total])).at([]))
    assert s.check() == smt.UNSAT
