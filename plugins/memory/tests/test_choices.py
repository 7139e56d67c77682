"""Which access `derive` picks, what `check` refuses, what a statement demands and does; the two agree."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from cake_core.diagnostics import CakeError
from cake_core.effects import Access, Issuer, Mode
from cake_core.ir.nodes import Assign, Call, For, Int, Name, Op
from cake_core.ir.places import fragments_in
from cake_core.primitive import Distribution
from cake_memory.load import LOAD
from cake_memory.plugin import cake_primitives
from cake_memory.store import STORE

SCHEDULE = """cake 1
kernel k({params})
  require {require}
  target sm90
{{
  tiles t = persistent(r: 8)
  {shared}
  role main{instances}: {warps} warps {{
    {frag}
    for r in t {{
      {statement}
    }}
  }}
}}
"""


def statements(block):
    for s in block:
        yield s
        if isinstance(s, For):
            yield from statements(s.body)


@pytest.fixture
def derived(typed, registry, arch):
    """The statement of a schedule text, derived as the core would, with the layout named and a swizzle of all buffers."""

    def made(
        statement,
        *,
        params="R: i32, C: i32, X: in bf16[R, C], Y: out bf16[R, C]",
        require="1 <= R, R <= 4096, 1 <= C, C <= 8192",
        shared="",
        frag="",
        layout="vector",
        swizzle=0,
        warps=8,
        target=arch,
        instances="",
    ):
        body = typed(SCHEDULE.format(**{k: v for k, v in locals().items() if isinstance(v, str)} | {"warps": warps})).roles[0].body
        op = next(s for s in statements(body) if isinstance(s, Op | Assign))
        cx = SimpleNamespace(arch=target, warps=warps, swizzle=lambda _: swizzle, distribution=None)
        named = fragments_in(op.value) + (fragments_in(op.target) if isinstance(op, Assign) else ())
        if named:
            shape = op.value.type.shape if hasattr(op.value.type, "shape") else named[0].type.shape
            words = {w.name: w.value.value for s in body for d in getattr(s, "declarations", ()) for w in d.words.items}
            chosen = registry.layouts[layout]
            cx.distribution = Distribution(chosen, shape, warps, words, chosen.offsets(shape, warps, words))
        if isinstance(op, Op):
            (out,) = STORE.derive(op, cx)
            assert replace(out, words=op.words) == op
            return out.words.get("by")
        call = op.value
        while call.name != "load":
            (call,) = call.positional
        return LOAD.derive(call, cx).options["by"]

    return made


ROW = "frag x: bf16[2048] vec 8"
MULTIPLE = "1 <= R, R <= 4096, 1 <= C, C <= 8192, C % {} == 0"


@pytest.mark.parametrize(
    ("case", "by"),
    [
        # the extent's congruence bounds the row's address and keeps an access from straddling the edge
        (dict(statement="store Y[r, 0 +: 2048] <- x", frag=ROW, require=MULTIPLE.format(8)), 16),
        (dict(statement="store Y[r, 0 +: 2048] <- x", frag=ROW, require=MULTIPLE.format(4)), 8),
        (dict(statement="store Y[r, 0 +: 2048] <- x", frag=ROW, require=MULTIPLE.format(2)), 4),
        (dict(statement="store Y[r, 0 +: 2048] <- x", frag=ROW, require=MULTIPLE.format(3)), 2),
        # one row: its address is aligned whatever the extent is, but the edge is not
        (dict(statement="store Y[0 +: 2048] <- x", frag=ROW, params="C: i32, Y: out bf16[C]", require="1 <= C, C <= 8192"), 2),
        (dict(statement="store Y[0 +: 2048] <- x", frag=ROW, params="C: i32, Y: out bf16[C]", require="2048 <= C, C <= 8192"), 16),
        (dict(statement="store Y[0 +: 2048] <- x", frag=ROW, params="C: i32, Y: out bf16[2048]", require="1 <= C"), 16),
        (dict(statement="store Y[0 +: 2048] <- x", frag=ROW, params="C: i32, Y: out bf16[2044]", require="1 <= C"), 8),
        # the start counts as the extent does
        (dict(statement="store Y[r, 4 +: 2048] <- x", frag=ROW, require=MULTIPLE.format(8)), 8),
        (dict(statement="store Y[r, 8 * r +: 2048] <- x", frag=ROW, require=MULTIPLE.format(8)), 16),
        (dict(statement="store Y[r, 3 +: 2048] <- x", frag=ROW, require=MULTIPLE.format(8)), 2),
        # what a thread holds side by side
        (dict(statement="store Y[r, 0 +: 2048] <- x", frag="frag x: bf16[2048] vec 4", require=MULTIPLE.format(8)), 8),
        (dict(statement="store Y[r, 0 +: 2048] <- x", frag="frag x: bf16[2048] vec 2", require=MULTIPLE.format(8)), 4),
        # the rows of a tile: the second starts where the extent says
        (
            dict(
                statement="store Y[r * 64 +: 64, 0 +: 64] <- x",
                frag="frag x: bf16[64, 64]",
                layout="mma",
                warps=4,
                require=MULTIPLE.format(2),
            ),
            4,
        ),
        (dict(statement="store Y[r * 64 +: 64, 0 +: 64] <- x", frag="frag x: bf16[64, 64]", layout="mma", warps=4), 2),
        (
            dict(
                statement="store Y[r * 64 +: 64, 0 +: 64] <- x",
                frag="frag x: f32[64, 64]",
                layout="mma",
                warps=4,
                params="R: i32, C: i32, Y: out f32[R, C]",
                require=MULTIPLE.format(4),
            ),
            8,
        ),
        (
            dict(
                statement="store Y[r * 64 +: 64, 0 +: 64] <- x",
                frag="frag x: f32[64, 64]",
                layout="mma",
                warps=4,
                params="R: i32, C: i32, Y: out f32[R, C]",
            ),
            4,
        ),
        # a column: neighbours of the tile are not neighbours in memory
        (dict(statement="store Y[0 +: 2048, r] <- x", frag=ROW, require=MULTIPLE.format(8)), 2),
        # loads go by the same rules
        (dict(statement="x = load(X[r, 0 +: 2048])", frag=ROW, require=MULTIPLE.format(8)), 16),
        (dict(statement="x = load(X[r, 0 +: 2048], fill = 0)", frag=ROW, require=MULTIPLE.format(4)), 8),
        (dict(statement="x = f32(load(X[r, 0 +: 2048]))", frag="frag x: f32[2048] vec 8", require=MULTIPLE.format(8)), 16),
        # scalars
        (dict(statement="store part[r % 2][warp] <- f32(r)", shared="shared part: f32[2][8]"), 4),
    ],
)
def test_width(derived, case, by):
    assert derived(**case) == Int(by)


STAGED = dict(statement="store d[main.i] <- bf16(x)", frag="frag x: f32[64, 64]", layout="mma", warps=4, instances="[2]")


@pytest.mark.parametrize(
    ("case", "by"),
    [
        (dict(shared="shared d: bf16[2][64, 64]", swizzle=128), Name("stmatrix")),
        (dict(shared="shared d: bf16[2][64, 64]", swizzle=64), Name("stmatrix")),
        (dict(shared="shared d: bf16[2][64, 64]", swizzle=32), Name("stmatrix")),
        (dict(shared="shared d: bf16[2][64, 64]"), Name("stmatrix")),
        (dict(shared="shared d: f32[2][64, 64]", statement="store d[main.i] <- x", swizzle=128), Int(8)),
        (dict(shared="shared d: bf16[2][64, 24]", statement="store d[main.i] <- bf16(x)", frag="frag x: f32[64, 24]"), Int(4)),
        (dict(shared="shared d: bf16[2][64, 68]", statement="store d[main.i][:, 0 +: 64] <- bf16(x)"), Int(4)),
        (dict(shared="shared d: bf16[2][64, 80]", statement="store d[main.i][:, 8 +: 64] <- bf16(x)"), Name("stmatrix")),
        (dict(shared="shared d: bf16[2][64, 80]", statement="store d[main.i][:, 4 +: 64] <- bf16(x)"), Int(4)),
        (dict(shared="shared d: bf16[2][64, 128]", statement="store d[main.i][:, 32 +: 64] <- bf16(x)", swizzle=128), Int(4)),
        (dict(shared="shared d: bf16[2][64, 128]", statement="store d[main.i][:, 64 +: 64] <- bf16(x)", swizzle=128), Name("stmatrix")),
        (
            dict(shared="shared d: bf16[2][64, 128]", statement="store d[main.i][:, 64 * (r % 2) +: 64] <- bf16(x)", swizzle=128),
            Name("stmatrix"),
        ),
    ],
)
def test_matrix_form(derived, case, by):
    assert derived(**STAGED | case) == by


def test_without_the_capability_vectors_are_taken(derived, arch):
    poorer = replace(arch, capabilities=arch.capabilities - {"stmatrix"})
    case = STAGED | dict(shared="shared d: bf16[2][64, 64]", swizzle=128)
    assert derived(**case, target=poorer) == Int(4)


# --- errors of either form


@pytest.mark.parametrize(
    ("case", "code", "words"),
    [
        (dict(statement="store Y[r, 0 +: 2048] <- x", frag="frag x: f32[2048] vec 8"), "type/element", "'Y' holds bf16, the value is f32"),
        (dict(statement="store Y[r, 0 +: 1024] <- x", frag=ROW), "type/shape", "this part of 'Y' has shape [1024], the value [2048]"),
        (
            dict(statement="store Y[r, 0 +: 2048] <- load(X[r, 0 +: 2048])"),
            "core/undistributed",
            "no fragment says which thread writes which element",
        ),
        (dict(statement="store X[r, 0 +: 2048] <- x", frag=ROW), "type/read-only", None),
        (
            dict(statement="store part[0] <- f32(r)", shared="shared part: f32[2][8]"),
            "type/shape",
            "a scalar goes to one element, and this part of 'part' has shape [8]",
        ),
        (dict(statement="store part[0][0] <- r", shared="shared part: f32[2][8]"), "type/element", "'part' holds f32, the value is i32"),
        (
            dict(statement="store part <- x", shared="shared part: bf16[2][2048]", frag=ROW),
            "type/index",
            "'store' takes one slot of 'part'",
        ),
        (
            dict(statement="store d[0].T <- x", shared="shared d: bf16[2][64, 64]", frag="frag x: bf16[64, 64]"),
            "type/operand",
            "'store' takes no transposed tile",
        ),
        (dict(statement="store part[warp % 2] <- x", shared="shared part: bf16[2][2048]", frag=ROW), "core/one-place", None),
        (dict(statement="store part[0][r] <- warpsum(f32(r))", shared="shared part: f32[2][8]"), "core/one-place", None),
        (dict(statement="x = load(x)", frag=ROW), "type/operand", "'load' takes a tile in memory, and a fragment is in registers"),
        (dict(statement="x = load(X[0], X[1])", frag=ROW), "type/index", None),
        (dict(statement="x = load(X)", frag=ROW), "type/slice-size", "the tile of 'load' has no constant size"),
        (dict(statement="x = load(X[r, 0 +: 2048], fill = 1.5, gather = 2)", frag=ROW), "type/unknown-option", None),
        (
            dict(statement="x = load(part[0], fill = 1.0)", shared="shared part: bf16[2][2048]", frag=ROW),
            "type/option",
            "'fill' on a shared tile, which is never clipped",
        ),
        (
            dict(
                statement="x = load(N[r, 0 +: 2048], fill = 1.5)", frag="frag x: i32[2048] vec 4", params="R: i32, C: i32, N: in i32[R, C]"
            ),
            "type/operand",
            "'fill' is no i32",
        ),
        (dict(statement="x = bf16(sum(f32(load(X[r, 0 +: 2048]))))", frag=ROW), "type/not-implemented", None),
        (
            dict(statement="x = f32(load(X[r, r]))", frag="frag x: f32[2048] vec 8"),
            "type/not-implemented",
            "'load' of one bf16: scalars have 32 bits",
        ),
        (
            dict(statement="x = f32(load(part[warp % 2]))", frag="frag x: f32[2048] vec 8", shared="shared part: bf16[2][2048]"),
            "core/one-place",
            None,
        ),
    ],
)
def test_errors(derived, case, code, words):
    with pytest.raises(CakeError) as error:
        derived(**case)
    (d,) = error.value.diagnostics
    assert d.code == code, d
    assert words is None or d.message == words


def test_a_whole_value_is_small(typed, registry, arch):
    kernel = typed(
        SCHEDULE.format(
            params="R: i32, C: i32, X: in f32[R, C]",
            require="1 <= R, 1 <= C",
            shared="",
            instances="",
            warps=8,
            frag="var y = 0.0",
            statement="y = sum(load(X[r, 0 +: 256]))",
        )
    )
    call = next(s for s in statements(kernel.roles[0].body) if isinstance(s, Assign)).value.positional[0]
    assert isinstance(call, Call)
    with pytest.raises(CakeError, match="every thread would hold all 256 elements"):
        LOAD.derive(call, SimpleNamespace(arch=arch, distribution=None))


DERIVED = """cake 1 derived
kernel k(R: i32, C: i32, X: in bf16[R, C], Y: out bf16[R, C])
  require 1 <= R, 1 <= C, C % 4 == 0
  target sm90
{{
  launch 1
  shared d: bf16[2][64, 64] at {at} swizzle 128, e: bf16[64, 72] at 32776
  role main: 4 warps at 0 {{
    frag x: bf16[1024] vec 8 layout vector, m: bf16[64, 64] layout mma, f: f32[64, 64] layout mma
    {statement}
  }}
}}
"""


@pytest.mark.parametrize(
    ("statement", "code", "words"),
    [
        ("store Y[0, 0 +: 1024] <- x by 8", None, None),
        ("store Y[R - 1, 0 +: 1024] <- x by 16", "ptx/access-width", "addresses are known to be multiples of 8 bytes only"),
        ("store Y[0, 0 +: 1024] <- x by 16", "ptx/access-width", "the extent is not known to be a multiple of 8"),
        ("store Y[0, 2 +: 1024] <- x by 8", "ptx/access-width", "addresses are known to be multiples of 4 bytes only"),
        ("store Y[0, 0 +: 1024] <- x by 3", "ptx/access-width", "an access of bf16 has 2 or 4 or 8 or 16 bytes"),
        ("store Y[0, 0 +: 1024] <- x by 1", "ptx/access-width", None),
        ("store Y[0, 0 +: 1024] <- x by wide", "ptx/access-width", None),
        ("store Y[0, 0 +: 1024] <- x", "type/missing-word", None),
        ("store Y[0 +: 64, 0 +: 64] <- m by stmatrix", "ptx/access-width", "it writes shared memory only"),
        ("store d[0] <- m by stmatrix", None, None),
        ("store e[:, 0 +: 64] <- m by stmatrix", "ptx/access-width", "rows must start at multiples of 16 bytes"),
        ("store e[:, 0 +: 64] <- m by 16", "ptx/access-width", "addresses are known to be multiples of 8 bytes only"),
        ("x = load(X[0, 0 +: 1024], by = 16)", "ptx/access-width", None),
        ("x = load(X[0, 0 +: 1024])", "type/missing-option", None),
        ("x = load(X[0, 0 +: 1024], by = 8)", None, None),
    ],
)
def test_widths_of_a_derived_text_are_judged(typed, statement, code, words):
    text = DERIVED.format(statement=statement, at=0)
    if code is None:
        typed(text)
        return
    with pytest.raises(CakeError) as error:
        typed(text)
    (d,) = error.value.diagnostics
    assert d.code == code, d
    assert words is None or words in d.why


@pytest.mark.parametrize("statement", ["store d[0] <- m by 8", "store Y[0 +: 64, 0 +: 64] <- m by 8"])
def test_an_access_takes_what_a_thread_holds_side_by_side(ptx_of, statement):
    with pytest.raises(CakeError, match="a thread does not hold 4 neighbours"):
        ptx_of(DERIVED.format(statement=statement, at=0))


# --- demands, layouts, effects


@pytest.mark.parametrize(
    ("shared", "statement", "frag", "swizzles", "align"),
    [
        ("d: bf16[2][64, 64]", "store d[0] <- x", "bf16[64, 64]", (128, 64, 32, 0), 1024),
        ("d: bf16[2][64, 32]", "store d[0] <- x", "bf16[64, 32]", (64, 32, 0), 512),
        ("d: bf16[2][64, 24]", "store d[0] <- x", "bf16[64, 24]", (0,), 2),
        ("d: f32[2][8]", "store d[0][warp] <- f32(r)", "f32[64, 64]", (0,), 4),
        ("d: bf16[2][1024]", "store d[0] <- x", "bf16[1024] vec 8", (0,), 2),
        ("d: bf16[2][64, 64]", "store d[0][0, :] <- x", "bf16[64] vec 2", (0, 128, 64, 32), 2),
    ],
)
def test_demands(typed, shared, statement, frag, swizzles, align):
    kernel = typed(
        SCHEDULE.format(
            params="R: i32", require="1 <= R", shared=f"shared {shared}", instances="", warps=4, frag=f"frag x: {frag}", statement=statement
        )
    )
    op = next(s for s in statements(kernel.roles[0].body) if isinstance(s, Op))
    (demand,) = STORE.demands(op, None)
    assert (demand.buffer, demand.swizzles, demand.align) == ("d", swizzles, align)


def test_effects_and_layouts(typed):
    text = SCHEDULE.format(
        params="R: i32, C: i32, X: in bf16[R, C], Y: out bf16[R, C]",
        require="1 <= R, 1 <= C",
        shared="shared part: f32[2][8]",
        instances="",
        warps=8,
        frag="frag x: f32[2048] vec 8",
        statement="x = f32(load(X[r, 0 +: 2048])); store Y[r, 0 +: 2048] <- bf16(x); "
        "store part[0][0] <- f32(r); store part[0][warp] <- f32(r)",
    )
    fill, store, once, each = (s for s in statements(typed(text).roles[0].body) if isinstance(s, Op | Assign))
    (load,) = fill.value.positional
    assert LOAD.effects(load) == (Access(load.positional[0], Mode.READ),)
    assert STORE.effects(store) == (Access(Name("x"), Mode.READ), Access(store.operands[0], Mode.WRITE))
    assert STORE.fragments(store, None) == {"x": "vector"}
    assert STORE.effects(once) == (Access(once.operands[0], Mode.WRITE, issuer=Issuer.LEADER),)
    assert STORE.effects(each) == (Access(each.operands[0], Mode.WRITE),)


def test_what_is_offered():
    offered = {p.name: p for p in cake_primitives()}
    assert set(offered) == {"shared", "load", "store"}
    assert all("PTX ISA" in p.doc for p in offered.values())
