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
kernel k(R: i32, X: in bf16[R, 512], Y: out bf16[R, 512], N: inout i32[8, 128])
  require 4 <= R, R <= 65536
  target sm90
  cluster c = 2
{{
  launch 1
  shared x: bf16[2][512] at 0, y: bf16[2][512] at 2048, a: bf16[64, 64] at 8192 swizzle 128, cnt: i32[2][128] at 4096
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
    assert (
        "fence.proxy.async\n      bar.sync 1 threads 128\n      if leader {\n        bulk.store Y[r, 0 +: 4096] <- y[t_n % 2]\n        bulk.commit\n      }"
        in text
    )
    assert check(kernel, REGISTRY, REGISTRY.architectures[arch]) == []
    load, read, store, commit, add, *rest = bulk(kernel, arch)
    assert re.fullmatch(
        r"cp\.async\.bulk\.shared::cluster\.global\.mbarrier::complete_tx::bytes \[%r\d+\], \[%d\d+\], 8192, \[%r\d+\]", load
    )
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
    assert {"bulk.load", "bulk.store", "bulk.send", "bulk.prefetch", "bulk.add", "bulk.send.add"} <= set(offered)
    assert all("PTX ISA, cp." in o.doc for o in offered.values())


# --- reductions, prefetches, multicast


REDUCING = ("add", "min", "max", "and", "or", "xor")


@pytest.mark.parametrize("op", REDUCING)
def test_reductions_into_a_tensor_and_into_the_cluster(op):
    kind = "s32" if op in ("add", "min", "max") else "b32"
    (line,) = bulk(typed(f"bulk.{op} N[2, :] <- cnt[0]"))
    assert re.fullmatch(rf"cp\.reduce\.async\.bulk\.global\.shared::cta\.bulk_group\.{op}\.{kind} \[%d\d+\], \[%r\d+\], 512", line)
    to, signal, send = bulk(typed(f"bulk.send.{op} cnt[1] <- cnt[0] at 1 signal b[0]"))
    element, barrier = (m.split()[1].rstrip(",") for m in (to, signal))
    opcode = rf"cp\.reduce\.async\.bulk\.shared::cluster\.shared::cta\.mbarrier::complete_tx::bytes\.{op}\.{kind}"
    assert re.fullmatch(rf"{opcode} \[{element}\], \[%r\d+\], 512, \[{barrier}\]", send)
    statement = the_op(typed(f"bulk.send.{op} cnt[1] <- cnt[0] at 1 signal b[0]"), f"bulk.send.{op}")
    assert REGISTRY.operations[statement.name].effects(statement)[1].atomic


def test_a_prefetch_touches_nothing():
    (line,) = bulk(typed("bulk.prefetch X[1, :]"))
    assert re.fullmatch(r"cp\.async\.bulk\.prefetch\.L2\.global \[%d\d+\], 1024", line)
    op = the_op(typed("bulk.prefetch X[1, :]"), "bulk.prefetch")
    assert REGISTRY.operations["bulk.prefetch"].effects(op) == ()
    text, _ = derived(load=f"{LOAD}\n      bulk.prefetch X[r, :]")
    assert "bulk.prefetch X[r, :]" in text.split("if leader {")[2]


def test_a_masked_load():
    (line,) = [x for x in bulk(typed("bulk.load x[0] <- X[1 +: 1, :] signal b[0] mask 3")) if "multicast" in x]
    opcode = r"cp\.async\.bulk\.shared::cluster\.global\.mbarrier::complete_tx::bytes\.multicast::cluster"
    assert re.fullmatch(rf"{opcode} \[%r\d+\], \[%d\d+\], 1024, \[%r\d+\], %h0", line)
    op = the_op(typed("bulk.load x[0] <- X[1 +: 1, :] signal b[0] mask 3"), "bulk.load")
    assert {e.completion for e in REGISTRY.operations["bulk.load"].effects(op)} == {BySignal(op.words.get("signal"), 1024, True, 3)}


CLUSTER = """cake 1
kernel k(X: in bf16[64, 512], Y: out bf16[64, 512])
  target sm90
  cluster c = 2
{{
  tiles t = persistent(c: 64)
  shared x: bf16[2][8, 512], y: bf16[2][2, 512], mine: bf16[2][512]
  pipeline p: 2 {{ x }} from load to math
  pipeline q: 2 {{ y }} from math to show
  role load: 1 warp {{
    for c in t {{
      acquire p as s
      {load}
      commit p
    }}
  }}
  role math: 4 warps {{
    frag v: bf16[512] vec 4
    for c in t {{
      wait p as s
      v = load(x[s][c % 8, :])
      release p
      acquire q as s
      store mine[s] <- v
      sync math
      {send}
      commit q
    }}
  }}
  role show: 1 warp {{
    frag w: bf16[512] vec 8
    for c in t {{
      wait q as s
      w = load(y[s][c % 2, :])
      release q
      store Y[c, :] <- w
    }}
  }}
}}
"""
MULTICAST = "bulk.load x[s] <- X[0 +: 8, :] multicast c"
SEND = "for k in 0 .. 2 unroll {\n        bulk.send y[s][c % 2 +: 1, :] <- mine[s] at k\n      }"


def in_cluster(load=MULTICAST, send=SEND):
    program = parse(Source("k.cake", CLUSTER.format(load=load, send=send)))
    kernel = derive(elaborate(program.kernels[0], REGISTRY, SM90, derived=False), REGISTRY, SM90)
    text = program_text(replace(program, derived=True, kernels=(kernel,)))
    return text, elaborate(parse(Source("d.cake", text)).kernels[0], REGISTRY, SM90, derived=True)


def test_multicast_cuts_the_slowest_dimension():
    text, kernel = in_cluster()
    assert "mbarrier.expect p_full[s] bytes 8192" in text and "barrier p_empty: mbarrier[2] count 8 " in text
    assert "bulk.load x[s][4 * cluster.c +: 4, :] <- X[4 * cluster.c +: 4, :] signal p_full[s] mask 3" in text
    assert check(kernel, REGISTRY, SM90) == []
    assert any("multicast::cluster" in line and ", 4096, " in line for line in bulk(kernel))


def test_sends_fill_a_slot_of_every_cta():
    text, kernel = in_cluster()
    assert "mbarrier.expect q_full[s] bytes 2048" in text  # 1,024 from each of two CTAs
    sends = [f"bulk.send y[s][c % 2 +: 1, :] <- mine[s] at {k} signal q_full[s]" in text for k in range(2)]
    assert sends == [True, True] and "fence.proxy.async" in text.split("store mine")[1].split("bulk.send")[0]
    assert [f"mbarrier.arrive q_empty[q_release % 2] at {k}" in text for k in range(2)] == [True, True]
    assert check(kernel, REGISTRY, SM90) == []
    assert sum("shared::cluster.shared::cta" in line for line in bulk(kernel)) == 2


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"load": MULTICAST.replace("0 +: 8", "0 +: 3").replace("x[s]", "x[s][0 +: 3, :]")}, "ptx/bulk-stretch"),  # no two halves
        ({"load": MULTICAST.replace("multicast c", "multicast d")}, "type/axis"),
        ({"send": "bulk.send y[s][c % 2 +: 1, :] <- mine[s] at 0"}, "derive/uneven-sends"),
        ({"send": SEND.replace("mine[s]", "x[s][0 +: 1, :]")}, "derive/not-implemented"),  # a slot that is handed back while it is read
        ({"send": SEND.replace("y[s][c % 2 +: 1, :]", "mine[1]")}, "derive/no-fill"),
    ],
)
def test_what_the_cluster_can_t_fill(change, code):
    with pytest.raises(CakeError) as error:
        in_cluster(**change)
    assert code in [d.code for d in error.value.diagnostics], [d.message for d in error.value.diagnostics]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("bulk.and x[0] <- x[1]", "type/operand"),
        ("bulk.and Y[0, :] <- x[1]", "type/element"),
        ("bulk.send.add x[1] <- x[0] at 1 signal b[0]", "type/element"),
        ("bulk.send.add cnt[1] <- cnt[0] at 2 signal b[0]", "ptx/bulk-cta"),
        ("bulk.prefetch X[0, 0 +: 4]", "ptx/bulk-stretch"),
        ("bulk.prefetch X[R - 1 +: 1, :]", "ptx/bulk-stretch"),
        ("bulk.load x[0] <- X[1, :] signal b[0] mask 4", "ptx/bulk-cta"),
    ],
)
def test_more_errors(statement, code):
    with pytest.raises(CakeError) as error:
        typed(statement)
    assert [d.code for d in error.value.diagnostics] == [code]
