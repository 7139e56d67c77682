"""Bulk copies and reductions without a map, and what CTAs of a cluster do to each other's shared memory (PTX ISA, cp.async.bulk,
cp.reduce.async.bulk, mapa, st.async, red.async, ld and st .shared::cluster, mbarrier).
"""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from .case import Case, Exact, entry, rounded
from .copies import BAR, HEAD, MEET, THREADS, begin, drain, expect, fill, registers, wait

SIZE = 2048
REDUCTIONS = (
    *((op, k) for k in ("u32", "s32", "u64") for op in ("add", "min", "max")),
    *((op, "s64") for op in ("min", "max")),
    *((op, "u32") for op in ("inc", "dec")),
    *((op, k) for k in ("b32", "b64") for op in ("and", "or", "xor")),
    *((op, k) for k in ("f16", "bf16") for op in ("add", "min", "max")),
    *(("add", k) for k in ("f32", "f64")),
)
TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


def cases() -> Iterator[Case]:
    for size in (16, 48, 1024):
        yield loaded(size)
        yield stored(size)
        yield between(size)
        yield loaded(size, "shared::cta")
        yield loaded(size, hint=True)
    yield spread()
    for op, kind in REDUCTIONS:
        yield reduced(op, kind)
    for op, kind in (
        *((o, k) for o in ("add", "min", "max") for k in ("u32", "s32")),
        ("add", "u64"),
        ("inc", "u32"),
        ("dec", "u32"),
        *((o, "b32") for o in ("and", "or", "xor")),
    ):
        yield reduced_far(op, kind)
    for word in ("b32", "b64", "v2.b32", "v4.b32", "v2.b64"):
        yield sent(word)
    for op, kinds in (("add", ("u32", "s32", "u64")), *((o, ("u32", "s32")) for o in ("min", "max")), *((o, ("u32",)) for o in ("inc", "dec"))):
        for kind in kinds:
            yield combined(op, kind)
    for op in ("and", "or", "xor"):
        yield combined(op, "b32")
    yield asked()
    yield told()
    yield told_bytes()
    yield ranks()
    yield phases()


