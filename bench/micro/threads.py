"""What threads of a CTA do among themselves: barriers and their reductions, orders through memory, barrier objects lane by lane, branches (PTX ISA,
bar, barrier, membar, fence, ld.acquire, st.release, mbarrier, bra, brx.idx).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Case, Exact, entry
from .lanewise import BLOCK, case, data

SCOPES = ("cta", "cluster", "gpu", "sys")
#: Rounds of a wait, after which a case goes on with what is there: no case can hang a GPU.
ROUNDS = 20_000


def cases() -> Iterator[Case]:
    for word in ("bar", "bar.cta", "barrier", "barrier.cta"):
        for how in ("popc.u32", "and.pred", "or.pred"):
            aligned = ".aligned" if word.startswith("barrier") else ""
            yield reduced(f"{word}.red.{how.replace('.', f'{aligned}.')}", how, "0")
            if word == "barrier":
                yield reduced(f"{word}.red.{how}", how, "0")
            yield reduced(f"{word}.red.{how}", how, "%n, 64")
    for word, aligned in (("bar", ""), ("bar.cta", ""), ("barrier", ""), ("barrier", ".aligned"), ("barrier.cta", ".aligned")):
        yield handed(word, aligned)
    yield from passed()
    yield lanes_of_barriers()
    yield lanes_wait()
    for order in ("", ".release.cta", ".relaxed.cta", ".release.cluster"):
        yield words_of_barriers(order)
    yield copies_arrive(True)
    yield copies_arrive(False)
    yield registers()
    yield from branches()


def reduced(form: str, how: str, which: str) -> Case:
    """Over all threads, or those of two warps at a barrier of their own."""
    a, b = data(["u32", "u32"], "bar.red")
    a[:BLOCK], b[:BLOCK], a[BLOCK : 2 * BLOCK], b[BLOCK : 2 * BLOCK] = 0, 1, 1, 0
    to = "{d}" if how == "popc.u32" else "%q"
    after = "mov.b32 {x}, 0;" if how == "popc.u32" else "selp.b32 {d}, 1, 0, %q; mov.b32 {x}, 0;"
    text = f"shr.u32 %n, %n, 6; add.u32 %n, %n, 3; setp.lt.u32 %p, {{a}}, {{b}}; {form} {to}, {which}, %p; {after}"
    name = f"{form} of {'all' if which == '0' else '64'}"
    return case("threads", name, text, "u32 u32", "b32 b32", given=[a, b])


def handed(word: str, aligned: str) -> Case:
    """Two warps arrive, the two others wait and read what those wrote; then all meet."""
    head = f".shared .align 4 .b32 buffer[{BLOCK}]; .reg .u32 %s;"
    text = f"""mov.u32 %s, buffer; mad.lo.u32 %s, %n, 4, %s; xor.b32 {{x}}, {{a}}, {{b}}; setp.lt.u32 %p, %n, 64;
@!%p bra LATER; st.shared.b32 [%s], {{x}}; {word}.arrive{aligned} 5, {BLOCK}; mov.b32 {{d}}, 1; bra MEET;
LATER: {word}.sync{aligned} 5, {BLOCK}; sub.u32 %s, %s, 256; ld.shared.b32 {{d}}, [%s]; MEET: {word}.sync{aligned} 0;"""
    return case("threads", f"{word}.arrive{aligned} {word}.sync", text, "b32 b32", "b32 b32", head=head)


# --- orders through memory -------------------------------------------------------------------------------------------


def passed() -> Iterator[Case]:
    """One warp writes, and another reads it once it has seen a flag: by a pair of instructions, or by fences around relaxed ones."""
    for space in ("global", "shared"):
        for scope in SCOPES:
            yield seen(f"st.release ld.acquire .{scope}", space, f"st.release.{scope}", f"ld.acquire.{scope}")
            exchange = f"atom.release.{scope}.SPACE.exch.b32 %o, [%f], 1;"
            yield seen(f"atom.exch.release ld.acquire .{scope}", space, exchange, f"ld.acquire.{scope}")
            add = f"red.release.{scope}.SPACE.add.u32 [%f], 1;"
            yield seen(f"red.add.release atom.or.acquire .{scope}", space, add, f"atom.acquire.{scope}.SPACE.or.b32 %o, [%f], 0;")
            both = f"atom.acq_rel.{scope}.SPACE.cas.b32 %o, [%f], 0, 1;"
            yield seen(f"atom.cas.acq_rel .{scope}", space, both, f"atom.acq_rel.{scope}.SPACE.cas.b32 %o, [%f], 7, 8;")
            for fence in (f"fence.acq_rel.{scope}", f"fence.sc.{scope}", f"fence.{scope}"):
                yield seen(fence, space, f"st.relaxed.{scope}", f"ld.relaxed.{scope}", fence)
        for fence in ("membar.cta", "membar.gl", "membar.sys"):
            yield seen(fence, space, "st.volatile", "ld.volatile", fence)


def seen(form: str, space: str, tell: str, ask: str, fence: str = "") -> Case:
    fenced = f"{fence};" if fence else ""
    tells = tell.replace("SPACE", space) if "[" in tell else f"{tell}.{space}.b32 [%f], 1;"
    asks = ask.replace("SPACE", space) if "[" in ask else f"{ask}.{space}.b32 %o, [%f];"
    at = {"global": ".reg .u64 %f, %x; mov.u64 %f, %F; mul.wide.u32 %x, %l, 4; add.u64 %x, %A, %x;"}
    at["shared"] = ".reg .u32 %f, %x; mov.u32 %f, flag; mov.u32 %x, buffer; mad.lo.u32 %x, %l, 4, %x;"
    body = f""".shared .align 4 .b32 flag; .shared .align 4 .b32 buffer[32]; .reg .u32 %t, %l, %n, %o, %v; .reg .u64 %g; .reg .pred %p, %q;
