"""Texts that parse and are made to hurt: each ends in findings or in machine code, soon, and in little memory."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import pytest

SECONDS = 2.0  # of the processor
MEGABYTES = 500

VEC = """cake 1
kernel k(N: i32, A: in f32[N], I: in i32[N], B: out f32[N])
  const T = 256
  require 1 <= N, N <= 1048576
  target sm90
{{
  {kernel}
  tiles t = persistent(i: ceildiv(N, T))
  role main: 4 warps {{
    frag x: f32[T] vec 2
    {role}
    for i in t {{
      x = load(A[{at} +: T], fill = 0)
      {item}
      store B[i * T +: T] <- x
    }}
  }}
}}
"""
MM = (Path(__file__).parents[1] / "derive" / "texts" / "persistent.cake").read_text()
WAIT = "        wait ab as s\n"


def vec(kernel="", role="", at="i * T", item="") -> str:
    return VEC.format(kernel=kernel, role=role, at=at, item=item)


def consumer(before_the_wait: str) -> str:
    assert WAIT in MM
    return MM.replace(WAIT, before_the_wait + WAIT, 1)


def lines(*parts: str) -> str:
    return "\n".join(parts) + "\n"


def doubled(op: str, n: int, start: str = "N") -> str:
    return lines(f"let a0 = {start}", *(f"let a{i + 1} = a{i} {op} a{i}" for i in range(n)))


def nest(head: str, depth: int, body: str) -> str:
    return "".join(f"for z{i} in 0 .. nk {{ {head.format(i=i)}" for i in range(depth)) + body + "}" * depth + "\n"


# name: (text, what it ends in: a code, or None for machine code)
TEXTS = {
    "products that double their digits": (vec(role=doubled("*", 150), at="a150"), None),
    "products that double their digits, at launch": (vec(kernel=doubled("*", 150)).replace("ceildiv(N, T)", "a150"), "derive/not-a-launch-formula"),
    "indices read from memory": (vec(at="I[" * 40 + "0" + "]" * 40), None),
    "a loop unrolled 10^9 times": (vec(item="for j in 0 .. 1000000000 unroll { sync main }"), "type/unroll"),
    "unrolled loops in unrolled loops": (vec(item="for j in 0 .. 900 unroll { for k in 0 .. 900 unroll { for l in 0 .. 900 unroll { sync main } } }"), "type/unroll"),
    "an unrolled loop that runs backwards": (vec(item="for j in 5 .. -2000000000 unroll { sync main }"), None),
    "unrolled indices that leave 32 bits": (vec(item="for j in 0 .. 4 unroll { store B[j * 1000000000 +: T] <- x }"), "type/integer-range"),
    "unrolled division by zero": (vec(item="for j in 0 .. 4 unroll { store B[i / j +: T] <- x }"), "type/division-by-zero"),
    "a buffer of 2^40 elements": (MM.replace("a: bf16[4][64, 64]", "a: bf16[4][1048576, 1048576]"), "type/too-large"),
    "a fragment of 2^40 elements": (MM.replace("acc: f32[64, 128]", "acc: f32[1048576, 1048576]"), "type/too-large"),
    "a barrier array of 2^30": (
        "cake 1 derived\nkernel k(N: i32)\n  target sm90\n{\n  launch 1\n  barrier b: mbarrier[1073741824] count 1 at 0\n  role r: 1 warp at 0 { warp.sync }\n}\n",
        "type/too-large",
    ),
    "a tile of 2^30 elements in every thread": (vec(item="x = x * sum(load(A[0 +: 1073741824]))"), "core/whole-value"),
    "a tile of 2^30 elements in a fragment": (vec(item="x = load(A[0 +: 1073741824])"), "type/assign"),
    "a role of 10^12 warps": (vec().replace("role main: 4 warps", "role main[1000000]: 1000000 warps"), "type/role-size"),
    "pads of 10^9 warps": ("cake 1 derived\nkernel k(N: i32)\n  target sm90\n{\n  launch 1\n  role r: 1 warp at 0 pad 1000000000 { warp.sync }\n}\n", "type/role-size"),
    "a role at warp 2^31": ("cake 1 derived\nkernel k(N: i32)\n  target sm90\n{\n  launch 1\n  role r: 1 warp at 2147483647 { warp.sync }\n}\n", "core/threads"),
    "2,000 roles": ("cake 1\nkernel k(N: i32)\n  target sm90\n{\n" + lines(*(f"role r{i}: 1 warp {{ sync r{i} }}" for i in range(2000))) + "}\n", "type/role-size"),
    "a pipeline of 0 slots": (MM.replace("pipeline ab: 4", "pipeline ab: 0"), "type/slots"),
    "a pipeline of -3 slots": (MM.replace("pipeline ab: 4", "pipeline ab: -3"), "type/slots"),
    "a ring of 1,800 slots that is never drained": (
        "cake 1\nkernel k(A: in f32[32], N: i32)\n  target sm90\n{\n  shared a: f32[1800][32]\n  pipeline p: 1800 { a } from w to r\n"
        "  role w: 1 warp { for k in 0 .. N { acquire p as s\n tma.load a[s] <- A[0 +: 32]\n commit p } }\n"
        "  role r: 1 warp { for k in 0 .. N { wait p as s }\n drain p }\n}\n",
        "derive/held-too-many",
    ),
    "verbs 40 loops deep": (consumer(nest("", 40, "wait ab as q\nrelease ab\n")), None),
    "verbs under guards on 12 loops": (consumer(nest("", 12, lines(*(f"if z{i} > 7 {{ wait ab as q{i}\nrelease ab }}" for i in range(12))))), None),
    "a leak 12 loops deep": (consumer(nest("", 12, "wait ab as q\nif m > 3 { release ab }\n")), "derive/held-too-many"),
    "verbs under 40 guards of the item": (consumer(lines(*(f"if m > {i} {{ wait ab as q{i}\nrelease ab }}" for i in range(40)))), None),
    "levels that pass backwards through 150 variables": (
        vec(role=lines(*(f"var v{i} = 0" for i in range(150)), *(f"v{i} = v{i + 1}" for i in range(149)), "v149 = warp")),
        None,
    ),
    "consts in a circle": (vec().replace("T = 256", "T = U + 1, U = T - 1"), "type/unknown-name"),
    "a tile of no elements": (vec(item="store B[0 +: 0] <- x"), "type/slice-size"),
    "a tile of -8 elements": (vec(item="store B[0 +: -8] <- x"), "type/slice-size"),
    "the least integer": (vec(at="-(-2147483648)"), "type/integer-range"),
    "the least integer divided by -1": (vec(at="-2147483648 / -1"), "type/integer-range"),
    "a raster of 2^31 - 1": (MM.replace("n: ceildiv(N, 128)", "n: ceildiv(N, 128), raster = 2147483647"), None),
    "congruences modulo large primes": (vec().replace("require 1 <= N", "require N % 2147483647 == 3, N % 2147483629 == 5, N % 2147483587 == 7"), None),
    "a kernel without roles": ("cake 1\nkernel k(N: i32)\n  target sm90\n{\n}\n", "type/no-role"),
    "inline blocks that use each other": (
        vec(role="inline b0() { x = x + 1 }\n" + lines(*(f"inline b{i + 1}() {{ b{i}()\n b{i}() }}" for i in range(20))), item="b20()"),
        "type/inline",
    ),
    "slot indices that double in a derived text": (
        (Path(__file__).parents[1] / "derive" / "texts" / "persistent.derived").read_text().replace("let s = ab_wait % 4", doubled("+", 60, "ab_wait") + "let s = a60 % 4"),
        None,
    ),
}


@pytest.mark.parametrize(("text", "code"), TEXTS.values(), ids=TEXTS)
def test_a_text_made_to_hurt(text, code, told):
    told("cake 1\nkernel k(N: i32)\n  target sm90\n{\n}\n", "warm.cake")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    found, shown = told("#! lower\n" + text, "hostile.cake")
    assert time.process_time() - start < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEGABYTES * 1024
    codes = {d.code for d in found}
    assert code in codes if code else not codes, shown
