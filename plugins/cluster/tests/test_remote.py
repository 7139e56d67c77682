"""The cluster's shared memory: instructions, who writes, effects and errors; every text is assembled."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from cake_core.assemble import assemble
from cake_core.check import check
from cake_core.derive import derive
from cake_core.diagnostics import CakeError
from cake_core.effects import Access, BySignal, Issuer, Mode
from cake_core.elaborate import elaborate
from cake_core.ir.nodes import Int, Let, Op
from cake_core.ir.printer import program_text
from cake_core.ir.types import F32, U32, Level, Scalar, Value
from cake_core.lower import lower
from cake_core.plugins import load_registry
from cake_core.source import Source
from cake_core.syntax import parse

TEXT = """cake 1 derived
kernel k(N: i32, X: in f32[N], Y: out f32[N])
  require 1 <= N, N <= 1024
  target sm90
  cluster c = 4
{{
  launch 1
  shared part: f32[2][4] at 0, count: u32[4] at 32, wide: bf16[4] at 48
  barrier got: mbarrier[2] count 1 at 64
  if leader {{
    mbarrier.init got
    fence.mbarrier_init
  }}
  cluster.sync
  role main: 2 warps at 0 {{
    frag x: f32[256] vec 4 layout vector
    var n = 0
    var s = 0.0
    x = load(X[0 +: 256], by = 4)
    let w = warpsum(x)
    {statement}
  }}
  cluster.sync
}}
"""
REGISTRY = load_registry(environ={"CAKE_LOAD_PLUGINS": ""})
SM90 = REGISTRY.architectures["sm90"]


def typed(statement):
    return elaborate(parse(Source("k.cake", TEXT.format(statement=statement))).kernels[0], REGISTRY, SM90, derived=True)


def remote(statement):
    """The instructions on the cluster's shared memory."""
    lowered = lower(typed(statement), REGISTRY, SM90)
    assert assemble(lowered.ptx, SM90.target, "k", lines=lowered.lines).cubin
    return re.findall(r"^  ((?:@%p\d+ )?(?:st|ld|red|mapa)\S*shared::cluster\S* .*);", lowered.ptx, re.M)


def the_op(statement):
    return next(s for s in typed(statement).roles[0].body if isinstance(s, Op) and s.name.startswith("cluster."))


# --- instructions


def test_a_store_by_the_leader():
    address, store = remote("cluster.store part[1][3] <- 1.5 at 2")
    assert re.fullmatch(r"mapa\.shared::cluster\.u32 %r\d+, %r\d+, 2", address)
    assert re.fullmatch(r"@%p\d+ st\.shared::cluster\.b32 \[%r\d+\], %f\d+", store)


def test_the_rank_may_be_computed():
    address, _ = remote("cluster.store part[n % 2][cluster.c] <- s at (cluster.c + 1) % 4")
    assert re.fullmatch(r"mapa\.shared::cluster\.u32 %r\d+, %r\d+, %r\d+", address)


def test_a_signalled_store_completes_bytes_on_the_receivers_barrier():
    element, barrier, store = remote("cluster.send part[0][1] <- s at 2 signal got[n % 2]")
    at, on = (m.split()[1].rstrip(",") for m in (element, barrier))
    assert re.fullmatch(rf"@%p\d+ st\.async\.shared::cluster\.mbarrier::complete_tx::bytes\.f32 \[{at}\], %f\d+, \[{on}\]", store)


@pytest.mark.parametrize("name", ["add", "min", "max"])
def test_reductions(name):
    assert re.search(rf"red\.relaxed\.cluster\.shared::cluster\.{name}\.u32 \[", remote(f"cluster.{name} count[0] <- 1 at 1")[-1])
    signalled = remote(f"cluster.send.{name} count[0] <- 1 at 1 signal got[0]")[-1]
    assert f"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{name}.u32 [" in signalled


def test_sums_of_floats():
    assert "red.relaxed.cluster.shared::cluster.add.f32 [" in remote("cluster.add part[0][0] <- s at 1")[-1]


def test_loads():
    _, load = remote("s = cluster.load(part[0][2], at = 1, by = 4)")
    assert re.fullmatch(r"ld\.shared::cluster\.b32 %f\d+, \[%r\d+\]", load)
    _, load = remote("s = sum(cluster.load(part[1], at = 1, by = 16))")
    assert re.fullmatch(r"ld\.shared::cluster\.v4\.b32 \{(%f\d+, ){3}%f\d+\}, \[%r\d+\]", load)
    halves = remote("s = sum(cluster.load(part[1], at = 1, by = 8))")[1:]
    assert [line.split(",")[-1].strip() for line in halves] == [
        halves[0].split(",")[-1].strip(),
        halves[0].split(",")[-1].strip()[:-1] + "+8]",
    ]


# --- who writes, types, effects


def test_each_warps_leader_writes_a_warps_value():
    lines = lower(typed("cluster.store part[warp][0] <- w at 3"), REGISTRY, SM90).ptx.splitlines()
    store = next(line for line in lines if "st.shared::cluster" in line)
    guard = re.search(r"@(%p\d+)", store)[1]
    assert f"elect.sync _|{guard}, -1;" in map(str.strip, lines)


