"""Register tiles: which registers a slice names, what a fill and an assignment leave in them, how values are spread."""

import struct
from dataclasses import replace

import pytest

from cake_core.diagnostics import CakeError
from cake_core.elaborate import elaborate
from cake_core.ir.nodes import Binding, Let, Name
from cake_core.lower import lower
from cake_core.source import Source
from cake_core.syntax import parse

MMA = "frag x: f32[64, 64] layout mma"


def run_four(role, run, body, params="N: i32", **scalars):
    return run(role(body, params=params, count="4 warps"), **(scalars or {"N": 0})).trace


@pytest.mark.parametrize("value, expected", [("0", 0.0), ("2", 2.0), ("1.5", 1.5), ("-1.5", -1.5), ("E", 0.25), ("E + 1.0", 1.25)])
def test_fill_from_a_scalar(role, run, value, expected):
    assert run_four(role, run, f"{MMA}\nx = {value}\ndump 0 <- x", params="E: f32", E=0.25) == [expected] * 32


@pytest.mark.parametrize(
    "elem, value, half",
    [
        ("bf16", "0", 0),
        ("bf16", "1.0", 0x3F80),
        ("bf16", "-2.5", 0xC020),
        ("bf16", "3", 0x4040),
        ("f16", "1.0", 0x3C00),
        ("bf16", "1.00390625", 0x3F80),
        ("bf16", "1.01171875", 0x3F82),
    ],
)
def test_fill_of_pairs(role, run, elem, value, half):
    """16-bit elements lie in pairs, rounded to nearest, ties to even."""
    packed = struct.unpack("i", struct.pack("I", half | half << 16))[0]
    assert run_four(role, run, f"frag x: {elem}[64, 64] layout mma\nx = {value}\ndump 0 <- x") == [packed] * 16


def test_integers(role, run):
    assert run_four(role, run, "frag x: i32[64, 64] layout mma\nx = 7\ndump 0 <- x") == [7] * 32
    assert run_four(role, run, "frag x: i32[64, 64] layout mma\nx = N\ndump 0 <- x", N=-3) == [-3] * 32


@pytest.mark.parametrize("lo, size", [(0, 64), (0, 8), (8, 16), (48, 16)])
def test_a_slice_names_the_registers_of_its_elements(role, run, registry, seen, lo, size):
    layout = registry.layouts["mma"]
    trace = run_four(role, run, f"{MMA}\nnumber x\ndump 0 <- x[:, {lo} +: {size}]")
    chosen = layout.select((64, 64), 4, (0, lo), (64, size), {})
    assert trace == list(map(float, chosen))
    (d,) = seen
    offsets = layout.offsets((64, 64), 4, {})
    assert (d.layout, d.shape, d.warps) == (layout, (64, size), 4)
    assert d.offsets == tuple((r, c - lo) for r, c in (offsets[e] for e in chosen))  # relative to the slice


def test_pairs_of_a_slice(role, run):
    trace = run_four(role, run, "frag x: bf16[64, 64] layout mma\nnumber x\ndump 0 <- x[:, 8 +: 16]")
    assert trace == [2, 3, 4, 5]


def test_writing_a_slice_leaves_the_rest(role, run):
    trace = run_four(role, run, f"{MMA}\nx = 0\nx[:, 16 +: 8] = 5.0\ndump 0 <- x")
    assert trace == [0.0] * 8 + [5.0] * 4 + [0.0] * 20


def test_sets_of_registers(role, run):
    trace = run_four(
        role,
        run,
        "frag x: f32[2][64, 16] layout mma\nx[0] = 1.0\nx[1] = 2.0\nx[0] = x[0] + x[1]\ndump 0 <- x[0]\ndump 0 <- x[1][:, 8 +: 8]",
    )
    assert trace == [3.0] * 8 + [2.0] * 4


def test_a_slice_may_move_into_an_overlapping_one(role, run):
    """All is read before anything is written, in either direction."""
    assert run_four(role, run, f"{MMA}\nnumber x\nx[:, 8 +: 16] = x[:, 0 +: 16]\ndump 0 <- x[:, 0 +: 24]") == [
        *map(float, range(4)),
        *map(float, range(8)),
    ]
    assert run_four(role, run, f"{MMA}\nnumber x\nx[:, 0 +: 16] = x[:, 8 +: 16]\ndump 0 <- x[:, 0 +: 24]") == [
        *map(float, range(4, 12)),
        *map(float, range(8, 12)),
    ]


def test_a_let_of_a_tile_is_its_value_at_that_point(registry, run):
    """Typed nodes: elaboration does not yet let a name stand for a register tile."""
    body = f"{MMA}\nnumber x\ndump 0 <- x[:, 8 +: 8]\nx = 9.0\ndump 0 <- x[:, 8 +: 8]"
    text = f"cake 1 derived\nkernel k(N: i32)\n  target sm90\n{{\n  launch 1\n  role r: 4 warps at 0 {{\n{body}\n  }}\n}}\n"
    arch = registry.architectures["sm90"]
    kernel = elaborate(parse(Source("t.cake", text)).kernels[0], registry, arch, derived=True, overrides={})
    (role,) = kernel.roles
    declare, number, first, assign, second = role.body
    named = Name("y", type=first.value.type)
    body = (declare, number, Let((Binding("y", first.value),)), assign, second, replace(second, value=named))
    kernel = replace(kernel, body=tuple(replace(s, body=body) if s is role else s for s in kernel.body))
    assert run(lower(kernel, registry, arch), N=0).trace == [9.0] * 4 + [4.0, 5.0, 6.0, 7.0]


def test_scalars_repeat_over_a_tile(role, run):
    body = f"{MMA}\nnumber x\nx = x * E + 1.0\ndump 0 <- x[:, 0 +: 8]"
    assert run_four(role, run, body, params="E: f32", E=0.5) == [1.0, 1.5, 2.0, 2.5]


def test_values_take_the_place_of_the_fragment_in_them(role, seen):
    role(f"{MMA}, y: f32[64, 64] layout mma\ndump 0 <- x * 2.0 + y\ndump 0 <- -x[:, 8 +: 8]\ndump 0 <- N", count="4 warps")
    assert [d and d.shape for d in seen] == [(64, 64), (64, 8), None]


@pytest.mark.parametrize(
    "body, code",
    [
        ("frag x: f32[1024] vec 4 layout vector, y: f32[1024] vec 2 layout vector\nx = y", "derive/layout-mismatch"),
        ("frag x: f32[1024] vec 4 layout vector, y: f32[1024] vec 2 layout vector\nx = x + y", "derive/layout-mismatch"),
        (f"{MMA}\nx[:, 4 +: 8] = 0", "derive/fragment-granule"),
        (f"{MMA}\nlet i = N * 8\nx[:, i +: 8] = 0", "derive/not-constant"),
        ("frag x: f32[64, 63] layout mma", "derive/layout-does-not-fit"),
        ("frag x: f32[2][64, 16] layout mma\nx[N] = 0", "derive/not-constant"),
    ],
)
def test_what_no_register_move_can_do_is_refused(role, body, code):
    with pytest.raises(CakeError) as error:
        role(body, count="4 warps")
    codes = {d.code for d in error.value.diagnostics}
    assert code in codes or all(c.startswith("type/") for c in codes), codes
    assert all(d.span is not None for d in error.value.diagnostics)
