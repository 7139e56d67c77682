"""What plugins say of statements for rules alone: rows of `attribute`, and nothing that derivation, lowering or proof ever sees."""

from __future__ import annotations

from cake_core.effects import OF_WARP, Attribute
from cake_core.facts import facts_of, rows_of
from cake_core.ir.nodes import Op
from cake_core.lower.walk import walk
from cake_core.pipeline import frontend
from cake_core.primitive.asking import attributes_of, effects_of
from cake_core.source import Source

TEXT = """cake 1 derived
kernel k(R: i32, X: in bf16[R, 64], Y: out f32[R])
  require 64 <= R, R <= 65536
  target sm90
{
  launch 1
  shared a: bf16[64, 64] at 0 swizzle 128
  role main: 1 warpgroup at 0 {
    frag acc: f32[64, 64] layout mma
    cp.async a <- X[0 +: 64, 0 +: 64] by 16
    cp.async.commit
    cp.async.wait 0
    fence.proxy.async
    bar.sync 1 threads 128
    wgmma.fence
    wgmma acc = a @ a.T
    wgmma.commit
    wgmma.wait 0
    let top = warpmax(acc)
    if warp.leader { store Y[warp] <- top by 4 }
  }
}
"""


def front(offered):
    return frontend(Source("case.cake", TEXT), offered)


def test_attributes_are_rows(offered):
    f = front(offered)
    rows = rows_of(facts_of(f.typed, offered, f.arch), f.arch, offered)
    assert [(r["op"], r["name"], r["word"], r["number"]) for r in rows["attribute"]] == [
        ("cp.async", "piece", "16", 16),
        ("wgmma.fence", "collective", "warpgroup", None),
        ("wgmma", "collective", "warpgroup", None),
        ("wgmma.commit", "collective", "warpgroup", None),
        ("wgmma.wait", "collective", "warpgroup", None),
        ("let", "collective", "warp", None),
    ]


def test_attributes_are_no_effects(offered):
    ops = [s for s in walk(front(offered).typed) if isinstance(s, Op)]
    assert any(attributes_of(s, offered) for s in ops)
    assert not any(isinstance(e, Attribute) for s in ops for e in effects_of(s, offered))
    assert effects_of(next(s for s in ops if s.name == "wgmma.commit"), offered) != ()


def test_what_is_said_twice_of_a_statement_is_said_once(offered):
    """Two calls of one statement that both take a whole warp."""
    text = TEXT.replace("warpmax(acc)", "warpmax(acc) - warpmin(acc)")
    f = frontend(Source("case.cake", text), offered)
    rows = rows_of(facts_of(f.typed, offered, f.arch), f.arch, offered)
    assert [r["word"] for r in rows["attribute"] if r["op"] == "let"] == [OF_WARP.value]
