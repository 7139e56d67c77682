"""Drawn programs: some dozens of instructions on registers of all kinds, under predicates, in branches and loops that lanes take or not, with exchanges
between lanes behind them; and operands that are no registers (PTX ISA, Constants, Predicated Execution).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from .case import Case, Exact
from .lanewise import case, data

COUNT = 60
#: Registers of each kind.
NUMBER = {"r": 6, "l": 4, "f": 4, "p": 4, "h": 3}
#: Instructions by the kinds of their operands, the result first; "i" is a number, "j" one below 32: of a constant start behind the
#: word the assembler (ptxas 12.8 and 13.0) folds bfe.s32 to -1, and the ISA says the sign.
STEPS = (
    *((f"{op}.{k}", "rrr") for op in ("add", "sub", "mul.lo", "mul.hi", "min", "max") for k in ("u32", "s32")),
    *((f"{op}.{k}", "lll") for op in ("add", "sub", "mul.lo", "mul.hi", "min", "max") for k in ("u64", "s64")),
    *((f"{op}.b32", "rrr") for op in ("and", "or", "xor")),
    *((f"{op}.b64", "lll") for op in ("and", "or", "xor")),
    *((f"{op}.{k}", "rri") for op in ("shl", "shr") for k in ("b32",)),
    *((f"{op}", "lri") for op in ("mul.wide.u32", "mul.wide.s32")),
    *((f"{op}", "lrr") for op in ("mul.wide.u32", "mul.wide.s32")),
    *((op, "rrrr") for op in ("mad.lo.u32", "mad.hi.s32", "prmt.b32", "dp4a.u32.s32", "shf.l.wrap.b32", "sad.u32")),
    *((op, "rrji") for op in ("bfe.u32", "bfe.s32")),
    *((op, "llii") for op in ("bfe.s64",)),
    *((op, "rr") for op in ("popc.b32", "clz.b32", "brev.b32", "not.b32", "neg.s32", "abs.s32", "cnot.b32", "bfind.u32")),
    *((op, "rl") for op in ("cvt.u32.u64", "cvt.sat.s32.s64", "popc.b64", "clz.b64")),
    *((op, "lr") for op in ("cvt.u64.u32", "cvt.s64.s32")),
    *((f"{op}.{mode}.f32", "fff") for op in ("add", "sub", "mul") for mode in ("rn", "rz", "rm", "rp")),
    *((op, "ffff") for op in ("fma.rn.f32", "fma.rz.f32")),
    *((op, "fff") for op in ("min.f32", "max.NaN.f32", "div.rn.f32")),
    *((op, "fr") for op in ("cvt.rn.f32.s32", "cvt.rz.f32.u32", "mov.b32")),
    *((op, "fl") for op in ("cvt.rn.f32.s64",)),
    *((op, "rf") for op in ("cvt.rni.s32.f32", "cvt.rzi.u32.f32", "mov.b32", "cvt.rn.tf32.f32")),
    *((op, "hhh") for op in ("add.s16", "mul.lo.u16", "xor.b16", "min.s16")),
    *((op, "hr") for op in ("cvt.u16.u32", "cvt.sat.s16.s32")),
    *((op, "rh") for op in ("cvt.s32.s16", "cvt.u32.u16", "cvt.u32.u8", "cvt.s32.s8")),
    *((f"setp.{op}", "prr") for op in ("lt.s32", "ge.u32", "eq.b32", "ne.s32")),
    *((f"setp.{op}", "pll") for op in ("lt.s64", "ge.u64")),
    *((f"setp.{op}", "pff") for op in ("lt.f32", "geu.f32", "nan.f32")),
    *((f"setp.{op}", "prrp") for op in ("lt.and.s32", "hi.xor.u32")),
    *((op, "ppp") for op in ("and.pred", "or.pred", "xor.pred")),
    *((op, "rrrp") for op in ("selp.b32",)),
    *((op, "lllp") for op in ("selp.b64",)),
    *((op, "rrrr") for op in ("slct.b32.s32",)),
)
TOGETHER = (
    "shfl.sync.bfly.b32 {r}, {r}, {lane}, 0x1f, 0xffffffff;",
    "shfl.sync.idx.b32 {r}, {r}, {r}, 0x1f, 0xffffffff;",
    "vote.sync.ballot.b32 {r}, {p}, 0xffffffff;",
    "vote.sync.any.pred {p}, {p}, 0xffffffff;",
    "redux.sync.add.s32 {r}, {r}, 0xffffffff;",
    "match.any.sync.b32 {r}, {r}, 0xffffffff;",
)


def cases() -> Iterator[Case]:
    for seed in range(COUNT):
        yield drawn(seed)
    yield from constants()
    yield from calls()


class Drawn:
    """Text, and the labels that it has used."""

    def __init__(self, seed: int) -> None:
        self.random, self.labels = Random(seed), 0

    def register(self, kind: str) -> str:
        return f"%{kind}{self.random.randrange(NUMBER[kind])}"

    def operand(self, kind: str) -> str:
        if kind == "i":
            return str(self.random.choice((0, 1, 5, 31, 32, 33, 40)))
        if kind == "j":
            return str(self.random.choice((0, 1, 5, 16, 30, 31)))
        if kind in "rl" and self.random.random() < 0.15:
            return self.random.choice(("0", "1", "-1", "7", "0x7fffffff", "-2147483648", "12345", "-77"))
        return self.register(kind)

    def step(self) -> str:
        name, kinds = self.random.choice(STEPS)
        operands = [self.register(kinds[0]), *(self.operand(k) for k in kinds[1:])]
        if name.startswith("mov") or len(operands) == 2:  # of one operand a register, so that its width shows
            operands[1] = self.register(kinds[1])
        guard = self.random.choice(("", "", "", f"@{self.register('p')} ", f"@!{self.register('p')} "))
        return f"{guard}{name} {', '.join(operands)};"

    def block(self, length: int, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(length):
            roll = self.random.random()
            if depth and roll < 0.12:
                lines += self.choice(depth - 1)
            elif depth and roll < 0.2:
                lines += self.loop(depth - 1)
            else:
                lines.append(self.step())
        return lines

    def choice(self, depth: int) -> list[str]:
        self.labels += 1
        n = self.labels
        yes, no = self.block(5, depth), self.block(4, depth)
        return [f"@{self.register('p')} bra ELSE{n};", *yes, f"bra END{n};", f"ELSE{n}:", *no, f"END{n}:"]

    def loop(self, depth: int) -> list[str]:
        """As many times as a register says, 7 at most."""
        self.labels += 1
        n = self.labels
        head = [f".reg .u32 %c{n}; .reg .pred %q{n};", f"and.b32 %c{n}, {self.register('r')}, 7;"]
        return [
            *head,
            f"LOOP{n}: setp.eq.u32 %q{n}, %c{n}, 0; @%q{n} bra DONE{n};",
            *self.block(4, depth),
            f"sub.u32 %c{n}, %c{n}, 1; bra LOOP{n};",
            f"DONE{n}:",
        ]

    def together(self) -> str:
        text = self.random.choice(TOGETHER)
        for kind in "rp":
            while f"{{{kind}}}" in text:
                text = text.replace(f"{{{kind}}}", self.register(kind), 1)
        return text.replace("{lane}", str(self.random.choice((1, 2, 4, 8, 16))))


def drawn(seed: int) -> Case:
    d = Drawn(seed)
    head = f".reg .b32 %r<{NUMBER['r']}>; .reg .b64 %l<{NUMBER['l']}>; .reg .f32 %f<{NUMBER['f']}>; .reg .pred %p<{NUMBER['p']}>; .reg .b16 %h<{NUMBER['h']}>;"
    lines = ["mov.b32 %r0, {a}; mov.b32 %r1, {b}; mov.b64 %l0, {c}; xor.b32 %r2, %r0, %r1; mov.u32 %r3, %laneid; mov.b32 %r4, 77; not.b32 %r5, %r0;"]
    lines += [
        "cvt.u64.u32 %l1, %r0; mul.wide.s32 %l2, %r0, %r1; not.b64 %l3, %l0; cvt.rn.f32.s32 %f0, %r0; cvt.rn.f32.u32 %f1, %r1; mov.b32 %f2, 0f3FC00000;"
    ]
    lines += ["mul.rn.f32 %f3, %f0, 0fBF000000; setp.lt.s32 %p0, %r0, %r1; setp.lt.u32 %p1, %r1, 1000; setp.gt.f32 %p2, %f0, %f1; not.pred %p3, %p0;"]
    lines += ["cvt.u16.u32 %h0, %r0; cvt.u16.u32 %h1, %r1; mov.b16 %h2, 9;"]
    for _ in range(3):
        lines += d.block(14, 2)
        lines.append(d.together())
    lines.append("mov.b32 {d}, 0; mov.b64 {x}, 0; .reg .b32 %y; .reg .b64 %z;")
    fold = "mad.lo.u32 {d}, {d}, 31, %y;"
    lines += [f"mov.b32 %y, %r{n}; {fold}" for n in range(NUMBER["r"])] + [f"mov.b32 %y, %f{n}; {fold}" for n in range(NUMBER["f"])]
    lines += [f"selp.b32 %y, 3, 5, %p{n}; {fold}" for n in range(NUMBER["p"])] + [f"cvt.u32.u16 %y, %h{n}; {fold}" for n in range(NUMBER["h"])]
    lines += [f"mul.lo.u64 {{x}}, {{x}}, 31; add.u64 {{x}}, {{x}}, %l{n};" for n in range(NUMBER["l"])]
    kinds, name = "u32 u32 u64", f"drawn {seed}"
    return case("programs", name, "\n".join(lines), kinds, "u32 u64", Exact(), data(kinds.split(), name, 256), head)


def constants() -> Iterator[Case]:
    """Numbers in all their forms, of every type."""
    whole = ("0", "-1", "0x7f", "0xFFFFFFFF", "017", "0b1011", "2147483648", "-2147483648", "4000000000U", "WARP_SZ")
    for value in whole:
        text = f"add.u32 {{d}}, {{a}}, {value}; and.b64 {{x}}, {{b}}, {value}; add.s64 {{x}}, {{x}}, {value};"
        yield case("programs", f"constant {value}", text, "u32 u64", "u32 u64")
    for value in ("0f3F800000", "1.5", "-2.25", "0d3FF8000000000000", "3.1415926535897931", "0f7FC00000"):
        f64 = value if not value.startswith("0f") else "0d3FF8000000000000"
        f32 = value if not value.startswith("0d") else "0fC0200000"
        text = f"add.rn.f32 {{d}}, {{a}}, {f32}; mul.rn.f64 {{x}}, {{b}}, {f64};"
        yield case("programs", f"constant {value}", text, "f32 f64", "f32 f64", Exact(nan=True))


def calls() -> Iterator[Case]:
    """Functions with parameters in memory and in registers, of several kinds; one that calls itself as deep as its lane asks for; some lanes call."""
    mixed = """.func (.param .b64 out) mixed(.param .b32 x, .param .align 8 .b8 pair[16]) {
.reg .b32 %r<4>; .reg .b64 %l<4>; ld.param.b32 %r0, [x]; ld.param.b64 %l0, [pair+8]; ld.param.b32 %r1, [pair]; mul.wide.u32 %l1, %r0, %r1; xor.b64 %l0, %l0, %l1;
st.param.b64 [out], %l0; ret; }
"""
    text = """{{ .param .b32 p0; .param .align 8 .b8 p1[16]; .param .b64 r0; st.param.b32 [p0], {a}; st.param.b32 [p1], {b}; st.param.b64 [p1+8], {c};
call.uni (r0), mixed, (p0, p1); ld.param.b64 {d}, [r0]; }} mov.b32 {x}, {b};"""
    yield called("parameters in memory", mixed, text, "u32 u32 u64", "u64 u32")
    registers = """.func (.reg .b32 %out, .reg .b32 %other) registers(.reg .b32 %x, .reg .b32 %y) { .reg .pred %p; setp.lt.u32 %p, %x, %y; sub.u32 %out, %x, %y; selp.b32 %other, %x, %y, %p; ret; }