mov.u32 %t, %tid.x; mov.u32 %l, %laneid; {at[space]} mov.b32 %v, 0; setp.lt.u32 %q, %t, 32; @%q st.{space}.b32 [%x], %v; setp.eq.u32 %p, %t, 0; @%p st.{space}.b32 [%f], %v; bar.sync 0;
setp.ge.u32 %q, %t, 32; @%q bra READ; mad.lo.u32 %v, %l, 3, 1; st.{space}.b32 [%x], %v; bar.warp.sync 0xffffffff; @!%p bra END; {fenced} {tells} bra END;
READ: mov.u32 %n, 0;
WAIT: {asks} add.u32 %n, %n, 1; setp.eq.u32 %p, %o, 1; setp.lt.u32 %q, %n, {ROUNDS}; @%p bra SEEN; @%q bra WAIT;
SEEN: {fenced} bar.warp.sync 0xffffffff; ld.{space}.b32 %v, [%x]; mul.wide.u32 %g, %l, 4; add.u64 %g, %D, %g; st.global.b32 [%g], %v; END:"""
    params = {"A": np.full(32, 9, np.uint32), "F": np.zeros(1, np.uint32), "D": np.zeros(32, np.uint32)}
    return Case("orders", f"{form}, {space}", entry("A F D", body), params, {"D": Exact()}, 64)


# --- barrier objects -----------------------------------------------------------------------------------------------------

#: A warp with a barrier object a lane, and where what it notes goes.
OBJECTS = """.shared .align 8 .b64 bars[32]; .reg .u32 %l, %at, %x, %c; .reg .u64 %g, %w; .reg .b64 %state; .reg .pred %p, %q;
mov.u32 %l, %laneid; mov.u32 %at, bars; mad.lo.u32 %at, %l, 8, %at; mul.wide.u32 %w, %l, 4; add.u64 %g, %D, %w;"""


def lanes_of_barriers() -> Case:
    """Each lane its own object with its own count; it is made invalid and made anew."""
    lines, n = (
        [
            OBJECTS,
            "and.b32 %c, %l, 3; add.u32 %c, %c, 2; mbarrier.init.shared::cta.b64 [%at], %c; fence.mbarrier_init.release.cluster; bar.warp.sync 0xffffffff;",
        ],
        0,
    )

    def note(text: str) -> None:
        nonlocal n
        lines.append(f"{text} st.global.u32 [%g+{128 * n}], %x;")
        n += 1

    for _ in range(6):
        note("mbarrier.arrive.shared::cta.b64 %state, [%at]; mbarrier.pending_count.b64 %x, %state;")
        note("mbarrier.test_wait.shared::cta.b64 %p, [%at], %state; selp.u32 %x, 1, 0, %p;")
        note("mbarrier.test_wait.parity.shared::cta.b64 %p, [%at], 0; selp.u32 %x, 1, 0, %p;")
        note("mbarrier.try_wait.parity.shared::cta.b64 %p, [%at], 1, 100; selp.u32 %x, 1, 0, %p;")
    lines.append(
        "mbarrier.inval.shared::cta.b64 [%at]; bar.warp.sync 0xffffffff; mbarrier.init.shared::cta.b64 [%at], 1; fence.mbarrier_init.release.cluster;"
    )
    note("mbarrier.test_wait.parity.shared::cta.b64 %p, [%at], 0; selp.u32 %x, 1, 0, %p;")
    note("mbarrier.arrive.shared::cta.b64 %state, [%at]; mbarrier.test_wait.shared::cta.b64 %p, [%at], %state; selp.u32 %x, 1, 0, %p;")
    return Case("threads", "mbarrier of each lane", entry("D", "\n".join(lines)), {"D": np.zeros(32 * n, np.uint32)}, {"D": Exact()})


def lanes_wait() -> Case:
    """Lanes of one warp wait for objects of their own, to which another warp arrives."""
    body = f"""{OBJECTS} .reg .u32 %t, %n; .reg .pred %r; mov.u32 %t, %tid.x; setp.ge.u32 %q, %t, 32; @!%q mbarrier.init.shared::cta.b64 [%at], 2; bar.sync 0;
