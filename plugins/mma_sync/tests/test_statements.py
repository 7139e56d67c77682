"""What `ldmatrix` and `mma.sync` refuse, derive and demand, and single statements run by the machine of cta.py."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from cake_core.assemble import assemble
from cake_core.derive import derive
from cake_core.diagnostics import CakeError
from cake_core.effects import OF_WARP, Access, Mode
from cake_core.elaborate import elaborate
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Op, Program
from cake_core.ir.printer import program_text
from cake_core.lower import lower
from cake_core.plugins import load_registry
from cake_core.source import Source
from cake_core.syntax import parse

#: One product of tiles that are copied whole: A is [M, K] or, transposed, [K, M]; likewise B.
PRODUCT = """cake 1
kernel k(A: in {elem}[{am}, {ak}], B: in {elem}[{bn}, {bk}], D: out f32[{m}, {n}])
  target {target}
{{
  tiles t = grid(i: 1)
  shared a: {elem}[{am}, {ak}], b: {elem}[{bn}, {bk}]
  role main: {warps} warps{over} {{
    frag acc: f32[{m}, {n}], fa: {elem}[{m}, {k}], fb: {elem}[{n}, {k}]
    for i in t {{
      cp.async a <- A[:, :]
      cp.async b <- B[:, :]
      cp.async.commit
      cp.async.wait 0
      sync main
      {body}
      store D[:, :] <- acc
    }}
  }}
}}
"""


def text(m=32, n=32, k=16, elem="bf16", warps=4, over=" over (2, 2)", body=None, at="", bt="", target="sm80"):
    body = body or f"acc = 1\n      ldmatrix fa <- a[:, :]{at}\n      ldmatrix fb <- b[:, :]{bt}\n      mma.sync acc += fa @ fb.T"
    am, ak = (k, m) if at else (m, k)
    bn, bk = (k, n) if bt else (n, k)
    return PRODUCT.format(am=am, ak=ak, bn=bn, bk=bk, m=m, n=n, k=k, elem=elem, warps=warps, over=over, body=body, target=target)


@pytest.fixture
def lowered(registry):
    """A schedule text to (derived text, PTX), assembled, for its target."""

    def of(source):
        kernel = parse(Source("test.cake", source)).kernels[0]
        arch = registry.architectures[kernel.targets[0]]
        made = derive(elaborate(kernel, registry, arch, derived=False), registry, arch)
        ptx = lower(elaborate(made, registry, arch, derived=True), registry, arch)
        assert assemble(ptx.ptx, arch.target, made.name, lines=ptx.lines).cubin
        return program_text(Program(1, True, (made,))), ptx

    return of


def numbers(elem, shape, rng):
    """Small integers: their products and sums are exact in every type, so that results must be equal."""
    kind = {
        "bf16": ml_dtypes.bfloat16,
        "f16": np.float16,
        "f32": np.float32,
        "e4m3": ml_dtypes.float8_e4m3fn,
        "e5m2": ml_dtypes.float8_e5m2,
    }[elem]
    return rng.integers(-4, 5, shape).astype(kind)


@pytest.mark.parametrize(
    "sizes",
    [
        dict(),
        dict(k=64, n=64),
        dict(elem="f16", m=64, over=" over (4, 1)"),
        dict(over="", m=64, n=24),
        dict(elem="f32", k=8),
        dict(elem="f32", k=24, over=" over (1, 4)", n=64),
        dict(elem="e4m3", k=32, target="sm90"),
        dict(elem="e5m2", k=96, n=64, target="sm90"),
        dict(at=".T", bt=".T", k=32, m=64, n=64),
        dict(at=".T", elem="f16"),
        dict(bt=".T", warps=6, over=" over (2, 3)", n=96),
        dict(warps=1, over="", m=16, n=8),
        dict(
            m=32,
            n=32,
            body="ldmatrix fa <- a[:, :]\n      ldmatrix fb <- b[:, :]\n      mma.sync acc = fa @ fb.T\n      mma.sync acc += fa @ fb.T",
        ),
    ],
    ids=str,
)
def test_a_product_is_exact_on_integers(lowered, run, sizes):
    _, ptx = lowered(text(**sizes))
    s = dict(m=32, n=32, k=16, elem="bf16", warps=4, at="", bt="") | sizes
    rng = np.random.default_rng(1)
    a, b = numbers(s["elem"], (s["m"], s["k"]), rng), numbers(s["elem"], (s["n"], s["k"]), rng)
    d = np.full((s["m"], s["n"]), np.nan, np.float32)
    given = {"A": np.ascontiguousarray(a.T) if s["at"] else a, "B": np.ascontiguousarray(b.T) if s["bt"] else b, "D": d}
    (cta,) = run(ptx.ptx, 32 * s["warps"], 1, ptx.plan.shared_bytes, given)
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    assert np.array_equal(d, 2 * exact if "body" in s else 1 + exact)
    assert cta.conflicts == 0 or s["k"] * a.itemsize % 32  # rows of 16 bytes alone share banks


def test_the_unit_reads_tf32(lowered, run):
    """10 bits of mantissa: the rest of an f32 is not read."""
    _, ptx = lowered(text(elem="f32", k=8))
    a, b, d = np.full((32, 8), 1 + 2.0**-11, np.float32), np.ones((32, 8), np.float32), np.zeros((32, 32), np.float32)
    run(ptx.ptx, 128, 1, ptx.plan.shared_bytes, {"A": a, "B": b, "D": d})
    assert np.array_equal(d, np.full((32, 32), 9, np.float32))


def test_a_part_of_a_slot(lowered, run):
    """Rows and columns inside a buffer, at swizzled places."""
    body = "ldmatrix fa <- a[32 +: 32, 16 +: 16]\n      ldmatrix fb <- b[8 +: 32, 48 +: 16]\n      mma.sync acc = fa @ fb.T"
    source = text(body=body).replace("bf16[32, 16], B: in bf16[32, 16]", "bf16[64, 64], B: in bf16[64, 64]")
    source = source.replace("shared a: bf16[32, 16], b: bf16[32, 16]", "shared a: bf16[64, 64], b: bf16[64, 64]")
    derived, ptx = lowered(source)
    assert "swizzle 128" in derived
    rng = np.random.default_rng(2)
    a, b, d = numbers("bf16", (64, 64), rng), numbers("bf16", (64, 64), rng), np.zeros((32, 32), np.float32)
    run(ptx.ptx, 128, 1, ptx.plan.shared_bytes, {"A": a, "B": b, "D": d})
    assert np.array_equal(d, a[32:, 16:32].astype(np.float32) @ b[8:40, 48:].astype(np.float32).T)


#: A result, cast, as the left factor of a second product.
TWICE = """ldmatrix fa <- a[:, :]
      ldmatrix fb <- b[:, :]
      mma.sync acc = fa @ fb.T
      p = bf16(acc)
      mma.sync acc = p @ fb.T"""


def test_a_result_is_the_next_left_factor_over_one_column_of_warps(lowered, run):
    """`p = bf16(s)` moves no element between threads: D = (A B^T) B^T', the shape of attention."""
    source = text(m=64, n=16, k=16, over=" over (4, 1)", body=TWICE).replace(
        "frag acc: f32[64, 16]", "frag acc: f32[64, 16], p: bf16[64, 16]"
    )
    derived, ptx = lowered(source)
    assert "p: bf16[64, 16] grid (4, 1) layout mma_a" in " ".join(derived.split())
    rng = np.random.default_rng(3)
    a, b, d = numbers("bf16", (64, 16), rng), numbers("bf16", (16, 16), rng), np.zeros((64, 16), np.float32)
    run(ptx.ptx, 128, 1, ptx.plan.shared_bytes, {"A": a, "B": b, "D": d})
    first = (a.astype(np.float32) @ b.astype(np.float32).T).astype(ml_dtypes.bfloat16).astype(np.float32)
    assert np.array_equal(d, first @ b.astype(np.float32).T)


