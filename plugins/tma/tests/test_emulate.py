"""Copies by tensor maps without a GPU, against a box walked element by element in plain Python.

The swizzles of the reference are written as the CUDA driver API and the PTX ISA word them: 16-byte chunk c of row r (rows of the swizzle's span,
counted from a multiple of 1024 bytes) is in the place of chunk c xor (r mod 8), (r / 2) mod 4, (r / 4) mod 2.
"""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest
from cake_tma.emulate.copies import nearest_tf32

from cake_core.emulate.bodies import on_body
from cake_core.emulate.outcome import Unsupported
from cake_core.plugins import load_registry
from cake_core.ptx.emulated import TiledMap


@pytest.fixture(scope="module")
def run():
    emulates = load_registry().emulates
    return lambda body, given=None, **more: on_body(body, given or {}, emulates, **{"shared": 20480, **more})


SCHEDULES = pytest.mark.parametrize("schedule", ["round-robin", "adversarial", "random:4"])
BYTES = 16384  # of boxes; the barrier object is behind them
BAR = "[%s+16384]"
INIT = f"setp.eq.u32 %p0, %t, 0;\n@%p0 mbarrier.init.shared::cta.b64 {BAR}, 1;\nbar.sync 0;\n"
WAIT = f"AGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, {BAR}, 0;\n@!%p1 bra AGAIN;\n"
DONE = "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"


def expect(n: int) -> str:
    return f"mbarrier.arrive.expect_tx.shared::cta.b64 _, {BAR}, {n};\n"


def load(rank: int, coordinates: tuple[int, ...], at: int = 0, more: str = "", dst: str = "shared::cluster", mode: str = "", tail: str = "") -> str:
    inner = ", ".join(map(str, coordinates))
    return f"cp.async.bulk.tensor.{rank}d.{dst}.global{mode}.mbarrier::complete_tx::bytes{more} [%s+{at}], [%M, {{{inner}}}], {BAR}{tail};\n"


def store(rank: int, coordinates: tuple[int, ...], at: int = 0, mode: str = "", tail: str = "") -> str:
    return f"cp.async.bulk.tensor.{rank}d.global.shared::cta{mode}.bulk_group{tail} [%M, {{{', '.join(map(str, coordinates))}}}], [%s+{at}];\n"


KINDS = {1: "uint8", 2: "float16", 4: "float32", 8: "float64"}


def tiled(shape, box, size=2, swizzle=0, steps=None, pads=None, fill="zero", kind=None, of="A"):
    """A dense map (innermost first), rows padded by `pads` bytes; and its strides."""
    strides, n = [], shape[0] * size
    for d in range(1, len(shape)):
        n += (pads or [0] * len(shape))[d]
        strides.append(n)
        n *= shape[d]
    return (
        lambda at: TiledMap(
            at[of], 8 * size, kind or KINDS[size], tuple(shape), tuple(strides), tuple(box), tuple(steps or [1] * len(shape)), swizzle, fill
        ),
        strides,
        n,
    )