@%q bra WAIT0; mbarrier.arrive.release.cta.shared::cta.b64 _, [%at]; mov.u32 %c, 31; sub.u32 %c, %c, %l; mov.u32 %at, bars; mad.lo.u32 %at, %c, 8, %at;
mbarrier.arrive.release.cta.shared::cta.b64 _, [%at]; bra END;
WAIT0: mov.u32 %n, 0;
WAIT: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p, [%at], 0; add.u32 %n, %n, 1; setp.lt.u32 %r, %n, {ROUNDS}; @%p bra DONE; @%r bra WAIT;
DONE: selp.u32 %x, 1, 0, %p; st.global.u32 [%g], %x; END:"""
    return Case("threads", "mbarrier.try_wait of each lane", entry("D", body), {"D": np.full(32, 7, np.uint32)}, {"D": Exact()}, 64)


def words_of_barriers(order: str) -> Case:
    """Arrivals of all kinds in one order and scope; what was written in front of them is read behind the wait, of relaxed ones behind a fence."""
    waits = {"": "", ".release.cta": ".acquire.cta", ".relaxed.cta": ".relaxed.cta", ".release.cluster": ".acquire.cluster"}[order]
    fence = "fence.acq_rel.cta;" if "relaxed" in order else ""
    body = f""".shared .align 8 .b64 bar; .shared .align 4 .b32 buffer[32]; .reg .u32 %t, %l, %b, %at, %n, %x; .reg .u64 %g; .reg .pred %p, %q, %r;
mov.u32 %t, %tid.x; mov.u32 %l, %laneid; mov.u32 %b, bar; mov.u32 %at, buffer; mad.lo.u32 %at, %l, 4, %at; setp.eq.u32 %p, %t, 0;
@%p mbarrier.init.shared::cta.b64 [%b], 32; bar.sync 0; setp.ge.u32 %q, %t, 32; @%q bra WAIT0; st.shared.u32 [%at], %l; {fence}
setp.lt.u32 %p, %l, 8; @%p mbarrier.arrive{order}.shared::cta.b64 _, [%b]; @%p bra END; setp.lt.u32 %p, %l, 16; @%p mbarrier.arrive{order}.shared::cta.b64 _, [%b], 1;
@%p bra END; setp.lt.u32 %p, %l, 24; @%p mbarrier.arrive_drop{order}.shared::cta.b64 _, [%b]; @%p bra END;
mbarrier.arrive.expect_tx{order}.shared::cta.b64 _, [%b], 8; mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%b], 8; bra END;
WAIT0: mov.u32 %n, 0;
WAIT: mbarrier.try_wait.parity{waits}.shared::cta.b64 %p, [%b], 0; add.u32 %n, %n, 1; setp.lt.u32 %r, %n, {ROUNDS}; @%p bra DONE; @%r bra WAIT;
DONE: {fence} ld.shared.u32 %x, [%at]; mul.wide.u32 %g, %l, 4; add.u64 %g, %D, %g; st.global.u32 [%g], %x; END:"""
    form = f"mbarrier.arrive{order}"
    return Case("threads", form, entry("D", body), {"D": np.full(32, 77, np.uint32)}, {"D": Exact()}, 64)


def copies_arrive(noinc: bool) -> Case:
    """cp.async.mbarrier.arrive of each lane: with `.noinc` it counts among the object's arrivals, else it adds the one that it makes."""
    word, own = (".noinc", "") if noinc else ("", "mbarrier.arrive.shared::cta.b64 _, [%b];")
    body = f""".shared .align 16 .b8 buffer[512]; .shared .align 8 .b64 bar; .reg .u32 %l, %b, %at, %n; .reg .u64 %g, %w; .reg .b32 %r<4>; .reg .pred %p, %q;
mov.u32 %l, %laneid; mov.u32 %b, bar; mov.u32 %at, buffer; mad.lo.u32 %at, %l, 16, %at; setp.eq.u32 %p, %l, 0;
@%p mbarrier.init.shared::cta.b64 [%b], 32; bar.warp.sync 0xffffffff; mul.wide.u32 %w, %l, 16; add.u64 %g, %A, %w;
cp.async.cg.shared.global [%at], [%g], 16; cp.async.mbarrier.arrive{word}.shared.b64 [%b]; {own} mov.u32 %n, 0;
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0; add.u32 %n, %n, 1; setp.lt.u32 %q, %n, {ROUNDS}; @%p bra DONE; @%q bra WAIT;
DONE: xor.b32 %at, %at, 16; ld.shared.v4.b32 {{%r0, %r1, %r2, %r3}}, [%at]; add.u64 %g, %D, %w; st.global.v4.b32 [%g], {{%r0, %r1, %r2, %r3}};"""
    params = {"A": np.random.default_rng(4).integers(0, 256, 512, np.uint8), "D": np.zeros(512, np.uint8)}
    return Case("cp.async", f"cp.async.mbarrier.arrive{word}", entry("A D", body), params, {"D": Exact()})


