"""Integers, bits and shifts, against Python's own integers; values at the edges and drawn ones."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cake_core.emulate.outcome import Unsupported
from cake_core.emulate.registers import on_registers


def drawn(width: int, seed: int, edges: bool = True) -> list[int]:
    """32 patterns of so many bits."""
    pick = random.Random(seed)
    top = 1 << width - 1
    ends = [0, 1, 2, top - 1, top, top + 1, 2 * top - 1, 2 * top - 2, 0x55, 0xAA00 % (2 * top), 7] if edges else []
    pick.shuffle(ends)
    return (ends + [pick.getrandbits(pick.randint(1, width)) for _ in range(32)])[:32]


def array(values: list[int], width: int) -> np.ndarray:
    return np.array([v & (1 << width) - 1 for v in values], f"uint{width}")


def signed(v: int, width: int) -> int:
    v &= (1 << width) - 1
    return v - (1 << width) if v >> width - 1 else v


def seen(v: int, kind: str) -> int:
    width = int(kind[1:])
    return signed(v, width) if kind[0] == "s" else v & (1 << width) - 1


def towards_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def clamp(v: int, low: int, high: int) -> int:
    return max(low, min(v, high))


def field(value: int, position: int, count: int, kind: str) -> int:
    """bfe, as the ISA's pseudocode has it, bit by bit."""
    msb = int(kind[1:]) - 1
    position, count = position & 0xFF, count & 0xFF
    bits = value & (1 << msb + 1) - 1
    sign = 0 if kind[0] == "u" or count == 0 else bits >> min(position + count - 1, msb) & 1
    return sum((bits >> position + i & 1 if i < count and position + i <= msb else sign) << i for i in range(msb + 1))


def insert(a: int, b: int, position: int, count: int, width: int) -> int:
    position, count = position & 0xFF, count & 0xFF
    for i in range(count):
        if position + i < width:
            b = b & ~(1 << position + i) | (a >> i & 1) << position + i
    return b


WHOLE = ("s16", "u16", "s32", "u32", "s64", "u64")
BINARY = [
    *[(f"add.{k}", k, k, lambda a, b: a + b) for k in WHOLE],
    *[(f"sub.{k}", k, k, lambda a, b: a - b) for k in WHOLE],
    *[(f"mul.lo.{k}", k, k, lambda a, b: a * b) for k in WHOLE],
    *[(f"mul.hi.{k}", k, k, lambda a, b, w=int(k[1:]): a * b >> w) for k in WHOLE],
    *[(f"mul.wide.{k}", k, f"{k[0]}{2 * int(k[1:])}", lambda a, b: a * b) for k in WHOLE[:4]],
    *[(f"min.{k}", k, k, min) for k in WHOLE],
    *[(f"max.{k}", k, k, max) for k in WHOLE],
    *[(f"div.{k}", k, k, lambda a, b: towards_zero(a, b or 1)) for k in WHOLE],
    *[(f"rem.{k}", k, k, lambda a, b: a - towards_zero(a, b or 1) * (b or 1)) for k in WHOLE],
    ("add.sat.s32", "s32", "s32", lambda a, b: clamp(a + b, -(2**31), 2**31 - 1)),
    ("sub.sat.s32", "s32", "s32", lambda a, b: clamp(a - b, -(2**31), 2**31 - 1)),
    ("min.relu.s32", "s32", "s32", lambda a, b: max(min(a, b), 0)),
    ("max.relu.s32", "s32", "s32", lambda a, b: max(a, b, 0)),
    ("mul24.lo.s32", "s32", "s32", lambda a, b: signed(a, 24) * signed(b, 24)),
    ("mul24.hi.u32", "u32", "u32", lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 16),
    *[(f"and.b{w}", f"u{w}", f"u{w}", lambda a, b: a & b) for w in (16, 32, 64)],
    *[(f"or.b{w}", f"u{w}", f"u{w}", lambda a, b: a | b) for w in (16, 32, 64)],
    *[(f"xor.b{w}", f"u{w}", f"u{w}", lambda a, b: a ^ b) for w in (16, 32, 64)],
]


@pytest.mark.parametrize(("name", "kind", "to", "reference"), BINARY, ids=[c[0] for c in BINARY])
def test_two_operands(execute, name, kind, to, reference):
    width = int(kind[1:])
    a, b = array(drawn(width, 1), width), array(drawn(width, 2), width)
    if name.startswith(("div", "rem")):
        b[b == 0] = 1
    run = execute(f"{name} %d, %a, %b;", {"a": a, "b": b}, {"d": f"uint{to[1:]}"})
    assert run["d"].tolist() == [reference(seen(int(x), kind), seen(int(y), kind)) & (1 << int(to[1:])) - 1 for x, y in zip(a, b, strict=True)]