def test_it_is_not_over_several_columns(lowered):
    source = text(m=32, n=32, k=32, body=TWICE).replace("frag acc: f32[32, 32]", "frag acc: f32[32, 32], p: bf16[32, 32]")
    with pytest.raises(CakeError) as raised:
        lowered(source)
    assert [d.code for d in raised.value.diagnostics] == ["derive/layout-mismatch"]


# --- derived text


def test_the_grid_stands_on_the_fragments(lowered):
    derived, _ = lowered(text())
    assert "role main: 4 warps at 0 {" in derived
    for name, shape, layout in (("acc", "f32[32, 32]", "mma"), ("fa", "bf16[32, 16]", "mma_a"), ("fb", "bf16[32, 16]", "mma_b")):
        assert f"{name}: {shape} grid (2, 2) layout {layout}" in " ".join(derived.split())


def test_without_a_grid_the_warps_are_one_column(lowered):
    derived, _ = lowered(text(over="", m=64))
    assert "grid" not in derived and "layout mma_a" in derived


@pytest.mark.parametrize("over", [" over (3, 2)", " over (4)", " over (2, 2, 1)", " over (0, 4)"])
def test_a_grid_has_a_place_for_each_warp(typed, over):
    with pytest.raises(CakeError) as raised:
        typed(text(over=over))
    assert all(d.code.startswith("type/") for d in raised.value.diagnostics)


# --- what is refused


