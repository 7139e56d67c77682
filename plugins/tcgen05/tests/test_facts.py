"""What is emitted, item by item: allocation, descriptors, products, block scales. `test_facts_order.py` has the rest.

Each row: the item, its source, what the compiler emitted, and the expectation, written down or computed here apart from the
compiler. Registers are called by their class alone. Everything was assembled for sm_100a; nothing was executed.
"""

from __future__ import annotations

import re

import pytest

ISA = "PTX ISA 9.1"
OTHERS = "CUTLASS, DeepGEMM, Triton, TVM"


def descriptor(*fields: tuple[int, int]) -> int:
    """(bit, value) of each field."""
    return sum(value << bit for bit, value in fields)


#: item, source, what is emitted, what is expected (or a function that says it)
FACTS = [
    # --- the module
    (
        "version and target",
        f"{ISA}, tcgen05, target ISA notes: sm_100a from 8.6, .kind::mxf4nvf4 from 8.7",
        lambda k: k.one.ptx.split()[:4],
        [".version", "8.7", ".target", "sm_100a"],
    ),
    (
        "one cta_group a kernel: 1",
        f"{ISA}, CTA pair; ptxas refuses a mix",
        lambda k: set(re.findall(r"cta_group::\d", k.one.ptx)),
        {"cta_group::1"},
    ),
    (
        "one cta_group a kernel: 2",
        f"{ISA}, CTA pair; ptxas refuses a mix",
        lambda k: set(re.findall(r"cta_group::\d", k.pair.ptx)),
        {"cta_group::2"},
    ),
    (
        "no advisory, no spill",
        "ptxas",
        lambda k: [(c.advisories, c.usage and (c.usage.spill_stores, c.usage.stack)) for c in (k.one, k.pair) if c.usage],
        lambda k: [((), (0, 0))] * sum(c.usage is not None for c in (k.one, k.pair)),
    ),
    # --- allocation
    (
        "alloc: shape and immediate columns",
        f"{ISA}, tcgen05.alloc",
        lambda k: k.one.one("tcgen05.alloc"),
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r], 512",
    ),
    (
        "alloc in a pair",
        f"{ISA}, tcgen05.alloc; {OTHERS}: one warp in each CTA",
        lambda k: k.pair.one("tcgen05.alloc"),
        "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r], 512",
    ),
    (
        "alloc: the least power of two that holds all",
        f"{ISA}: 32, 64, 128, 256, 512",
        lambda k: [k.columns(n, w) for n, w in ((1, 32), (1, 48), (2, 96), (1, 256), (2, 256), (4, 128))],
        [32, 64, 256, 256, 512, 512],
    ),
    (
        "alloc: once, so sizes never grow",
        f"{ISA}, tcgen05.alloc",
        lambda k: [len(c.all("tcgen05.alloc")) for c in (k.one, k.pair, k.ts)],
        [1, 1, 1],
    ),
    (
        "relinquish behind alloc, no alloc after it",
        f"{ISA}, tcgen05.relinquish_alloc_permit",
        lambda k: k.one.order("tcgen05.alloc", "tcgen05.relinquish", "tcgen05.dealloc"),
        ["tcgen05.alloc", "tcgen05.relinquish", "tcgen05.dealloc"],
    ),
    (
        "dealloc: a register without brackets",
        f"{ISA}, tcgen05.dealloc; ptxas: '[taddr]' is refused",
        lambda k: k.one.one("tcgen05.dealloc"),
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r, 512",
    ),
    (
        "by one whole converged warp, the same for both",
        f"{ISA}; CUTLASS, BOOK",
        lambda k: re.findall(r"if warp == 0 \{\n    warp.sync\n(?:    tcgen05.fence.after\n)?    (\S+)", k.one.derived),
        ["tcgen05.alloc", "tcgen05.dealloc"],
    ),
    (
        "the address is read behind a barrier of the CTA",
        f"{ISA}: a weak store; {OTHERS}",
        lambda k: k.one.statements("tcgen05.alloc", "cta.sync", "let tmem_base", "role load"),
        ["tcgen05.alloc", "cta.sync", "let tmem_base", "role load", "cta.sync"],
    ),
    ("no base column is taken for granted", "only DeepGEMM asserts 0", lambda k: "base tmem_base" in k.one.derived, True),
    (
        "all roles have met before dealloc",
        f"{ISA}; {OTHERS}",
        lambda k: k.one.statements("cta.sync", "tcgen05.dealloc")[1:],
        ["cta.sync", "tcgen05.dealloc"],
    ),
    (
        "the CTAs of a pair have met before dealloc",
        f"{ISA}, CTA pair; {OTHERS}",
        lambda k: k.pair.statements("cluster.sync", "tcgen05.dealloc")[1:],
        ["cluster.sync", "tcgen05.dealloc"],
    ),
    # --- instruction descriptor
    (
        "idesc bf16, 128 x 256",
        f"{ISA}, table 42",
        lambda k: k.one.idesc,
        descriptor((4, 1), (7, 1), (10, 1), (17, 256 >> 3), (24, 128 >> 4)),
    ),
    (
        "idesc bf16, pair 256 x 256: totals of both CTAs",
        f"{ISA}, table 42; CUTLASS, Triton",
        lambda k: k.pair.idesc,
        descriptor((4, 1), (7, 1), (10, 1), (17, 256 >> 3), (24, 256 >> 4)),
    ),
    ("idesc f16, 128 x 128", "Triton and TVM write 0x08200010", lambda k: k.product(elem="f16").idesc, 0x08200010),
    ("idesc f16, pair 256 x 128", "CUTLASS writes 0x10200010", lambda k: k.product(elem="f16", pair=True).idesc, 0x10200010),
    ("idesc f16, B MN-major", "Triton writes 0x08210010", lambda k: k.product(elem="f16", b="MN").idesc, 0x08210010),
    ("idesc f16, A MN-major", f"{ISA}, table 42: bit 15", lambda k: k.product(elem="f16", a="MN").idesc, 0x08208010),
    ("idesc e5m2, 128 x 128", "Triton writes 0x08200490", lambda k: k.product(elem="e5m2", k=128).idesc, 0x08200490),
    ("idesc e4m3, pair 256 x 128", f"{ISA}, table 42: e4m3 is 0", lambda k: k.product(elem="e4m3", k=128, pair=True).idesc, 0x10200010),
    ("idesc tf32, 128 x 128", "Triton writes 0x08200910", lambda k: k.product(elem="f32", k=32, words="kind tf32").idesc, 0x08200910),
    (
        "idesc mxf8f6f4, 128 x 128: the byte of the scales goes up a step",
        "Triton, CuTe DSL write these four",
        lambda k: [hex(int(i.split(", ")[3])) for i in k.mx.all("tcgen05.mma")],
        ["0x8a00000", "0x28a00010", "0x48a00020", "0x68a00030"],
    ),
    # --- products
    (
        "mma: kind f16",
        f"{ISA}, tcgen05.mma",
        lambda k: k.product(elem="f16").all("tcgen05.mma")[0],
        "tcgen05.mma.cta_group::1.kind::f16 [%r], %d, %d, 136314896, 0",
    ),
    (
        "mma: kind tf32",
        f"{ISA}, tcgen05.mma",
        lambda k: k.product(elem="f32", k=32, words="kind tf32").all("tcgen05.mma")[0],
        "tcgen05.mma.cta_group::1.kind::tf32 [%r], %d, %d, 136317200, 0",
    ),
    (
        "mma: kind f8f6f4",
        f"{ISA}, tcgen05.mma",
        lambda k: k.product(elem="e4m3", k=128).all("tcgen05.mma")[0],
        "tcgen05.mma.cta_group::1.kind::f8f6f4 [%r], %d, %d, 136314896, 0",
    ),
    (
        "mma: A in tensor memory",
        f"{ISA}, tcgen05.mma",
        lambda k: k.ts.all("tcgen05.mma")[0],
        "tcgen05.mma.cta_group::1.kind::f16 [%r], [%r], %d, 136316048, 0",
    ),
    (
        "mma: 32 bytes of K an instruction",
        f"{ISA}, tcgen05.mma, table of shapes",
        lambda k: [
            len(k.product(**c).all("tcgen05.mma"))
            for c in ({"k": 64}, {"k": 192}, {"elem": "f32", "k": 32, "words": "kind tf32"}, {"elem": "e5m2", "k": 128})
        ],
        [4, 12, 4, 4],
    ),
    (
        "enable-d: from zero in the first step only",
        f"{ISA}, tcgen05.mma, enable-input-d",
        lambda k: k.product().enables,
        ["0", "1", "1", "1"],
    ),
    ("enable-d: adds in every step", f"{ISA}, tcgen05.mma, enable-input-d", lambda k: k.product(op="+=").enables, ["1", "1", "1", "1"]),
    (
        "enable-d: not the condition of `init`",
        f"{ISA}, tcgen05.mma, enable-input-d",
        lambda k: (k.one.enables, k.one.all("not.pred")),
        (["%p", "1", "1", "1"], ["not.pred %p, %p"]),
    ),
    (
        "A in tensor memory: 8 columns a step, two elements of 16 bits each",
        f"{ISA}; CUTLASS, Triton, TVM",
        lambda k: k.steps(k.ts, 1),
        [0, 8, 16, 24],
    ),
    ("D: the slot's columns", f"{ISA}, D layout: n", lambda k: k.steps(k.product(), 0), [0, 0, 0, 0]),
    # --- block scales
    (
        "mma with block scales: the size of the vector is written",
        f"{ISA}, tcgen05.mma; ptxas 13.0 takes bare .block_scale from 8.8 only",
        lambda k: k.mx.all("tcgen05.mma")[1],
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%r], %d, %d, 681574416, [%r], [%r], 1",
    ),
    (
        "cp of scales: 32 rows of 16 bytes, to four times 32 lanes",
        f"{ISA}, tcgen05.cp; {OTHERS}",
        lambda k: k.mx.one("tcgen05.cp"),
        "tcgen05.cp.cta_group::1.32x128b.warpx4 [%r], %d",
    ),
    (
        "cp in a pair: each CTA its own",
        f"{ISA}, tcgen05.cp; CUTLASS",
        lambda k: k.mx_pair.one("tcgen05.cp"),
        "tcgen05.cp.cta_group::2.32x128b.warpx4 [%r], %d",
    ),
    (
        "cp: descriptor",
        "CUTLASS and the CuTe DSL write 0x0000400800000000",
        lambda k: f"or.b64 %d, %d, {0x0000400800000000}" in k.mx.all("or.b64"),
        True,
    ),
    (
        "scales of 256 rows: two blocks, 512 bytes and 4 columns apart",
        f"{ISA}, scale factor layout: N / 32 columns",
        lambda k: k.blocks(),
        [(0, 0), (512 >> 4, 4)],
    ),
    (
        "the engine copies before it multiplies, by one thread",
        f"{ISA}: cp to mma in order, same cta_group",
        lambda k: re.findall(r"if leader \{((?:\n\s+tcgen05\.(?:cp|mma|commit) .*)+)", k.mx.derived)[0].split().count("tcgen05.cp"),
        2,
    ),
    (
        "copies, products, commits",
        f"{ISA}: cp to mma in order, same cta_group",
        lambda k: k.mx.order("tcgen05.cp", "tcgen05.mma", "tcgen05.commit"),
        ["tcgen05.cp"] * 2 + ["tcgen05.mma"] * 4 + ["tcgen05.commit"] * 2,
    ),
    (
        "scales take 4 columns, and N / 32",
        f"{ISA}, scale factor layout",
        lambda k: (
            re.findall(r"(ta|tb): ue8m0\[1\]\[\d+, 4\] at (\d+)", k.mx_wide.derived) + re.findall(r"(acc): .* at (\d+)", k.mx_wide.derived)
        ),
        [("ta", "0"), ("tb", "4"), ("acc", "12")],
    ),
    (
        "in a pair each CTA has the scales of its rows of A and of all N",
        "CUTLASS, TVM, BOOK, DeepGEMM",
        lambda k: re.findall(r"(ta|tb): ue8m0\[1\]\[(\d+), 4\]", k.mx_pair.derived),
        [("ta", "128"), ("tb", "128")],
    ),
]


@pytest.mark.parametrize(("item", "source", "emitted", "expected"), FACTS, ids=[f[0] for f in FACTS])
def test_fact(k, item, source, emitted, expected):
    assert emitted(k) == (expected(k) if callable(expected) else expected), source


def test_every_row_has_a_source():
    assert all(source for _, source, *_ in FACTS) and len({item for item, *_ in FACTS}) == len(FACTS)
