"""Loads and stores with every word, in every space, and addresses (PTX ISA, ld, st, ldu, mov, cvta, isspacep, prefetch and what else leaves values as they
are, Special Registers).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Case, Exact, entry
from .lanewise import case

SCOPES = ("cta", "cluster", "gpu", "sys")
LOADS = (
    *(
        ".weak",
        ".volatile",
        ".ca",
        ".cg",
        ".cs",
        ".lu",
        ".cv",
        ".nc",
        ".L1::evict_normal",
        ".L1::evict_unchanged",
        ".L1::evict_first",
        ".L1::evict_last",
    ),
    *(".L1::no_allocate", ".L2::64B", ".L2::128B", ".L2::256B", ".nc.L1::no_allocate.L2::256B", ".nc.L1::evict_last"),
)
STORES = (
    ".weak",
    ".volatile",
    ".wb",
    ".cg",
    ".cs",
    ".wt",
    ".L1::evict_normal",
    ".L1::evict_unchanged",
    ".L1::evict_first",
    ".L1::evict_last",
    ".L1::no_allocate",
)


def cases() -> Iterator[Case]:
    yield from worded()
    yield from wide()
    for bits, width in (("b8", 1), ("b16", 1), ("b32", 1), ("b64", 1), ("b8", 2), ("b32", 2), ("b64", 2), ("b16", 4), ("b32", 4)):
        yield local(bits, width)
    yield from variables()
    yield from generic()
    yield whose()
    yield from parts()
    for cluster in (1, 2):
        yield numbers(cluster)
    yield nothing()


def through(form: str, load: str, store: str, before: str = "") -> Case:
    """From A to D, a word a lane: by one load and one store."""
    body = f""".reg .u32 %l; .reg .u64 %o, %a, %d; .reg .b32 %x; .reg .b64 %policy; {before}
mov.u32 %l, %tid.x; mul.wide.u32 %o, %l, 4; add.u64 %a, %A, %o; add.u64 %d, %D, %o; {load} {store}"""
    params = {"A": np.random.default_rng(len(form)).integers(0, 2**32, 64, np.uint32), "D": np.zeros(64, np.uint32)}
    return Case("spaces", form, entry("A D", body), params, {"D": Exact()}, 64)


def worded() -> Iterator[Case]:
    plain = "ld.global.b32 %x, [%a];", "st.global.b32 [%d], %x;"
    for word in LOADS:
        first, order = ("", word) if word in (".weak", ".volatile") else (word, "")
        yield through(f"ld.global{word}", f"ld{order}.global{first}.b32 %x, [%a];", plain[1])
    for word in STORES:
        first, order = ("", word) if word in (".weak", ".volatile") else (word, "")
        yield through(f"st.global{word}", plain[0], f"st{order}.global{first}.b32 [%d], %x;")
    for scope in SCOPES:
        for load, store in (("relaxed", "relaxed"), ("acquire", "release")):
            yield through(f"ld.{load} st.{store} .{scope}", f"ld.{load}.{scope}.global.b32 %x, [%a];", f"st.{store}.{scope}.global.b32 [%d], %x;")
    yield through("ld.mmio st.mmio", "ld.mmio.relaxed.sys.global.b32 %x, [%a];", "st.mmio.relaxed.sys.global.b32 [%d], %x;")
    yield through("ldu.global", "ldu.global.b32 %x, [%a];", plain[1])
    for kind in ("L2::evict_last", "L2::evict_first", "L2::evict_normal", "L2::evict_unchanged"):
        policy = f"createpolicy.fractional.{kind}.b64 %policy, 0.5;"
        yield through(f"{kind} of half", "ld.global.L2::cache_hint.b32 %x, [%a], %policy;", "st.global.L2::cache_hint.b32 [%d], %x, %policy;", policy)
    policy = "createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %policy, [%A], 4096, 8192;"
    yield through("a policy of a range", "ld.global.nc.L2::cache_hint.b32 %x, [%a], %policy;", plain[1], policy)


def wide() -> Iterator[Case]:
    """16 bytes as one, and as a vector of a register of 128 bits."""
    for space in ("global", "shared"):
        into = (
            "mov.u32 %s, buffer; mad.lo.u32 %s, %l, 16, %s; ld.global.v2.b64 {%lo, %hi}, [%a]; st.shared.v2.b64 [%s], {%lo, %hi};"
            if space == "shared"
            else ""
        )
        at = "%s" if space == "shared" else "%a"
        body = f""".shared .align 16 .b8 buffer[1024]; .reg .u32 %l, %s; .reg .u64 %o, %a, %d; .reg .b128 %x; .reg .b64 %lo, %hi;
