"""One warp of the machine of warpgroups: its lanes' registers, and what each instruction does to them, its CTA and the grid's memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from ptx_values import COMPARE, FLOAT, FLOAT_ONE, INTEGER, LANE, bits16, i32, names, swizzled, u32

if TYPE_CHECKING:
    from warpgroups import Cta

ELECTED = 21  # a lane like any other
BASE = 1024  # of dynamic shared memory, as the symbol has it
NOTHING = ("wgmma.fence", "setmaxnreg", "fence.")


@dataclass
class Warp:
    cta: Cta
    number: int
    registers: dict[str, np.ndarray] = field(default_factory=dict)
    stores: list = field(default_factory=list)  # of the leader's open bulk group
    store_groups: list = field(default_factory=list)
    waits: bool = False  # the barrier that was looked at last was not there yet: going back to it is no progress

    def run(self) -> Iterator[bool]:
        """Yields when another warp may run: False where this one waits."""
        grid = self.cta.grid
        at, lanes, joins = 0, np.ones(32, bool), []
        while True:
            while joins and joins[-1][0] == at:
                lanes = joins.pop()[1]
            guard, negate, opcode, o = grid.code[at]
            at += 1
            active = lanes if guard is None else lanes & (self.registers[guard].astype(bool) ^ negate)
            if opcode == "ret":
                assert not self.store_groups or not any(self.store_groups), "bulk copies read shared memory at the end"
                return
            if opcode == "bra":
                target = grid.labels[o[0]]
                if not active.any():
                    continue
                if active[lanes].all():
                    if target < at:
                        yield not self.waits
                    at = target
                else:
                    assert target > at, "a backward branch that divides a warp"
                    joins.append((target, lanes))
                    lanes = lanes & ~active
                continue
            if active.any() and not opcode.startswith(NOTHING):
                yield from self.step(opcode, o, active, bool(lanes.all())) or ()

    # --- operands

    def value(self, x: str) -> np.ndarray:
        if x.startswith("%"):
            return self.registers[x]
        if x.startswith("0f"):
            return np.full(32, np.uint32(int(x[2:], 16))).view(np.float32)
        return np.full(32, int(x, 0), np.int64)

    def address(self, x: str) -> np.ndarray:
        base, _, offset = x.strip("[] ").partition("+")
        return self.value(base) + int(offset or 0)

    def one(self, x, active: np.ndarray) -> int:
        (found,) = set((self.address(x) if x.startswith("[") else self.value(x))[active].tolist())
        return int(found)

    def write(self, name: str, value, active: np.ndarray) -> None:
        if name != "_":
            old = self.registers.get(name)
            self.registers[name] = value if active.all() or old is None else np.where(active, value, old)

    # --- instructions

    def step(self, opcode: str, o: list[str], active: np.ndarray, together: bool):
        kind = opcode.split(".")[0]
        if kind in ("ld", "st"):
            self.memory(opcode, o, active)
        elif kind in ("atom", "red"):
            self.atomic(opcode, o, active)
        elif opcode.startswith("bar.") and opcode != "bar.warp.sync":
            assert together
            return self.named_barrier(opcode, o)
        elif kind == "mbarrier":
            return self.mbarrier(opcode, o, active)
        elif opcode.startswith("wgmma."):
            assert together
            return self.product(opcode, o)
        elif opcode.startswith("cp.async.bulk"):
            self.bulk(opcode, o, active)
        elif opcode.startswith("stmatrix"):
            self.matrix_store(o)
        elif opcode == "ldmatrix.sync.aligned.m8n8.x4.shared.b16":
            self.matrix_load(o)
        elif opcode == "elect.sync":
            assert together, "an election of a warp that is not together"
            self.write(o[0].partition("|")[2], LANE == ELECTED, active)
        elif opcode != "bar.warp.sync":
            self.write(o[0], self.result(kind, opcode, o), active)
        return None

    def result(self, kind: str, opcode: str, o: list[str]):
        v = lambda n: self.value(o[n])  # noqa: E731
        is_float = ".f32" in opcode
        match kind:
            case "mov" | "cvta":
                special = {
                    "%tid.x": LANE + 32 * self.number,
                    "%ctaid.x": np.full(32, self.cta.number),
                    "%ctaid.y": np.zeros(32, np.int64),
                    "%nctaid.x": np.full(32, self.cta.count),
                    "shared_memory": np.full(32, BASE),
                }
                if o[1] in self.cta.grid.maps:
                    return np.full(32, list(self.cta.grid.maps).index(o[1]))
                return special[o[1]] if o[1] in special else v(1)
            case "setp":
                x, y = v(1), v(2)
                if not is_float:
                    x, y = (u32(x), u32(y)) if "u32" in opcode else (i32(x), i32(y))
                found = COMPARE[opcode.split(".")[1]](x, y)
                return found & self.value(o[3]) if ".and" in opcode else found
            case "and" | "or" | "not" if opcode.endswith(".pred"):
                return ~v(1) if kind == "not" else v(1) & v(2) if kind == "and" else v(1) | v(2)
            case "selp":
                return np.where(self.value(o[3]), v(1), v(2))
            case "fma":
                return (v(1).astype(np.float64) * v(2) + v(3)).astype(np.float32)
            case "vote":
                return np.full(32, v(1).any())
            case "redux":
                return np.full(32, np.bitwise_or.reduce(v(1)))
            case "shfl":
                return v(1)[LANE ^ int(o[2]) if ".bfly" in opcode else np.full(32, int(o[2]))]
            case "cvt":
                if "bf16x2" in opcode:
                    return bits16(v(2)) | bits16(v(1)) << 16
                return u32(v(1)) if "u64.u32" in opcode else v(1)
            case "mad":
                return i32(v(1)) * i32(v(2)) + v(3)
            case "mul" if "wide" in opcode:
                return i32(v(1)) * i32(v(2))
        if kind in FLOAT_ONE and is_float:
            return FLOAT_ONE[kind](v(1)).astype(np.float32)
        if is_float:
            return FLOAT[kind](v(1), v(2)).astype(np.float32)
        x, y = v(1), v(2)
        if ".u32" in opcode:
            x, y = u32(x), u32(y)
        elif "64" not in opcode and kind != "shr":
            x, y = i32(x), i32(y)
        found = INTEGER[kind](x, y)
        return found if "64" in opcode else i32(found)

    def memory(self, opcode: str, o: list[str], active: np.ndarray) -> None:
        if opcode.startswith("ld.param"):
            name = o[1].strip("[]")
            grid, parameter = self.cta.grid, name.split("_", 1)[1]
            found = grid.bases[parameter] if name.startswith("ptr_") else grid.scalars[parameter]
            self.write(o[0], np.full(32, found, np.float32 if ".f32" in opcode else np.int64), active)
            return
        assert opcode.endswith("b32") and (".global" in opcode or ".shared" in opcode)
        load = opcode.startswith("ld")
        where, data = (self.address(o[1]), o[0]) if load else (self.address(o[0]), o[1])
        for i, name in enumerate(names(data)):
            if load:
                found = np.zeros(32, np.uint32)
                for lane in np.flatnonzero(active):
                    words, n = self.words(opcode, int(where[lane]) + 4 * i)
                    found[lane] = words[n]
                self.write(name, found.view(np.float32) if name.startswith("%f") else i32(found), active)
                continue
            value = self.value(name)
            value = value.astype(np.float32).view(np.uint32) if value.dtype.kind == "f" else u32(value)
            for lane in np.flatnonzero(active):
                words, n = self.words(opcode, int(where[lane]) + 4 * i)
                words[n] = value[lane]

    def atomic(self, opcode: str, o: list[str], active: np.ndarray) -> None:
        """Lane by lane; CTAs run by turns, so nothing comes between the read and the write."""
        name, _, _, space, action, kind = opcode.split(".")
        assert (space, kind) == ("global", "s32")
        *result, place, value = o
        where, new, old = self.address(place), self.value(value), np.zeros(32, np.int64)
        for lane in np.flatnonzero(active):
            words, n = self.words(opcode, int(where[lane]))
            old[lane] = i32(words[n])
            words[n] = u32(INTEGER[action](old[lane], i32(new[lane])))
        if name == "atom":
            self.write(*result, old, active)

    def words(self, opcode: str, address: int) -> tuple[np.ndarray, int]:
        return (self.cta.shared.view(np.uint32), address // 4) if ".shared" in opcode else self.cta.grid.words(address)

    def named_barrier(self, opcode: str, o: list[str]) -> Iterator[bool]:
        threads = int(o[1]) if len(o) > 1 else self.cta.grid.manifest["launch"]["threads"]
        state = self.cta.named.setdefault(int(o[0]), [0, 0])
        state[0] += 32
        phase = state[1]
        assert state[0] <= threads
        if state[0] == threads:
            state[:] = 0, phase + 1
        while opcode == "bar.sync" and state[1] == phase:
            yield False
        yield True

    def mbarrier(self, opcode: str, o: list[str], active: np.ndarray) -> Iterator[bool]:
        cta = self.cta
        if ".init" in opcode:
            count = int(o[1])
            cta.mbarriers[self.one(o[0], active)] = {"count": count, "pending": count, "bytes": 0, "phase": 0}
        elif ".arrive" in opcode:
            cta.arrive(self.one(o[1], active), int(active.sum()), int(o[2]) if "expect_tx" in opcode else 0)
        else:
            done = cta.mbarriers[self.one(o[1], active)]["phase"] != self.one(o[2], active)
            self.write(o[0], np.full(32, done), active)
            self.waits = not done
            yield done
            return
        yield True

    def product(self, opcode: str, o: list[str]) -> Iterator[bool]:
        products = self.cta.products[self.number // 4]
        if "mma_async" in opcode:
            products.start(self, o)
        elif "commit" in opcode:
            products.commit(self)
        else:
            upto = products.committed.get(self.number % 4, 0) - int(o[0])
            while not products.retire(upto):
                yield False
        yield True

    def bulk(self, opcode: str, o: list[str], active: np.ndarray) -> None:
        cta = self.cta
        if "commit_group" in opcode:
            self.store_groups.append(self.stores)
            self.stores = []
        elif "wait_group" in opcode:
            for group in self.store_groups[: len(self.store_groups) - int(o[0])]:
                for store in group:
                    store()
                group.clear()
        else:
            assert active.sum() == 1
            load = "shared::cluster.global" in opcode
            target, source = (o[1], o[0]) if load else (o[0], o[1])
            register, coordinates = re.fullmatch(r"\[(%\w+), \{(.*)\}\]", target).groups()
            name = list(cta.grid.maps)[self.one(register, active)]
            tensor, place, inside, box = cta.grid.box(name, [self.one(c, active) for c in names(coordinates)])
            start = self.one(source, active)
            width, swizzle = tensor.dtype.itemsize, cta.grid.maps[name]["swizzle"]
            size = int(np.prod(box)) * width
            at = swizzled(start + np.arange(size)) if swizzle else start + np.arange(size)
            assert start % 1024 == 0 and swizzle == box[-1] * width == 128 if swizzle else start % 128 == 0

            def store() -> None:
                if place is not None:
                    tensor[place] = np.ascontiguousarray(cta.shared[at]).view(tensor.dtype).reshape(box)[inside]

            if not load:
                if cta.grid.late:
                    self.stores.append(store)
                else:
                    store()
                return
            barrier = self.one(o[2], active)

            def fill() -> None:
                new = np.zeros(box, tensor.dtype)
                if place is not None:
                    new[inside] = tensor[place]
                cta.shared[at] = new.reshape(-1).view(np.uint8)
                cta.landed(barrier, size)

            cta.loads.append(fill)

    def matrix_store(self, o: list[str]) -> None:
        """Four 8x8 matrices: lane 8m + r has the address of row r of matrix m, its elements lie as in an accumulator."""
        where = self.address(o[0])
        for m, name in enumerate(names(o[1])):
            pairs = u32(self.value(name)).astype(np.uint32).reshape(8, 4)
            for r in range(8):
                at = int(where[8 * m + r])
                self.cta.shared[at : at + 16] = pairs[r].view(np.uint8)

    def matrix_load(self, o: list[str]) -> None:
        """The same the other way round."""
        where = self.address(o[1])
        for m, name in enumerate(names(o[0])):
            rows = np.stack([self.cta.shared[int(at) : int(at) + 16].view(np.uint32) for at in where[8 * m : 8 * m + 8]])
            self.write(name, i32(rows.reshape(-1)), np.ones(32, bool))
