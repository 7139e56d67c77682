"""A machine that runs the PTX of a whole kernel of warpgroups on numpy: its CTAs side by side, their warps in random order.

It is written from the PTX ISA and shares nothing with the lowering. Asynchronous work is done at once or as late as the waits allow:
a bulk copy into shared memory at any time before its barrier is seen, a matrix product when a warp waits for its group, a bulk copy out
of shared memory when its group is waited for. Both must give the same result. Shared memory starts as NaNs. Not known: clusters.
What a warp does stands in `warp_of_group.py`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from ptx_values import LANE, bf16, names, swizzled, u32
from warp_of_group import Warp

LINE = re.compile(r"(?:@(!?)(%\w+) )?([a-z][\w.:]*)\s*(.*);")
OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\{[^}]*\}\]|\[[^\]]*\]|[^,\s]+")
NAN = 0x7FC0


@dataclass
class Grid:
    """The grid's memory: tensors by name, at addresses 2**32 apart. `late`: asynchronous work is done as late as may be."""

    ptx: str
    manifest: dict
    scalars: dict
    tensors: dict[str, np.ndarray]
    late: bool
    seed: int = 0

    def run(self, ctas: int) -> None:
        body = self.ptx[self.ptx.index("\n{\n") + 3 : self.ptx.rindex("}")]
        self.code, self.labels = [], {}
        for line in (re.sub(r"//.*", "", x).strip() for x in body.splitlines()):
            if line.endswith(":"):
                self.labels[line[:-1]] = len(self.code)
            elif m := LINE.fullmatch(line):
                negate, guard, opcode, operands = m.groups()
                self.code.append((guard, bool(negate), opcode, OPERAND.findall(operands)))
        self.bases = {n: i + 1 << 32 for i, n in enumerate(self.tensors)}
        self.maps = {m["param"]: m for m in self.manifest["tensor_maps"]}
        with np.errstate(all="ignore"):
            turns = random.Random(self.seed)
            live = [Cta(self, cta, ctas, random.Random(self.seed * 1000 + cta)).run() for cta in range(ctas)]
            while live:
                cta = turns.choice(live)
                if next(cta, None) is None:
                    live.remove(cta)

    def words(self, address: int) -> tuple[np.ndarray, int]:
        """The tensor behind an address as 32-bit words, and the number of the one meant."""
        tensor = next(self.tensors[n] for n, base in self.bases.items() if base >> 32 == address >> 32)
        number, rest = divmod(address & 0xFFFFFFFF, 4)
        words = tensor.reshape(-1).view(np.uint32)
        assert rest == 0 and number < words.size, "an access outside of its tensor"
        return words, number

    def box(self, name: str, start: list[int]):
        """(tensor, where the box lies in it, which part of the box does), `start` innermost first."""
        m = self.maps[name]
        tensor = self.tensors[m["tensor"]]
        inside = [slice(max(-s, 0), max(min(n, extent - s), 0)) for s, n, extent in zip(reversed(start), m["box"], tensor.shape, strict=True)]
        place = [slice(s + i.start, s + i.stop) for s, i in zip(reversed(start), inside, strict=True)]
        empty = any(i.stop <= i.start for i in inside)
        return tensor, (None if empty else tuple(place)), tuple(inside), tuple(m["box"])


