"""Order, instructions and types of the reductions; every text is assembled."""

from __future__ import annotations

import re
import struct

import numpy as np
import pytest

from cake_core.assemble import assemble
from cake_core.diagnostics import CakeError
from cake_core.elaborate import elaborate
from cake_core.ir.nodes import Assign, Op
from cake_core.ir.types import F32, Level, Scalar
from cake_core.lower import lower
from cake_core.plugins import load_registry
from cake_core.source import Source
from cake_core.syntax import parse
from cake_shuffle.plugin import cake_primitives

TEXT = """cake 1 derived
kernel k(R: i32, X: in f32[R], Y: out f32[R], eps: f32)
  require 1 <= R, R <= 4096
  target sm90
{{
  launch 1
  shared part: f32[2][8] at 0
  role main: 8 warps at 0 {{
    frag x: f32[1024] vec 4 layout vector, m: f32[1024] vec 4 layout vector, h: bf16[1024] vec 4 layout vector
    var s = 0.0
    {statement}
  }}
}}
"""


@pytest.fixture(scope="module")
def registry():
    return load_registry()


@pytest.fixture
def typed(registry):
    def made(statement):
        program = parse(Source("test.cake", TEXT.format(statement=statement)))
        return elaborate(program.kernels[0], registry, registry.architectures["sm90"], derived=True)

    return made


@pytest.fixture
def instructions(typed, registry):
    """Arithmetic and shuffles of a statement, in order."""

    def made(statement):
        arch = registry.architectures["sm90"]
        lowered = lower(typed(statement), registry, arch)
        assert assemble(lowered.ptx, arch.target, "k", lines=lowered.lines).cubin
        return [line.strip() for line in lowered.ptx.splitlines() if re.match(r"\s+(mul\.rn|fma|add\.rn|max|min|shfl|ld\.shared)", line)]

    return made


def run(lines, lanes):
    """The sum in every lane, each operation rounded to f32. `lanes`: elements (lane, element) in %f order behind the scalars."""
    f32 = np.float32
    registers: dict[str, np.ndarray] = {}
    first = None

    def value(text):
        nonlocal first
        if text.startswith("0f"):
            return np.full(len(lanes), struct.unpack(">f", bytes.fromhex(text[2:]))[0], f32)
        if text not in registers:
            first = int(text[2:]) if first is None else first
            registers[text] = lanes[:, int(text[2:]) - first].astype(f32)
        return registers[text]

    for line in lines:
        opcode, out, *args = re.findall(r"[\w.%:-]+", line)
        if opcode.startswith("shfl"):
            registers[out] = value(args[0])[np.arange(len(lanes)) ^ int(args[1])]
        elif opcode.startswith("fma"):
            exact = value(args[0]).astype(np.float64) * value(args[1]).astype(np.float64) + value(args[2]).astype(np.float64)
            registers[out] = exact.astype(f32)
        else:
            a, b = map(value, args)
            registers[out] = a * b if opcode.startswith("mul") else a + b
    return registers[out]


def butterfly(lane_sums):
    total = lane_sums
    for distance in (16, 8, 4, 2, 1):
        total = (total + total[np.arange(32) ^ distance]).astype(np.float32)
    return total


def test_a_warp_sum_starts_from_the_first_element(instructions):
    lines = instructions("s = warpsum(x)")
    assert [line.split()[0] for line in lines] == ["add.rn.f32"] * 3 + ["shfl.sync.bfly.b32", "add.rn.f32"] * 5
    assert [line.split(", ", 2)[2] for line in lines if "shfl" in line] == [f"{d}, 31, -1;" for d in (16, 8, 4, 2, 1)]
    lanes = np.random.default_rng(1).standard_normal((32, 4)).astype(np.float32)
    wanted = butterfly(((lanes[:, 0] + lanes[:, 1]) + lanes[:, 2]) + lanes[:, 3])
    got = run(lines, lanes)
    assert (got == wanted).all() and len(set(got.tolist())) == 1  # the same bits in all lanes


def test_products_are_summed_by_fma(instructions):
    lines = instructions("s = warpsum(x * x)")
    assert [line.split()[0] for line in lines[:4]] == ["mul.rn.f32"] + ["fma.rn.f32"] * 3
    lanes = np.random.default_rng(2).standard_normal((32, 4)).astype(np.float32)
    chain = lanes[:, 0] * lanes[:, 0]
    for e in range(1, 4):
        chain = (lanes[:, e].astype(np.float64) ** 2 + chain).astype(np.float32)
    assert (run(lines, lanes) == butterfly(chain)).all()


def test_a_sum_of_a_sum_of_products_is_no_product(instructions):
    assert [line.split()[0] for line in instructions("s = warpsum(x * m + eps)")[:7]] == ["fma.rn.f32"] * 4 + ["add.rn.f32"] * 3


def test_a_scalar_is_added_once_a_lane(instructions):
    lines = instructions("s = warpsum(eps)")
    assert [line.split()[0] for line in lines] == ["shfl.sync.bfly.b32", "add.rn.f32"] * 5
    assert [line.split()[0] for line in instructions("s = warpsum(1.0)")] == ["shfl.sync.bfly.b32", "add.rn.f32"] * 5