def halves(f, kind):
    """A function of 16-bit halves on both halves of words."""

    def both(a, b):
        low = f(seen(a & 0xFFFF, kind), seen(b & 0xFFFF, kind)) & 0xFFFF
        return (f(seen(a >> 16, kind), seen(b >> 16, kind)) & 0xFFFF) << 16 | low

    return both


PACKED = [
    ("add.u16x2", halves(lambda a, b: a + b, "u16")),
    ("sub.s16x2", halves(lambda a, b: a - b, "s16")),
    ("min.s16x2", halves(min, "s16")),
    ("max.u16x2", halves(max, "u16")),
    ("min.relu.s16x2", halves(lambda a, b: max(min(a, b), 0), "s16")),
]


@pytest.mark.parametrize(("name", "reference"), PACKED, ids=[c[0] for c in PACKED])
def test_packed_halves(execute, name, reference):
    a, b = array(drawn(32, 3), 32), array(drawn(32, 4), 32)
    assert execute(f"{name} %d, %a, %b;", {"a": a, "b": b}, {"d": "uint32"})["d"].tolist() == [
        reference(int(x), int(y)) for x, y in zip(a, b, strict=True)
    ]


def length(v: int) -> int:
    return v.bit_length()


UNARY = [
    *[(f"neg.{k}", k, k, lambda a: -a) for k in ("s16", "s32", "s64")],
    *[(f"abs.{k}", k, k, abs) for k in ("s16", "s32", "s64")],
    *[(f"not.b{w}", f"u{w}", f"u{w}", lambda a: ~a) for w in (16, 32, 64)],
    *[(f"cnot.b{w}", f"u{w}", f"u{w}", lambda a: int(a == 0)) for w in (16, 32, 64)],
    *[(f"popc.b{w}", f"u{w}", "u32", lambda a: a.bit_count()) for w in (32, 64)],
    *[(f"clz.b{w}", f"u{w}", "u32", lambda a, w=w: w - length(a)) for w in (32, 64)],
    *[(f"brev.b{w}", f"u{w}", f"u{w}", lambda a, w=w: int(f"{a:0{w}b}"[::-1], 2)) for w in (32, 64)],
    *[(f"bfind.u{w}", f"u{w}", "u32", lambda a: length(a) - 1) for w in (32, 64)],
    *[(f"bfind.s{w}", f"s{w}", "u32", lambda a: length(~a if a < 0 else a) - 1) for w in (32, 64)],
    ("bfind.shiftamt.u32", "u32", "u32", lambda a: 32 - length(a) if a else -1),
    ("bfind.shiftamt.s64", "s64", "u32", lambda a: 64 - length(~a if a < 0 else a) if a not in (0, -1) else -1),
]


@pytest.mark.parametrize(("name", "kind", "to", "reference"), UNARY, ids=[c[0] for c in UNARY])
def test_one_operand(execute, name, kind, to, reference):
    width = int(kind[1:])
    a = array(drawn(width, 5), width)
    run = execute(f"{name} %d, %a;", {"a": a}, {"d": f"uint{to[1:]}"})
    assert run["d"].tolist() == [reference(seen(int(x), kind)) & (1 << int(to[1:])) - 1 for x in a]


