"""What a derived text says about resources, read off it; tile expressions taken apart; walks over statements."""

from __future__ import annotations

import pytest

from cake_core.ir.flow import walk
from cake_core.ir.nodes import Attr, Binary, Call, Index, Int, Name
from cake_core.ir.places import fragments_in, names, place_of, root
from cake_core.ir.plan import BufferPlan, read_plan
from cake_core.ir.types import BF16, ELEMENTS, F32, Tile
from cake_core.ir.visit import calls, nested, own_expressions
from cake_core.source import NOWHERE, Source
from cake_core.syntax import parse

TEXT = """cake 1 derived
kernel k(N: i32, A: in bf16[N, 64], B: out f32[N])
  target sm90
  cluster m = 2
{
  launch ceildiv(N, 128) ctas 2 persistent
  shared a: bf16[4][2][64, 64] at 0 swizzle 128, p: f32[3][33] at 65536, q: f32[8] at 66304
  barrier full: mbarrier[4] count 3 at 66336, one: mbarrier count 1 at 66368
  role load: 1 warp at 0 regs 40 pad 3 {
    warp.sync
  }
  role math[2]: 1 warpgroup at 4 regs 232 {
    let x = sum(load(p[0], by = 4))
    if x > load(q[3], by = 4) {
      store B[0] <- load(q[0], by = 4) by 4
    } else {
      for k in 0 .. max(N, 1) { warp.sync }
    }
  }
}
"""


@pytest.fixture(scope="module")
def kernel():
    return parse(Source("t.cake", TEXT)).kernels[0]


@pytest.fixture(scope="module")
def plan(kernel, offered):
    return read_plan(kernel, {"warp": 1, "warps": 1, "warpgroup": 4}, offered.spaces)


def test_roles(plan):
    load, math = plan.roles
    assert (load.name, load.instances, load.warps, load.first, load.pad, load.end, load.entry) == ("load", 1, 1, 0, 3, 1, {"regs": 40})
    assert (math.instances, math.warps, math.first, math.end, math.entry) == (2, 4, 4, 12, {"regs": 232})
    assert (plan.warps, plan.threads, plan.cluster) == (12, 384, 2)


def test_buffers_and_barriers(plan):
    a, p, q = (plan.buffers[n] for n in "apq")
    assert (a.slots, a.shape, a.slot_bytes, a.bytes, a.swizzle) == ((4, 2), (64, 64), 8192, 65536, 128)
    assert (p.slot_bytes, p.bytes) == (256, 768)  # 132 bytes: slots of more than 128 begin at multiples of that
    assert (q.slots, q.bytes) == ((), 32)
    full, one = (plan.barriers[n] for n in ("full", "one"))
    assert (full.slots, full.count, full.bytes, one.slots, one.bytes) == (4, 3, 32, 1, 8)


def test_launch_and_totals(plan):
    assert (plan.launch.persistent, plan.launch.ctas_per_sm) == (True, 2)
    assert plan.launch.items == Call(Name("ceildiv"), (Name("N"), Int(128)))
    assert plan.planned_bytes == 66376
    assert plan.base_align == 1024  # 8 rows of 128 bytes
    assert plan.shared_bytes == 66376 + 1024


@pytest.mark.parametrize(("shape", "slots", "size"), [((8, 8), (2,), 128), ((8, 8), (), 128), ((9, 8), (2,), 256), ((9, 8), (), 144), ((4,), (3,), 8)])
def test_slots_begin_where_copies_can(shape, slots, size):
    assert BufferPlan("x", BF16, slots, shape, 0, 0, NOWHERE).slot_bytes == size


# --- places


def expr(text: str):
    (clause,) = parse(Source("t", f"cake 1\nkernel k(x: i32)\n  require {text}\n{{\n}}\n")).kernels[0].clauses
    return clause.exprs[0]


SLOTTED = Tile("shared", F32, ((4,), (64, 32)))


@pytest.mark.parametrize(
    ("text", "slots", "parts", "sizes", "transposed"),
    [
        ("a[s]", 1, [(0, 64), (0, 32)], (64, 32), False),
        ("a[s][8 +: 16, :]", 1, [(8, 16), (0, 32)], (16, 32), False),
        ("a[s][3, :]", 1, [(3, None), (0, 32)], (32,), False),
        ("a[s].T", 1, [(0, 64), (0, 32)], (64, 32), True),
        ("a", 0, [(0, 64), (0, 32)], (64, 32), False),
    ],
)
def test_a_tile_taken_apart(text, slots, parts, sizes, transposed):
    found = place_of(expr(text), SLOTTED)
    assert (found.name, len(found.slots), found.sizes, found.transposed) == ("a", slots, sizes, transposed)
    assert [(p.lo.value, p.size) for p in found.parts] == parts


def test_names_and_roots():
    assert root(expr("a[s][i +: 8].T")) == Name("a")
    assert root(expr("a + b")) is None
    assert [n.id for n in names(expr("f(a, fill = b) + (c > d ? e : x[y, z +: 2]) * -w"))] == ["f", "a", "b", "c", "d", "e", "x", "y", "z", "w"]
    fragment = Name("f", type=Tile("frag", F32, ((64,),)))
    buffer = Name("g", type=Tile("shared", F32, ((64,),)))
    assert fragments_in(Binary("+", Index(fragment, (Int(0),)), Attr(buffer, "T"))) == (fragment,)


# --- walks


def test_walks_keep_to_their_statement(kernel):
    statements = list(walk(kernel.body))
    let, guard = (next(s for s in statements if type(s).__name__ == kind) for kind in ("Let", "If"))
    assert [c.name for c in calls(let)] == ["sum", "load"]
    assert [c.name for c in calls(guard)] == ["load"]  # of the test, not of the blocks
    assert [len(b) for b in nested(guard)] == [1, 1]
    loop = nested(guard)[1][0]
    assert [c.name for c in calls(loop)] == ["max"]
    assert sum(1 for s in statements if type(s).__name__ == "Op") == 4
    assert {n.id for e in own_expressions(guard) for n in names(e)} == {"x", "load", "q"}
    assert ELEMENTS["f32"] is F32
