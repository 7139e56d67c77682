"""A machine that runs the PTX of a whole kernel for all threads of a CTA in step, on numpy, with the memory of the CTA and of the grid.

It is written from the PTX ISA and shares nothing with the lowering. Copies in groups land as late as the waits allow, or at once; both must
give the same result. Shared memory starts as NaNs, so that what nobody filled is seen. Branches must be uniform, as those of a role
without conditions of its own are.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

NAN = 0x7FC0  # of a bf16; a pair of them is a NaN as f32, too


def signed(x):
    return (np.asarray(x, np.int64) + 2**31) % 2**32 - 2**31


def unsigned(x):
    return np.asarray(x, np.int64) % 2**32


def tf32(bits):
    """What the unit reads of an f32: sign, exponent and 10 bits of mantissa."""
    return (unsigned(bits) & 0xFFFFE000).astype(np.uint32).view(np.float32)


KINDS = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def elements(bits, kind):
    """The elements of a register along the last axis, the first in the lowest bits, as f32."""
    if kind == "tf32":
        return tf32(bits)[..., None]
    return np.ascontiguousarray(unsigned(bits).astype(np.uint32))[..., None].view(KINDS[kind]).astype(np.float32)


@dataclass
class Cta:
    """One CTA. `tensors`: parameter name to (address, bytes as a uint8 array), in the grid's memory."""

    ptx: str
    threads: int
    cta: int
    ctas: int
    scalars: dict
    tensors: dict
    shared_bytes: int
    late: bool
    registers: dict = field(default_factory=dict)
    open: list = field(default_factory=list)
    groups: list = field(default_factory=list)
    stores: list = field(default_factory=list)  # addresses of the tensors that were written
    conflicts: int = 0  # matrices whose eight rows do not lie in eight different banks of 16 bytes

    def run(self) -> Cta:
        self.shared = np.full(self.shared_bytes // 2, NAN, np.uint16).view(np.uint8)
        lines = [line.strip() for line in self.ptx[self.ptx.index("\n{\n") + 3 :].splitlines()]
        labels = {line[:-1]: n for n, line in enumerate(lines) if line.endswith(":")}
        at, steps = 0, 0
        while lines[at] not in ("ret;", "}"):
            steps += 1
            assert steps < 500_000, "the kernel does not end"
            m = re.fullmatch(r"(?:@(!?)(%p\d+) )?([a-z][\w.:]*)(?: (.*))?;", lines[at])
            at += 1
            if m is None:
                continue  # a label, a comment, a declaration
            negate, guard, opcode, operands = m.groups()
            mask = np.ones(self.threads, bool) if guard is None else self.read(guard).astype(bool) ^ bool(negate)
            if opcode == "bra":
                assert mask.all() or not mask.any(), "a branch that is not uniform"
                at = labels[operands] if mask.all() else at
            else:
                self.step(opcode, self.split(operands or ""), mask)
        assert not self.open and not self.groups, "copies are in flight at the end"
        return self

    @staticmethod
    def split(operands: str) -> list[str]:
        return re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", operands)

    # --- registers

    def read(self, text):
        text = text.strip()
        special = {"%tid.x": np.arange(self.threads), "%ctaid.x": self.cta, "%nctaid.x": self.ctas, "shared_memory": 16}
        if text in special:
            return np.broadcast_to(np.asarray(special[text], np.int64), self.threads)
        if text.startswith("0f"):
            return np.full(self.threads, struct.unpack(">f", bytes.fromhex(text[2:]))[0], np.float32)
        if text.startswith("%"):
            return self.registers[text]
        return np.full(self.threads, int(text), np.int64)

    def bits(self, text):
        """A register of 32 bits as an integer, whatever its class."""
        x = self.read(text)
        return x.view(np.int32).astype(np.int64) if x.dtype == np.float32 else x

    def write(self, name, value, mask):
        value = np.asarray(value)
        if name.startswith("%f") and value.dtype != np.float32:
            value = value.astype(np.int64).astype(np.uint32).view(np.float32)
        if name.startswith("%r") and value.dtype == np.float32:
            value = value.view(np.int32)
        if name.startswith("%r"):
            value = signed(value)
        if not mask.all():
            value = np.where(mask, value, self.registers.get(name, np.zeros(self.threads, value.dtype)))
        self.registers[name] = value

    # --- instructions

    def step(self, opcode, operands, mask):
        root, *suffixes = opcode.split(".")
        handler = getattr(self, f"do_{root}", None)
        if root == "elect":
            self.write(operands[0].partition("|")[2], np.arange(self.threads) % 32 == 21, mask)
        elif handler:
            handler(suffixes, operands, mask)
        else:
            out, *args = operands
            self.write(out, self.arithmetic(root, suffixes, [self.read(a) for a in args]), mask)

    def arithmetic(self, root, suffixes, v):
        if suffixes[-1] == "u32" and root in ("min", "max", "div", "rem", "setp", "shr"):
            v = [unsigned(x) for x in v]
        match root:
            case "mov":
                return v[0]
            case "cvta":
                return v[0]
            case "add":
                return v[0] + v[1]
            case "sub":
                return v[0] - v[1]
            case "mul" if {"lo", "wide", "f32"} & set(suffixes):
                return v[0] * v[1]
            case "ex2":
                return np.exp2(v[0])
            case "rcp":
                return np.float32(1) / v[0]
            case "mad":
                return v[0] * v[1] + v[2]
            case "shl":
                return v[0] << v[1]
            case "shr":
                return v[0] >> v[1]
            case "and":
                return v[0] & v[1]
            case "or":
                return v[0] | v[1]
            case "xor":
                return v[0] ^ v[1]
            case "not" if suffixes == ["pred"]:
                return ~v[0]
            case "min":
                return np.minimum(*v)
            case "max":
                return np.maximum(*v)
            case "div":
                assert suffixes == ["u32"]
                return v[0] // v[1]
            case "rem":
                assert suffixes == ["u32"]
                return v[0] % v[1]
            case "setp":
                compare = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}
                return compare[suffixes[0]](*v)
            case "selp":
                return np.where(v[2], v[0], v[1])
        raise AssertionError(f"unknown instruction {root}.{'.'.join(suffixes)}")

    def do_cvt(self, suffixes, operands, mask):
        out, *args = operands
        if suffixes == ["s64", "s32"]:
            self.write(out, self.read(args[0]), mask)
            return
        kind = {"bf16x2": ml_dtypes.bfloat16, "f16x2": np.float16}[suffixes[1]]
        high, low = (self.read(a).astype(kind).view(np.uint16).astype(np.int64) for a in args)
        self.write(out, high << 16 | low, mask)

    def do_bar(self, suffixes, operands, mask):
        assert mask.all()
        if suffixes == ["warp", "sync"]:
            assert self.threads == 32 and operands[0] in ("-1", "0xffffffff")
        else:
            assert suffixes == ["sync"] and int(operands[1]) == self.threads

    # --- memory

    def address(self, text):
        base, offset = re.fullmatch(r"\[(%?\w+)([+-]\d+)?\]", text).groups()
        return self.read(base) + int(offset or 0)

    def memory(self, address):
        """(bytes, offset) of the tensor that an address lies in."""
        for base, data in self.tensors.values():
            if base <= address < base + len(data):
                return data, int(address - base)
        raise AssertionError(f"an access outside of all tensors: {address:#x}")

    def do_ld(self, suffixes, operands, mask):
        if suffixes[0] == "global":
            self.load(operands, mask)
            return
        assert suffixes[0] == "param"
        name = operands[1].strip("[]")
        value = self.tensors[name[4:]][0] if name.startswith("ptr_") else self.scalars[name[4:]]
        self.write(operands[0], np.full(self.threads, value, np.int64), mask)

    def load(self, operands, mask):
        at, registers = self.address(operands[1]), self.split(operands[0].strip("{}"))
        for i, r in enumerate(registers):
            value = np.zeros(self.threads, np.int64)
            for t in np.flatnonzero(mask):
                data, offset = self.memory(at[t] + 4 * i)
                assert offset % (4 * len(registers)) == 4 * i
                value[t] = struct.unpack_from("<I", data, offset)[0]
            self.write(r, value, mask)

    def do_st(self, suffixes, operands, mask):
        assert suffixes[0] == "global"
        at, registers = self.address(operands[0]), self.split(operands[1].strip("{}"))
        for i, r in enumerate(registers):
            value = self.bits(r)
            for t in np.flatnonzero(mask):
                data, offset = self.memory(at[t] + 4 * i)
                assert offset % (4 * len(registers)) == 4 * i
                data[offset : offset + 4] = np.frombuffer(struct.pack("<I", int(value[t]) % 2**32), np.uint8)
                self.stores.append(int(at[t]) + 4 * i)

    def do_cp(self, suffixes, operands, mask):
        """PTX ISA, cp.async: a group is the copies of a thread since its last commit; all threads commit and wait together here."""
        match suffixes[1]:
            case "commit_group":
                self.groups.append(self.open)
                self.open = []
            case "wait_group":
                kept = int(operands[0])
                done, self.groups = self.groups[: len(self.groups) - kept], self.groups[max(len(self.groups) - kept, 0) :]
                for group in done:
                    for at, piece in group:
                        self.shared[at : at + len(piece)] = piece
            case _:
                to, source, size = self.address(operands[0]), self.address(operands[1]), int(operands[2])
                assert size == 16 if "cg" in suffixes else size in (4, 8)
                ignore = np.zeros(self.threads, bool)
                if len(operands) > 3:
                    ignore = self.read(operands[3]).astype(bool) if operands[3].startswith("%p") else self.read(operands[3]) == 0
                for t in np.flatnonzero(mask):
                    assert to[t] % size == 0 and (ignore[t] or source[t] % size == 0), "misaligned"
                    piece = np.zeros(size, np.uint8)
                    if not ignore[t]:
                        data, offset = self.memory(source[t])
                        piece = data[offset : offset + size].copy()
                        assert len(piece) == size, "a piece straddles the end of a tensor"
                    if self.late:
                        self.open.append((int(to[t]), piece))
                    else:
                        self.shared[to[t] : to[t] + size] = piece

    def do_ldmatrix(self, suffixes, operands, mask):
        """PTX ISA, ldmatrix: lane 8i + r names row r of matrix i; lane l gets row l / 4, bytes 4 (l mod 4) and on, or with .trans the
        elements of rows 2 (l mod 4) and the next in column l / 4."""
        out, at = self.split(operands[0].strip("{}")), self.address(operands[1])
        assert not (at % 16).any(), "misaligned"
        warp, lane = np.arange(self.threads) // 32 * 32, np.arange(self.threads) % 32
        used = np.sort(at.reshape(-1, 8) // 16 % 8, axis=1)[: self.threads // 8]
        self.conflicts += int((used != np.arange(8)).any(axis=1).sum())
        rows = np.stack([self.shared[x : x + 16] for x in at]).view(np.uint16).astype(np.int64)
        for i, r in enumerate(out):
            if "trans" in suffixes:
                first, second = (rows[warp + 8 * i + 2 * (lane % 4) + j, lane // 4] for j in (0, 1))
            else:
                first, second = (rows[warp + 8 * i + lane // 4, 2 * (lane % 4) + j] for j in (0, 1))
            self.write(r, first | second << 16, mask)

    def do_mma(self, suffixes, operands, mask):
        """PTX ISA, Matrix Fragments for mma.m16n8k16, for mma.m16n8k8 with .tf32 and for mma.m16n8k32 with types of 8 bits."""
        depth, kind = int(suffixes[2].removeprefix("m16n8k")), suffixes[6]
        d, a, b, c = (self.split(o.strip("{}")) for o in operands)
        lane, warp = np.arange(self.threads) % 32, np.arange(self.threads) // 32
        group, inside, warps = lane // 4, lane % 4, self.threads // 32
        left, right, sums = (
            np.zeros((warps, 16, depth), np.float32),
            np.zeros((warps, depth, 8), np.float32),
            np.zeros((warps, 16, 8), np.float32),
        )
        pack, half = depth // 8, depth // 2
        for i, r in enumerate(a):
            for j, x in enumerate(elements(self.bits(r), kind).T):
                left[warp, group + 8 * (i % 2), half * (i // 2) + pack * inside + j] = x
        for i, r in enumerate(b):
            for j, x in enumerate(elements(self.bits(r), kind).T):
                right[warp, half * i + pack * inside + j, group] = x
        for i, r in enumerate(c):
            sums[warp, group + 8 * (i // 2), 2 * inside + i % 2] = self.read(r)
        result = sums + left @ right
        for i, r in enumerate(d):
            self.write(r, result[warp, group + 8 * (i // 2), 2 * inside + i % 2], mask)


def run(ptx, threads, ctas, shared_bytes, arrays, late=True, **scalars) -> list[Cta]:
    """Run all CTAs of a launch on arrays by parameter name; gives back the CTAs, which know what they stored."""
    memory = {name: ((n + 1) << 33, array.reshape(-1).view(np.uint8)) for n, (name, array) in enumerate(arrays.items())}
    return [Cta(ptx, threads, cta, ctas, scalars, memory, shared_bytes + 32, late).run() for cta in range(ctas)]