mov.u32 %l, %tid.x; mul.wide.u32 %o, %l, 16; add.u64 %a, %A, %o; add.u64 %d, %D, %o; {into}
ld.{space}.b128 %x, [{at}]; mov.b128 {{%lo, %hi}}, %x; not.b64 %lo, %lo; mov.b128 %x, {{%hi, %lo}}; st.global.b128 [%d], %x;"""
        params = {"A": np.random.default_rng(3).integers(0, 2**63, 128, np.uint64), "D": np.zeros(128, np.uint64)}
        yield Case("spaces", f"ld.{space}.b128 mov.b128 st.b128", entry("A D", body), params, {"D": Exact()}, 64)


def local(bits: str, width: int) -> Case:
    """A stack of each thread, at places that differ between lanes."""
    size = int(bits[1:]) // 8 * width
    names = ", ".join(f"%x{n}" for n in range(width))
    names, vector = (f"{{{{{names}}}}}", f".v{width}") if width > 1 else (names, "")
    register = "b16" if bits == "b8" else bits
    text = f"""mov.u32 %at32, mine; and.b32 %n, %n, 3; mad.lo.u32 %at32, %n, {size}, %at32;
mov.b32 %y, {{a}}; mov.u32 %k, mine; CLEAR: st.local.b32 [%k], %y; mul.lo.u32 %y, %y, 7; add.u32 %k, %k, 4; mov.u32 %z, mine; add.u32 %z, %z, 128; setp.lt.u32 %p, %k, %z; @%p bra CLEAR;
ld.local{vector}.{bits} {names}, [%at32]; st.local{vector}.{bits} [%at32+64], {names};
mov.b32 {{d}}, 0; mov.u32 %k, mine; SUM: ld.local.b32 %y, [%k]; mad.lo.u32 {{d}}, {{d}}, 31, %y; add.u32 %k, %k, 4; setp.lt.u32 %p, %k, %z; @%p bra SUM;"""
    head = f".local .align 16 .b8 mine[128]; .reg .u32 %at32, %k, %y, %z; .reg .{register} %x<4>;"
    return case("spaces", f"ld st .local{vector}.{bits}", text, "b32", "b32", head=head)


def variables() -> Iterator[Case]:
    """Variables of the module with initial values, in constant and in global memory."""
    body = """.reg .u32 %l, %k, %x, %y; .reg .u64 %o, %d, %g; .reg .b16 %h; mov.u32 %l, %tid.x; mul.wide.u32 %o, %l, 8; add.u64 %d, %D, %o; and.b32 %k, %l, 7;
mul.lo.u32 %y, %k, 4; cvt.u64.u32 %o, %y; mov.u64 %g, words; add.u64 %g, %g, %o; ld.SPACE.u32 %x, [%g]; st.global.u32 [%d], %x;
cvt.u64.u32 %o, %k; mov.u64 %g, bytes; add.u64 %g, %g, %o; ld.SPACE.u8 %h, [%g]; cvt.u32.u16 %x, %h; ld.SPACE.u32 %y, [words+12]; add.u32 %x, %x, %y; st.global.u32 [%d+4], %x;"""
    for space in ("const", "global"):
        head = f".{space} .align 4 .u32 words[8] = {{3, 0xdeadbeef, 5, 77, 0x80000000}};\n.{space} .align 1 .b8 bytes[8] = {{1, 2, 3, 255, 128}};\n"
        text = entry("D", body.replace("SPACE", space), head)
        yield Case("spaces", f"variables in .{space}", text, {"D": np.zeros(64, np.uint32)}, {"D": Exact()})


def generic() -> Iterator[Case]:
    """Each space by generic addresses, there and back."""
    head = ".shared .align 8 .b8 buffer[1024]; .local .align 8 .b8 mine[64]; .reg .u64 %g, %h, %o; .reg .u32 %k;"
    for space, name, to in (
        ("shared", "buffer", "mul.wide.u32 %o, %n, 8; add.u64 %g, %g, %o;"),
        ("local", "mine", "and.b32 %k, %n, 7; mul.wide.u32 %o, %k, 8; add.u64 %g, %g, %o;"),
    ):
        text = f"mov.u64 %g, {name}; cvta.{space}.u64 %g, %g; {to} st.u64 [%g], {{a}}; cvta.to.{space}.u64 %h, %g; ld.{space}.u64 {{d}}, [%h]; ld.u32 {{x}}, [%g+4];"
        yield case("spaces", f"cvta.{space}", text, "b64", "b64 b32", head=head)
    text = "mov.u64 %g, mine; cvta.local.u64 %g, %g; mov.u64 %h, buffer; cvta.shared.u64 %h, %h; mul.wide.u32 %o, %n, 8; add.u64 %h, %h, %o; st.u64 [%h], {a}; and.b32 %k, %n, 1;"
    text += "setp.eq.u32 %p, %k, 1; selp.b64 %g, %g, %h, %p; st.u64 [%g], {a}; ld.u64 {d}, [%g]; atom.exch.b64 %o, [%h], {a}; ld.u32 {x}, [%h];"
    yield case("spaces", "lanes in different spaces", text, "b64", "b64 b32", head=head)


def whose() -> Case:
    """isspacep of addresses in all spaces."""
    lines = [".shared .align 8 .b8 buffer[64]; .local .align 8 .b8 mine[64]; .reg .u64 %g<4>; .reg .u32 %x; .reg .pred %p;"]
    lines.append(
        "mov.u64 %g0, %A; mov.u64 %g1, buffer; cvta.shared.u64 %g1, %g1; mov.u64 %g2, mine; cvta.local.u64 %g2, %g2; mov.u64 %g3, A; cvta.param.u64 %g3, %g3;"
    )
    n = 0
    for at in range(4):
        for space in ("global", "shared", "shared::cta", "shared::cluster", "local", "param"):
            if (at, space) in ((3, "global"), (3, "param")):
                continue  # parameters lie in constant memory, which may be a window of global
            lines.append(f"isspacep.{space} %p, %g{at}; selp.u32 %x, 1, 0, %p; st.global.u32 [%D+{4 * n}], %x;")
            n += 1
    params = {"A": np.zeros(4, np.uint32), "D": np.full(n, 7, np.uint32)}
    return Case("spaces", "isspacep", entry("A D", "\n".join(lines)), params, {"D": Exact()}, 1)


def parts() -> Iterator[Case]:
    """mov that puts parts together and takes them apart."""
    for bits, part, count in ((32, 16, 2), (64, 16, 4), (64, 32, 2), (32, 8, 4), (16, 8, 2)):
        names = [f"%p{n}" for n in range(count)]
        turned = ", ".join(names[1:] + names[:1])
        text = f"mov.b{bits} {{{{{', '.join(names)}}}}}, {{a}}; mov.b{bits} {{d}}, {{{{{turned}}}}};"
        yield case("spaces", f"mov.b{bits} of {count}", text, f"b{bits}", f"b{bits}", head=f".reg .b{part} %p<{count}>;")
    text = """mov.b32 %v.x, {a}; mov.b32 %v.y, {b}; mov.v4.b32 %w, {{{b}, {a}, 5, %n}}; add.u32 %w.b, %w.r, %w.g; add.u32 %v.x, %v.x, %w.z; xor.b32 %v.y, %v.y, %w.a; mov.v4.b32 %u, %w;
