"""wmma.load, wmma.mma, wmma.store against numpy: every shape and type, layouts, strides, both spaces, and what is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from cake_core.emulate.bodies import on_body
from cake_core.emulate.outcome import Unsupported
from cake_core.plugins import load_registry

KINDS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32, "f64": np.float64, "s8": np.int8, "u8": np.uint8, "s32": np.int32}  # fmt: skip
WIDE = {"m16n16k16": (16, 16, 16), "m32n8k16": (32, 8, 16), "m8n32k16": (8, 32, 16)}
#: Registers of A and B by type and shape (PTX ISA, Matrix Fragments for wmma).
COUNTS = {
    ("f16", "m16n16k16"): (8, 8), ("f16", "m32n8k16"): (8, 8), ("f16", "m8n32k16"): (8, 8),
    ("bf16", "m16n16k16"): (4, 4), ("bf16", "m32n8k16"): (8, 2), ("bf16", "m8n32k16"): (2, 8),
    ("s8", "m16n16k16"): (2, 2), ("s8", "m32n8k16"): (4, 1), ("s8", "m8n32k16"): (1, 4),
    ("tf32", "m16n16k8"): (4, 4), ("f64", "m8n8k4"): (1, 1), ("s4", "m8n8k32"): (1, 1), ("b1", "m8n8k128"): (1, 1),
}  # fmt: skip
RESULTS = {"f16": 4, "f32": 8, "s32": 8, "f64": 2}
FORMS = [
    *(("f16", shape, acc, d) for shape in WIDE for acc in ("f16", "f32") for d in ("f16", "f32")),
    *(("bf16", shape, "f32", "f32") for shape in WIDE),
    *((kind, shape, "s32", "s32") for shape in WIDE for kind in ("s8", "u8")),
    ("tf32", "m16n16k8", "f32", "f32"),
    ("f64", "m8n8k4", "f64", "f64"),
]


@pytest.fixture(scope="module")
def run():
    emulates = load_registry().emulates
    return lambda body, **given: on_body(body, given, emulates, shared=4096)


def sizes(shape):
    m, rest = shape[1:].split("n")
    return int(m), *map(int, rest.split("k"))


def registers(name, kind, count):
    type = {"f32": "f32", "f64": "f64"}.get(kind, "b32")
    return f".reg .{type} {name}<{count}>;\n", "{" + ", ".join(f"{name}{n}" for n in range(count)) + "}"


def text(kind, shape, acc, d, layouts, strides, types=True, more="", space="", load_a=""):
    """A, B and C are loaded, D is stored."""
    na, nb = COUNTS[{"u8": "s8", "u4": "s4"}.get(kind, kind), shape]
    nc, nd = (2 if shape.startswith("m8n8") else RESULTS[t] for t in (acc, d))
    (ra, a), (rb, b), (rc, c), (rd, out) = registers("%a", kind, na), registers("%b", kind, nb), registers("%c", acc, nc), registers("%q", d, nd)
    la, lb, lc, ld = layouts
    named = f"{d}.{kind}.{kind}.{acc}" if types else f"{d}.{acc}"
    at = [f", {n}" if n else "" for n in strides]
    return f"""{ra}{rb}{rc}{rd}{load_a or f"wmma.load.a.sync.aligned.{la}.{shape}{space}.{kind} {a}, [%A]{at[0]};"}