def spread(address: int, swizzle: int) -> int:
    """Where the byte that is dense at `address` lies."""
    if not swizzle:
        return address
    row, chunk, low = address // swizzle, address % swizzle // 16, address % 16
    turn = {128: row % 8, 64: row // 2 % 4, 32: row // 4 % 2}[swizzle]
    return row * swizzle + (chunk ^ turn) * 16 + low


def walked(shape, box, steps, coordinates, strides, size):
    """(offset in global memory or None, dense offset in the box) of each element of a box."""
    counts = [-(-b // s) for b, s in zip(box, steps, strict=True)]
    at = 0
    for index in itertools.product(*[range(n) for n in reversed(counts)]):
        where = [c + i * s for c, i, s in zip(coordinates, reversed(index), steps, strict=True)]
        inside = all(0 <= w < extent for w, extent in zip(where, shape, strict=True))
        yield (where[0] * size + sum(w * s for w, s in zip(where[1:], strides, strict=True)) if inside else None), at
        at += size


#: shape, box, element bytes, swizzle, steps, pads, coordinates.
CASES = {
    "one": ((100,), (64,), 4, 0, None, None, (16,)),
    "one, over the end": ((100,), (64,), 4, 0, None, None, (60,)),
    "one, in front": ((100,), (64,), 2, 128, None, None, (-9,)),
    "two": ((96, 20), (64, 8), 2, 0, None, None, (32, 5)),
    "two, 128": ((128, 40), (64, 32), 2, 128, None, (0, 32), (64, 3)),
    "two, 64": ((64, 40), (32, 16), 2, 64, None, None, (32, 7)),
    "two, 32": ((64, 40), (16, 16), 2, 32, None, None, (16, 0)),
    "two, tail of both": ((72, 20), (64, 32), 2, 128, None, None, (64, 10)),
    "two, all outside": ((64, 16), (64, 8), 2, 128, None, None, (64, 16)),
    "two, negative": ((64, 16), (64, 8), 2, 128, None, None, (-8, -5)),
    "two, larger than the tensor": ((8, 4), (64, 16), 2, 128, None, None, (0, 0)),
    "two, bytes": ((256, 9), (128, 8), 1, 128, None, None, (112, 4)),
    "two, doubles": ((16, 9), (16, 8), 8, 128, None, None, (2, 4)),
    "two, strides of elements": ((64, 40), (32, 30), 2, 0, (1, 4), None, (8, 3)),
    "two, the first stride is ignored": ((64, 40), (32, 8), 2, 0, (2, 3), None, (8, 30)),
    "three": ((64, 6, 5), (64, 2, 3), 2, 128, None, None, (0, 5, 3)),
    "three, padded": ((32, 6, 5), (16, 4, 3), 2, 32, None, (0, 16, 64), (24, -1, 1)),
    "four": ((16, 5, 4, 3), (8, 3, 2, 2), 4, 32, None, None, (8, 3, -1, 2)),
    "five": ((16, 3, 4, 3, 2), (16, 2, 3, 2, 2), 1, 0, (1, 1, 2, 1, 1), None, (0, 2, 0, 1, 0)),
}


def given(n: int) -> np.ndarray:
    return np.random.default_rng(3).integers(1, 256, n, dtype=np.uint8)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("base", [0, 384])
def test_a_box_is_loaded(run, case, base):
    shape, box, size, swizzle, steps, pads, coordinates = case
    map, strides, n = tiled(shape, box, size, swizzle, steps, pads)
    real = (1, *(steps or [1] * len(shape))[1:])
    elements = list(walked(shape, box, real, coordinates, strides, size))
    total = size * len(elements)
    body = INIT + "@%p0 " + expect(total) + "@%p0 " + load(len(shape), coordinates, base) + WAIT + "@!%p0 ret;\n"
    body += f"cp.async.bulk.global.shared::cta.bulk_group [%D], [%s], {BYTES};\n{DONE}"
    a = given(n)
    zero = "mad.lo.u32 %r1, %t, 512, %s;\nmov.u32 %r0, 0;\n" + "".join(
        f"st.shared.v4.b32 [%r1+{i}], {{%r0, %r0, %r0, %r0}};\n" for i in range(0, 512, 16)
    )
    done = run(zero + "fence.proxy.async;\n" + body, {"A": a, "D": np.zeros(BYTES, np.uint8), "M": map})
    assert done.findings == []
    wanted = np.zeros(BYTES, np.uint8)
    for source, at in elements:
        to = spread(base + at, swizzle)
        wanted[to : to + size] = a[source : source + size] if source is not None else 0
    assert (done["D"] == wanted).all()


@pytest.mark.parametrize("case", [c for c in CASES.values() if min(c[-1]) >= 0], ids=[n for n, c in CASES.items() if min(c[-1]) >= 0])
@pytest.mark.parametrize("base", [0, 640])
def test_a_box_is_stored(run, case, base):
    """What is outside of the tensor is not written, and not read either: only what is stored has a value in shared memory."""
    shape, box, size, swizzle, steps, pads, coordinates = case
    map, strides, n = tiled(shape, box, size, swizzle, steps, pads, of="D")
    real = (1, *(steps or [1] * len(shape))[1:])
    s, old = given(BYTES), np.full(n, 7, np.uint8)
    wanted, needed = old.copy(), np.zeros(BYTES // 4, bool)
    for to, at in walked(shape, box, real, coordinates, strides, size):
        source = spread(base + at, swizzle)
        if to is not None:
            wanted[to : to + size] = s[source : source + size]
            needed[source // 4 : (source + size + 3) // 4] = True
    fill = "mov.u32 %r1, %t;\nLOOP:\nmul.wide.u32 %d1, %r1, 4;\nadd.u64 %d2, %d1, %N;\nld.global.b32 %r2, [%d2];\nsetp.eq.u32 %p2, %r2, 0;\nadd.u64 %d2, %d1, %S;\n"
    fill += "mad.lo.u32 %r3, %r1, 4, %s;\n@!%p2 ld.global.b32 %r4, [%d2];\n@!%p2 st.shared.b32 [%r3], %r4;\nadd.u32 %r1, %r1, 32;\n"
    fill += f"setp.lt.u32 %p2, %r1, {BYTES // 4};\n@%p2 bra LOOP;\nfence.proxy.async;\nbar.sync 0;\nsetp.eq.u32 %p0, %t, 0;\n@!%p0 ret;\n"
    done = run(fill + store(len(shape), coordinates, base) + DONE, {"S": s, "N": needed.astype(np.uint32), "D": old, "M": map})
    assert done.findings == []
    assert (done["D"] == wanted).all()


@SCHEDULES
@pytest.mark.parametrize(
    ("more", "dst", "mode", "tail"),
    [("", "shared::cta", "", ""), (".L2::cache_hint", "shared::cluster", ".tile", ", %d9"), (".cta_group::1", "shared::cluster", "", ""),
     (".cta_group::2.L2::cache_hint", "shared::cta", ".tile", ", %d9")],
)  # fmt: skip
def test_loads_in_all_words(run, more, dst, mode, tail, schedule):
    map, _, n = tiled((32, 16), (32, 16), 2, 64)
    body = INIT + "mov.b64 %d9, 0;\n@%p0 " + expect(1024) + "@%p0 " + load(2, (0, 0), 0, more, dst, mode, tail) + WAIT
    body += "mul.lo.u32 %r1, %t, 32;\nadd.u32 %r2, %r1, %s;\nmul.wide.u32 %d1, %t, 32;\nadd.u64 %d1, %d1, %D;\n"
    body += "".join(f"ld.shared.v4.b32 {{%r3, %r4, %r5, %r6}}, [%r2+{i}];\nst.global.v4.b32 [%d1+{i}], {{%r3, %r4, %r5, %r6}};\n" for i in (0, 16))
    a = given(n)
    done = run(body, {"A": a, "D": np.zeros(1024, np.uint8), "M": map}, schedule=schedule)
    assert done.findings == []
    wanted = np.zeros(1024, np.uint8)
    wanted[[spread(at, 64) for at in range(1024)]] = a[:1024]
    assert (done["D"] == wanted).all()


@pytest.mark.parametrize(
    ("size", "kind", "nan"),
    [
        (2, "float16", b"\xf7\x7f"),
        (2, "bfloat16", b"\xf7\x7f"),
        (4, "float32", b"\xf7\x7f\xf7\x7f"),
        (4, "tfloat32", b"\xf7\x7f\xf7\x7f"),
    ],
)
def test_what_is_outside_is_filled(run, size, kind, nan):
    map, strides, n = tiled((32 // size, 4), (32 // size, 8), size, 0, fill="nan", kind=kind)
    body = (
        INIT
        + "@!%p0 ret;\n"
        + expect(256)
        + load(2, (16 // size, 1))
        + WAIT
        + f"cp.async.bulk.global.shared::cta.bulk_group [%D], [%s], 256;\n{DONE}"
    )
    a = given(n)
    if kind == "tfloat32":  # a load rounds the others
        a = (a.view(np.uint32) & 0xFFFFE000).view(np.uint8)
    done = run(body, {"A": a, "D": np.zeros(256, np.uint8), "M": map})
    wanted = b"".join(
        a[s : s + size].tobytes() if s is not None else nan
        for s, _ in walked((32 // size, 4), (32 // size, 8), (1, 1), (16 // size, 1), strides, size)
    )
    assert (done.findings, done["D"].tobytes()) == ([], wanted)


@SCHEDULES
def test_four_rows_are_gathered_and_scattered(run, schedule):
    map, (stride,), n = tiled((64, 40), (64, 1), 2, 128)
    other, _, _ = tiled((64, 40), (64, 1), 2, 128, of="D")
    rows = (7, 39, 0, 40)  # the last one is outside
    body = INIT + "@!%p0 ret;\n" + expect(512) + load(2, (8, *rows), mode=".tile::gather4") + WAIT
    body += store(2, (0, 3, 1, 38, 41), mode=".tile::scatter4").replace("%M", "%N") + DONE
    a = given(n)
    done = run(body, {"A": a, "D": np.zeros(n, np.uint8), "M": map, "N": other}, schedule=schedule)
    assert done.findings == []
    wanted = np.zeros((40, 128), np.uint8)
    for row, to in zip(rows[:3], (3, 1, 38), strict=True):
        wanted[to, :112] = a.reshape(40, stride)[row, 16:128]
    assert (done["D"].reshape(40, 128) == wanted).all()


#: Reads a CTA's 512 bytes to its part of D.
TAKE = "mad.lo.u32 %r2, %t, 16, %s;\nmad.wide.u32 %d1, %t, 16, %D;\nmul.wide.u32 %d2, %rank, 512;\nadd.u64 %d1, %d1, %d2;\n"
TAKE += "ld.shared.v4.b32 {%r3, %r4, %r5, %r6}, [%r2];\nst.global.v4.b32 [%d1], {%r3, %r4, %r5, %r6};\n"
MEET = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"


@SCHEDULES
def test_multicast(run, schedule):
    """Each CTA of two sends half of a box to both; each expects all of it on its own barrier."""
    map, _, n = tiled((64, 8), (64, 2), 2, 0)
    half = load(2, (0, "%r7"), "%r8", ".multicast::cluster", tail=", %h0").replace("[%s+%r8]", "[%r8]")
    body = (
        INIT
        + "@%p0 "
        + expect(512)
        + MEET
        + "mov.b16 %h0, 3;\nmul.lo.u32 %r7, %rank, 2;\nmad.lo.u32 %r8, %rank, 256, %s;\n@%p0 "
        + half
        + WAIT
        + TAKE
        + MEET
    )
    a = given(n)
    done = run(body, {"A": a, "D": np.zeros((2, 512), np.uint8), "M": map}, grid=2, cluster=2, schedule=schedule)
    assert done.findings == []
    assert (done["D"] == a[:512]).all()


@SCHEDULES
def test_a_pair_tells_the_barrier_of_its_leader(run, schedule):
    """With .cta_group::2 both CTAs load into their own memory and complete on CTA 0's barrier; without it the barrier is the destination's."""
    map, _, n = tiled((64, 8), (64, 4), 2, 0)
    lead = "mapa.shared::cluster.u32 %r9, %s, 0;\nsetp.eq.u32 %p2, %rank, 0;\nand.pred %p3, %p0, %p2;\nmul.lo.u32 %r7, %rank, 4;\n"
    one = load(2, (0, "%r7"), more=".cta_group::2").replace(BAR, "[%r9+16384]")
    body = INIT + lead + "@%p3 " + expect(1024) + MEET + "@%p0 " + one + "@!%p2 bra THERE;\n" + WAIT + "THERE:\n" + MEET + TAKE + MEET
    a = given(n)
    done = run(body, {"A": a, "D": np.zeros((2, 512), np.uint8), "M": map}, grid=2, cluster=2, schedule=schedule)
    assert done.findings == []
    assert (done["D"].reshape(-1) == a[:1024]).all()
    done = run(body.replace(".cta_group::2", ""), {"A": a, "D": np.zeros((2, 512), np.uint8), "M": map}, grid=2, cluster=2, schedule=schedule)
    assert done.codes[0] == "emulate/operand"


@pytest.mark.parametrize(
    ("operation", "kind", "code", "combine"),
    [
        ("add", "float32", "f", lambda a, b: np.float32(a) + np.float32(b)),
        ("add", "int32", "i", lambda a, b: (a + b + 2**31) % 2**32 - 2**31),
        ("min", "int32", "i", min),
        ("max", "uint32", "I", max),
        ("xor", "uint32", "I", lambda a, b: a ^ b),
        ("inc", "uint32", "I", lambda a, b: 0 if a >= b else a + 1),
    ],
)
@pytest.mark.parametrize("mode", ["", ".tile"])
def test_a_box_is_reduced_into_a_tensor(run, operation, kind, code, combine, mode):
    """A box that reaches over the end; two CTAs reduce the same one."""
    map, strides, n = tiled((24, 6), (16, 4), 4, 64, kind=kind, of="D")
    values = lambda seed: np.random.default_rng(seed).integers(-9, 9, 256).astype({"f": np.float32, "i": np.int32, "I": np.uint32}[code])
    s, old = values(1), values(2)[: n // 4]
    fill = "mad.lo.u32 %r1, %t, 32, %s;\nmad.wide.u32 %d1, %t, 32, %S;\n"
    fill += "".join(f"ld.global.v4.b32 {{%r3, %r4, %r5, %r6}}, [%d1+{i}];\nst.shared.v4.b32 [%r1+{i}], {{%r3, %r4, %r5, %r6}};\n" for i in (0, 16))
    body = fill + "fence.proxy.async;\nbar.sync 0;\nsetp.eq.u32 %p0, %t, 0;\n@!%p0 ret;\n"
    body += f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{operation}{mode}.bulk_group [%M, {{16, 3}}], [%s];\n{DONE}"
    done = run(body, {"S": s, "D": old, "M": map}, grid=2)
    assert done.findings == []
    wanted = old.tolist()
    for _ in range(2):
        for to, at in walked((24, 6), (16, 4), (1, 1), (16, 3), strides, 4):
            if to is not None:
                wanted[to // 4] = combine(wanted[to // 4], s[spread(at, 64) // 4].item())
    assert done["D"].tolist() == struct.unpack(f"<{len(wanted)}{code}", struct.pack(f"<{len(wanted)}{code}", *wanted)) or done["D"].tolist() == wanted


def test_each_lane_starts_a_copy_of_its_own(run):
    map, _, n = tiled((16, 32), (16, 1), 2, 0)
    body = INIT + "@%p0 " + expect(1024) + "bar.warp.sync -1;\nsetp.lt.u32 %p2, %t, 32;\nmad.lo.u32 %r8, %t, 128, %s;\n"
    body += load(2, (0, "%t"), "%r8").replace("[%s+%r8]", "[%r8]") + WAIT
    body += "mad.wide.u32 %d1, %t, 32, %D;\n" + "".join(
        f"ld.shared.v4.b32 {{%r3, %r4, %r5, %r6}}, [%r8+{i}];\nst.global.v4.b32 [%d1+{i}], {{%r3, %r4, %r5, %r6}};\n" for i in (0, 16)
    )
    a = given(n)
    done = run(body, {"A": a, "D": np.zeros(1024, np.uint8), "M": map})
    assert (done.findings, (done["D"] == a).all()) == ([], True)


@pytest.mark.parametrize(
    ("body", "change", "code", "says"),
    [
        (load(2, (0, 0), 64), {}, "emulate/misaligned", "multiple of 128"),
        (load(2, (0, 0)).replace("[%M,", "[%M+32,"), {}, "emulate/misaligned", "multiple of 64"),
        (load(2, (0, 0)).replace("[%M,", "[%A,"), {}, "emulate/operand", "no tensor map"),
        (load(3, (0, 0, 0)), {}, "emulate/operand", "2 dimensions"),
        (load(2, (0, 1, 2, 3, 4), mode=".tile::gather4"), {}, "emulate/operand", "its second extent is 1"),
        (store(2, (-8, 0)), {}, "emulate/operand", "(-8, 0)"),
        (load(2, (4, 0)), {}, "emulate/misaligned", "8 bytes from its start"),
        (store(2, (4, 0)), {}, "emulate/misaligned", "multiples of 16 bytes"),
        (store(2, (0, -3)), {}, "emulate/operand", "illegal"),
        (store(2, (0, 0), 64), {}, "emulate/misaligned", "multiple of 128"),
        (store(2, (0, 0)), {}, "emulate/uninitialised", "nobody has written"),
        (load(2, (0, 0)), {"address": 8}, "emulate/misaligned", "multiples of 16"),
        (load(2, (0, 0)), {"strides": (136,)}, "emulate/misaligned", "multiples of 16"),
        (load(2, (0, 0)), {"box": (4, 8)}, "emulate/operand", "rows of 8 bytes"),
        (load(2, (0, 0)), {"swizzle": 64}, "emulate/operand", "under a swizzle of 64"),
        (load(2, (0, 0)), {"box": (64, 300)}, "emulate/operand", "1 to 256"),
        (load(2, (0, 0)), {"shape": (64, 400)}, "emulate/out-of-bounds", ""),
        (load(2, (0, 0)), {"kind": "uint16", "fill": "nan"}, "emulate/operand", "only floating-point types"),
        (load(2, (0, 0)), {"kind": "16u4_align16b"}, "emulate/unsupported", "16u4_align16b"),
        ("cp.async.bulk.prefetch.tensor.3d.L2.global [%M, {0, 0, 0}];\n", {}, "emulate/operand", "2 dimensions"),
        ("prefetch.tensormap [%A];\n", {}, "emulate/operand", "no tensor map"),
        ("cp.reduce.async.bulk.tensor.2d.global.shared::cta.xor.bulk_group [%M, {0, 0}], [%s];\n", {}, "emulate/operand", "'.xor'"),
    ],
)  # fmt: skip
def test_misuse_is_told(run, body, change, code, says):
    base = {"bits": 16, "kind": "float16", "shape": (64, 16), "strides": (128,), "box": (64, 8), "steps": (1, 1), "swizzle": 128}

    def map(at):
        fields = {**base, **change}
        return TiledMap(at["A"] + fields.pop("address", 0), **fields)

    if "400" in str(change):
        body = body.replace("{0, 0}", "{0, 384}")
    done = run(INIT + "@!%p0 ret;\n" + expect(1024) + body + WAIT * ("mbarrier" in body) + DONE, {"A": given(2048), "M": map})
    assert done.codes[:1] == [code]
    assert says in done.findings[0].message or says in (done.findings[0].why or "")


def test_hints_are_taken(run):
    map, _, n = tiled((64, 8), (64, 2), 2, 0)
    body = "prefetch.tensormap [%M];\nprefetch.param.tensormap [M];\ncp.async.bulk.prefetch.tensor.2d.L2.global.tile [%M, {0, 0}];\n"
    assert run(body, {"A": given(n), "M": map}).findings == []


def test_elements_of_four_bits(run):
    """Two a byte: 64 elements are 32 bytes; an odd coordinate starts at no byte."""
    a = given(1024)
    map = lambda at: TiledMap(at["A"], 4, "16u4_align8b", (128, 16), (64,), (64, 8), (1, 1), 32)
    out = f"cp.async.bulk.global.shared::cta.bulk_group [%D], [%s], 256;\n{DONE}"
    done = run(INIT + "@!%p0 ret;\n" + expect(256) + load(2, (96, 2)) + WAIT + out, {"A": a, "D": np.zeros(256, np.uint8), "M": map})
    dense = np.zeros((8, 32), np.uint8)
    dense[:, :16] = a.reshape(16, 64)[2:10, 48:]
    wanted = np.zeros(256, np.uint8)
    for at, v in enumerate(dense.reshape(-1)):
        wanted[spread(at, 32)] = v
    assert (done.findings, (done["D"] == wanted).all()) == ([], True)
    done = run(INIT + "@!%p0 ret;\n" + expect(256) + load(2, (1, 2)) + WAIT, {"A": a, "M": map})
    assert done.codes == ["emulate/operand"]


@pytest.mark.parametrize(
    "statement",
    [load(4, (0, 0, 0, 0), mode=".im2col"), load(2, (0,)), load(2, (0, 0), dst="shared::cta", more=".multicast::cluster", tail=", 3"), store(2, (0, 0), mode=".tile::gather4"),
     load(2, (0, 0)).replace("2d", "6d"), store(3, (0, 0, 0), mode=".im2col_no_offs"), load(2, (0, 0), more=".evict"),
     "cp.reduce.async.bulk.tensor.2d.global.shared::cta.mul.bulk_group [%M, {0, 0}], [%s];"],
)  # fmt: skip
def test_a_form_that_is_not_covered_is_refused_by_name(run, statement):
    with pytest.raises(Unsupported):
        run(statement, {"A": given(64), "M": lambda at: None})


def test_rows_shorter_than_the_swizzle_are_refused(run):
    """An H200 pads them to the span in shared memory (driver 580.159.04, 2026-12-01)."""
    map, _, n = tiled((64, 40), (16, 16), 2, 128)
    body = INIT + "@%p0 " + expect(512) + "@%p0 " + load(2, (0, 0), 0) + WAIT
    done = run(body, {"A": given(n), "D": np.zeros(1024, np.uint8), "M": map})
    assert done.codes[0] == "emulate/operand" and "fewer than its swizzle's 128" in done.findings[0].message


def test_elements_of_tfloat32_are_rounded():
    given_, wanted = np.array(
        [
            (0x3F800FFF, 0x3F800000),
            (0x3F801001, 0x3F802000),
            (0xBF803000, 0xBF804000),
            (0x7F7FFFFF, 0x7F800000),
            (0x7F800000, 0x7F800000),
            (0x7FC00001, 0x7FFFE000),
            (0x80000000, 0x80000000),
        ],
        np.uint32,
    ).T
    assert (nearest_tf32(given_.copy().view(np.uint8)).view(np.uint32) == wanted).all()
