"""Machine code with an error planted in it: each kind is told with its place, role, barrier and size."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from read_back_zoo import REGISTRY, ROOT, lowered, read_back, told_of

from cake_core.facts import facts_of
from cake_core.lower import lower
from cake_core.pipeline import frontend
from cake_core.reread import reread
from cake_core.source import Source


def planted(name: str, arch: str, pattern: str, by: str, which: int = 0, behind: str = "", all_: bool = True) -> tuple:
    """The findings of a text in which one match of `pattern`, behind a text, is replaced; `all_`: at all sizes."""
    ptx = lowered(name, arch)[0].ptx
    start = ptx.index(behind)
    found = list(re.finditer(pattern, ptx[start:], re.MULTILINE))[which]
    changed = ptx[:start] + ptx[start:][: found.start()] + found.expand(by) + ptx[start:][found.end() :]
    assert changed != ptx
    return read_back(name, arch, changed).findings if all_ else told_of(name, arch, changed)


#: All of a descriptor of `gemm_sm100` but the address.
IN_SHARED = "4611756662049538048"
#: Kernel, target, what stands there, what is written instead, which one of them, behind what; code, role, barrier.
PLANTS = {
    "parity of the producer": (
        "gemm_sm90",
        "sm90",
        r"add.s32 (%r43), (%r\d+), 1;",
        r"add.s32 \1, \2, 0;",
        0,
        "role load",
        "reread/differs",
        "load",
        "ab_empty",
    ),
    "parity of a consumer": (
        "gemm_sm90",
        "sm90",
        r"shr.s32 (%r\d+), (%r\d+), 2;",
        r"shr.s32 \1, \2, 3;",
        0,
        "role math",
        "reread/differs",
        "math",
        "ab_full",
    ),
    "slot of a wait": (
        "gemm_sm90",
        "sm90",
        r"and.b32 (%r\d+), (%r\d+), 3;",
        r"and.b32 \1, \2, 1;",
        0,
        "role math",
        "reread/differs",
        "math",
        "ab_full",
    ),
    "slot of a copy": (
        "gemm_sm90",
        "sm90",
        r"shl.b32 (%r\d+), (%r\d+), 14;",
        r"shl.b32 \1, \2, 13;",
        0,
        "role load",
        "reread/differs",
        "load",
        "ab_full",
    ),
    "barrier of an arrival": ("gemm_sm90", "sm90", r"229408;\n  mapa", "229376;\n  mapa", 0, "role math", "reread/differs", "math", "ab_empty"),
    "rank of an arrival": ("gemm_sm90", "sm90", r"(mapa\S+ %r\d+, %r\d+), 1;", r"\1, 0;", 0, "role math", "reread/differs", "math", "ab_empty"),
    "bytes": ("gemm_sm90", "sm90", "49152;", "32768;", 0, "role load", "reread/differs", "load", "ab_full"),
    "mask of a copy": ("gemm_sm90", "sm90", r"mov.b16 (%h\d+), 3;", r"mov.b16 \1, 1;", 0, "", "reread/differs", "load", "ab_full"),
    "count of a barrier": ("gemm_sm90", "sm90", r"\+8\], 4;", "+8], 3;", 0, "", "reread/differs", "load", "ab_empty"),
    "threads of a meeting": ("gemm_sm90", "sm90", r"bar.sync 1, 128;", "bar.sync 1, 256;", 0, "", "reread/differs", "math", None),
    "barrier of a meeting": ("gemm_sm90", "sm90", r"bar.sync 2, 128;", "bar.sync 1, 128;", 0, "", "reread/differs", "math", None),
    "a fence left out": ("gemm_sm90", "sm90", r"  fence.proxy.async\S+;\n", "", 0, "", "reread/differs", "math", None),
    "registers": ("gemm_sm90", "sm90", r"u32 232;", "u32 224;", 0, "", "reread/differs", "math", None),
    "groups in flight": (
        "gemm_sm90",
        "sm90",
        r"wgmma.wait_group.sync.aligned 0;",
        "wgmma.wait_group.sync.aligned 1;",
        0,
        "",
        "reread/differs",
        "math",
        None,
    ),
    "a group of copies": ("gemm_sm80", "sm80", r"  cp.async.commit_group;\n", "", 2, "", "reread/differs", "main", None),
    "groups of copies in flight": (
        "gemm_sm80",
        "sm80",
        r"cp.async.wait_group (\d+);",
        r"cp.async.wait_group 7;",
        0,
        "",
        "reread/differs",
        "main",
        None,
    ),
    "a meeting left out": ("gemm_sm80", "sm80", r"  bar.sync \d+.*;\n", "", 0, "", "reread/differs", "main", None),
    "one more meeting": ("rmsnorm", "sm90", r"(  bar.sync .*;\n)", r"\1\1", 0, "", "reread/extra", "main", None),
    "the last meeting": ("rmsnorm", "sm90", r"  bar.sync .*;\n", "", 0, "", "reread/missing", "main", None),
    "columns": ("gemm_sm100", "sm100", r"(tcgen05.alloc\S+ \S+), 512", r"\1, 256", 0, "", "reread/differs", "load", None),
    "barrier of an engine": (
        "gemm_sm100",
        "sm100",
        r"(add.s32 (%r\d+), %r\d+, )(\d+);\n(  tcgen05.commit)",
        r"\g<1>229376;\n\4",
        0,
        "",
        "reread/differs",
        "mma",
        None,
    ),
    "fence behind a wait": ("gemm_sm100", "sm100", r"  tcgen05.fence::after_thread_sync;\n", "", 0, "", "reread/differs", "mma", None),
    "rank of a pair": ("gemm_sm100_pair", "sm100", r"(mapa\S+ %r\d+, %r\d+), 0;", r"\1, 1;", 0, "", "reread/differs", "load", "ab_full"),
    "mask of an engine": ("gemm_sm100_pair", "sm100", r"mov.b16 (%h\d+), 3;", r"mov.b16 \1, 2;", 0, "", "reread/differs", "mma", None),
    "slot of a factor": (
        "gemm_sm90",
        "sm90",
        r"shl.b32 (%r\d+), (%r\d+), 15;\n  add",
        r"shl.b32 \1, \2, 14;\n  add",
        0,
        "role math",
        "reread/differs",
        "math",
        None,
    ),
    "buffer of a factor": ("gemm_sm90", "sm90", r", 65536;", ", 0;", 0, "role math", "reread/differs", "math", None),
    "slot of an engine's factor": (
        "gemm_sm100",
        "sm100",
        r"shl.b32 (%r\d+), (%r\d+), 14;",
        r"shl.b32 \1, \2, 12;",
        0,
        "role mma",
        "reread/differs",
        "mma",
        None,
    ),
    "source of a store": (
        "gemm_sm90",
        "sm90",
        r"add.s32 (%r\d+), %r5, 196608;\n  cp.async.bulk",
        r"add.s32 \1, %r5, 204800;\n  cp.async.bulk",
        0,
        "",
        "reread/differs",
        "math",
        None,
    ),
    "a store left out": ("gemm_sm90", "sm90", r"  cp.async.bulk.tensor.2d.global.*\n", "", 0, "", "reread/missing", "math", None),
    "slot of a thread's copy": ("gemm_sm80", "sm80", r"\[(%r\d+)\+4096\]", r"[\1+36864]", 0, "", "reread/differs", "main", None),
    "parity of a message": (
        "moe_grouped_dynamic_sm90",
        "sm90",
        r"and.b32 (%r29), (%r\d+), 1;",
        r"and.b32 \1, \2, 0;",
        0,
        "role load",
        "reread/differs",
        "load",
        "t_full",
    ),
    "a message that is another": ("moe_grouped_dynamic_sm90", "sm90", r"(st.shared.b32 \S+), %r72;", r"\1, %r76;", 0, "", None, "load", None),
    "where a message is read": (
        "moe_grouped_dynamic_sm90",
        "sm90",
        r"(ld.shared.b32 %r32), \[(%r\d+)\]",
        r"\1, [\2+12]",
        0,
        "role load",
        None,
        "load",
        None,
    ),
    "a number of a counter": ("moe_grouped_dynamic_sm90", "sm90", r"max.s32 (%r86), (%r85), 0;", r"max.s32 \1, \2, 1;", 0, "", None, "load", None),
    "slot that a warp loads from": ("gemm_sm80", "sm80", r"\[(%r\d+)(\+\d+)?\];", r"[\1+16384];", 0, "ldmatrix", "reread/differs", "main", None),
    "slot that a matrix is stored to": ("gemm_sm90", "sm90", r"(stmatrix\S+) \[(%r\d+)\]", r"\1 [\2+16384]", 0, "", "reread/differs", "math", None),
    "slot that a thread reads": (
        "gemm_bias_gelu_sm90",
        "sm90",
        r"(ld.shared.b32 %r\d+), \[(%r\d+)\]",
        r"\1, [\2+4096]",
        0,
        "role math",
        "reread/differs",
        "math",
        None,
    ),
    "where a warp leaves its part": ("rmsnorm", "sm80", r"(st.shared.b32) \[(%r\d+)\]", r"\1 [\2+64]", 0, "", "reread/differs", "main", None),
    "where a load begins": ("gemm_sm90", "sm90", r"\{(%r\d+), (%r\d+)\}", r"{\2, \2}", 0, "role load", "reread/differs", "load", None),
    "where a product's other load begins": (
        "gemm_sm90",
        "sm90",
        r"\{(%r\d+), (%r\d+)\}",
        r"{\1, \1}",
        1,
        "role load",
        "reread/differs",
        "load",
        None,
    ),
    "where a store begins": ("gemm_sm90", "sm90", r"\{(%r\d+), (%r\d+)\}", r"{\1, 1}", 0, "role math", "reread/differs", "math", None),
    "which sequence's rows a load takes": (
        "attn_fwd_sm90",
        "sm90",
        r"\{(%r\d+|\d+), (%r\d+|\d+), (%r\d+|\d+)\}",
        r"{\1, \2, 1}",
        0,
        "role load",
        "reread/differs",
        "load",
        None,
    ),
    "a branch the other way": ("gemm_sm100", "sm100", r"@!(%p\d+) bra \$if", r"@\1 bra $$if", 1, "role mma", None, "mma", None),
    "rows of a factor": ("gemm_sm90", "sm90", "4611686293305360384", str(4611686293305360384 ^ 96 << 32), 0, "", "reread/differs", "math", None),
    "swizzle of a factor": ("gemm_sm90", "sm90", "4611686293305360384", str(4611686293305360384 ^ 3 << 62), 0, "", "reread/differs", "math", None),
    "step of a factor": ("gemm_sm90", "sm90", r"add.s64 (%d\d+), (%d\d+), 2;", r"add.s64 \1, \2, 3;", 0, "", "reread/differs", "math", None),
    "the last step again": ("gemm_sm90", "sm90", r"add.s64 (%d\d+), (%d\d+), 4;", r"add.s64 \1, \2, 2;", 0, "", "reread/differs", "math", None),
    "a product left out": ("gemm_sm90", "sm90", r"  wgmma.mma_async.*\n", "", 2, "", "reread/differs", "math", None),
    "types of factors": ("gemm_sm90", "sm90", r"f32.bf16.bf16", "f32.f16.f16", 0, "", "reread/differs", "math", None),
    "a factor that is turned": ("gemm_sm90", "sm90", r"(wgmma.mma_async.*), 0, 0;", r"\1, 0, 1;", 0, "", "reread/differs", "math", None),
    "rows of an engine's factor": ("gemm_sm100", "sm100", IN_SHARED, str(int(IN_SHARED) ^ 96 << 32), 0, "", "reread/differs", "mma", None),
    "swizzle of an engine's factor": ("gemm_sm100", "sm100", IN_SHARED, str(int(IN_SHARED) ^ 6 << 61), 0, "", "reread/differs", "mma", None),
    "base offset of a descriptor": ("gemm_sm100", "sm100", IN_SHARED, str(int(IN_SHARED) | 1 << 49), 0, "", "reread/differs", "mma", None),
    "step of an engine's factor": ("gemm_sm100", "sm100", r"add.s64 (%d6), (%d\d+), 2;", r"add.s64 \1, \2, 4;", 0, "", "reread/differs", "mma", None),
    "columns of a product": ("gemm_sm100", "sm100", " 138413200,", f" {138413200 ^ 0x10 << 17},", 0, "", "reread/differs", "mma", None),
    "rows of a product": ("gemm_sm100", "sm100", " 138413200,", f" {138413200 ^ 0xC << 24},", 0, "", "reread/differs", "mma", None),
    "types of a product": ("gemm_sm100", "sm100", " 138413200,", f" {138413200 ^ 1 << 7},", 0, "", "reread/differs", "mma", None),
    "a factor that is negated": ("gemm_sm100", "sm100", " 138413200,", f" {138413200 | 1 << 13},", 0, "", "reread/differs", "mma", None),
    "a factor that lies the other way": ("gemm_sm100", "sm100", " 138413200,", f" {138413200 | 1 << 16},", 0, "", "reread/differs", "mma", None),
    "slot of tensor memory": ("gemm_sm100", "sm100", r"shl.b32 (%r104), (%r\d+), 8;", r"shl.b32 \1, \2, 7;", 0, "", "reread/differs", "mma", None),
    "an address without its base": (
        "gemm_sm100",
        "sm100",
        r"add.s32 (%r105), %r24, (%r\d+);",
        r"mov.b32 \1, \2;",
        0,
        "",
        "reread/differs",
        "mma",
        None,
    ),
    "a sum that starts with what was there": (
        "gemm_sm100",
        "sm100",
        r"not.pred (%p20), %p19;",
        r"or.pred \1, %p19, !%p19;",
        0,
        "",
        "reread/extra",
        "mma",
        None,
    ),
    "a sum that starts anew": ("gemm_sm100", "sm100", r"138413200, 1;", "138413200, 0;", 1, "", "reread/differs", "mma", None),
    "lanes of a warp": ("gemm_sm100", "sm100", r"(shl.b32 %r147, %r\d+), 21;", r"\1, 20;", 0, "", "reread/differs", "epi", None),
    "columns that are loaded": ("gemm_sm100", "sm100", r"\[(%r\d+)\+64\];", r"[\1+128];", 0, "role epi", "reread/differs", "epi", None),
    "how many columns are loaded": ("gemm_sm100", "sm100", r"(tcgen05.ld\S+).x64.b32", r"\1.x32.b32", 0, "", "reread/differs", "epi", None),
    "where scales are copied to": ("gemm_sm100_nvf4", "sm100", r"(tcgen05.cp\S+) \[(%r\d+)\]", r"\1 [\2+4]", 0, "", "reread/differs", "mma", None),
    "where scales are read": (
        "gemm_sm100_nvf4",
        "sm100",
        r"136316032, \[(%r\d+)\], \[(%r\d+)\]",
        r"136316032, [\1], [\1]",
        0,
        "",
        "reread/differs",
        "mma",
        None,
    ),
    "type of scales": ("gemm_sm100_nvf4", "sm100", "136316032", str(136316032 ^ 1 << 23), 0, "", "reread/differs", "mma", None),
    "half of a pair": ("gemm_sm100_pair", "sm100", r"shl.b32 (%r\d+), (%r\d+), 14;", r"shl.b32 \1, \2, 15;", 0, "", "reread/differs", "load", None),
    "rows of a pair": ("gemm_sm100_pair", "sm100", " 272630928,", f" {272630928 ^ 0x18 << 24},", 0, "", "reread/differs", "mma", None),
    "a thread's place in a tile": ("gemm_sm100", "sm100", r"(xor.b32 %r398), 48,", r"\1, 64,", 0, "", "reread/missing", "epi", None),
    "a thread's place, not by bits": (
        "gemm_sm100",
        "sm100",
        r"and.b32 (%r417), %r124, 7;",
        r"and.b32 \1, %r124, 8;",
        0,
        "",
        "reread/missing",
        "epi",
        None,
    ),
    "a part that no thread stores": ("gemm_sm100", "sm100", r"  st.shared.v4.b32 .*\n", "", 5, "", "reread/missing", "epi", None),
    "rows of a warp's matrix": ("gemm_sm90", "sm90", r"shl.b32 (%r146), %r144, 4;", r"shl.b32 \1, %r144, 5;", 0, "", "reread/missing", "math", None),
    "rows of a matrix, without K": ("gemm_sm90", "sm90", r"(xor.b32 %r\d+, %r\d+), 96;", r"\1, 64;", -1, "", "reread/missing", "math", None),
    "part of a factor that a warp loads": (
        "gemm_sm80",
        "sm80",
        r"(ldmatrix\S+ \{[^}]+\}, \[%r\d+)\+4096\]",
        r"\1+4112]",
        0,
        "",
        "reread/missing",
        "main",
        None,
    ),
    "a part that no thread copies": (
        "gemm_sm80",
        "sm80",
        r"  cp.async.cg.shared.global \[%r177\+24576\].*\n",
        "",
        0,
        "",
        "reread/missing",
        "main",
        None,
    ),
    "a copy that is not aligned": ("gemm_sm80", "sm80", r"\[(%r177)\+24576\]", r"[\1+24584]", 0, "", "reread/differs", "main", None),
    "bytes of a thread's copy": ("gemm_sm80", "sm80", r"(\[%r177\+24576\], \[%d\d+\]), 16", r"\1, 8", 0, "", "reread/missing", "main", None),
    "rank of a store": ("softmax_cluster", "sm90", r"(mapa\S+ %r\d+, %r\d+), 1;", r"\1, 2;", 0, "", "reread/missing", "main", None),
    "a load that is left out": ("softmax_short", "sm90", r"  ld.shared.v4.*\n", "", 0, "", "reread/missing", "main", None),
    "a load that is not aligned": ("softmax_cluster", "sm90", r"\[%r3\+32\]", "[%r3+33]", 0, "", "reread/differs", "main", None),
    "factors that are negated": (
        "gemm_sm90",
        "sm90",
        r"(wgmma.mma_async.*), 1, 1, 1, 0, 0;",
        r"\1, 1, -1, 1, 0, 0;",
        0,
        "",
        "reread/differs",
        "math",
        None,
    ),
    "parity of a ring that items go round": (
        "gemm_sm100",
        "sm100",
        r"shr.s32 (%r142), (%r\d+), 1;",
        r"shl.b32 \1, \2, 1;",
        0,
        "",
        "reread/differs",
        "epi",
        "accp_full",
    ),
    "lanes that choose a leader": (
        "gemm_sm90",
        "sm90",
        r"elect.sync (_\|%p\d+), -1;",
        r"elect.sync \1, 0;",
        0,
        "role load",
        "reread/differs",
        "load",
        None,
    ),
    "a parity that is none": (
        "gemm_sm100",
        "sm100",
        r"and.b32 (%r143), %r142, 1;",
        r"and.b32 \1, %r142, 3;",
        0,
        "",
        "reread/differs",
        "epi",
        "accp_full",
    ),
    "an order that is another": (
        "gemm_sm90",
        "sm90",
        r"(  add.s32 %r103, .*\n)(  add.s32 %r104, .*\n)",
        r"\2\1",
        0,
        "",
        "reread/unwritten",
        "math",
        None,
    ),
    "an address that is not computed": ("gemm_sm90", "sm90", r"  shl.b32 %r64, %r60, 7;\n", "", 0, "", "reread/unwritten", "load", None),
    "a wait without end": ("gemm_sm90", "sm90", r"@!(%p\d+) bra \$wait_1", r"@\1 bra $wait_1", 0, "", None, "math", None),
}


@pytest.mark.parametrize("kind", PLANTS)
def test_it_is_told(kind):
    name, arch, pattern, by, which, behind, code, role, barrier = PLANTS[kind]
    findings = planted(name, arch, pattern, by.replace("$$", "$"), which, behind, all_=False)
    told = {d.role: d for d in findings}
    assert role in told, findings
    d = told[role]
    assert code is None or d.code == code
    assert barrier is None or d.resource == barrier
    assert ("lane" in d.why or "all threads" in d.why or d.code == "reread/unwritten") and d.fix


MAPS = {
    "box": (lambda m: replace(m, box=(64, 128)), {"load", "math"}, "takes 0 .. 64 for coordinate 0 of 'A'"),
    "swizzle": (lambda m: replace(m, swizzle=64), {"load", "math"}, "as bf16, swizzle 64"),
    "element": (lambda m: replace(m, elem="f16"), {"load", "math"}, "as f16, swizzle 128"),
    "elements": (lambda m: replace(m, elem="f32"), {None, "load", "math"}, "of 2 dimensions of 32 bits, its tensor of 2 of 16"),
    "tensor": (lambda m: replace(m, tensor="D" if m.tensor == "A" else "A"), {"load", "math"}, "for coordinate 0 of 'D'"),
}


@pytest.mark.parametrize("kind", MAPS)
def test_a_tensor_map_that_is_another(kind):
    change, roles, said = MAPS[kind]
    written, facts, arch = lowered("gemm_sm90", "sm90")
    found = reread(replace(written, tensor_maps=tuple(map(change, written.tensor_maps))), facts, REGISTRY.rereads, arch).findings
    assert {d.role for d in found} == roles and any(said in d.message for d in found), found


LAUNCHES = {
    "threads of the entry": (".reqntid 384, 1, 1", ".reqntid 416, 1, 1", {}, "the entry declares 416 threads a CTA, its text has 384"),
    "cluster of the entry": (".reqnctapercluster 2, 1, 1", ".reqnctapercluster 4, 1, 1", {}, "the entry declares clusters of 4, its text has 2"),
    "no cluster": (".reqnctapercluster 2, 1, 1\n", "", {}, "the entry declares no cluster, its text has 2"),
    "bytes of a map": ("map_A[128]", "map_A[64]", {}, "the parameter 'map_A' has 64 bytes, a map has 128"),
    "threads of the host": ("", "", {"threads": 256}, "the host launches 256 threads a CTA, its text has 384"),
    "cluster of the host": ("", "", {"cluster": 1}, "the host launches clusters of 1, its text has 2"),
    "shared memory": ("", "", {"shared_bytes": 230_000}, "the host gives 230000 bytes of shared memory, its text needs 230448"),
    "items": ("", "", {"items": ["+", ["ceildiv", "M", 256], ["ceildiv", "N", 256]]}, "items, its text says"),
}


@pytest.mark.parametrize("kind", LAUNCHES)
def test_a_launch_that_is_another(kind):
    old, new, launch, said = LAUNCHES[kind]
    written, facts, arch = lowered("gemm_sm90", "sm90")
    assert old in written.ptx
    changed = replace(written, ptx=written.ptx.replace(old, new, 1), launch=replace(written.launch, **launch))
    found = [d for d in reread(changed, facts, REGISTRY.rereads, arch).findings if d.role is None]
    assert [said in d.message for d in found] == [True], found
    assert found[0].code == "reread/differs" and found[0].fix and found[0].span.line


def test_what_is_told_of_tensor_memory():
    (d,) = planted("gemm_sm100", "sm100", r"shl.b32 (%r104), (%r\d+), 8;", r"shl.b32 \1, \2, 7;")
    assert d.message == (
        "the machine code of 'mma' writes columns 128 .. 384 of lanes 0 .. 128 of tensor memory by 'tcgen05.commit' as f32, "
        "its text writes columns 256 .. 512 of lanes 0 .. 128 of tensor memory by 'tcgen05.commit' as f32"
    )


def test_a_map_by_its_address_among_parameters():
    """PTX ISA, cp.async.bulk.tensor: the address of the map is generic."""
    written = lowered("gemm_sm90", "sm90")[0]
    reading = read_back("gemm_sm90", "sm90", written.ptx.replace("  cvta.param.u64 %d0, %d0;\n", "", 1))
    assert dict(reading.left)["load"].endswith("a tensor map that is no parameter")


def test_an_address_of_tensor_memory_that_is_read_where_none_is():
    """Nothing is known of it, so the role is not followed, and the manifest says so."""
    written = lowered("gemm_sm100", "sm100")[0]
    reading = read_back("gemm_sm100", "sm100", written.ptx.replace("add.s32 %r23, %r5, 229376;", "add.s32 %r23, %r5, 229384;"))
    assert reading.roles == ("load",) and {n for n, _ in reading.left} == {"mma", "epi"}


def test_what_is_told_of_a_parity():
    """All that a reader needs: the place in the text, the instruction, who, which barrier and slot, which iteration and size."""
    (d,) = planted("gemm_sm90", "sm90", r"add.s32 (%r43), (%r\d+), 1;", r"add.s32 \1, \2, 0;", behind="role load")
    assert d.message == (
        "the machine code of 'load' waits at 'ab_empty[0]' of CTA 0 for the phase of parity 0, its text waits at 'ab_empty[0]' of CTA 0 for the phase of parity 1"
    )
    assert (d.code, d.role, d.resource, d.stage) == ("reread/differs", "load", "ab_empty", "0")
    assert d.iteration == "t_i = 0, k = 0"
    assert re.match(r"at line \d+ of the PTX: `mbarrier.try_wait.parity.shared::cta.b64 %p7, \[%r41\], %r44;`, warp 0, lane 0, CTA 0, for ", d.why)
    assert d.span.file == "gemm_sm90.cake" and d.span.line > 1


def test_an_error_that_only_a_wrap_shows():
    """The parity of the second time round: the first ring is as it should be."""
    findings = planted("gemm_sm90", "sm90", r"shr.s32 (%r\d+), (%r\d+), 2;", r"shr.s32 \1, \2, 3;", behind="role math")
    assert {d.iteration for d in findings} == {"t_i = 4, k = 0"}


GRIDS = ROOT / "tests" / "corpus" / "C-51-role-without-dependency-wait" / "good.cake"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("  griddepcontrol.wait;\n", "", "its text waits for the grids in front"),
        ("griddepcontrol.wait", "griddepcontrol.launch_dependents", "lets the grid behind start, its text waits for the grids in front"),
        (
            "  griddepcontrol.wait;\n",
            "  griddepcontrol.wait;\n  griddepcontrol.launch_dependents;\n",
            "lets the grid behind start, its text does nothing more",
        ),
    ],
)
def test_order_between_grids_is_read_back(old, new, said):
    front = frontend(Source("grids.cake", GRIDS.read_text(encoding="utf-8")), REGISTRY, None)
    written, facts = lower(front.typed, REGISTRY, front.arch), facts_of(front.typed, REGISTRY, front.arch)
    right = reread(written, facts, REGISTRY.rereads, front.arch)
    assert right.findings == () and right.left == () and written.ptx.count(old) == 2
    wrong = reread(replace(written, ptx=written.ptx.replace(old, new, 1)), facts, REGISTRY.rereads, front.arch)
    assert [said in d.message for d in wrong.findings] == [True], wrong.findings