wmma.load.b.sync.aligned.{lb}.{shape}.global.{kind} {b}, [%B]{at[1]};
wmma.load.c.sync.aligned.{lc}.{shape}.{acc} {c}, [%C]{at[2]};
wmma.mma{more}.sync.aligned.{la}.{lb}.{shape}.{named} {out}, {a}, {b}, {c};
wmma.store.d.sync.aligned.{ld}.{shape}.global.{d} [%D], {out}{at[3]};
"""


def laid(matrix, layout, stride, kind):
    """In memory, rows or columns `stride` elements from each other."""
    lines = matrix if layout == "row" else matrix.T
    out = np.zeros((len(lines), stride or lines.shape[1]), KINDS[kind])
    out[:, : lines.shape[1]] = lines.astype(KINDS[kind])
    return out


@pytest.mark.parametrize("layouts", [("row", "col", "row", "row"), ("col", "row", "col", "row"), ("row", "row", "row", "col")], ids="-".join)
@pytest.mark.parametrize("form", FORMS, ids="-".join)
def test_a_product(run, form, layouts):
    kind, shape, acc, d = form
    m, n, k = sizes(shape)
    rng = np.random.default_rng(len(str(form)))
    whole = lambda *s: rng.integers(0 if kind == "u8" else -4, 9, s).astype(np.float64)
    a, b, c = whole(m, k), whole(k, n), whole(m, n)
    strides = [0, 40, 0, 40] if layouts[0] == "row" else [40, 0, 40, 0]
    given = [laid(x, layout, stride, t) for x, layout, stride, t in zip((a, b, c), layouts, strides, (kind, kind, acc), strict=False)]
    out = laid(np.zeros((m, n)), layouts[3], strides[3], d)
    done = run(text(kind, shape, acc, d, layouts, strides, types=kind != "f16"), A=given[0], B=given[1], C=given[2], D=out)
    assert done.findings == []
    found = done["D"][:, : out.shape[1] if not strides[3] else (n if layouts[3] == "row" else m)]
    assert np.array_equal(found.astype(np.float64) if layouts[3] == "row" else found.T.astype(np.float64), a @ b + c)


@pytest.mark.parametrize(("kind", "satfinite"), [("s4", ""), ("u4", ""), ("s4", ".satfinite")])
def test_numbers_of_four_bits(run, kind, satfinite):
    rng = np.random.default_rng(4)
    low, high = (-8, 8) if kind == "s4" else (0, 16)
    a, b = rng.integers(low, high, (8, 32)), rng.integers(low, high, (8, 32))
    c = np.full((8, 8), 2**31 - 100 if satfinite else 5, np.int64)
    packed = lambda x: ((x[:, ::2] & 15) | (x[:, 1::2] & 15) << 4).astype(np.uint8)
    body = text(kind, "m8n8k32", "s32", "s32", ("row", "col", "row", "row"), (32, 32, 8, 8)).replace(
        f"{kind}.s32 {{%q", f"{kind}.s32{satfinite} {{%q"
    )
    done = run(body, A=packed(a), B=packed(b), C=c.astype(np.int32), D=np.zeros((8, 8), np.int32))
    assert done["D"].tolist() == np.clip(a @ b.T + c, -(2**31), 2**31 - 1 if satfinite else None).tolist()


@pytest.mark.parametrize("op", ["xor", "and"])
def test_bits(run, op):
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 256, (2, 8, 16), np.uint8)
    c = rng.integers(0, 9, (8, 8)).astype(np.int32)
    body = text("b1", "m8n8k128", "s32", "s32", ("row", "col", "row", "row"), (128, 128, 8, 8), more=f".{op}.popc")
    done = run(body, A=a, B=b, C=c, D=np.zeros((8, 8), np.int32))
    both = a[:, None] ^ b[None] if op == "xor" else a[:, None] & b[None]
    assert done["D"].tolist() == (np.unpackbits(both, axis=2).sum(2) + c).tolist()


def test_elements_of_a_fragment_are_treated_alike(run):
    """What a program does to each register of a fragment it does to each element; a fragment of shared memory that the warp has written."""
    x = np.arange(256, dtype=np.float32).reshape(16, 16)
    names, group = registers("%c", "f32", 8)
    twice = "".join(f"add.f32 %c{n}, %c{n}, %c{n};\n" for n in range(8))
    body = f"""{names}.reg .b32 %at;
mov.b32 %at, %s;
wmma.load.c.sync.aligned.col.m16n16k16.f32 {group}, [%A], 16;
{twice}wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%at], {group}, 20;
bar.warp.sync -1;
wmma.load.c.sync.aligned.col.m16n16k16.shared::cta.f32 {group}, [%at], 20;
wmma.store.d.sync.aligned.row.m16n16k16.f32 [%D], {group};
"""
    done = run(body, A=x, D=np.zeros((16, 16), np.float32))
    assert done.findings == [] and np.array_equal(done["D"], 2 * x)
    assert run(body.replace("bar.warp.sync -1;\n", ""), A=x, D=np.zeros((16, 16), np.float32)).codes == ["emulate/race"]


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r0, %r1}, [%A];", "2 registers where the shape has 8"),
        ("wmma.load.a.sync.aligned.row.m16n16k8.f16 {%r0, %r1}, [%A];", "the shape m16n16k8 of f16"),
        ("wmma.load.a.sync.aligned.col.m8n8k32.s4 {%r0}, [%A];", "a a of s4 in .col"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.e4m3.e4m3.f32 {%r0}, {%r0}, {%r0}, {%r0};", "e4m3 and e4m3"),
        ("wmma.mma.sync.aligned.row.row.m8n8k32.s32.s4.s4.s32 {%r0}, {%r0}, {%r0}, {%r0};", "the words of"),
        ("wmma.load.a.aligned.row.m16n16k16.f16 {%r0, %r1}, [%A];", "without .sync"),
    ],
)
def test_what_is_refused(run, statement, says):
    with pytest.raises(Unsupported) as error:
        run(statement, A=np.zeros(4096, np.uint8))
    assert says in str(error.value)


def test_lanes_that_give_several_addresses(run):
    names, group = registers("%c", "f32", 8)
    body = f"{names}.reg .b64 %p;\nmul.wide.u32 %p, %t, 4;\nadd.u64 %p, %p, %A;\nwmma.load.c.sync.aligned.row.m16n16k16.f32 {group}, [%p];\n"
    assert run(body, A=np.zeros(4096, np.float32)).codes == ["emulate/divergent"]