THREE = [
    *[(f"mad.lo.{k}", k, k, lambda a, b, c: a * b + c) for k in WHOLE],
    *[(f"mad.hi.{k}", k, k, lambda a, b, c, w=int(k[1:]): (a * b >> w) + c) for k in WHOLE],
    *[(f"sad.{k}", k, k, lambda a, b, c: c + abs(a - b)) for k in WHOLE],
    ("mad.hi.sat.s32", "s32", "s32", lambda a, b, c: clamp((a * b >> 32) + c, -(2**31), 2**31 - 1)),
    ("mad24.lo.u32", "u32", "u32", lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c),
    ("mad24.hi.sat.s32", "s32", "s32", lambda a, b, c: clamp((signed(a, 24) * signed(b, 24) >> 16) + c, -(2**31), 2**31 - 1)),
    ("dp4a.u32.s32", "u32", "u32", lambda a, b, c: signed(c, 32) + sum((a >> 8 * i & 255) * signed(b >> 8 * i, 8) for i in range(4))),
    ("dp4a.s32.s32", "u32", "u32", lambda a, b, c: signed(c, 32) + sum(signed(a >> 8 * i, 8) * signed(b >> 8 * i, 8) for i in range(4))),
    ("dp2a.lo.s32.u32", "u32", "u32", lambda a, b, c: signed(c, 32) + sum(signed(a >> 16 * i, 16) * (b >> 8 * i & 255) for i in range(2))),
    ("dp2a.hi.u32.u32", "u32", "u32", lambda a, b, c: c + sum((a >> 16 * i & 0xFFFF) * (b >> 8 * i + 16 & 255) for i in range(2))),
    *[(f"lop3.b32.{t}", "u32", "u32", lambda a, b, c, t=t: sum((t >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i for i in range(32)))
      for t in (0, 0x96, 0xE8, 0x80, 0x1E, 0xFE, 0xFF, 0x2A)],
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind", "to", "reference"), THREE, ids=[c[0] for c in THREE])
def test_three_operands(execute, name, kind, to, reference):
    width = int(kind[1:])
    a, b, c = (array(drawn(width, n), width) for n in (6, 7, 8))
    text = f"{name} %d, %a, %b, %c;"
    if name.startswith("lop3"):
        text = f"lop3.b32 %d, %a, %b, %c, {name.rpartition('.')[2]};"
    run = execute(text, {"a": a, "b": b, "c": c}, {"d": f"uint{to[1:]}"})
    expected = [reference(*(seen(int(v), kind) for v in vs)) & (1 << int(to[1:])) - 1 for vs in zip(a, b, c, strict=True)]
    assert run["d"].tolist() == expected


def test_a_wide_mad_has_a_wide_summand(execute):
    a, b = array(drawn(32, 9), 32), array(drawn(32, 10), 32)
    c = array(drawn(64, 11), 64)
    run = execute("mad.wide.s32 %d, %a, %b, %c;", {"a": a, "b": b, "c": c}, {"d": "uint64"})
    assert run["d"].tolist() == [(signed(int(x), 32) * signed(int(y), 32) + int(z)) & 2**64 - 1 for x, y, z in zip(a, b, c, strict=True)]


@pytest.mark.parametrize("width", [16, 32, 64])
def test_shifts_beyond_the_width(execute, width):
    a = array(drawn(width, 12), width)
    by = np.array([0, 1, width - 1, width, width + 1, 2**31, 2**32 - 1, 5] * 4, np.uint32)
    text = f"shl.b{width} %l, %a, %n;\nshr.u{width} %u, %a, %n;\nshr.s{width} %s, %a, %n;\nshr.s{width} %i, %a, {width + 3};\nshl.b{width} %j, %a, {width};"
    run = execute(text, {"a": a, "n": by}, dict.fromkeys("lusij", f"uint{width}"))
    mask = (1 << width) - 1
    pairs = [(int(x), int(n)) for x, n in zip(a, by, strict=True)]
    assert run["l"].tolist() == [(x << n & mask) if n < width else 0 for x, n in pairs]
    assert run["u"].tolist() == [x >> n if n < width else 0 for x, n in pairs]
    assert run["s"].tolist() == [signed(x, width) >> min(n, width) & mask for x, n in pairs]
    assert run["i"].tolist() == [signed(x, width) >> width & mask for x, _ in pairs]
    assert run["j"].tolist() == [0] * 32


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_funnel_shifts(execute, mode):
    a, b = array(drawn(32, 13), 32), array(drawn(32, 14), 32)
    n = np.array([0, 1, 31, 32, 33, 63, 64, 17] * 4, np.uint32)
    run = execute(f"shf.l.{mode}.b32 %l, %a, %b, %n;\nshf.r.{mode}.b32 %r, %a, %b, %n;", {"a": a, "b": b, "n": n}, {"l": "uint32", "r": "uint32"})
    by = [int(k) & 31 if mode == "wrap" else min(int(k), 32) for k in n]
    wide = [int(y) << 32 | int(x) for x, y in zip(a, b, strict=True)]
    assert run["l"].tolist() == [w << k >> 32 & 0xFFFFFFFF for w, k in zip(wide, by, strict=True)]
    assert run["r"].tolist() == [w >> k & 0xFFFFFFFF for w, k in zip(wide, by, strict=True)]


PLACES = np.array([0, 0, 4, 31, 30, 63, 255, 8, 16, 5, 1, 256, 33, 7, 28, 60] * 2, np.uint32)
COUNTS = np.array([0, 8, 8, 8, 32, 1, 255, 24, 16, 3, 64, 5, 4, 0, 4, 200] * 2, np.uint32)


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_fields(execute, kind):
    width = int(kind[1:])
    a, b = array(drawn(width, 15), width), array(drawn(width, 16), width)
    given = {"a": a, "b": b, "p": PLACES, "n": COUNTS}
    run = execute(f"bfe.{kind} %e, %a, %p, %n;\nbfi.b{width} %i, %a, %b, %p, %n;", given, {"e": f"uint{width}", "i": f"uint{width}"})
    rows = [tuple(int(v) for v in r) for r in zip(a, b, PLACES, COUNTS, strict=True)]
    assert run["e"].tolist() == [field(x, p, n, kind) for x, _, p, n in rows]
    assert run["i"].tolist() == [insert(x, y, p, n, width) for x, y, p, n in rows]


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_extension_and_masks(execute, mode):
    a = array(drawn(32, 17), 32)
    n = np.array([0, 1, 4, 8, 16, 31, 32, 33] * 4, np.uint32)
    at = np.array([0, 3, 31, 32, 40, 16, 1, 8] * 4, np.uint32)[::-1]
    text = f"szext.{mode}.s32 %s, %a, %n;\nszext.{mode}.u32 %u, %a, %n;\nbmsk.{mode}.b32 %m, %at_, %n;"
    run = execute(text, {"a": a, "n": n, "at_": at}, {"s": "uint32", "u": "uint32", "m": "uint32"})
    limit = lambda k: k & 31 if mode == "wrap" else min(k, 32)
    for lane, (x, k, p) in enumerate(zip(a.tolist(), n.tolist(), at.tolist(), strict=True)):
        low = x & (1 << limit(k)) - 1
        assert run["u"][lane] == low
        assert run["s"][lane] == (signed(low, limit(k)) & 0xFFFFFFFF if limit(k) else 0)
        assert run["m"][lane] == ((1 << limit(k)) - 1) << limit(p) & 0xFFFFFFFF


def test_bytes_are_permuted(execute):
    a, b = np.full(32, 0x83828180, np.uint32), np.full(32, 0x07060504, np.uint32)
    sel = np.array([0x7531, 0x0123, 0x9ABC, 0xF0F0, 0, 1, 2, 3] * 4, np.uint32)
    modes = ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    text = "prmt.b32 %d, %a, %b, %s;\n" + "\n".join(f"prmt.b32.{m} %{m}, %a, %b, %s;" for m in modes)
    run = execute(text, {"a": a, "b": b, "s": sel}, dict.fromkeys(("d", *modes), "uint32"))
    assert [hex(v) for v in run["d"][:4]] == ["0x7058381", "0x80818283", "0xffffff00", "0x800080"]
    # by hand from the ISA's tables, selectors 0 to 3
    assert [hex(v) for v in run["f4e"][4:8]] == ["0x83828180", "0x4838281", "0x5048382", "0x6050483"]
    assert [hex(v) for v in run["b4e"][4:8]] == ["0x5060780", "0x6078081", "0x7808182", "0x80818283"]
    assert [hex(v) for v in run["rc8"][4:8]] == ["0x80808080", "0x81818181", "0x82828282", "0x83838383"]
    assert [hex(v) for v in run["ecl"][4:8]] == ["0x83828180", "0x83828181", "0x83828282", "0x83838383"]
    assert [hex(v) for v in run["ecr"][4:8]] == ["0x80808080", "0x81818180", "0x82828180", "0x83828180"]
    assert [hex(v) for v in run["rc16"][4:8]] == ["0x81808180", "0x83828382", "0x81808180", "0x83828382"]


def test_the_nth_set_bit(execute):
    mask = np.array([0b10110, 0, 0x80000001, 0xFFFFFFFF] * 8, np.uint32)
    base = np.array([0] * 8 + [2] * 8 + [31] * 16, np.uint32)
    offset = np.array([1, 2, 3, 0, -1, -2, 33, 4] * 4, np.int32)
    run = execute("fns.b32 %d, %m, %b, %o;", {"m": mask, "b": base, "o": offset}, {"d": "uint32"})

    def nth(m: int, b: int, n: int) -> int:
        """The ISA's loop."""
        if n == 0:
            return b if m >> b & 1 else 0xFFFFFFFF
        position, count, step = b, abs(n) - 1, 1 if n > 0 else -1
        while 0 <= position < 32:
            if m >> position & 1:
                if count == 0:
                    return position
                count -= 1
            position += step
        return 0xFFFFFFFF

    assert run["d"].tolist() == [nth(*(int(v) for v in r)) for r in zip(mask, base, offset, strict=True)]


def test_carries_go_from_word_to_word(execute):
    """A sum and a difference of 128 bits by words, against Python's."""
    words = {f"{n}{i}": array(drawn(32, 20 + i + 4 * (n == "b")), 32) for n in "ab" for i in range(4)}
    text = "\n".join(
        [
            *(f"add{'c' if i else ''}{'.cc' if i < 3 else ''}.u32 %s{i}, %a{i}, %b{i};" for i in range(4)),
            *(f"sub{'c' if i else ''}{'.cc' if i < 3 else ''}.u32 %t{i}, %a{i}, %b{i};" for i in range(4)),
            "mad.lo.cc.u32 %m0, %a0, %b0, %a2;\nmadc.hi.u32 %m1, %a0, %b0, %a3;",
        ]
    )
    names = [*(f"s{i}" for i in range(4)), *(f"t{i}" for i in range(4)), "m0", "m1"]
    run = execute(text, words, dict.fromkeys(names, "uint32"))
    number = lambda v, n, lane, k=4: sum(int(v(f"{n}{i}")[lane]) << 32 * i for i in range(k))
    given = lambda n: words[n]
    for lane in range(32):
        a, b = number(given, "a", lane), number(given, "b", lane)
        assert number(run.__getitem__, "s", lane) == (a + b) % 2**128
        assert number(run.__getitem__, "t", lane) == (a - b) % 2**128
        want = int(words["a0"][lane]) * int(words["b0"][lane]) + (int(words["a3"][lane]) << 32 | int(words["a2"][lane]))
        assert number(run.__getitem__, "m", lane, 2) == want % 2**64


def test_division_by_zero_is_a_finding_of_lanes_that_divide(execute, emulates):
    a, b = np.arange(32, dtype=np.int32) - 5, np.array([0, 1] * 16, np.int32)
    run = on_registers("div.s32 %d, %a, %b;\nrem.s32 %r, %a, %b;", {"a": a, "b": b}, {"d": "int32", "r": "int32"}, emulates)
    assert set(run.codes) == {"emulate/operand"}
    assert run["d"].tolist() == [v if i % 2 else -1 for i, v in enumerate(a)] and run["r"].tolist() == [0 if i % 2 else v for i, v in enumerate(a)]
    execute("@%p div.s32 %d, %a, %b;", {"a": a, "b": b, "p": b != 0}, {"d": "int32"})


def test_only_lanes_that_execute_are_written(execute):
    a, d = np.arange(32, dtype=np.int32), np.full(32, -7, np.int32)
    for p in (a % 3 == 0, np.zeros(32, bool), a == 31):
        assert execute("@%p add.s32 %d, %a, 1;", {"a": a, "d": d, "p": p}, {"d": "int32"})["d"].tolist() == [
            x + 1 if q else -7 for x, q in zip(a, p, strict=True)
        ]
        assert execute("@!%p add.s32 %d, %a, 1;", {"a": a, "d": d, "p": p}, {"d": "int32"})["d"].tolist() == [
            -7 if q else x + 1 for x, q in zip(a, p, strict=True)
        ]


def test_logic_of_predicates(execute):
    p, q = np.arange(32) % 2 == 0, np.arange(32) % 3 == 0
    text = "and.pred %a, %p, %q;\nor.pred %o, %p, !%q;\nxor.pred %x, %p, %q;\nnot.pred %n, %p;\nlop3.or.b32 %l|%m, %v, %v, %v, 0xF0, %p;"
    run = execute(text, {"p": p, "q": q, "v": np.arange(32, dtype=np.uint32)}, {**dict.fromkeys("aoxnm", "bool"), "l": "uint32"})
    assert (run["a"] == (p & q)).all() and (run["o"] == (p | ~q)).all() and (run["x"] == (p ^ q)).all() and (run["n"] == ~p).all()
    assert (run["m"] == ((np.arange(32) != 0) | p)).all() and run["l"].tolist() == list(range(32))


@pytest.mark.parametrize(
    "text", ["add.sat.u32 %d, %a, %a;", "add.u128 %d, %a, %a;", "mul.s32 %d, %a, %a;", "shl.s32 %d, %a, 1;", "lop3.b32 %d, %a, %a, %a, %a;"]
)
def test_forms_that_are_not_there_are_refused(emulates, text):
    with pytest.raises(Unsupported):
        on_registers(text, {"a": np.zeros(32, np.uint32)}, {"d": "uint32"}, emulates)