def test_sum_of_what_every_thread_holds(instructions):
    lines = instructions("s = sum(load(part[1], by = 16))")
    assert [line.split()[0] for line in lines] == ["ld.shared.v4.b32"] * 2 + ["add.rn.f32"] * 7
    loaded = re.findall(r"%f\d+", " ".join(lines[:2]))
    sums = [line.rstrip(";").split(" ", 1)[1].split(", ") for line in lines[2:]]
    assert sums[0][1:] == loaded[:2]
    assert [s[2] for s in sums] == loaded[1:]
    assert all(s[1] == before[0] for before, s in zip(sums, sums[1:], strict=False))


def test_a_sum_inside_a_fragments_value_is_still_whole(instructions):
    assert [line.split()[0] for line in instructions("x = x * sum(load(part[0], by = 8))")] == ["ld.shared.v2.b32"] * 4 + [
        "add.rn.f32"
    ] * 7 + ["mul.rn.f32"] * 4


@pytest.mark.parametrize(
    ("expression", "level"),
    [
        ("warpsum(x)", Level.WARP),
        ("warpsum(eps)", Level.WARP),
        ("sum(load(part[0], by = 4))", Level.INSTANCE),
        ("sum(load(part[warp % 2], by = 4))", Level.WARP),
    ],
)
def test_levels(typed, expression, level):
    assign = next(s for s in typed(f"s = {expression}").roles[0].body if isinstance(s, Assign))
    assert assign.value.type == Scalar(F32, level)


def test_the_sum_of_a_warp_is_stored_once_a_warp(typed):
    store = next(s for s in typed("store part[0][warp] <- warpsum(x * x) by 4").roles[0].body if isinstance(s, Op))
    assert store.value.type.level is Level.WARP


@pytest.mark.parametrize(
    ("expression", "code", "words"),
    [
        (
            "warpsum(load(part[0], by = 4))",
            "core/undistributed",
            "'warpsum' adds what the lanes hold, and every thread holds this value whole",
        ),
        ("sum(x)", "core/undistributed", "'sum' of 'x', which lies over the threads"),
        ("sum(x * load(X[0 +: 1024], by = 4))", "core/undistributed", "'sum' of 'x', which lies over the threads"),
        ("sum(eps)", "type/operand", "'sum' takes a register tile, not a scalar"),
        ("sum(part[0])", "type/operand", "'sum' takes a value in registers, not a shared f32[8]"),
        ("warpsum(h)", "type/operand", "'warpsum' takes f32, not bf16"),
        ("warpsum(x, x)", "type/arguments", "'warpsum' takes 1 argument, not 2"),
        ("warpsum(R)", "type/operand", "'warpsum' takes f32, not i32"),
    ],
)
def test_errors(typed, expression, code, words):
    with pytest.raises(CakeError) as error:
        typed(f"s = {expression}")
    (d,) = error.value.diagnostics
    assert (d.code, d.message) == (code, words)
    if code == "core/undistributed":
        assert d.fix and d.why


@pytest.mark.parametrize(("name", "opcode"), [("warpmax", "max.NaN.f32"), ("warpmin", "min.NaN.f32")])
def test_extremes_of_a_warp(instructions, name, opcode):
    """Elements in order, then the butterfly; a product is rounded, since only sums are fused."""
    assert [line.split()[0] for line in instructions(f"s = {name}(x)")] == [opcode] * 3 + ["shfl.sync.bfly.b32", opcode] * 5
    assert [line.split()[0] for line in instructions(f"s = {name}(x * m)")[:7]] == ["mul.rn.f32"] * 4 + [opcode] * 3


@pytest.mark.parametrize(("name", "opcode"), [("maximum", "max.NaN.f32"), ("minimum", "min.NaN.f32")])
def test_extremes_of_what_every_thread_holds(instructions, name, opcode):
    assert [line.split()[0] for line in instructions(f"s = {name}(load(part[1], by = 16))")] == ["ld.shared.v4.b32"] * 2 + [opcode] * 7


@pytest.mark.parametrize(
    ("expression", "fix"),
    [
        ("warpmax(load(part[0], by = 4))", "use `maximum(..)`, or assign the value to a `frag`"),
        ("minimum(x)", "store `warpmin(..)` to one element a warp of a shared buffer, `sync`, and take `minimum(load(..))` of it"),
    ],
)
def test_each_names_its_counterpart(typed, expression, fix):
    with pytest.raises(CakeError) as error:
        typed(f"s = {expression}")
    assert error.value.diagnostics[0].fix == fix


def test_what_is_offered():
    offered = {p.name: p for p in cake_primitives()}
    over_warp, whole = ("warpsum", "warpmax", "warpmin"), ("sum", "maximum", "minimum")
    assert {n: p.arguments for n, p in offered.items()} == dict.fromkeys(over_warp, "own") | dict.fromkeys(whole, "whole")
    assert all(offered[n].capabilities == {"shuffle"} for n in over_warp)
    assert all("PTX ISA" in p.doc for p in offered.values())
