"""What the operations refuse, derive and do."""

from __future__ import annotations

import pytest

from cake_core.diagnostics import CakeError, Severity
from cake_core.effects import Access, CommitGroup, InGroup, Mode, Proxy, WaitGroup
from cake_core.ir.nodes import Program
from cake_core.ir.printer import program_text
from cake_cp_async.copy import COPY
from cake_cp_async.groups import COMMIT, WAIT

SCHEDULE = """cake 1
kernel k(M: i32, K: i32, A: in {elem}[M, K], R: in bf16[8, 8, 8])
  require 1 <= M, M <= 65536, 1 <= K, K <= 65536, {require}
  target {target}
{{
  tiles t = grid(m: ceildiv(M, 64))
  shared a: {elem}[2][64, 64], c: f32[64], s: bf16[2][64, 64]
  role main: 4 warps {{
    for m in t {{
      {statement}
      cp.async.wait 0
    }}
  }}
}}
"""


def text(statement, elem="bf16", require="K % 8 == 0", target="sm80"):
    return SCHEDULE.format(statement=statement, elem=elem, require=require, target=target)


COPY_A = "cp.async a[0] <- A[m * 64 +: 64, 0 +: 64]"


@pytest.mark.parametrize(
    ("elem", "require", "width"),
    [
        ("bf16", "K % 8 == 0", 16),
        ("bf16", "K % 4 == 0", 8),
        ("bf16", "K % 2 == 0", 4),
        ("f32", "K % 4 == 0", 16),
        ("f32", "K % 2 == 0", 8),
        ("f32", "K >= 1", 4),
    ],
)
def test_the_widest_legal_copy_is_derived(derived, elem, require, width):
    assert f"{COPY_A} by {width}\n" in derived(text(COPY_A, elem, require))


def test_the_swizzle_is_as_wide_as_the_rows(derived):
    assert "shared a: bf16[2][64, 64] at 0 swizzle 128" in derived(text(COPY_A))
    narrow = text(COPY_A).replace("[2][64, 64]", "[2][64, 32]").replace("0 +: 64]", "0 +: 32]")
    assert "shared a: bf16[2][64, 32] at 0 swizzle 64" in derived(narrow)


def test_a_prefetch_stays_and_asks_for_16_bytes(derived):
    assert f"{COPY_A} prefetch 256 by 16\n" in derived(text(f"{COPY_A} prefetch 256"))


def refused(make, *args):
    with pytest.raises(CakeError) as raised:
        make(*args)
    (d,) = raised.value.diagnostics
    assert d.message[0] in "'abcdefghijklmnopqrstuvwxyz0123456789" and not d.message.endswith(".")
    return d


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("cp.async a[0] <- A[m * 64 +: 64, 0 +: 32]", "type/shape"),
        ("cp.async a[0][:, 0 +: 32] <- A[m * 64 +: 64, 0 +: 64]", "type/shape"),
        ("cp.async c <- A[m * 64, 0 +: 64]", "type/element"),
        ("cp.async a <- A[m * 64 +: 64, 0 +: 64]", "type/index"),
        ("cp.async a[0] <- A[m * 64 +: 64, 0 +: 64].T", "type/transposed"),
        ("cp.async a[0][0, 0] <- A[m, 0]", "type/shape"),
        ("cp.async a[warp % 2] <- A[m * 64 +: 64, 0 +: 64]", "core/one-place"),
        (f"{COPY_A} prefetch 32", "ptx/cp-async-prefetch"),
        (f"{COPY_A} by 16", "type/form"),
        ("cp.async.wait 0 - 1", "ptx/cp-async-pending"),
        ("cp.async A[0 +: 64, 0 +: 64] <- A[m * 64 +: 64, 0 +: 64]", "type/operand"),
    ],
)
def test_what_is_refused(typed, statement, code):
    assert refused(typed, text(statement)).code == code


def test_a_copy_whose_alignment_is_not_known(derived):
    d = refused(derived, text(COPY_A, require="K >= 1"))
    assert d.code == "ptx/cp-async-width" and "require" in d.fix and "2 bytes" in d.why


def test_a_prefetch_whose_alignment_is_not_known(derived):
    assert refused(derived, text(f"{COPY_A} prefetch 64", require="K % 4 == 0")).code == "ptx/cp-async-width"


DERIVED = """cake 1 derived
kernel k(K: i32, A: in bf16[64, K])
  require 1 <= K, K <= 65536, K % 4 == 0
  target sm80
{{
  launch 1
  shared a: bf16[64, 64] at {at} swizzle 128
  role main: 4 warps at 0 {{
    cp.async a <- A[0 +: 64, 0 +: 64]{words}
    cp.async.wait 0
  }}
}}
"""