def pattern(size: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


def made(form: str, lines: list[str], params: dict, outputs: dict, cluster: int = 1) -> Case:
    return Case(
        "bulk", form, entry(" ".join(params), "\n".join([registers(SIZE), *lines]), HEAD), params, outputs, THREADS, cluster, cluster, SIZE + BAR
    )


def loaded(size: int, space: str = "shared::cluster", hint: bool = False) -> Case:
    word, operand, policy = (
        (".L2::cache_hint", ", %policy", ".reg .b64 %policy; createpolicy.fractional.L2::evict_last.b64 %policy, 1.0;") if hint else ("", "", "")
    )
    copy = f"add.u32 %at, %s, 256; add.u64 %g, %A, 32; @%first cp.async.bulk.{space}.global.mbarrier::complete_tx::bytes{word} [%at], [%g], {size}, [%b]{operand};"
    lines = [fill(SIZE), begin(), expect(size), policy, copy, wait(), drain(SIZE)]
    name = f"load {size}{'' if space == 'shared::cluster' else f' to {space}'}{' with a hint' if hint else ''}"
    return made(name, lines, {"S": np.full(SIZE, 0xCD, np.uint8), "A": pattern(SIZE), "D": np.zeros(SIZE, np.uint8)}, {"D": Exact()})


def stored(size: int) -> Case:
    copy = f"add.u32 %at, %s, 256; add.u64 %g, %A, 32; @%first cp.async.bulk.global.shared::cta.bulk_group [%g], [%at], {size};"
    lines = [fill(SIZE), begin(), copy, "@%first cp.async.bulk.commit_group; @%first cp.async.bulk.wait_group 0;"]
    return made(f"store {size}", lines, {"S": pattern(SIZE), "A": np.full(SIZE, 0xCD, np.uint8)}, {"A": Exact()})


def between(size: int) -> Case:
    """Each CTA of two into the other's."""
    lines = [
        fill(SIZE),
        begin(),
        expect(size),
        MEET,
        ".reg .u32 %other; xor.b32 %other, %rank, 1; add.u32 %at, %s, 1024; mapa.shared::cluster.u32 %far, %at, %other;",
    ]
    lines += ["mapa.shared::cluster.u32 %far2, %b, %other;"]
    lines += [
        f"@%first cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%far], [%s], {size}, [%far2];",
        wait(),
        drain(SIZE),
        MEET,
    ]
    return made(f"to another CTA {size}", lines, {"S": pattern(2 * SIZE), "D": np.zeros(2 * SIZE, np.uint8)}, {"D": Exact()}, 2)


def spread() -> Case:
    copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
    lines = [fill(SIZE), begin(), expect(512), MEET, ".reg .b16 %mask; mov.b16 %mask, 3; setp.eq.u32 %q, %rank, 1; and.pred %q, %q, %first;"]
    lines += [f"add.u32 %at, %s, 128; @%q {copy} [%at], [%A], 512, [%b], %mask;", wait(), drain(SIZE), MEET]
    params = {"S": np.full(2 * SIZE, 0xCD, np.uint8), "A": pattern(SIZE), "D": np.zeros(2 * SIZE, np.uint8)}
    return made("load multicast", lines, params, {"D": Exact()}, 2)


def numbers(kind: str, seed: int) -> np.ndarray:
    if kind in TYPES:
        of = np.dtype(TYPES[kind])
        return rounded(np.random.default_rng(seed).standard_normal(SIZE // of.itemsize) * 8, of)
    return pattern(SIZE, seed).view(f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:]) // 8}")


def reduced(op: str, kind: str) -> Case:
    word = ".noftz" if kind in ("f16", "bf16") and op == "add" else ""
    copy = f"@%first cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}{word}.{kind} [%A], [%s], {SIZE};"
    lines = [fill(SIZE), begin(), copy, "@%first cp.async.bulk.commit_group; @%first cp.async.bulk.wait_group 0;"]
    return made(f"reduce {op}{word}.{kind}", lines, {"S": numbers(kind, 1), "A": numbers(kind, 2)}, {"A": Exact(nan=True)})


def reduced_far(op: str, kind: str) -> Case:
    """Half of the own buffer into the upper half of the other CTA's."""
    half = SIZE // 2
    lines = [
        fill(SIZE),
        begin(),
        expect(half),
        MEET,
        f".reg .u32 %other; xor.b32 %other, %rank, 1; add.u32 %at, %s, {half}; mapa.shared::cluster.u32 %far, %at, %other;",
    ]
    lines += ["mapa.shared::cluster.u32 %far2, %b, %other;"]
    copy = f"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{op}.{kind}"
    lines += [f"@%first {copy} [%far], [%s], {half}, [%far2];", wait(), drain(SIZE), MEET]
    return made(f"reduce to another CTA {op}.{kind}", lines, {"S": pattern(2 * SIZE), "D": np.zeros(2 * SIZE, np.uint8)}, {"D": Exact()}, 2)


def sent(word: str) -> Case:
    """st.async of every thread of one warp to the other CTA."""
    size = {"b32": 4, "b64": 8, "v2.b32": 8, "v4.b32": 16, "v2.b64": 16}[word]
    bits = word.split(".")[-1]
    count = size * 8 // int(bits[1:])
    names = ", ".join(f"%x{n}" for n in range(count))
    value = f"{{{names}}}" if count > 1 else names
    vector = f".v{count}" if count > 1 else ""
    lines = [
        fill(SIZE),
        begin(),
        expect(32 * size),
        MEET,
        f".reg .u32 %other; .reg .{bits} %x<4>; xor.b32 %other, %rank, 1; mad.lo.u32 %at, %t, {size}, %s;",
    ]
    lines += [
        f"setp.lt.u32 %q, %t, 32; @%q ld.shared{vector}.{bits} {value}, [%at]; add.u32 %at, %at, 1024; mapa.shared::cluster.u32 %far, %at, %other;"
    ]
    lines += [
        f"mapa.shared::cluster.u32 %far2, %b, %other; @%q st.async.shared::cluster.mbarrier::complete_tx::bytes{vector}.{bits} [%far], {value}, [%far2];"
    ]
    lines += [wait(), drain(SIZE), MEET]
    return made(f"st.async {word}", lines, {"S": pattern(2 * SIZE), "D": np.zeros(2 * SIZE, np.uint8)}, {"D": Exact()}, 2)


def combined(op: str, kind: str) -> Case:
    """red.async of every thread of one warp with the other CTA's memory; lanes 30 and 31 at one place."""
    size = int(kind[1:]) // 8
    lines = [fill(SIZE), begin(), expect(32 * size), MEET, f".reg .u32 %other, %place; .reg .b{8 * size} %x; xor.b32 %other, %rank, 1;"]
    lines += [f"min.u32 %place, %t, 30; mad.lo.u32 %at, %t, {size}, %s; setp.lt.u32 %q, %t, 32; @%q ld.shared.b{8 * size} %x, [%at];"]
    lines += [
        f"mad.lo.u32 %at, %place, {size}, %s; add.u32 %at, %at, 1024; mapa.shared::cluster.u32 %far, %at, %other; mapa.shared::cluster.u32 %far2, %b, %other;"
    ]
    lines += [
        f"@%q red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{op}.{kind} [%far], %x, [%far2];",
        wait(),
        drain(SIZE),
        MEET,
    ]
    source = pattern(2 * SIZE)
    if op in ("inc", "dec"):  # of two at one place the order shows
        source.view(np.uint32).reshape(2, -1)[:, 31] = source.view(np.uint32).reshape(2, -1)[:, 30]
    return made(f"red.async.{op}.{kind}", lines, {"S": source, "D": np.zeros(2 * SIZE, np.uint8)}, {"D": Exact()}, 2)


def asked() -> Case:
    """Loads, stores and atomics on the other CTA's shared memory."""
    lines = [
        fill(SIZE),
        begin(),
        ".reg .u32 %other; .reg .b32 %x; xor.b32 %other, %rank, 1; mad.lo.u32 %at, %t, 4, %s; mapa.shared::cluster.u32 %far, %at, %other;",
    ]
    lines += [
        "ld.shared::cluster.b32 %x, [%far]; st.shared::cluster.b32 [%far+1024], %x; add.u32 %at, %s, 1536; mapa.shared::cluster.u32 %far, %at, %other;"
    ]
    lines += [
        "red.relaxed.cluster.shared::cluster.add.u32 [%far], %t; atom.relaxed.cluster.shared::cluster.xor.b32 %x, [%far+4], %t;",
        MEET,
        drain(SIZE),
        MEET,
    ]
    return made("ld st atom .shared::cluster", lines, {"S": pattern(2 * SIZE), "D": np.zeros(2 * SIZE, np.uint8)}, {"D": Exact()}, 2)


def told() -> Case:
    """Each CTA arrives at the other's barrier, and sees what the other wrote before."""
    lines = [
        fill(SIZE),
        begin(),
        ".reg .u32 %other; .reg .b32 %x; xor.b32 %other, %rank, 1; mapa.shared::cluster.u32 %far, %s, %other; mapa.shared::cluster.u32 %far2, %b, %other;",
    ]
    lines += ["@%first st.shared::cluster.b32 [%far+64], 0x5EED; @%first mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%far2];"]
    lines += [wait().replace("try_wait.parity", "try_wait.parity.acquire.cluster"), "bar.arrive 1, 256; bar.sync 1, 256;", drain(SIZE)]
    lines += [
        "barrier.cluster.arrive.release; barrier.cluster.wait.acquire; @%first mbarrier.arrive.shared::cluster.b64 _, [%far2];",
        wait(1, "LAST"),
        MEET,
    ]
    return made("arrive at another CTA", lines, {"S": pattern(2 * SIZE), "D": np.zeros(2 * SIZE, np.uint8)}, {"D": Exact()}, 2)


def told_bytes() -> Case:
    """Each CTA expects bytes at the other's barrier, arrives there, and says that they have come."""
    lines = [
        fill(SIZE),
        begin(3),
        ".reg .u32 %other; xor.b32 %other, %rank, 1; mapa.shared::cluster.u32 %far, %s, %other; mapa.shared::cluster.u32 %far2, %b, %other;",
    ]
    lines += ["@%first st.shared::cluster.b32 [%far+64], 0x5EED; @%first mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%far2], 48;"]
    lines += [
        "@%first mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%far2], 16; @%first mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%far2], 2;"
    ]
    lines += ["@%first mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%far2], 64;"]
    lines += [wait().replace("try_wait.parity", "try_wait.parity.acquire.cluster"), drain(SIZE), MEET]
    return made("bytes at another CTA's barrier", lines, {"S": pattern(2 * SIZE), "D": np.zeros(2 * SIZE, np.uint8)}, {"D": Exact()}, 2)


def ranks() -> Case:
    """Numbers of CTAs, clusters, and addresses of others."""
    words = (
        "%cluster_ctarank",
        "%cluster_nctarank",
        "%cluster_ctaid.x",
        "%cluster_nctaid.x",
        "%clusterid.x",
        "%nclusterid.x",
        "%ctaid.x",
        "%nctaid.x",
        "%ntid.x",
    )
    lines = [".reg .u32 %x; mul.wide.u32 %o, %rank, 64; add.u64 %g, %D, %o;"]
    lines += [f"mov.u32 %x, {w}; @%first st.global.u32 [%g+{4 * n}], %x;" for n, w in enumerate(words)]
    lines += ["mapa.shared::cluster.u32 %far, %s, 3; getctarank.shared::cluster.u32 %x, %far; @%first st.global.u32 [%g+36], %x;"]
    return made("ranks", lines, {"D": np.zeros(64, np.uint32)}, {"D": Exact()}, 4)


def phases() -> Case:
    """What an mbarrier's tests and counts say, phase by phase; states themselves are opaque."""
    lines = [
        "@%first mbarrier.init.shared::cta.b64 [%b], 5; bar.sync 0; setp.ne.u32 %q, %t, 0; @%q bra END; .reg .b64 %state; .reg .u32 %x; .reg .pred %r; mov.u64 %g, %D;"
    ]
    n = 0

    def note(text: str, what: str = "%x") -> None:
        nonlocal n
        lines.append(f"{text} st.global.u32 [%g+{4 * n}], {what};")
        n += 1

    test = lambda: note("mbarrier.test_wait.shared::cta.b64 %r, [%b], %state; selp.u32 %x, 1, 0, %r;")
    parity = lambda p: note(f"mbarrier.test_wait.parity.shared::cta.b64 %r, [%b], {p}; selp.u32 %x, 1, 0, %r;")
    pending = lambda: note("mbarrier.pending_count.b64 %x, %state;")
    for arrival in (
        "mbarrier.arrive.shared::cta.b64 %state, [%b];",
        "mbarrier.arrive.noComplete.shared::cta.b64 %state, [%b], 2;",
        "mbarrier.arrive.shared::cta.b64 %state, [%b], 1;",
        "mbarrier.arrive_drop.shared::cta.b64 %state, [%b];",
        "mbarrier.arrive.shared::cta.b64 %state, [%b], 3;",
        "mbarrier.arrive.expect_tx.shared::cta.b64 %state, [%b], 64;",
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%b], 32;",
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%b], 32;",
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%b], 16;",
        "mbarrier.arrive.shared::cta.b64 %state, [%b], 4;",
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%b], 16;",
    ):
        lines.append(arrival)
        if "arrive" in arrival:
            pending()
        test(), parity(0), parity(1)
    lines.append("END:")
    return made("mbarrier phases", lines, {"D": np.full(64, 7, np.uint32)}, {"D": Exact()})