def test_types():
    let = lambda e: (
        next(s for s in typed(f"let v = {e}").roles[0].body if isinstance(s, Let) and s.bindings[0].name == "v").bindings[0].value.type
    )  # noqa: E731
    assert let("cluster.load(part[0][1], at = 2, by = 4)") == Scalar(F32, Level.INSTANCE)
    assert let("cluster.load(count[warp], at = 2, by = 4)") == Scalar(U32, Level.WARP)
    assert let("cluster.load(part[0], at = 0, by = 16)") == Value(F32, (4,))


def test_effects():
    op = the_op("cluster.store part[0][1] <- s at 2")
    (access,) = REGISTRY.operations["cluster.store"].effects(op)
    assert (access.mode, access.issuer, access.cta, access.atomic) == (Mode.WRITE, Issuer.LEADER, Int(2), False)
    op = the_op("cluster.send.add count[0] <- 1 at 2 signal got[0]")
    (access,) = REGISTRY.operations["cluster.send.add"].effects(op)
    assert access.atomic and access.issuer is Issuer.LEADER and access.completion == BySignal(op.words.get("signal"), 4, cta=Int(2))
    call = next(
        s for s in typed("let v = cluster.load(part[0], at = 3, by = 16)").roles[0].body if isinstance(s, Let) and s.bindings[0].name == "v"
    )
    (access,) = REGISTRY.functions["cluster.load"].effects(call.bindings[0].value)
    assert access == Access(call.bindings[0].value.positional[0], Mode.READ, cta=Int(3))


# --- errors


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("cluster.store part[0][1] <- s at 4", "ptx/cluster-cta"),
        ("cluster.store part[0] <- s at 1", "type/shape"),
        ("cluster.store wide[0] <- s at 1", "type/element"),
        ("cluster.store count[0] <- s at 1", "type/element"),
        ("cluster.store part[0][1] <- w at 1", "core/one-place"),
        ("cluster.send part[0][warp] <- w at 1 signal got[0]", "core/one-place"),
        ("cluster.send part[0][1] <- s at 4 signal got[0]", "ptx/cluster-cta"),
        ("cluster.send part[0][1] <- s at 1", "type/missing-word"),
        ("cluster.store part[0][1] <- s at 1 signal got[0]", "type/unknown-word"),
        ("cluster.max part[0][1] <- s at 1", "type/element"),
        ("cluster.send.add part[0][1] <- s at 1 signal got[0]", "type/element"),
        ("cluster.store part[0][1] <- s", "type/missing-word"),
        ("cluster.store Y[0] <- s at 1", "type/operand"),
        ("s = cluster.load(Y[0], at = 1, by = 4)", "type/operand"),
        ("s = cluster.load(part[0][1], at = 9, by = 4)", "ptx/cluster-cta"),
        ("s = sum(cluster.load(part[0], at = 1, by = 2))", "ptx/cluster-width"),
        ("s = cluster.load(part[0][1], by = 4)", "type/missing-option"),
    ],
)
def test_errors(statement, code):
    with pytest.raises(CakeError) as error:
        typed(statement)
    assert [d.code for d in error.value.diagnostics] == [code]


# --- derivation and checks

SCHEDULE = """cake 1
kernel k(R: i32, X: in f32[R, 1024], Y: out f32[R, 1024])
  require 0 <= R, R <= 1024
  target sm90
  cluster c = 4
{
  tiles t = persistent(c: 4, r: R)
  shared top: f32[2], part: f32[2][4]
  role main: 2 warps {
    frag x: f32[256] vec 4
    for (c, r) in t {
      x = load(X[r, c * 256 +: 256])
      store top[warp] <- warpsum(x)
      sync main
      let s = sum(load(top))
      for k in 0 .. 4 unroll {
        cluster.store part[t.n % 2][c] <- s at k
      }
      cluster.sync
      store Y[r, c * 256 +: 256] <- x * sum(cluster.load(part[t.n % 2], at = 0))
    }
  }
}
"""


def derived(text):
    program = parse(Source("k.cake", text))
    kernel = derive(elaborate(program.kernels[0], REGISTRY, SM90, derived=False), REGISTRY, SM90)
    return program_text(replace(program, derived=True, kernels=(kernel,)))


def test_a_kernel_that_reaches_its_peers_meets_them_first_and_last():
    text = derived(SCHEDULE)
    before, role = text.split("  role main")
    assert before.rstrip().endswith("cluster.sync") and role.rstrip().endswith("}\n  cluster.sync\n}")
    assert "cluster.load(part[t_n % 2], at = 0, by = 16)" in text
    kernel = elaborate(parse(Source("d.cake", text)).kernels[0], REGISTRY, SM90, derived=True)
    assert check(kernel, REGISTRY, SM90) == []
    quiet = re.sub(r"\n +for k in.*?\n +}", "", SCHEDULE, flags=re.S).replace("sum(cluster.load(part[t.n % 2], at = 0))", "s")
    assert "cluster.sync" not in derived(quiet).split("  role main")[0]


