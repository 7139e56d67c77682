"""Atomics: instructions, who makes the access, effects, errors; every text is assembled."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from cake_core.assemble import assemble
from cake_core.derive import derive
from cake_core.diagnostics import CakeError
from cake_core.effects import Issuer, Mode
from cake_core.elaborate import elaborate
from cake_core.ir.nodes import Let, Op
from cake_core.ir.printer import program_text
from cake_core.ir.types import F32, I32, U32, Level, Scalar
from cake_core.lower import lower
from cake_core.plugins import load_registry
from cake_core.source import Source
from cake_core.syntax import parse

TEXT = """cake 1 derived
kernel k(R: i32, C: i32, X: in f32[R, C], N: inout i32[8], F: inout f32[R, C], H: inout bf16[R, C])
  require 1 <= R, R <= 1024, 1 <= C, C <= 1024, C % 8 == 0
  target {arch}
{{
  launch 1
  shared n: u32[4] at 0, f: f32[4] at 16
  role main: {warps} at 0 {{
    frag x: f32[{columns}] vec 8 layout vector, h: bf16[{columns}] vec 8 layout vector
    x = load(X[0, 0 +: {columns}], by = 16)
    h = load(H[0, 0 +: {columns}], by = 16)
    {statement}
  }}
}}
"""
REGISTRY = load_registry(environ={"CAKE_LOAD_PLUGINS": ""})


def typed(statement, warps=1, arch="sm90"):
    text = TEXT.format(arch=arch, warps=f"{warps} warp{'s' * (warps > 1)}", columns=256 * warps, statement=statement)
    return elaborate(parse(Source("k.cake", text)).kernels[0], REGISTRY, REGISTRY.architectures[arch], derived=True)


def lines(statement, warps=1, arch="sm90"):
    """Atomic instructions, and what hands their results on, in order."""
    target = REGISTRY.architectures[arch]
    lowered = lower(typed(statement, warps, arch), REGISTRY, target)
    assert assemble(lowered.ptx, target.target, "k", lines=lowered.lines).cubin
    return re.findall(r"^  ((?:@%p\d+ )?(?:atom|red|redux)\..*);", lowered.ptx, re.M)


# --- functions


@pytest.mark.parametrize("arch", ["sm80", "sm90", "sm100"])
@pytest.mark.parametrize(
    ("call", "opcode"),
    [
        ("atomic.add(N[3], 1)", "atom.relaxed.gpu.global.add.s32"),
        ("atomic.add(f[1], 2.0)", "atom.relaxed.cta.shared.add.f32"),
        ("atomic.min(n[0], 7)", "atom.relaxed.cta.shared.min.u32"),
        ("atomic.max(N[C % 8], R)", "atom.relaxed.gpu.global.max.s32"),
        ("atomic.exch(F[R - 1, 5], 1.0)", "atom.relaxed.gpu.global.exch.b32"),
        ("atomic.cas(N[0], 0, 1, order = acq_rel, scope = sys)", "atom.acq_rel.sys.global.cas.b32"),
    ],
)
def test_one_lane_makes_the_access_and_tells_the_others(call, opcode, arch):
    access, told = lines(f"let v = {call}", arch=arch)
    assert access.split()[1] == opcode and access.startswith("@%p")
    register = access.split()[2].rstrip(",")
    assert re.fullmatch(r"redux\.sync\.or\.b32 %r\d+, %r\d+, -1", told)
    assert register.startswith("%f") or register in told


def test_types_and_effects():
    def let(call, warps=1):
        return next(s for s in typed(f"let v = {call}", warps).roles[0].body if isinstance(s, Let)).bindings[0].value

    assert let("atomic.add(N[3], 1)").type == Scalar(I32, Level.WARP)
    assert let("atomic.exch(f[0], 1.0)").type == Scalar(F32, Level.WARP)
    assert let("atomic.add(n[warp], 1)", warps=2).type == Scalar(U32, Level.WARP)
    effects = REGISTRY.functions["atomic.add"].effects(let("atomic.add(N[3], 1)"))
    assert [(e.mode, e.atomic) for e in effects] == [(Mode.READ, True), (Mode.WRITE, True)]
    assert [(e.order, e.scope) for e in effects] == [(None, "gpu")] * 2, "relaxed orders nothing else"
    among = REGISTRY.functions["atomic.add"].effects(let("atomic.add(N[3], 1, scope = cta)"))
    assert [(e.order, e.scope) for e in among] == [(None, "cta")] * 2, "for other CTAs it is no atomic"
    ordered = REGISTRY.functions["atomic.add"].effects(let("atomic.add(N[3], 1, order = acq_rel, scope = cluster)"))
    assert [(e.order, e.scope) for e in ordered] == [("acq_rel", "cluster")] * 2


# --- operations


def test_scalars_by_the_leader_or_each_warps():
    (by_leader,) = lines("red.add N[2] <- 1 order release scope cluster by 4", warps=2)
    assert re.fullmatch(r"@%p\d+ red\.release\.cluster\.global\.add\.s32 \[%d\d+\], %r\d+", by_leader)
    (by_warps,) = lines("red.max n[warp] <- 3 by 4", warps=2)
    assert "red.relaxed.cta.shared.max.u32" in by_warps
    op = next(s for s in typed("red.add n[warp] <- 1 by 4", 2).roles[0].body if isinstance(s, Op))
    assert REGISTRY.operations["red.add"].effects(op)[0].issuer is Issuer.WARP


def test_tiles():
    assert lines("red.add F[R - 1, 0 +: 256] <- x by 16", arch="sm90") == lines("red.add F[R - 1, 0 +: 256] <- x by 16", arch="sm100")
    found = lines("red.add F[R - 1, 0 +: 256] <- x by 16")
    assert len(found) == 2 and all(re.match(r"@%p\d+ red\.relaxed\.gpu\.global\.add\.v4\.f32 \[%d\d+(\+16)?\], \{", line) for line in found)
    assert len(lines("red.add F[R - 1, 0 +: 256] <- x by 8")) == 4
    singles = lines("red.add F[R - 1, 0 +: 256] <- x by 4", arch="sm80")
    assert len(singles) == 8 and all(".add.f32 [" in line for line in singles)
    (pairs,) = lines("red.add H[0, 0 +: 256] <- h by 16")
    assert "red.relaxed.gpu.global.add.noftz.v4.bf16x2 [" in pairs


def test_each_access_of_a_tile_is_clipped_by_its_own_guard():
    guards = [line.split()[0] for line in lines("red.add F[R - 1, C - 8 +: 256] <- x by 16")]
    assert len(set(guards)) == 2


@pytest.mark.parametrize(("arch", "by"), [("sm80", 4), ("sm90", 16), ("sm100", 16)])
def test_the_widest_access_is_derived(arch, by):
    text = """cake 1
