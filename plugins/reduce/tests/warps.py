"""A machine that runs the PTX of a kernel without shared memory, one warp after another, its 32 lanes as numpy arrays.

It is written from the PTX ISA and shares nothing with the lowering. Branches must be uniform in a warp, which is also what the votes
in front of them promise; a shuffle or a vote under a guard is refused. Memory that nobody wrote keeps its bits.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

import numpy as np

LANES = 32
COMPARE = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "neu": np.not_equal,
}
VIEW = {"f32": np.float32, "s32": np.int32, "u32": np.uint32, "b32": np.uint32, "s64": np.int64, "u64": np.uint64, "b64": np.int64}


@dataclass
class Warp:
    """`tensors`: parameter name to array of 32-bit elements, in memory at addresses of their own. `scalars`: name to number."""

    lines: list[str]
    labels: dict[str, int]
    tensors: dict[str, np.ndarray]
    scalars: dict[str, int]
    cta: int
    warp: int
    registers: dict[str, np.ndarray] = field(default_factory=dict)

    def run(self) -> None:
        at, steps = 0, 0
        while self.lines[at] != "ret;":
            steps += 1
            assert steps < 200_000, "the kernel does not end"
            m = re.fullmatch(r"(?:@(!?)(%p\d+) )?([a-z][\w.:]*)(?: (.*))?;", self.lines[at])
            at += 1
            if m is None:
                continue
            negate, guard, opcode, text = m.groups()
            mask = np.ones(LANES, bool) if guard is None else self.registers[guard] ^ bool(negate)
            if opcode == "bra":
                assert mask.all() or not mask.any(), "lanes of a warp part"
                at = self.labels[text] if mask.all() else at
            else:
                self.step(opcode.split("."), re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", text or ""), mask)

    # --- operands

    def read(self, text: str, kind: str) -> np.ndarray:
        if text in self.registers:
            value = self.registers[text]
            return (
                value
                if kind == "pred"
                else value.view(VIEW[kind])
                if value.dtype.itemsize == np.dtype(VIEW[kind]).itemsize
                else value.astype(VIEW[kind])
            )
        special = {"%tid.x": np.arange(LANES) + LANES * self.warp, "%ctaid.x": self.cta, "%ctaid.y": 0, "%nctaid.x": 1 << 20}
        if text in special:
            return np.broadcast_to(special[text], LANES).astype(np.uint32).view(VIEW[kind])
        if text.startswith("0f"):
            number = np.frombuffer(struct.pack("<I", int(text[2:], 16)), np.uint32)
        else:
            number = np.array([int(text, 0)]).astype(np.int64)
            number = number if kind.endswith("64") else number.astype(np.uint32)
        return np.repeat(number, LANES).view(VIEW[kind])

    def write(self, name: str, value: np.ndarray, mask: np.ndarray) -> None:
        value = np.ascontiguousarray(value)
        value = value if value.dtype == bool else value.view({4: np.uint32, 8: np.int64}[value.dtype.itemsize])
        old = self.registers.get(name, np.zeros(LANES, value.dtype))
        self.registers[name] = np.where(mask, value, old)

    # --- instructions

    def step(self, op: list[str], args: list[str], mask: np.ndarray) -> None:
        kind = op[-1]
        with np.errstate(all="ignore"):
            match op[0]:
                case "ld" if "param" in op:
                    self.parameter(args, mask)
                case "ld" | "st":
                    self.memory(op, args, mask)
                case "shfl":
                    assert mask.all() and op[2] == "bfly" and args[3:] == ["31", "-1"]
                    self.write(args[0], self.read(args[1], "b32")[np.arange(LANES) ^ int(args[2])], mask)
                case "vote":
                    assert mask.all() and op[2] == "any" and args[2] == "-1"
                    self.write(args[0], np.repeat(self.registers[args[1]].any(), LANES), mask)
                case "elect":
                    assert mask.all()
                    self.write(args[0].partition("|")[2], np.arange(LANES) == 21, mask)
                case "setp":
                    found = COMPARE[op[1]](self.read(args[1], kind), self.read(args[2], kind))
                    nan = np.isnan(self.read(args[1], kind)) | np.isnan(self.read(args[2], kind)) if kind == "f32" else False
                    found = found | nan if op[1] == "neu" else found & ~np.asarray(nan)
                    self.write(args[0], found & self.registers[args[3]] if "and" in op else found, mask)
                case "selp":
                    self.write(args[0], np.where(self.registers[args[3]], self.read(args[1], kind), self.read(args[2], kind)), mask)
                case "mul" | "mad" if "wide" in op:
                    product = self.read(args[1], kind).astype(np.int64) * self.read(args[2], kind)
                    self.write(args[0], product + self.read(args[3], "s64") if op[0] == "mad" else product, mask)
                case "cvt":
                    self.write(args[0], self.read(args[1], kind).astype(VIEW[op[-2]]), mask)
                case "cvta":
                    self.write(args[0], self.read(args[1], "b64"), mask)
                case name:
                    self.write(args[0], ARITHMETIC[name](*(self.read(a, kind) for a in args[1:])), mask)

    def parameter(self, args: list[str], mask: np.ndarray) -> None:
        prefix, name = args[1][1:-1].split("_", 1)
        value = np.int64(self.base(name)) if prefix == "ptr" else np.uint32(self.scalars[name])
        self.write(args[0], np.repeat(value, LANES), mask)

    def base(self, name: str) -> int:
        return (list(self.tensors).index(name) + 1) << 40

    def memory(self, op: list[str], args: list[str], mask: np.ndarray) -> None:
        place, data = (args[1], args[0]) if op[0] == "ld" else (args[0], args[1])
        base, _, offset = place[1:-1].partition("+")
        address = self.read(base, "b64") + int(offset or 0)
        names = data.strip("{}").replace(" ", "").split(",")
        for n, name in enumerate(names):
            for lane in np.flatnonzero(mask):
                where = int(address[lane]) + 4 * n
                tensor = self.tensors[list(self.tensors)[(where >> 40) - 1]].reshape(-1).view(np.uint32)
                index, rest = divmod(where & (1 << 40) - 1, 4)
                assert rest == 0 and index < tensor.size, "an access outside of its tensor"
                if op[0] == "st":
                    tensor[index] = self.read(name, "b32")[lane]
                else:
                    self.write(name, np.repeat(tensor[index], LANES), np.arange(LANES) == lane)


def fused(x, y, z):
    return (x.astype(np.float64) * y + z).astype(x.dtype) if x.dtype == np.float32 else x * y + z


ARITHMETIC = {
    "mov": lambda x: x,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "mad": fused,
    "fma": fused,
    "neg": np.negative,
    "min": lambda x, y: np.fmin(x, y),
    "max": lambda x, y: np.fmax(x, y),
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "shl": lambda x, n: x << n.astype(x.dtype),
    "shr": lambda x, n: x >> n.astype(x.dtype),
    "div": np.floor_divide,
    "rem": np.remainder,
}


def run(ptx: str, tensors: dict[str, np.ndarray], scalars: dict[str, int] | None = None, warps: int = 4, ctas: int = 1) -> None:
    """Run a kernel: outputs among `tensors` are written in place. Quotients are floored, where PTX truncates: none is negative."""
    lines = [line.strip() for line in ptx[ptx.index("\n{\n") + 3 :].splitlines()]
    labels = {line[:-1]: n for n, line in enumerate(lines) if line.endswith(":")}
    for cta in range(ctas):
        for warp in range(warps):
            Warp(lines, labels, tensors, scalars or {}, cta, warp).run()
