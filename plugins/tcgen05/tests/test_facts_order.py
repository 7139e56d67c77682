"""What is emitted, item by item: completion and fences, loads and stores, pairs. `test_facts.py` has the rest.

Each row: the item, its source, what the compiler emitted, and the expectation, written down or computed here apart from the
compiler. Registers are called by their class alone. Everything was assembled for sm_100a; nothing was executed.
"""

from __future__ import annotations

import re

import pytest

ISA = "PTX ISA 9.1"
OTHERS = "CUTLASS, DeepGEMM, Triton, TVM"


#: item, source, what is emitted, what is expected
FACTS = [
    # --- completion
    (
        "commit: form",
        f"{ISA}, tcgen05.commit; ptxas refuses shared::cta",
        lambda k: k.one.one("tcgen05.commit"),
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r]",
    ),
    (
        "commit in a pair: both CTAs, 16-bit mask",
        f"{ISA}, tcgen05.commit, multicast; {OTHERS}: 0b11",
        lambda k: k.pair.one("tcgen05.commit"),
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r], %h",
    ),
    ("the mask is that of both", "bit i is rank i", lambda k: set(k.pair.all("mov.b16")), {"mov.b16 %h, 3"}),
    (
        "one thread issues products and their commit",
        f"{ISA}: all earlier ones by this thread",
        lambda k: re.findall(r"if leader \{\n\s+(tcgen05.mma).*\n\s+(tcgen05.commit)", k.one.derived),
        [("tcgen05.mma", "tcgen05.commit")],
    ),
    ("commit implies the fence before", f"{ISA}; DeepGEMM", lambda k: "tcgen05.fence.before" in k.one.role("mma"), False),
    (
        "fence after each wait of the issuing warp, for the slot and for the accumulator",
        f"{ISA}; DeepGEMM, TVM",
        lambda k: k.one.behind("mma", "mbarrier.wait"),
        {"tcgen05.fence.after"},
    ),
    (
        "fence after the wait before loads",
        f"{ISA}; DeepGEMM, TVM",
        lambda k: k.one.behind("epi", "mbarrier.wait"),
        {"tcgen05.fence.after"},
    ),
    ("none for copies of the asynchronous proxy", f"{ISA}", lambda k: [s for s in k.one.role("load") if s.startswith("tcgen05")], []),
    (
        "loads complete, fence, warps meet, arrival",
        f"{ISA}; DeepGEMM",
        lambda k: k.tail(k.one),
        ["tcgen05.wait.ld", "tcgen05.fence.before", "warp.sync", "mbarrier.arrive"],
    ),
    (
        "stores complete, fence, warps meet, arrival",
        f"{ISA}: st before mma needs wait::st",
        lambda k: [
            s.split(" ")[0]
            for s in k.ts.role("move")
            if s.startswith(("tcgen05.st", "tcgen05.wait", "tcgen05.fence.before", "warp", "mbarrier.arrive"))
        ][:5],
        ["tcgen05.st", "tcgen05.wait.st", "tcgen05.fence.before", "warp.sync", "mbarrier.arrive"],
    ),
    (
        "no arrival of the engine comes to a CTA that has left: its last ones are waited for",
        "CUTLASS, producer tail; DeepGEMM: another round of waits",
        lambda k: [re.findall(r"for ab_last in 0 .. (\d).*?mbarrier.wait (\w+)", c.derived, re.S) for c in (k.one, k.pair)],
        [[("4", "ab_empty")], [("6", "ab_empty")]],
    ),
    # --- loads and stores
    (
        "ld: form and vector",
        f"{ISA}, tcgen05.ld",
        lambda k: re.sub(r"\{.*\}", "{..}", k.one.all("tcgen05.ld")[1]),
        "tcgen05.ld.sync.aligned.32x32b.x64.b32 {..}, [%r+64]",
    ),
    (
        "ld: as many registers as .num",
        f"{ISA}, tcgen05.ld: x1 to x128",
        lambda k: [(n, k.moved(n)) for n in (16, 32, 48, 128, 96)],
        [(16, [16]), (32, [32]), (48, [32, 16]), (128, [128]), (96, [64, 32])],
    ),
    (
        "st: form; 64 elements of 16 bits are 32 columns, behind the 128 of the accumulator",
        f"{ISA}, tcgen05.st",
        lambda k: re.sub(r"\{.*\}", "{..}", k.ts.one("tcgen05.st")),
        "tcgen05.st.sync.aligned.32x32b.x32.b32 [%r+128], {..}",
    ),
    ("wait: all loads of the thread", f"{ISA}, tcgen05.wait", lambda k: k.one.one("tcgen05.wait"), "tcgen05.wait::ld.sync.aligned"),
    ("wait: all stores of the thread", f"{ISA}, tcgen05.wait", lambda k: k.ts.all("tcgen05.wait::st"), ["tcgen05.wait::st.sync.aligned"]),
    (
        "lane bits: 32 (w mod 4) in bits 31-16",
        f"{ISA}; Triton, CuTe DSL",
        lambda k: [k.lane(w) for w in range(4)],
        [0, 32 << 16, 64 << 16, 96 << 16],
    ),
    (
        "warp w of the role is warp w mod 4",
        f"{ISA}, access restrictions",
        lambda k: [int(re.search(r"role epi: 4 warps at (\d+)", c.derived)[1]) % 4 for c in (k.one, k.pair)],
        [0, 0],
    ),
    (
        ".sync.aligned is never predicated",
        f"{ISA}; ptxas takes it",
        lambda k: [i for c in (k.one, k.pair, k.ts) for i in c.all("tcgen05") if i.startswith("@")],
        [],
    ),
    # --- pairs
    (
        "each CTA loads half of A's rows and of B's",
        f"{OTHERS}",
        lambda k: re.findall(r"<- (\w)\[. \* 256 \+ 128 \* cluster.m \+: 128", "".join(k.pair.role("load"))),
        ["A", "B"],
    ),
    (
        "the first CTA issues, the second has no such role",
        f"{ISA}: one thread of either; {OTHERS}: the even one",
        lambda k: k.pair.role("mma")[0],
        "role mma: 1 warp at 1 on pair[0] {",
    ),
    ("the second CTA's warp leaves", "cluster_ctarank bit 0", lambda k: k.leaves(), True),
    (
        "loads may signal the peer only as a pair",
        f"{ISA}, cp.async.bulk.tensor, .cta_group::2",
        lambda k: {i.split(" ")[0] for i in k.pair.all("cp.async.bulk.tensor.2d.shared")},
        {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2"},
    ),
    (
        "loads of one CTA need no cta_group",
        f"{ISA}, cp.async.bulk.tensor",
        lambda k: {i.split(" ")[0] for i in k.one.all("cp.async.bulk.tensor.2d.shared")},
        {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"},
    ),
    (
        "each CTA announces its bytes at the first one's barrier",
        "DeepGEMM, Gluon: mbarrier.arrive.expect_tx.shared::cluster",
        lambda k: (k.pair.one("mapa"), k.pair.one("mbarrier.arrive.expect_tx"), 2 * 128 * 64 * 2),
        ("mapa.shared::cluster.u32 %r, %r, 0", "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%r], 32768", 32768),
    ),
    ("full: both CTAs' announcements", "2 loaders", lambda k: k.pair.count("ab_full"), 2),
    ("empty: one commit", "the engine arrives once at each CTA", lambda k: (k.one.count("ab_empty"), k.pair.count("ab_empty")), (1, 1)),
    (
        "accumulator full: one commit",
        "the engine arrives once at each CTA",
        lambda k: (k.one.count("accp_full"), k.pair.count("accp_full")),
        (1, 1),
    ),
    (
        "accumulator empty: one arrival a warp, of both CTAs",
        "4 warps",
        lambda k: (k.one.count("accp_empty"), k.pair.count("accp_empty")),
        (4, 8),
    ),
    (
        "arrivals of the second CTA are remote",
        f"{ISA}, mapa, mbarrier.arrive",
        lambda k: [s for s in k.pair.role("epi") if s.startswith("mbarrier.arrive")],
        ["mbarrier.arrive accp_empty[accp_release % 2] at 0"],
    ),
    (
        "D of a pair: row m of 256 is lane m mod 128 of CTA m / 128",
        f"{ISA}, layout A",
        lambda k: set(re.findall(r"D\[(m \* 256 \+ 128 \* cluster.m \+: 128)", k.pair.derived)),
        {"m * 256 + 128 * cluster.m +: 128"},
    ),
]


@pytest.mark.parametrize(("item", "source", "emitted", "expected"), FACTS, ids=[f[0] for f in FACTS])
def test_fact(k, item, source, emitted, expected):
    assert emitted(k) == (expected(k) if callable(expected) else expected), source


def test_every_row_has_a_source():
    assert all(source for _, source, *_ in FACTS) and len({item for item, *_ in FACTS}) == len(FACTS)