kernel k(R: i32, C: i32, X: in f32[R, C], F: inout f32[C])
  require 1 <= R, R <= 1024, 1 <= C, C <= 1024, C % 8 == 0
  target {arch}
{{
  tiles t = grid(r: R)
  role main: 4 warps {{
    frag x: f32[1024] vec 8
    for r in t {{
      x = load(X[r, 0 +: 1024])
      red.add F[0 +: 1024] <- x
    }}
  }}
}}
""".format(arch=arch)
    program, target = parse(Source("k.cake", text)), REGISTRY.architectures[arch]
    kernel = derive(elaborate(program.kernels[0], REGISTRY, target, derived=False), REGISTRY, target)
    printed = program_text(replace(program, derived=True, kernels=(kernel,)))
    assert f"red.add F[0 +: 1024] <- x by {by}" in printed
    again = elaborate(parse(Source("d.cake", printed)).kernels[0], REGISTRY, target, derived=True)
    assert lower(again, REGISTRY, target).ptx.count("red.relaxed") == 4 * 8 // by


# --- errors


@pytest.mark.parametrize(
    ("statement", "warps", "code"),
    [
        ("let v = atomic.add(N[3], 1)", 2, "core/one-place"),
        ("let v = atomic.add(X[0, 0], 1.0)", 1, "type/read-only"),
        ("let v = atomic.add(N[0 +: 4], 1)", 1, "type/shape"),
        ("let v = atomic.min(f[0], 1.0)", 1, "type/element"),
        ("let v = atomic.add(N[0], 1.0)", 1, "type/operand"),
        ("let v = atomic.add(N[0])", 1, "type/arguments"),
        ("let v = atomic.cas(N[0], 1)", 1, "type/arguments"),
        ("let v = atomic.add(N[0], 1, order = sometimes)", 1, "type/word"),
        ("let v = atomic.add(N[0], 1, order = 5)", 1, "type/symbol"),
        ("let v = atomic.add(x, 1.0)", 1, "type/operand"),
        ("red.add X[0, 0] <- 1.0 by 4", 1, "type/read-only"),
        ("red.add N[0] <- 1.0 by 4", 1, "type/element"),
        ("red.add N[0] <- 1 order acq_rel by 4", 1, "type/word"),
        ("red.min F[0, 0] <- 1.0 by 4", 1, "type/element"),
        ("red.add F[0, 0 +: 128] <- x by 16", 1, "type/shape"),
        ("red.add f[0 +: 4] <- x by 16", 1, "type/not-implemented"),
        ("red.add F[0, 0 +: 256] <- x by 2", 1, "ptx/red-width"),
        ("red.add F[0, 1 +: 256] <- x by 16", 1, "ptx/red-width"),
        ("red.add N[0] <- 1 by 8", 1, "ptx/red-width"),
    ],
)
def test_errors(statement, warps, code):
    with pytest.raises(CakeError) as error:
        typed(statement, warps)
    assert [d.code for d in error.value.diagnostics] == [code]


@pytest.mark.parametrize("statement", ["red.add F[0, 0 +: 256] <- x by 16", "red.add H[0, 0 +: 256] <- h by 4"])
def test_a_target_without_vectors_is_an_error_that_names_them(statement):
    with pytest.raises(CakeError) as error:
        typed(statement, arch="sm80")
    assert [(d.code, d.resource) for d in error.value.diagnostics] == [("type/missing-capability", "vector_reduction")]


def test_sources():
    offered = [*(f for n, f in REGISTRY.functions.items() if n.startswith("atomic.")), *(o for n, o in REGISTRY.operations.items() if n.startswith("red."))]
    assert len(offered) == 8 and all("PTX ISA" in x.doc and x.capabilities == {"atomics"} for x in offered)