def codes(make, source):
    with pytest.raises(CakeError) as raised:
        make(source)
    for d in raised.value.diagnostics:
        assert d.message[0] in "'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" and not d.message.endswith(".")
    return [d.code for d in raised.value.diagnostics]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("mma.sync acc += fa @ fb", "ptx/mma-transposed"),
        ("mma.sync acc += fa.T @ fb.T", "ptx/mma-transposed"),
        ("mma.sync acc += a @ fb.T", "type/operand"),
        ("mma.sync fa += fa @ fb.T", "type/element"),
        ("mma.sync acc += acc @ fb.T", "type/element"),
        ("mma.sync acc[:, 0 +: 16] += fa @ fb.T", "type/shape"),
        ("mma.sync acc += fa[:, 0 +: 8] @ fb[:, 0 +: 8].T", "ptx/mma-shape"),
        ("ldmatrix fa <- a[:, 0 +: 8]", "type/shape"),
        ("ldmatrix fa <- a[:, :].T", "type/shape"),
        ("ldmatrix acc <- a[:, :]", "type/element"),
        ("ldmatrix fa <- A[:, :]", "type/operand"),
        ("ldmatrix a <- fa", "type/operand"),
        ("ldmatrix fa <- a[min(warp, 0) +: 32, :]", "core/one-place"),
    ],
)
def test_what_is_refused(typed, body, code):
    assert codes(typed, text(body=body)) == [code]


def test_f32_is_not_transposed(typed):
    assert codes(typed, text(elem="f32", k=32, at=".T")) == ["ptx/ldmatrix-transposed"]


def test_rows_must_start_at_pieces(typed):
    source = (
        text(body="ldmatrix fa <- a[:, 4 +: 16]")
        .replace("shared a: bf16[32, 16]", "shared a: bf16[32, 24]")
        .replace("A: in bf16[32, 16]", "A: in bf16[32, 24]")
    )
    assert codes(typed, source) == ["ptx/ldmatrix-tile"]


@pytest.mark.parametrize("sizes", [dict(m=16), dict(n=16), dict(m=48)], ids=str)
def test_shapes_divide_over_the_grid(lowered, sizes):
    assert "derive/layout-does-not-fit" in codes(lowered, text(**sizes))


DERIVED = """cake 1 derived
kernel k(D: out f32[8])
  target sm80
{{
  launch 1
  shared a: bf16[32, 16] at 0
  role main: 4 warps at 0 {{
    frag acc: f32[32, 32] grid (2, 2) layout {acc}
    frag fa: bf16[32, 16]{fa}
    frag fb: bf16[32, 16]{fb}
    frag v: bf16[512] vec 4 layout vector
    {statement}
  }}
}}
"""
GOOD = dict(acc="mma", fa=" grid (2, 2) layout mma_a", fb=" grid (2, 2) layout mma_b", statement="mma.sync acc += fa @ fb.T")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (dict(fa=" grid (2, 2) layout mma_b"), "ptx/mma-layout"),
        (dict(fb=" grid (2, 2) layout mma_a"), "ptx/mma-layout"),
        (dict(fb=" grid (4, 1) layout mma_b"), "ptx/mma-layout"),
        (dict(fa=" grid (2, 2) layout mma"), "ptx/mma-layout"),
    ],
    ids=str,
)
def test_what_is_refused_in_the_derived_form(typed, change, code):
    assert typed(DERIVED.format(**GOOD))
    assert codes(typed, DERIVED.format(**GOOD | change)) == [code]


def test_a_fragment_that_is_no_matrices(typed, registry, arch):
    source = DERIVED.format(**GOOD | dict(statement="ldmatrix v <- a[:, :]"))
    assert codes(typed, source) == ["type/shape"]


# --- effects and capabilities


def test_effects(typed, registry):
    ops = [s for s in walk(typed(text()).roles[0].body) if isinstance(s, Op) and s.name in ("ldmatrix", "mma.sync")]
    for op in ops:
        *effects, together = registry.operations[op.name].effects(op)
        assert all(isinstance(e, Access) for e in effects) and together == OF_WARP
        assert [e.place for e in effects if e.mode is Mode.WRITE] == [op.operands[0]]
    *product, _ = registry.operations["mma.sync"].effects(ops[-1])
    assert [e.place.id for e in product if e.mode is Mode.READ] == ["fa", "fb", "acc"]


@pytest.mark.parametrize("elem", ["e4m3", "e5m2"])
def test_eight_bits_need_a_capability_of_their_own(typed, elem):
    with pytest.raises(CakeError) as raised:
        typed(text(elem=elem, k=32))
    (d,) = raised.value.diagnostics
    assert (d.code, d.resource) == ("type/missing-capability", "mma_sync_fp8") and elem in d.message


@pytest.mark.parametrize("capability", ["ldmatrix", "mma_sync"])
def test_a_target_without_the_capability(capability):
    from dataclasses import replace

    registry = load_registry(environ={"CAKE_LOAD_PLUGINS": ""})
    sm80 = registry.architectures["sm80"]
    poorer = replace(sm80, capabilities=sm80.capabilities - {capability})
    with pytest.raises(CakeError) as raised:
        elaborate(parse(Source("t.cake", text())).kernels[0], registry, poorer, derived=False)
    assert {(d.code, d.resource) for d in raised.value.diagnostics} == {("type/missing-capability", capability)}