def registers() -> Case:
    """setmaxnreg: one warpgroup gives registers back, the other takes them and has more values than before; none is lost."""
    count = 150
    many = "".join(f"mad.lo.u32 %v{n + 1}, %v{n}, 1664525, 1013904223;" for n in range(count))
    sum_ = "".join(f"xor.b32 %x, %x, %v{n}; mul.lo.u32 %x, %x, 5;" for n in reversed(range(count)))
    body = f""".reg .u32 %t, %x, %y, %v<{count + 1}>; .reg .u64 %g, %o; .reg .pred %p; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 4; add.u64 %g, %A, %o; ld.global.u32 %y, [%g];
setp.lt.u32 %p, %t, 128; @%p bra FEW; setmaxnreg.inc.sync.aligned.u32 200; mov.b32 %v0, %y; mov.b32 %x, 0; {many} bar.sync 1, 128; {sum_} bra OUT;
FEW: setmaxnreg.dec.sync.aligned.u32 40; add.u32 %x, %y, 1; OUT: add.u64 %g, %D, %o; st.global.u32 [%g], %x;"""
    params = {"A": np.random.default_rng(6).integers(0, 2**32, 256, np.uint32), "D": np.zeros(256, np.uint32)}
    text = entry("A D", body).replace(")\n{", ")\n.maxnreg 128\n{", 1)
    return Case("threads", "setmaxnreg", text, params, {"D": Exact()}, 256)


# --- branches -----------------------------------------------------------------------------------------------------------


def branches() -> Iterator[Case]:
    """Lanes that part and come together: loops of different lengths, a table of labels, ends in the middle, uniform branches."""
    text = """and.b32 %n, {a}, 15; mov.b32 {d}, 0; mov.b32 {x}, {b};
LOOP: setp.eq.u32 %p, %n, 0; @%p bra DONE; mad.lo.u32 {x}, {x}, 5, %n; and.b32 {d}, {x}, 3; setp.eq.u32 %q, {d}, 2; @%q sub.u32 {x}, {x}, 7; sub.u32 %n, %n, 1; bra LOOP; DONE:"""
    yield case("threads", "bra, loops of different lengths", text, "b32 b32", "b32 b32")
    text = """and.b32 %n, {a}, 3; ts: .branchtargets L0, L1, L2, L3; brx.idx %n, ts;
L0: add.u32 {d}, {b}, 1; bra OUT; L1: xor.b32 {d}, {b}, 0xff; bra OUT; L2: mul.lo.u32 {d}, {b}, 3; L3: mov.b32 {d}, {b}; OUT: mov.b32 {x}, %n;"""
    yield case("threads", "brx.idx", text, "b32 b32", "b32 b32")
    text = """setp.lt.u32 %p, {a}, {b}; @%p ret; setp.eq.u32 %q, {c}, 5; @%q exit; add.u32 {d}, {a}, {b}; mov.b32 {x}, 3;"""
    yield case("threads", "ret and exit of some", text, "b32 b32 b32", "b32 b32")
    text = """mov.u32 %n, 0; UP: add.u32 %n, %n, 1; setp.lt.u32 %p, %n, 9; @%p bra.uni UP; activemask.b32 {x}; vote.sync.ballot.b32 {d}, %p, 0xffffffff;"""
    yield case("threads", "bra.uni", text, "b32 b32", "b32 b32")
