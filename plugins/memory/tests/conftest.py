"""Texts to PTX, and a machine that runs straight-line PTX for all threads of a CTA at once, on names instead of values.

Every element of a fragment or of memory has a name (a number); moving data moves names, so that a test can say where each
element went. 16-bit elements are packed as two names. Branches are not taken: the texts have none that matter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import pytest

from cake_core.assemble import assemble
from cake_core.elaborate import elaborate
from cake_core.lower import lower
from cake_core.plugins import load_registry
from cake_core.source import Source
from cake_core.syntax import parse

HALF = 20  # bits of a name
NAME = (1 << HALF) - 1
SPACES = ("shared", "global")


@dataclass
class Machine:
    """`memory`: (space, byte address) to the name that was stored. Reads of `global` give the address's own name, see `name_of`."""

    threads: int
    params: dict
    element: int  # bytes of one named element in global reads
    registers: dict = field(default_factory=dict)
    memory: dict = field(default_factory=dict)
    writes: list = field(default_factory=list)

    def name_of(self, address):
        """The name of the element of an input at a byte address."""
        return address // self.element % (1 << 16) + 1

    def value(self, text):
        text = text.strip()
        if text in self.registers:
            return self.registers[text]
        if text == "%tid.x":
            return np.arange(self.threads)
        if text.startswith("%f"):  # a fragment that nothing wrote: its elements are named by register and thread
            return int(text[2:]) + 1 + 128 * np.arange(self.threads)
        if text.startswith("%") or text == "shared_memory":
            return np.zeros(self.threads, np.int64)
        if text.startswith("0f"):
            return np.full(self.threads, int(text[2:], 16))
        return np.full(self.threads, int(text))

    def put(self, name, value):
        self.registers[name.strip()] = np.asarray(value, np.int64)

    def run(self, ptx):
        for line in ptx[ptx.index("\n{\n") :].splitlines():
            if m := re.fullmatch(r"\s+(?:@(!?)(%p\d+) )?([a-z][\w.:]+) (.*);", line):
                self.step(*m.groups())
        return self

    def step(self, negate, guard, opcode, operands):
        root, *suffixes = opcode.split(".")
        if root in ("bra", "bar", "setmaxnreg"):
            return
        mask = np.ones(self.threads, bool)
        if guard:
            mask = self.value(guard).astype(bool) ^ bool(negate)
        parts = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", operands)
        if root in ("ld", "st", "stmatrix"):
            getattr(self, root)(suffixes, parts, mask)
            return
        out, *args = parts
        if root == "elect":
            self.put(out.partition("|")[2], np.arange(self.threads) % 32 == 0)
            return
        if root == "mov" and out.startswith("{"):
            for i, half in enumerate(out.strip("{}").split(",")):
                self.put(half, self.value(args[0]) >> HALF * i & NAME)
        elif root == "mov" and args[0].startswith("{"):
            low, high = map(self.value, args[0].strip("{}").split(","))
            self.put(out, low | high << HALF)
        elif root == "cvt" and {"bf16x2", "f16x2"} & set(suffixes):
            high, low = map(self.value, args)
            self.put(out, low | high << HALF)
        elif root in ("shl", "and") and out.startswith("%f"):  # the halves of a pair, widened
            self.put(out, self.value(args[0]) >> (HALF if root == "and" else 0) & NAME)
        else:
            self.put(out, self.arithmetic(root, suffixes, [self.value(a) for a in args]))

    def arithmetic(self, root, suffixes, v):
        wide = 64 if {"s64", "b64", "u64", "wide"} & set(suffixes) else 32
        match root:
            case "mov" | "cvta" | "cvt":
                return v[0]
            case "setp":
                unsigned = [x & 0xFFFFFFFF for x in v] if "u32" in suffixes else v
                return {"lt": np.less, "ge": np.greater_equal, "le": np.less_equal, "gt": np.greater, "eq": np.equal, "ne": np.not_equal}[
                    suffixes[0]
                ](*unsigned)
            case "mad":
                out = v[0] * v[1] + v[2]
            case _:
                out = {
                    "add": np.add,
                    "sub": np.subtract,
                    "mul": np.multiply,
                    "min": np.minimum,
                    "max": np.maximum,
                    "and": np.bitwise_and,
                    "or": np.bitwise_or,
                    "xor": np.bitwise_xor,
                    "shl": np.left_shift,
                    "shr": np.right_shift,
                    "div": np.floor_divide,
                    "rem": np.remainder,
                }[root](*v)
        return out if wide == 64 or "pred" in suffixes else (out + 2**31) % 2**32 - 2**31

    # --- memory

    def address(self, text):
        base, offset = re.fullmatch(r"\[(%?\w+)([+-]\d+)?\]", text).groups()
        return self.value(base) + int(offset or 0)

    def ld(self, suffixes, parts, mask):
        out, where = parts
        if suffixes[0] == "param":
            self.put(out, np.full(self.threads, self.params[where.strip("[]")]))
            return
        bytes_each = 2 if suffixes[-1] == "b16" else 4
        assert not (self.address(where)[mask] % (bytes_each * len(out.split(",")))).any(), "misaligned"
        for i, r in enumerate(out.strip("{}").split(",")):
            at = self.address(where) + bytes_each * i
            got = self.read(suffixes[0], at, mask)
            if bytes_each > self.element:
                got = got | self.read(suffixes[0], at + self.element, mask) << HALF
            self.put(r, np.where(mask, got, self.value(r)))

    def read(self, space, at, mask):
        if space == "global":
            return self.name_of(at)
        return np.array([self.memory[space, a] if m else 0 for a, m in zip(at.tolist(), mask.tolist(), strict=True)])

    def st(self, suffixes, parts, mask):
        where, values = parts
        bytes_each = 2 if suffixes[-1] == "b16" else 4
        registers = values.strip("{}").split(",")
        assert not (self.address(where)[mask] % (bytes_each * len(registers))).any(), "misaligned"
        for i, r in enumerate(registers):
            at, v = self.address(where) + bytes_each * i, self.value(r)
            for t in np.flatnonzero(mask).tolist():
                for j in range(bytes_each // self.element):
                    self.write(suffixes[0], int(at[t]) + self.element * j, int(v[t]) >> HALF * j & NAME)

    def stmatrix(self, suffixes, parts, mask):
        """PTX ISA, stmatrix: lane 8i + r addresses row r of matrix i; lane l holds elements 2(l mod 4) and the next of row l / 4."""
        where, values = parts
        at = self.address(where)
        assert not (at % 16).any(), "misaligned"
        for i, r in enumerate(values.strip("{}").split(",")):
            v = self.value(r)
            for t in range(self.threads):
                row = int(at[t // 32 * 32 + 8 * i + t % 32 // 4])
                for j in range(2):
                    self.write("shared", row + 4 * (t % 4) + 2 * j, int(v[t]) >> HALF * j & NAME)

    def write(self, space, address, name):
        self.memory[space, address] = name
        self.writes.append((space, address))


@pytest.fixture(scope="session")
def registry():
    return load_registry()


@pytest.fixture(scope="session")
def arch(registry):
    return registry.architectures["sm90"]


@pytest.fixture
def typed(registry, arch):
    """A text to its one elaborated kernel."""

    def elaborated(text):
        program = parse(Source("test.cake", text))
        return elaborate(program.kernels[0], registry, arch, derived=program.derived)

    return elaborated


@pytest.fixture
def ptx_of(typed, registry, arch):
    """The PTX of a derived text; assembled."""

    def made(text):
        kernel = typed(text)
        lowered = lower(kernel, registry, arch)
        assert assemble(lowered.ptx, arch.target, kernel.name, lines=lowered.lines).cubin
        return lowered.ptx

    return made


@pytest.fixture
def run():
    def started(ptx, threads, element, **params):
        return Machine(threads, params, element).run(ptx)

    return started
