"""What is emitted, item by item, against what documents and other producers of code for this target say.

Each row: the item, its source, what the compiler emitted, and the expectation, written down or computed here apart from the
compiler. Registers are called by their class alone. Everything was assembled for sm_100a; nothing was executed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

ISA = "PTX ISA 9.1"
OTHERS = "CUTLASS, DeepGEMM, Triton, TVM"
MX = {"elem": "e4m3", "k": 128, "scaled": True}


@dataclass(frozen=True)
class Fact:
    item: str
    source: str
    emitted: Callable
    expected: object


def descriptor(*fields: tuple[int, int]) -> int:
    """(bit, value) of each field."""
    return sum(value << bit for bit, value in fields)


def idesc(compiled) -> int:
    (operand,) = {i.split(", ")[3] for i in compiled.all("tcgen05.mma")}
    return int(operand)


def enables(compiled) -> list[str]:
    return [i.rsplit(", ", 1)[1] for i in compiled.all("tcgen05.mma")]


def derived(compiled, *words: str) -> list[str]:
    """Lines of the derived text that start with one of the words, in order, without their operands."""
    lines = (line.strip() for line in compiled.derived.splitlines())
    return [w for line in lines for w in words if line.startswith(w)]


def role(compiled, name: str) -> list[str]:
    """The statements of a role of the derived text."""
    m = re.search(rf"^  role {name}.*?^  }}$", compiled.derived, re.M | re.S)
    return [line.strip() for line in m[0].splitlines()]


def behind(lines: list[str], start: str) -> set[str]:
    """What stands right behind each line that starts so."""
    return {b.split(" ")[0] for a, b in zip(lines, lines[1:], strict=False) if a.startswith(start)}


def count(compiled, barrier: str) -> int:
    return int(re.search(rf"barrier {barrier}: .* count (\d+)", compiled.derived)[1])


FACTS = [
    # --- the module
    Fact("version and target", f"{ISA}, tcgen05, target ISA notes: sm_100a from 8.6", lambda k: k.one.ptx.split()[:4], [".version", "8.6", ".target", "sm_100a"]),
    Fact("one cta_group a kernel: 1", f"{ISA}, CTA pair; ptxas refuses a mix", lambda k: set(re.findall(r"cta_group::\d", k.one.ptx)), {"cta_group::1"}),
    Fact("one cta_group a kernel: 2", f"{ISA}, CTA pair; ptxas refuses a mix", lambda k: set(re.findall(r"cta_group::\d", k.pair.ptx)), {"cta_group::2"}),
    Fact("no advisory, no spill", "ptxas", lambda k: [(c.advisories, c.usage and (c.usage.spill_stores, c.usage.stack)) for c in (k.one, k.pair) if c.usage], lambda k: [((), (0, 0))] * sum(c.usage is not None for c in (k.one, k.pair))),
    # --- allocation
    Fact("alloc: shape and immediate columns", f"{ISA}, tcgen05.alloc", lambda k: k.one.one("tcgen05.alloc"), "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r], 512"),
    Fact("alloc in a pair", f"{ISA}, tcgen05.alloc; {OTHERS}: one warp in each CTA", lambda k: k.pair.one("tcgen05.alloc"), "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r], 512"),
    Fact("alloc: the least power of two that holds all", f"{ISA}: 32, 64, 128, 256, 512", lambda k: [k.columns(n, w) for n, w in ((1, 32), (1, 48), (2, 96), (1, 256), (2, 256), (4, 128))], [32, 64, 256, 256, 512, 512]),
    Fact("alloc: once, so sizes never grow", f"{ISA}, tcgen05.alloc", lambda k: [len(c.all("tcgen05.alloc")) for c in (k.one, k.pair, k.ts)], [1, 1, 1]),
    Fact("relinquish behind alloc, no alloc after it", f"{ISA}, tcgen05.relinquish_alloc_permit", lambda k: k.one.order("tcgen05.alloc", "tcgen05.relinquish", "tcgen05.dealloc"), ["tcgen05.alloc", "tcgen05.relinquish", "tcgen05.dealloc"]),
    Fact("dealloc: a register without brackets", f"{ISA}, tcgen05.dealloc; ptxas: '[taddr]' is refused", lambda k: k.one.one("tcgen05.dealloc"), "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r, 512"),
    Fact("by one whole converged warp, the same for both", f"{ISA}; CUTLASS, BOOK", lambda k: re.findall(r"if warp == 0 \{\n    warp.sync\n(?:    tcgen05.fence.after\n)?    (\S+)", k.one.derived), ["tcgen05.alloc", "tcgen05.dealloc"]),
    Fact("the address is read behind a barrier of the CTA", f"{ISA}: a weak store; {OTHERS}", lambda k: derived(k.one, "tcgen05.alloc", "cta.sync", "let tmem_base", "role load"), ["tcgen05.alloc", "cta.sync", "let tmem_base", "role load", "cta.sync"]),
    Fact("no base column is taken for granted", "only DeepGEMM asserts 0", lambda k: "base tmem_base" in k.one.derived, True),
    Fact("all roles have met before dealloc", f"{ISA}; {OTHERS}", lambda k: derived(k.one, "cta.sync", "tcgen05.dealloc")[1:], ["cta.sync", "tcgen05.dealloc"]),
    Fact("the CTAs of a pair have met before dealloc", f"{ISA}, CTA pair; {OTHERS}", lambda k: derived(k.pair, "cluster.sync", "tcgen05.dealloc")[1:], ["cluster.sync", "tcgen05.dealloc"]),
    # --- instruction descriptor
    Fact("idesc bf16, 128 x 256", f"{ISA}, table 42", lambda k: idesc(k.one), descriptor((4, 1), (7, 1), (10, 1), (17, 256 >> 3), (24, 128 >> 4))),
    Fact("idesc bf16, pair 256 x 256: totals of both CTAs", f"{ISA}, table 42; CUTLASS, Triton", lambda k: idesc(k.pair), descriptor((4, 1), (7, 1), (10, 1), (17, 256 >> 3), (24, 256 >> 4))),
    Fact("idesc f16, 128 x 128", "Triton and TVM write 0x08200010", lambda k: idesc(k.product(elem="f16")), 0x08200010),
    Fact("idesc f16, pair 256 x 128", "CUTLASS writes 0x10200010", lambda k: idesc(k.product(elem="f16", pair=True)), 0x10200010),
    Fact("idesc f16, B MN-major", "Triton writes 0x08210010", lambda k: idesc(k.product(elem="f16", b="MN")), 0x08210010),
    Fact("idesc f16, A MN-major", f"{ISA}, table 42: bit 15", lambda k: idesc(k.product(elem="f16", a="MN")), 0x08208010),
    Fact("idesc e5m2, 128 x 128", "Triton writes 0x08200490", lambda k: idesc(k.product(elem="e5m2", k=128)), 0x08200490),
    Fact("idesc e4m3, pair 256 x 128", f"{ISA}, table 42: e4m3 is 0", lambda k: idesc(k.product(elem="e4m3", k=128, pair=True)), 0x10200010),
    Fact("idesc tf32, 128 x 128", "Triton writes 0x08200910", lambda k: idesc(k.product(elem="f32", k=32, words="kind tf32")), 0x08200910),
    Fact("idesc mxf8f6f4, 128 x 128: the byte of the scales goes up a step", "Triton, CuTe DSL write these four", lambda k: [hex(int(i.split(", ")[3])) for i in k.mx.all("tcgen05.mma")], ["0x8a00000", "0x28a00010", "0x48a00020", "0x68a00030"]),
    # --- products
    Fact("mma: kind f16", f"{ISA}, tcgen05.mma", lambda k: k.product(elem="f16").all("tcgen05.mma")[0], "tcgen05.mma.cta_group::1.kind::f16 [%r], %d, %d, 136314896, 0"),
    Fact("mma: kind tf32", f"{ISA}, tcgen05.mma", lambda k: k.product(elem="f32", k=32, words="kind tf32").all("tcgen05.mma")[0], "tcgen05.mma.cta_group::1.kind::tf32 [%r], %d, %d, 136317200, 0"),
    Fact("mma: kind f8f6f4", f"{ISA}, tcgen05.mma", lambda k: k.product(elem="e4m3", k=128).all("tcgen05.mma")[0], "tcgen05.mma.cta_group::1.kind::f8f6f4 [%r], %d, %d, 136314896, 0"),
    Fact("mma: A in tensor memory", f"{ISA}, tcgen05.mma", lambda k: k.ts.all("tcgen05.mma")[0], "tcgen05.mma.cta_group::1.kind::f16 [%r], [%r], %d, 136316048, 0"),
    Fact("mma: 32 bytes of K an instruction", f"{ISA}, tcgen05.mma, table of shapes", lambda k: [len(k.product(**c).all("tcgen05.mma")) for c in ({"k": 64}, {"k": 192}, {"elem": "f32", "k": 32, "words": "kind tf32"}, {"elem": "e5m2", "k": 128})], [4, 12, 4, 4]),
    Fact("enable-d: from zero in the first step only", f"{ISA}, tcgen05.mma, enable-input-d", lambda k: enables(k.product()), ["0", "1", "1", "1"]),
    Fact("enable-d: adds in every step", f"{ISA}, tcgen05.mma, enable-input-d", lambda k: enables(k.product(op="+=")), ["1", "1", "1", "1"]),
    Fact("enable-d: not the condition of `init`", f"{ISA}, tcgen05.mma, enable-input-d", lambda k: (enables(k.one), k.one.all("not.pred")), (["%p", "1", "1", "1"], ["not.pred %p, %p"])),
    Fact("A in tensor memory: 8 columns a step, two elements of 16 bits each", f"{ISA}; CUTLASS, Triton, TVM", lambda k: k.steps(k.ts, 1), [0, 8, 16, 24]),
    Fact("D: the slot's columns", f"{ISA}, D layout: n", lambda k: k.steps(k.product(), 0), [0, 0, 0, 0]),
    # --- block scales
    Fact("mma with block scales: the size of the vector is written", f"{ISA}, tcgen05.mma; ptxas 13.0 takes bare .block_scale from 8.8 only", lambda k: k.mx.all("tcgen05.mma")[1], "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%r], %d, %d, 681574416, [%r], [%r], 1"),
    Fact("cp of scales: 32 rows of 16 bytes, to four times 32 lanes", f"{ISA}, tcgen05.cp; {OTHERS}", lambda k: k.mx.one("tcgen05.cp"), "tcgen05.cp.cta_group::1.32x128b.warpx4 [%r], %d"),
    Fact("cp in a pair: each CTA its own", f"{ISA}, tcgen05.cp; CUTLASS", lambda k: k.mx_pair.one("tcgen05.cp"), "tcgen05.cp.cta_group::2.32x128b.warpx4 [%r], %d"),
    Fact("cp: descriptor", "CUTLASS and the CuTe DSL write 0x0000400800000000", lambda k: f"or.b64 %d, %d, {0x0000400800000000}" in k.mx.all("or.b64"), True),
    Fact("scales of 256 rows: two blocks, 512 bytes and 4 columns apart", f"{ISA}, scale factor layout: N / 32 columns", lambda k: k.blocks(), [(0, 0), (512 >> 4, 4)]),
    Fact("the engine copies before it multiplies, by one thread", f"{ISA}: cp to mma in order, same cta_group", lambda k: re.findall(r"if leader \{((?:\n\s+tcgen05\.(?:cp|mma|commit) .*)+)", k.mx.derived)[0].split().count("tcgen05.cp"), 2),
    Fact("copies, products, commits", f"{ISA}: cp to mma in order, same cta_group", lambda k: k.mx.order("tcgen05.cp", "tcgen05.mma", "tcgen05.commit"), ["tcgen05.cp"] * 2 + ["tcgen05.mma"] * 4 + ["tcgen05.commit"] * 2),
    Fact("scales take 4 columns, and N / 32", f"{ISA}, scale factor layout", lambda k: re.findall(r"(ta|tb): ue8m0\[1\]\[\d+, 4\] at (\d+)", k.mx_wide.derived) + re.findall(r"(acc): .* at (\d+)", k.mx_wide.derived), [("ta", "0"), ("tb", "4"), ("acc", "12")]),
    Fact("in a pair each CTA has the scales of its rows of A and of all N", "CUTLASS, TVM, BOOK, DeepGEMM", lambda k: re.findall(r"(ta|tb): ue8m0\[1\]\[(\d+), 4\]", k.mx_pair.derived), [("ta", "128"), ("tb", "128")]),
    # --- completion
    Fact("commit: form", f"{ISA}, tcgen05.commit; ptxas refuses shared::cta", lambda k: k.one.one("tcgen05.commit"), "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r]"),
    Fact("commit in a pair: both CTAs, 16-bit mask", f"{ISA}, tcgen05.commit, multicast; {OTHERS}: 0b11", lambda k: k.pair.one("tcgen05.commit"), "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r], %h"),
    Fact("the mask is that of both", "bit i is rank i", lambda k: set(k.pair.all("mov.b16")), {"mov.b16 %h, 3"}),
    Fact("one thread issues products and their commit", f"{ISA}: all earlier ones by this thread", lambda k: re.findall(r"if leader \{\n\s+(tcgen05.mma).*\n\s+(tcgen05.commit)", k.one.derived), [("tcgen05.mma", "tcgen05.commit")]),
    Fact("commit implies the fence before", f"{ISA}; DeepGEMM", lambda k: "tcgen05.fence.before" in role(k.one, "mma"), False),
    Fact("fence after each wait of the issuing warp, for the slot and for the accumulator", f"{ISA}; DeepGEMM, TVM", lambda k: behind(role(k.one, "mma"), "mbarrier.wait"), {"tcgen05.fence.after"}),
    Fact("fence after the wait before loads", f"{ISA}; DeepGEMM, TVM", lambda k: behind(role(k.one, "epi"), "mbarrier.wait"), {"tcgen05.fence.after"}),
    Fact("none for copies of the asynchronous proxy", f"{ISA}", lambda k: [s for s in role(k.one, "load") if s.startswith("tcgen05")], []),
    Fact("loads complete, fence, warps meet, arrival", f"{ISA}; DeepGEMM", lambda k: k.tail(k.one), ["tcgen05.wait.ld", "tcgen05.fence.before", "warp.sync", "mbarrier.arrive"]),
    Fact("stores complete, fence, warps meet, arrival", f"{ISA}: st before mma needs wait::st", lambda k: [s.split(" ")[0] for s in role(k.ts, "move") if s.startswith(("tcgen05.st", "tcgen05.wait", "tcgen05.fence.before", "warp", "mbarrier.arrive"))][:5], ["tcgen05.st", "tcgen05.wait.st", "tcgen05.fence.before", "warp.sync", "mbarrier.arrive"]),
    Fact("no arrival of the engine comes to a CTA that has left: its last ones are waited for", "CUTLASS, producer tail; DeepGEMM: another round of waits", lambda k: [re.findall(r"for ab_last in 0 .. (\d).*?mbarrier.wait (\w+)", c.derived, re.S) for c in (k.one, k.pair)], [[("4", "ab_empty")], [("6", "ab_empty")]]),
    # --- loads and stores
    Fact("ld: form and vector", f"{ISA}, tcgen05.ld", lambda k: re.sub(r"\{.*\}", "{..}", k.one.all("tcgen05.ld")[1]), "tcgen05.ld.sync.aligned.32x32b.x64.b32 {..}, [%r+64]"),
    Fact("ld: as many registers as .num", f"{ISA}, tcgen05.ld: x1 to x128", lambda k: [(n, k.moved(n)) for n in (16, 32, 48, 128, 96)], [(16, [16]), (32, [32]), (48, [32, 16]), (128, [128]), (96, [64, 32])]),
    Fact("st: form; 64 elements of 16 bits are 32 columns, behind the 128 of the accumulator", f"{ISA}, tcgen05.st", lambda k: re.sub(r"\{.*\}", "{..}", k.ts.one("tcgen05.st")), "tcgen05.st.sync.aligned.32x32b.x32.b32 [%r+128], {..}"),
    Fact("wait: all loads of the thread", f"{ISA}, tcgen05.wait", lambda k: k.one.one("tcgen05.wait"), "tcgen05.wait::ld.sync.aligned"),
    Fact("wait: all stores of the thread", f"{ISA}, tcgen05.wait", lambda k: k.ts.all("tcgen05.wait::st"), ["tcgen05.wait::st.sync.aligned"]),
    Fact("lane bits: 32 (w mod 4) in bits 31-16", f"{ISA}; Triton, CuTe DSL", lambda k: [k.lane(w) for w in range(4)], [0, 32 << 16, 64 << 16, 96 << 16]),
    Fact("warp w of the role is warp w mod 4", f"{ISA}, access restrictions", lambda k: [int(re.search(r"role epi: 4 warps at (\d+)", c.derived)[1]) % 4 for c in (k.one, k.pair)], [0, 0]),
    Fact(".sync.aligned is never predicated", f"{ISA}; ptxas takes it", lambda k: [i for c in (k.one, k.pair, k.ts) for i in c.all("tcgen05") if i.startswith("@")], []),
    # --- pairs
    Fact("each CTA loads half of A's rows and of B's", f"{OTHERS}", lambda k: re.findall(r"<- (\w)\[. \* 256 \+ 128 \* cluster.m \+: 128", "".join(role(k.pair, "load"))), ["A", "B"]),
    Fact("the first CTA issues, the second has no such role", f"{ISA}: one thread of either; {OTHERS}: the even one", lambda k: role(k.pair, "mma")[0], "role mma: 1 warp at 1 on pair[0] {"),
    Fact("the second CTA's warp leaves", "cluster_ctarank bit 0", lambda k: k.leaves(), True),
    Fact("loads may signal the peer only as a pair", f"{ISA}, cp.async.bulk.tensor, .cta_group::2", lambda k: {i.split(" ")[0] for i in k.pair.all("cp.async.bulk.tensor.2d.shared")}, {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2"}),
    Fact("loads of one CTA need no cta_group", f"{ISA}, cp.async.bulk.tensor", lambda k: {i.split(" ")[0] for i in k.one.all("cp.async.bulk.tensor.2d.shared")}, {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"}),
    Fact("each CTA announces its bytes at the first one's barrier", "DeepGEMM, Gluon: mbarrier.arrive.expect_tx.shared::cluster", lambda k: (k.pair.one("mapa"), k.pair.one("mbarrier.arrive.expect_tx"), 2 * 128 * 64 * 2), ("mapa.shared::cluster.u32 %r, %r, 0", "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%r], 32768", 32768)),
    Fact("full: both CTAs' announcements", "2 loaders", lambda k: count(k.pair, "ab_full"), 2),
    Fact("empty: one commit", "the engine arrives once at each CTA", lambda k: (count(k.one, "ab_empty"), count(k.pair, "ab_empty")), (1, 1)),
    Fact("accumulator full: one commit", "the engine arrives once at each CTA", lambda k: (count(k.one, "accp_full"), count(k.pair, "accp_full")), (1, 1)),
    Fact("accumulator empty: one arrival a warp, of both CTAs", "4 warps", lambda k: (count(k.one, "accp_empty"), count(k.pair, "accp_empty")), (4, 8)),
    Fact("arrivals of the second CTA are remote", f"{ISA}, mapa, mbarrier.arrive", lambda k: [s for s in role(k.pair, "epi") if s.startswith("mbarrier.arrive")], ["mbarrier.arrive accp_empty[accp_release % 2] at 0"]),
    Fact("D of a pair: row m of 256 is lane m mod 128 of CTA m / 128", f"{ISA}, layout A", lambda k: set(re.findall(r"D\[(m \* 256 \+ 128 \* cluster.m \+: 128)", k.pair.derived)), {"m * 256 + 128 * cluster.m +: 128"}),
]


@pytest.fixture(scope="module")
def k(compile_, text_of, values, one, pair):
    """The compiled kernels that the rows look at, and a few questions to them."""
    cache: dict[tuple, object] = {}

    def product(**how):
        key = tuple(sorted(how.items()))
        if key not in cache:
            cache[key] = compile_(text_of(**how))
        return cache[key]

    def columns(slots: int, wide: int) -> int:
        text = text_of(n=wide).replace("tmem acc: f32[1]", f"tmem acc: f32[{slots}]").replace("pipeline accp: 1", f"pipeline accp: {slots}")
        return int(compile_(text).one("tcgen05.alloc").rsplit(" ", 1)[1])

    def blocks() -> list[tuple[int, int]]:
        """Of the copies of B's scales: how far descriptor and address are from those of the first."""
        found = [(d, at[0]) for at, d in values(product(**MX, n=256), "tcgen05.cp", {"shared_memory": 0})][1:]
        return [(d - found[0][0], at - found[0][1]) for d, at in found]

    def steps(compiled, operand: int) -> list[int]:
        found = [row[operand] for row in values(compiled, "tcgen05.mma", {"shared_memory": 0}, loaded=0)]
        found = [x[0] if isinstance(x, list) else x for x in found]
        return [x - found[0] for x in found]

    def moved(n: int) -> list[int]:
        """`.num` of each load of a row of n columns; as many registers stand in the vector, and the columns follow each other."""
        found = product(n=n).all("tcgen05.ld")
        nums, start = [], 0
        for i in found:
            m = re.fullmatch(r"tcgen05.ld.sync.aligned.32x32b.x(\d+).b32 \{(.*)\}, \[%r(?:\+(\d+))?\]", i)
            assert len(m[2].split(", ")) == int(m[1]) and int(m[3] or 0) == start
            nums.append(int(m[1]))
            start += nums[-1]
        return nums

    def lane(warp: int) -> int:
        compiled = product()
        first = int(re.search(r"role epi: 4 warps at (\d+)", compiled.derived)[1])
        # the accumulator starts at the address of the allocation, here 0
        return values(compiled, "tcgen05.ld", {"shared_memory": 0, "%tid.x": 32 * (first + warp)})[0][-1][0]

    def tail(compiled) -> list[str]:
        wanted = ("tcgen05.wait.ld", "tcgen05.fence.before", "warp.sync", "mbarrier.arrive")
        found = [s.split(" ")[0] for s in role(compiled, "epi") if s.startswith(wanted)]
        return found[-4:]

    def leaves() -> bool:
        """Behind the comment of the role: a comparison of the rank's bit 0, and a branch to the exit."""
        text = pair.ptx[pair.ptx.index("role mma") :].splitlines()[1:8]
        rank = re.search(r"mov.u32 (%r\d+), %cluster_ctarank", pair.ptx)[1]
        code = "\n".join(text)
        m = re.search(rf"and.b32 (%r\d+), {rank}, 1;\s+setp.ne.s32 (%p\d+), \1, 0;\s+@\2 bra (\S+);", code)
        return m is not None and m[3] == re.search(r"bra (\$exit_\d+)", pair.ptx)[1]

    return SimpleNamespace(
        one=one, pair=pair, ts=product(a="tmem"), mx=product(**MX), mx_wide=product(**MX, n=256), mx_pair=product(**MX, pair=True), blocks=blocks, product=product, columns=columns, steps=steps, moved=moved, lane=lane, tail=tail, leaves=leaves
    )


@pytest.mark.parametrize("fact", FACTS, ids=lambda f: f.item)
def test_fact(k, fact):
    expected = fact.expected(k) if callable(fact.expected) else fact.expected
    assert fact.emitted(k) == expected, fact.source


def test_every_row_has_a_source():
    assert all(f.source and f.item for f in FACTS) and len({f.item for f in FACTS}) == len(FACTS)