mul.lo.u32 {d}, %v.x, 3; xor.b32 {d}, {d}, %v.y; add.u32 {x}, %u.x, %u.y; mad.lo.u32 {x}, {x}, 5, %u.z;"""
    yield case("spaces", "vectors as registers", text, "b32 b32", "b32 b32", head=".reg .v2 .b32 %v; .reg .v4 .b32 %w, %u;")


def numbers(cluster: int) -> Case:
    """Special registers whose values the launch determines."""
    words = [
        f"%{n}.{axis}" for n in ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid") for axis in "xyz"
    ]
    words += [f"%lanemask_{n}" for n in ("eq", "lt", "le", "gt", "ge")] + [
        "%laneid",
        "%nwarpid",
        "%cluster_ctarank",
        "%cluster_nctarank",
        "%dynamic_smem_size",
        "WARP_SZ",
    ]
    lines = [".shared .align 4 .b8 buffer[256]; .reg .u32 %x, %t, %c, %n; .reg .u64 %g; .reg .pred %p;"]
    lines.append(
        f"mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %n, %c, 96, %t; mul.lo.u32 %n, %n, {len(words) + 1}; mul.wide.u32 %g, %n, 4; add.u64 %g, %D, %g;"
    )
    lines += [f"mov.u32 %x, {word}; st.global.u32 [%g+{4 * n}], %x;" for n, word in enumerate(words)]
    lines.append(f"mov.pred %p, %is_explicit_cluster; selp.u32 %x, 1, 0, %p; st.global.u32 [%g+{4 * len(words)}], %x;")
    name = f"special registers, clusters of {cluster}"
    params = {"D": np.full(4 * 96 * (len(words) + 1), 77, np.uint32)}
    return Case("spaces", name, entry("D", "\n".join(lines)), params, {"D": Exact()}, 96, 4, cluster, 512)


def nothing() -> Case:
    """What leaves all values as they are: hints to caches, pauses, counters, dependent launches, registers that are given back and taken."""
    text = """.reg .u64 %g; .reg .b32 %y; ld.global.b32 %y, [%a]; prefetch.global.L1 [%a]; prefetch.global.L2 [%a]; prefetch.global.L2::evict_last [%a];
prefetchu.L1 [%a]; applypriority.global.L2::evict_normal [%A], 128; cp.async.bulk.prefetch.L2.global [%A], 256; nanosleep.u32 20; pmevent 3; griddepcontrol.wait;
griddepcontrol.launch_dependents; ld.global.b32 %x, [%a]; add.u32 %x, %x, %y;"""
    return through("hints, pauses, dependent launches", text, "st.global.b32 [%d], %x;")