@dataclass
class Cta:
    grid: Grid
    number: int
    count: int
    random: random.Random
    mbarriers: dict[int, dict] = field(default_factory=dict)
    named: dict[int, list[int]] = field(default_factory=dict)  # arrived threads, completed phases
    loads: list = field(default_factory=list)

    def run(self) -> Iterator[bool]:
        """Yields when another CTA may run."""
        self.shared = np.full(120_000, NAN, np.uint16).view(np.uint8)
        warps = self.grid.manifest["launch"]["threads"] // 32
        self.products = [Products(self) for _ in range(-(-warps // 4))]
        live = [Warp(self, w).run() for w in range(warps)]
        idle = 0
        while live:
            for load in list(self.loads):
                if self.random.random() < (0.1 if self.grid.late else 0.9):
                    self.loads.remove(load)
                    load()
                    idle = 0
            self.random.shuffle(live)
            moved = False
            for warp in list(live):
                state = next(warp, None)
                if state is None:
                    live.remove(warp)
                moved |= state is not False
            idle = 0 if moved or self.loads else idle + 1
            assert idle < 40, "a deadlock"
            yield True
        assert not any(p.open or p.groups for p in self.products), "products are in flight at the end"

    def arrive(self, at: int, count: int = 1, expect: int = 0) -> None:
        b = self.mbarriers[at]
        b["pending"] -= count
        b["bytes"] += expect
        assert b["pending"] >= 0, "an arrival too many"
        self._complete(b)

    def landed(self, at: int, size: int) -> None:
        self.mbarriers[at]["bytes"] -= size
        self._complete(self.mbarriers[at])

    @staticmethod
    def _complete(b: dict) -> None:
        if b["pending"] == 0 and b["bytes"] == 0:
            b["phase"] ^= 1
            b["pending"] = b["count"]

    def matrix(self, descriptor: int, rows: slice, mn_major: bool) -> np.ndarray:
        """[rows, 16] of an operand in shared memory under the 128-byte swizzle (PTX ISA, Matrix Descriptor Format)."""
        assert descriptor >> 62 & 3 == 1
        start, leading, stride = ((descriptor >> s & 0x3FFF) << 4 for s in (0, 16, 32))
        r, k = np.meshgrid(np.arange(rows.start, rows.stop), np.arange(16), indexing="ij")
        if mn_major:
            at = r // 64 * leading + r % 64 * 2 + k // 8 * stride + k % 8 * 128
        else:
            at = r // 8 * stride + r % 8 * 128 + k * 2
        at = swizzled(start + at)
        return bf16(self.shared[at].astype(np.uint16) | self.shared[at + 1].astype(np.uint16) << 8)


@dataclass
class Products:
    """The matrix products of a warpgroup: each is complete for all of its warps at one time, when all of them have started it."""

    cta: Cta
    open: dict[int, list] = field(default_factory=dict)  # by warp
    groups: list[dict[int, list]] = field(default_factory=list)
    committed: dict[int, int] = field(default_factory=dict)
    done: int = 0

    def start(self, warp: Warp, operands: list[str]) -> None:
        """Descriptors are read now, registers of a fragment by the product when it is done."""
        d, a, b, *rest = operands
        held = [x if x.startswith("{") else int(warp.value(x)[0]) for x in (a, b)]
        self.open.setdefault(warp.number % 4, []).append((warp, d, *held, rest))

    def commit(self, warp: Warp) -> None:
        w = warp.number % 4
        n = self.committed.get(w, 0)
        self.committed[w] = n + 1
        while len(self.groups) <= n - self.done:
            self.groups.append({})
        self.groups[n - self.done][w] = self.open.pop(w, [])
        if not self.cta.grid.late:
            self.retire(n + 1)

    def retire(self, upto: int) -> bool:
        """Do groups up to number `upto`; False while a warp has not started one of them."""
        while self.done < upto:
            if len(self.groups[0]) < 4:
                return False
            for product in (x for w in range(4) for x in self.groups[0][w]):
                self._product(*product)
            self.groups.pop(0)
            self.done += 1
        return True

    def _product(self, warp: Warp, d: str, a: str | int, b: int, rest: list[str]) -> None:
        accumulate, _, _, *transposes = rest
        registers = names(d)
        right = self.cta.matrix(b, slice(0, len(registers) * 2), transposes[-1] == "1")
        mine = slice(16 * (warp.number % 4), 16 * (warp.number % 4) + 16)
        if isinstance(a, str):
            left = np.zeros((16, 16), np.float32)
            for n, name in enumerate(names(a)):
                pair, row, column = u32(warp.value(name)), LANE // 4 + 8 * (n & 1), LANE % 4 * 2 + 8 * (n >> 1)
                left[row, column], left[row, column + 1] = bf16(pair & 0xFFFF), bf16(pair >> 16)
        else:
            left = self.cta.matrix(a, mine, transposes[0] == "1")
        result = left @ right.T
        for n, name in enumerate(registers):
            new = result[LANE // 4 + 8 * (n >> 1 & 1), n // 4 * 8 + LANE % 4 * 2 + (n & 1)]
            warp.registers[name] = (new + warp.registers[name] if accumulate == "1" else new).astype(np.float32)
