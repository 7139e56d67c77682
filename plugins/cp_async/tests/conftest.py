"""Texts to typed kernels, derived text and PTX, for sm80; and a machine that runs the PTX of one statement for all threads."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cake_core.assemble import assemble
from cake_core.derive import derive
from cake_core.elaborate import elaborate
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Op, Program
from cake_core.ir.printer import program_text
from cake_core.lower import lower
from cake_core.plugins import load_registry
from cake_core.source import Source
from cake_core.syntax import parse


@pytest.fixture(scope="session")
def registry():
    return load_registry(environ={"CAKE_LOAD_PLUGINS": ""})


@pytest.fixture(scope="session")
def arch(registry):
    return registry.architectures["sm80"]


@pytest.fixture
def typed(registry, arch):
    """A text to its one elaborated kernel."""

    def elaborated(text, on=None):
        program = parse(Source("test.cake", text))
        return elaborate(program.kernels[0], registry, on or arch, derived=program.derived)

    return elaborated


@pytest.fixture
def copies(typed):
    """The copies of a text, typed."""
    return lambda text: [s for role in typed(text).roles for s in walk(role.body) if isinstance(s, Op) and s.name == "cp.async"]


@pytest.fixture
def derived(typed, registry, arch):
    """The derived text of a schedule text."""
    return lambda text: program_text(Program(1, True, (derive(typed(text), registry, arch),)))


@pytest.fixture
def ptx_of(typed, registry, arch):
    """The PTX of a derived text; assembled."""

    def made(text):
        kernel = typed(text)
        lowered = lower(kernel, registry, arch)
        assert assemble(lowered.ptx, arch.target, kernel.name, lines=lowered.lines).cubin
        return lowered.ptx

    return made


class Threads:
    """Runs straight-line PTX for all threads of a CTA; collects the copies as (guard, shared address, global address, bytes, ignored)."""

    def __init__(self, threads: int, params: dict[str, int]):
        self.threads, self.params, self.registers, self.copies = threads, params, {}, []

    def value(self, text: str):
        special = {"%tid.x": np.arange(self.threads), "%ctaid.x": 0, "%nctaid.x": 1, "shared_memory": 0}
        if text.startswith("%") and text not in special:
            return self.registers[text]
        return np.broadcast_to(np.asarray(special[text] if text in special else int(text), np.int64), self.threads)

    def address(self, text: str):
        base, offset = re.fullmatch(r"\[(%?\w+)([+-]\d+)?\]", text).groups()
        return self.value(base) + int(offset or 0)

    def run(self, ptx: str) -> Threads:
        for line in ptx[ptx.index("\n{\n") :].splitlines():
            if m := re.fullmatch(r"\s+(?:@(!?)(%p\d+) )?([a-z][\w.:]+) (.*);", line):
                self.step(*m.groups())
        return self

    def step(self, negate, guard, opcode, operands):
        root, *suffixes = opcode.split(".")
        parts = re.findall(r"\[[^\]]*\]|[^,\s]+", operands)
        if root == "bra" or root == "cp" and suffixes[1] == "wait_group":
            return
        if root == "cp":
            mask = np.ones(self.threads, bool) if guard is None else self.value(guard).astype(bool) ^ bool(negate)
            ignored = np.zeros(self.threads, bool)
            if len(parts) > 3:
                ignored = self.value(parts[3]).astype(bool) if parts[3].startswith("%p") else self.value(parts[3]) == 0
            rows = zip(mask, self.address(parts[0]), self.address(parts[1]), ignored, strict=True)
            self.copies += [(int(to), int(source), int(parts[2]), bool(i)) for m, to, source, i in rows if m]
            return
        if root == "ld":
            self.registers[parts[0]] = np.full(self.threads, self.params[parts[1].strip("[]")[4:]], np.int64)
            return
        out, *args = parts
        v = [self.value(a) for a in args]
        if "u32" in suffixes and root in ("div", "rem", "setp", "shr"):
            v = [x % 2**32 for x in v]
        wide = {"s64", "b64", "u64", "wide", "pred"} & set(suffixes) or root == "setp"
        done = OPERATIONS[root](v, suffixes)
        self.registers[out] = done if wide else (done + 2**31) % 2**32 - 2**31


COMPARE = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}
OPERATIONS = {
    **dict.fromkeys(("mov", "cvta", "cvt"), lambda v, s: v[0]),
    "add": lambda v, s: v[0] + v[1],
    "sub": lambda v, s: v[0] - v[1],
    "mul": lambda v, s: v[0] * v[1],
    "mad": lambda v, s: v[0] * v[1] + v[2],
    "and": lambda v, s: v[0] & v[1],
    "or": lambda v, s: v[0] | v[1],
    "xor": lambda v, s: v[0] ^ v[1],
    "not": lambda v, s: ~v[0],
    "shl": lambda v, s: v[0] << v[1],
    "shr": lambda v, s: v[0] >> v[1],
    "div": lambda v, s: v[0] // v[1],
    "rem": lambda v, s: v[0] % v[1],
    "min": lambda v, s: np.minimum(*v),
    "max": lambda v, s: np.maximum(*v),
    "setp": lambda v, s: COMPARE[s[0]](*v),
}


@pytest.fixture
def copied():
    return lambda ptx, threads, **params: Threads(threads, params).run(ptx).copies