"""
    yield called("parameters in registers", registers, "call ({d}, {x}), registers, ({a}, {b});", "u32 u32", "u32 u32")
    again = """.func (.param .b32 out) again(.param .b32 n, .param .b32 x) { .reg .b32 %r<6>; .reg .pred %p; .local .align 4 .b8 mine[16];
ld.param.b32 %r0, [n]; ld.param.b32 %r1, [x]; mov.b32 %r3, mine; st.local.b32 [%r3], %r1; setp.eq.u32 %p, %r0, 0; @%p bra LAST; sub.u32 %r0, %r0, 1; mul.lo.u32 %r1, %r1, 5;
{ .param .b32 p0; .param .b32 p1; .param .b32 r0; st.param.b32 [p0], %r0; st.param.b32 [p1], %r1; call (r0), again, (p0, p1); ld.param.b32 %r2, [r0]; }
ld.local.b32 %r4, [%r3]; add.u32 %r1, %r2, %r4; LAST: st.param.b32 [out], %r1; ret; }
"""
    text = """and.b32 %n, {a}, 7; setp.lt.u32 %p, {a}, {b}; mov.b32 {d}, 9; mov.b32 {x}, %n;
{{ .param .b32 p0; .param .b32 p1; .param .b32 r0; st.param.b32 [p0], %n; st.param.b32 [p1], {b}; @%p bra OVER; call (r0), again, (p0, p1); ld.param.b32 {d}, [r0]; OVER: }}"""
    yield called("a function that calls itself, of some lanes", again, text, "u32 u32", "u32 u32")


def called(form: str, function: str, text: str, ins: str, outs: str) -> Case:
    made = case("programs", form, text, ins, outs)
    return replace(made, text=made.text.replace(".visible .entry", f"{function}.visible .entry", 1))