@pytest.mark.parametrize(
    ("words", "at", "code"),
    [
        ("", 0, "type/missing-word"),
        (" by 16", 0, "ptx/cp-async-width"),
        (" by 12", 0, "ptx/cp-async-width"),
        (" by 2", 0, "ptx/cp-async-width"),
        (" prefetch 64 by 8", 0, "ptx/cp-async-width"),
        (" by 8", 4, "ptx/cp-async-width"),
        (" by 8", 0, None),
        (" by 4", 0, None),
    ],
)
def test_what_is_refused_in_the_derived_form(typed, words, at, code):
    if code is None:
        assert typed(DERIVED.format(words=words, at=at))
    else:
        assert refused(typed, DERIVED.format(words=words, at=at)).code == code


def test_effects(copies):
    (op,) = copies(text(COPY_A))
    read, write = COPY.effects(op)
    assert (read.mode, write.mode) == (Mode.READ, Mode.WRITE)
    assert all(isinstance(e, Access) and e.proxy is Proxy.GENERIC and e.completion == InGroup("cp_async") for e in (read, write))
    assert (read.place, write.place) == (op.value, op.operands[0])
    assert COMMIT.effects(op) == (CommitGroup("cp_async"),)


def test_the_effect_of_a_wait(typed):
    from cake_core.ir.flow import walk
    from cake_core.ir.nodes import Op

    (wait,) = [s for s in walk(typed(text("cp.async.wait 3").replace("      cp.async.wait 0\n", "")).roles[0].body) if isinstance(s, Op)]
    assert WAIT.effects(wait) == (WaitGroup("cp_async", 3),)


def test_a_target_without_the_capability(registry, typed):
    from dataclasses import replace

    sm80 = registry.architectures["sm80"]
    poorer = replace(sm80, capabilities=sm80.capabilities - {"cp_async"})
    with pytest.raises(CakeError) as raised:
        typed(text(COPY_A), poorer)
    assert {d.code for d in raised.value.diagnostics} == {"type/missing-capability"}
    assert {d.resource for d in raised.value.diagnostics} == {"cp_async"}


def test_copies_in_flight_at_the_end_are_found(typed, registry, arch):
    from cake_core.check import check
    from cake_core.derive import derive
    from cake_core.elaborate import elaborate

    kernel = typed(text(f"{COPY_A}\n      cp.async.commit").replace("cp.async.wait 0", "cp.async.wait 1"))
    findings = check(elaborate(derive(kernel, registry, arch), registry, arch, derived=True), registry, arch)
    assert [(d.code, d.resource) for d in findings if d.severity is Severity.ERROR] == [("core/in-flight-at-end", "a")]


PIPELINED = """cake 1
kernel k(K: i32, A: in bf16[64, K])
  require 1 <= K, K <= 65536, K % 8 == 0
  target sm90
{
  tiles t = grid(m: 1)
  shared a: bf16[2][64, 64]
  pipeline p: 2 { a } from main to other
  role other: 1 warp {
    for m in t {
      wait p as q
      release p
    }
  }
  role main: 4 warps {
    for m in t {
      acquire p as q
      cp.async a[q] <- A[:, 0 +: 64]
      cp.async.commit
      commit p
      cp.async.wait 0
    }
  }
}
"""


def test_a_pipeline_is_not_filled_by_groups(typed, registry):
    """An arrival would not wait for the copies."""
    from cake_core.derive import derive

    sm90 = registry.architectures["sm90"]
    with pytest.raises(CakeError) as raised:
        derive(typed(PIPELINED, sm90), registry, sm90)
    (d,) = raised.value.diagnostics
    assert d.code == "derive/not-implemented" and "groups" in d.message


CROSSING = """cake 1
kernel k(K: i32, A: in bf16[64, K], B: in bf16[64, K], D: out f32[64, 64])
  require 0 <= K, K <= 65536, K % 8 == 0
  target sm90
{
  tiles t = grid(m: 1)
  shared a: bf16[2][64, 64], b: bf16[2][64, 64]
  role main: 1 warpgroup {
    frag acc: f32[64, 64]
    for m in t {
      acc = 0
      for k in 0 .. ceildiv(K, 64) {
        cp.async a[k % 2] <- A[:, k * 64 +: 64]
        cp.async b[k % 2] <- B[:, k * 64 +: 64]
        cp.async.commit
        cp.async.wait 0
        sync main
        wgmma acc += a[k % 2] @ b[k % 2].T
        wgmma.wait 0
        sync main
      }
      store D[:, :] <- acc
    }
  }
}
"""


def test_what_has_landed_is_fenced_before_another_proxy_reads_it(typed, registry):
    """Copies are generic writes that are there when their group has been waited for: the fence stands behind the wait."""
    from cake_core.derive import derive

    sm90 = registry.architectures["sm90"]
    made = program_text(Program(1, True, (derive(typed(CROSSING, sm90), registry, sm90),)))
    words = [line.split()[0] for line in made.splitlines() if line.strip()]
    at = words.index("cp.async.wait")
    assert words[at : at + 4] == ["cp.async.wait", "fence.proxy.async", "bar.sync", "wgmma.fence"]
    assert words.count("fence.proxy.async") == 1
