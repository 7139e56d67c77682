"""Bulk copies: derivation, instructions, effects and errors; every text is assembled."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from cake_core.assemble import assemble
from cake_core.check import check
from cake_core.derive import derive
from cake_core.diagnostics import CakeError
from cake_core.effects import Access, BySignal, InGroup, Issuer, Mode, Proxy, WaitGroup
from cake_core.elaborate import elaborate
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Int, Op
from cake_core.ir.printer import program_text
from cake_core.lower import lower
from cake_core.plugins import load_registry
from cake_core.source import Source
from cake_core.syntax import parse

SCHEDULE = """cake 1
kernel k(R: i32, C: i32, X: in bf16[R, 4096], Y: out bf16[R, 4096], Z: inout f32[8, 1024], V: in bf16[R, C])
  require 4 <= R, R <= 65536, 512 <= C, C <= 4096, C % 8 == 0
  target {arch}
{{
  tiles t = persistent(r: R)
  shared x: bf16[3][4096], y: bf16[2][4096], z: f32[1][1024]
  pipeline p: 3 {{ x }} from load to math
  role load: 1 warp {{
    for r in t {{
      acquire p as s
      {load}
      commit p
    }}
  }}
  role math: 4 warps {{
    frag v: f32[4096] vec 8, w: f32[1024] vec 4
    for r in t {{
      wait p as s
      v = f32(load(x[s]))
      release p
      bulk.wait.read 1
      sync math
      store y[t.n % 2] <- bf16(v * 2)
      sync math
      bulk.store Y[r, 0 +: 4096] <- y[t.n % 2]
    }}
    w = 1
    store z[0] <- w
    sync math
    {add}
    bulk.wait 0
  }}
}}
"""
LOAD, ADD = "bulk.load x[s] <- X[r, 0 +: 4096]", "bulk.add Z[3, :] <- z[0]"
DERIVED = """cake 1 derived
kernel k(R: i32, X: in bf16[R, 512], Y: out bf16[R, 512])
  require 4 <= R, R <= 65536
  target sm90
  cluster c = 2
{{
  launch 1
  shared x: bf16[2][512] at 0, y: bf16[2][512] at 2048, a: bf16[64, 64] at 8192 swizzle 128
  barrier b: mbarrier[2] count 1 at 16384
  if leader {{
    mbarrier.init b
    fence.mbarrier_init
  }}
  cluster.sync
  role main: 1 warp at 0 {{
    var n = 0
    if leader {{
      {statement}
    }}
  }}
  cluster.sync
}}
"""
REGISTRY = load_registry(environ={"CAKE_LOAD_PLUGINS": ""})
SM90 = REGISTRY.architectures["sm90"]


def derived(load=LOAD, add=ADD, arch="sm90"):
    target = REGISTRY.architectures[arch]
    program = parse(Source("k.cake", SCHEDULE.format(arch=arch, load=load, add=add)))
    kernel = derive(elaborate(program.kernels[0], REGISTRY, target, derived=False), REGISTRY, target)
    text = program_text(replace(program, derived=True, kernels=(kernel,)))
    return text, elaborate(parse(Source("d.cake", text)).kernels[0], REGISTRY, target, derived=True)


def typed(statement):
    return elaborate(parse(Source("k.cake", DERIVED.format(statement=statement))).kernels[0], REGISTRY, SM90, derived=True)


def bulk(kernel, arch="sm90"):
    target = REGISTRY.architectures[arch]
    lowered = lower(kernel, REGISTRY, target)
    assert assemble(lowered.ptx, target.target, "k", lines=lowered.lines).cubin
    return re.findall(r"^  ((?:cp\.(?:reduce\.)?async\.bulk|mapa)\S* .*|cp\.async\.bulk\.commit_group);", lowered.ptx, re.M)


def the_op(kernel, name):
    return next(s for s in walk(kernel.body) if isinstance(s, Op) and s.name == name)


@pytest.mark.parametrize("arch", ["sm90", "sm100"])
def test_a_pipeline_of_rows(arch):
    text, kernel = derived(arch=arch)
    assert "mbarrier.expect p_full[s] bytes 8192\n        bulk.load x[s] <- X[r, 0 +: 4096] signal p_full[s]" in text
    assert "fence.proxy.async\n      bar.sync 1 threads 128\n      if leader {\n        bulk.store Y[r, 0 +: 4096] <- y[t_n % 2]\n        bulk.commit\n      }" in text
    assert check(kernel, REGISTRY, REGISTRY.architectures[arch]) == []
    load, read, store, commit, add, *rest = bulk(kernel, arch)
    assert re.fullmatch(r"cp\.async\.bulk\.shared::cluster\.global\.mbarrier::complete_tx::bytes \[%r\d+\], \[%d\d+\], 8192, \[%r\d+\]", load)
    assert read == "cp.async.bulk.wait_group.read 1" and commit == "cp.async.bulk.commit_group"
    assert re.fullmatch(r"cp\.async\.bulk\.global\.shared::cta\.bulk_group \[%d\d+\], \[%r\d+\], 8192", store)
    assert re.fullmatch(r"cp\.reduce\.async\.bulk\.global\.shared::cta\.bulk_group\.add\.f32 \[%d\d+\], \[%r\d+\], 4096", add)
    assert rest == ["cp.async.bulk.commit_group", "cp.async.bulk.wait_group 0"]


def test_exact_is_the_authors_promise():
    text, kernel = derived(load="bulk.load x[s] <- X[r +: 1, 0 +: 4096] exact")
    assert "signal p_full[s] exact" in text and bulk(kernel)


def test_several_rows_are_one_stretch():
    (load,) = bulk(typed("bulk.load x[0] <- X[1 +: 1, :] signal b[0]"))
    assert ", 1024, " in load
    _, kernel = derived(add="bulk.add Z[2 +: 1, :] <- z[0]")
    assert the_op(kernel, "bulk.add")


def test_a_send():
    to, signal, send = bulk(typed("bulk.send y[1] <- x[0] at 1 signal b[n]"))
    element, barrier = (m.split()[1].rstrip(",") for m in (to, signal))
    wanted = rf"cp\.async\.bulk\.shared::cluster\.shared::cta\.mbarrier::complete_tx::bytes \[{element}\], \[%r\d+\], 1024, \[{barrier}\]"
    assert re.fullmatch(wanted, send)


def test_effects():
    op = the_op(typed("bulk.send y[1] <- x[0] at 1 signal b[n]"), "bulk.send")
    read, write = REGISTRY.operations["bulk.send"].effects(op)
    done = BySignal(op.words.get("signal"), 1024, cta=Int(1))
    assert read == Access(op.value, Mode.READ, Proxy.ASYNC, done, Issuer.LEADER)
    assert write == Access(op.operands[0], Mode.WRITE, Proxy.ASYNC, done, Issuer.LEADER, cta=Int(1))
    op = the_op(typed("bulk.store Y[0, :] <- x[0]"), "bulk.store")
    assert [e.completion for e in REGISTRY.operations["bulk.store"].effects(op)] == [InGroup("bulk")] * 2
    op = the_op(derived()[1], "bulk.add")
    assert REGISTRY.operations["bulk.add"].effects(op)[1].atomic
    op = the_op(derived()[1], "bulk.wait.read")
    assert REGISTRY.operations["bulk.wait.read"].effects(op) == (WaitGroup("bulk", 1, True),)


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("bulk.load x[0] <- X[0 +: 2, 0 +: 256] signal b[0]", "ptx/bulk-stretch"),  # parts of rows
        ("bulk.load x[0][0 +: 4] <- X[0, 0 +: 4] signal b[0]", "ptx/bulk-stretch"),  # 8 bytes
        ("bulk.load x[0][0 +: 8] <- X[0, 4 +: 8] signal b[0]", "ptx/bulk-stretch"),  # at 8 bytes
        ("bulk.load x[0] <- X[R - 1 +: 1, :] signal b[0]", "ptx/bulk-stretch"),  # may be outside
        ("bulk.load a[0 +: 1, :] <- X[0, 0 +: 64] signal b[0]", "ptx/bulk-stretch"),  # swizzled
        ("bulk.load x[0] <- X[0, 0 +: 256] signal b[0]", "type/shape"),
        ("bulk.load x <- X[0, :] signal b[0]", "type/index"),
        ("bulk.load x[0] <- X[0, :]", "type/missing-word"),
        ("bulk.store X[0, :] <- x[0]", "type/read-only"),
        ("bulk.store Y[0, :] <- X[0, :]", "type/operand"),
        ("bulk.send y[1] <- x[0] at 2 signal b[0]", "ptx/bulk-cta"),
        ("bulk.wait -1", "type/pending-groups"),
    ],
)
def test_errors(statement, code):
    with pytest.raises(CakeError) as error:
        typed(statement)
    assert [d.code for d in error.value.diagnostics] == [code]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"load": "bulk.load x[s] <- V[r, 0 +: 4096]"}, "ptx/bulk-stretch"),
        ({"add": "bulk.max Z[3, :] <- z[0]"}, "type/element"),
        ({"add": "bulk.load z[0] <- Z[3, :]"}, "derive/no-hand-off"),
    ],
)
def test_errors_of_the_schedule_form(change, code):
    with pytest.raises(CakeError) as error:
        derived(**change)
    assert code in [d.code for d in error.value.diagnostics]


def test_a_target_without_it_is_an_error_that_names_it():
    text = SCHEDULE.format(arch="sm80", load=LOAD, add=ADD)
    with pytest.raises(CakeError) as error:
        elaborate(parse(Source("k.cake", text)).kernels[0], REGISTRY, REGISTRY.architectures["sm80"], derived=False)
    assert {d.resource for d in error.value.diagnostics} == {"bulk_copy"}


def test_sources():
    offered = {n: o for n, o in REGISTRY.operations.items() if n.startswith("bulk.")}
    assert len(offered) == 9 and all("cp." in o.doc for o in offered.values())