def test_a_cluster_barrier_in_a_role_that_is_not_alone():
    text = derived(SCHEDULE).replace("  role main", "  role other: 1 warp at 2 {\n    var i = 0\n  }\n  role main")
    kernel = elaborate(parse(Source("d.cake", text)).kernels[0], REGISTRY, SM90, derived=True)
    assert [(d.code, d.role) for d in check(kernel, REGISTRY, SM90)] == [("core/meeting", "main")]


@pytest.mark.parametrize(("expected", "found"), [(16, []), (12, ["core/transaction-bytes"])])
def test_an_exchange_by_barriers_counts_the_bytes_of_all_senders(expected, found):
    sends = "\n    ".join(f"cluster.send part[0][cluster.c] <- s at {k} signal got[0]" for k in range(4))
    text = f"if leader {{ mbarrier.expect got[0] bytes {expected} }}\n    {sends}\n    mbarrier.wait got[0] parity 0"
    assert [d.code for d in check(typed(text), REGISTRY, SM90) if d.code != "core/arrival-count"] == found


# --- sends into a pipeline

EXCHANGE = """cake 1
kernel k(R: i32, X: in f32[R, 1024], Y: out f32[R])
  require 0 <= R, R <= 1024
  target {arch}
  cluster c = 4
{{
  tiles t = persistent(c: 4, r: R)
  shared part: f32[2][4], count: u32[2][4], own: f32[2]
  pipeline p: 2 {{ part, count }} from add to show
  role add: 2 warps {{
    frag x: f32[256] vec 4
    for (c, r) in t {{
      x = load(X[r, c * 256 +: 256])
      store own[warp] <- warpsum(x)
      sync add
      let s = sum(load(own))
      acquire p as i
      sync add
      {sends}
      commit p
    }}
  }}
  role show: 1 warp {{
    for (c, r) in t {{
      wait p as i
      if c == 0 {{
        store Y[r] <- sum(load(part[i]))
      }}
      release p
    }}
  }}
}}
"""
TO_ALL = """for k in 0 .. 4 unroll {
        cluster.send part[i][c] <- s at k
        cluster.send.max count[i][k] <- u32(r) at k
      }"""


def exchanged(sends=TO_ALL, arch="sm90"):
    target = REGISTRY.architectures[arch]
    program = parse(Source("k.cake", EXCHANGE.format(sends=sends, arch=arch)))
    kernel = derive(elaborate(program.kernels[0], REGISTRY, target, derived=False), REGISTRY, target)
    text = program_text(replace(program, derived=True, kernels=(kernel,)))
    return text, elaborate(parse(Source("d.cake", text)).kernels[0], REGISTRY, target, derived=True)


@pytest.mark.parametrize("arch", ["sm90", "sm100"])
def test_a_slot_that_all_ctas_fill(arch):
    """Each CTA announces what all four send to it, and gives the slot back to all four."""
    text, kernel = exchanged(arch=arch)
    assert "mbarrier.expect p_full[i] bytes 32" in text  # 4 CTAs, two elements of 4 bytes
    assert [f"cluster.send part[i][c] <- s at {k} signal p_full[i]" in text for k in range(4)] == [True] * 4
    assert "barrier p_full: mbarrier[2] count 1 " in text and "barrier p_empty: mbarrier[2] count 4 " in text
    show = text.split("role show")[1]
    assert [f"mbarrier.arrive p_empty[p_release % 2] at {k}" in show for k in range(4)] == [True] * 4
    assert "cluster.sync" in text.split("role add")[0] and show.rstrip().endswith("cluster.sync\n}")
    target = REGISTRY.architectures[arch]
    assert check(kernel, REGISTRY, target) == []
    lowered = lower(kernel, REGISTRY, target)
    assert assemble(lowered.ptx, target.assembler_target, "k", lines=lowered.lines).cubin
    assert lowered.ptx.count("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 ") == 4
    assert lowered.ptx.count("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.u32 ") == 4


@pytest.mark.parametrize(
    ("sends", "code", "says"),
    [
        ("cluster.send part[i][c] <- s at 0", "derive/uneven-sends", "4 to CTA 0, 0 to CTA 1"),
        ("cluster.send part[i][c] <- s at (c + 1) % 4", "derive/uneven-sends", "to which CTA"),
        (TO_ALL + "\n      cluster.send own[0] <- s at 0", "derive/no-hand-off", "'own'"),
        (TO_ALL + "\n      store part[i][0] <- s", "derive/mixed-hand-off", "threads"),
        (TO_ALL.replace("part[i]", "part[0]"), "derive/fill-slot", "slot"),
    ],
)
def test_sends_that_can_t_be_counted(sends, code, says):
    with pytest.raises(CakeError) as error:
        exchanged(sends)
    (d,) = [d for d in error.value.diagnostics if d.code == code]
    assert re.search(says, f"{d.message} {d.why}")
