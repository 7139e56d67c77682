"""A machine that runs the PTX of kernels without matrix instructions or bulk copies on numpy: clusters side by side, the CTAs of each
together, their warps in random order.

It is written from the PTX ISA and shares nothing with the lowering. Registers hold bits; an instruction's type says what they mean.
Shared memory starts as NaNs, and every access is checked against its buffer's or tensor's bounds.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

LANES = 32
LANE = np.arange(LANES)
BASE = 1024  # of dynamic shared memory, as the symbol has it
RANK = 24  # bits of an address of the cluster's shared memory below the CTA's rank plus one
ELECTED = 21  # a lane like any other
LINE = re.compile(r"(?:@(!?)(%\w+) )?([a-z][\w.:]*)\s*(.*);")
OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+")
BITS = {"%r": np.uint32, "%f": np.uint32, "%d": np.uint64, "%h": np.uint16, "%p": bool}
TYPES = {
    "u8": np.uint8, "b16": np.uint16, "u16": np.uint16, "b32": np.uint32, "u32": np.uint32, "s32": np.int32, "f32": np.float32,
    "b64": np.uint64, "u64": np.uint64, "s64": np.int64, "f64": np.float64
}  # fmt: skip
COMPARE = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": lambda a, b: (a < b) | (a > b),
    "neu": np.not_equal, "nan": lambda a, b: np.isnan(a) | np.isnan(b)
}  # fmt: skip
TWO = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
ONE = {
    "abs": np.abs, "neg": np.negative, "ex2": np.exp2, "lg2": np.log2, "rcp": np.reciprocal, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x)
}  # fmt: skip
ATOMIC = {"add": np.add, "min": np.minimum, "max": np.maximum}


@dataclass
class Grid:
    """`tensors`: by name, changed in place. Scalars by name."""

    ptx: str
    cluster: int
    warps: int
    shared_bytes: int
    scalars: dict
    tensors: dict[str, np.ndarray]
    seed: int = 0

    def run(self, clusters: int) -> None:
        body = self.ptx[self.ptx.index("\n{\n") + 3 : self.ptx.rindex("}")]
        self.code, self.labels = [], {}
        for line in (re.sub(r"//.*", "", x).strip() for x in body.splitlines()):
            if line.endswith(":"):
                self.labels[line[:-1]] = len(self.code)
            elif m := LINE.fullmatch(line):
                negate, guard, opcode, operands = m.groups()
                self.code.append((guard, bool(negate), opcode, OPERAND.findall(operands)))
        self.bases = {n: (i + 1) << 32 for i, n in enumerate(self.tensors)}
        with np.errstate(all="ignore"):
            turns = random.Random(self.seed)
            live = [Cluster(self, number, clusters, random.Random(self.seed * 1000 + number)).run() for number in range(clusters)]
            while live:
                cluster = turns.choice(live)
                if next(cluster, None) is None:
                    live.remove(cluster)

    def bytes_at(self, addresses: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        """A tensor's bytes, and where in them accesses of `size` bytes lie. All of one instruction go to one tensor."""
        tensor = next(self.tensors[n] for n, base in self.bases.items() if base >> 32 == int(addresses[0]) >> 32)
        at = (addresses & 0xFFFFFFFF).astype(np.int64)
        assert (at % size == 0).all() and (at + size <= tensor.nbytes).all(), "an access outside of its tensor, or misaligned"
        return tensor.reshape(-1).view(np.uint8), at


@dataclass
class Cluster:
    grid: Grid
    number: int
    count: int
    random: random.Random
    arrived: int = 0
    phase: int = 0
    named: dict[tuple[int, int], list[int]] = field(default_factory=dict)  # (CTA, id): warps that arrived, phase
    mbarriers: dict[tuple[int, int], dict] = field(default_factory=dict)  # by CTA and address

    def run(self) -> Iterator[bool]:
        """Yields when another cluster may run."""
        g = self.grid
        self.shared = [np.full(max(g.shared_bytes, 16), 0xFF, np.uint8) for _ in range(g.cluster)]
        live = [Warp(self, cta, w).run() for cta in range(g.cluster) for w in range(g.warps)]
        idle = 0
        while live:
            self.random.shuffle(live)
            moved = False
            for warp in list(live):
                if self.random.random() < 0.5:  # a warp may fall behind by whole rows
                    continue
                state = next(warp, None)
                if state is None:
                    live.remove(warp)
                moved |= state is not False
            idle = 0 if moved else idle + 1
            assert idle < 60, "a deadlock"
            yield True

    def named_barrier(self, cta: int, number: int, warps: int) -> Iterator[bool]:
        state = self.named.setdefault((cta, number), [0, 0])
        phase, state[0] = state[1], state[0] + 1
        assert state[0] <= warps
        if state[0] == warps:
            state[:] = 0, phase + 1
        while state[1] == phase:
            yield False
        yield True

    def count_in(self, at: tuple[int, int], arrivals: int = 0, expected: int = 0, landed: int = 0) -> None:
        b = self.mbarriers[at]
        b["pending"] -= arrivals
        b["bytes"] += expected - landed
        assert b["pending"] >= 0, "an arrival too many"
        if b["pending"] == 0 and b["bytes"] == 0:
            b["phase"] ^= 1
            b["pending"] = b["count"]

    def arrive(self) -> int:
        phase, self.arrived = self.phase, self.arrived + 1
        if self.arrived == self.grid.cluster * self.grid.warps:
            self.arrived, self.phase = 0, phase + 1
        return phase


@dataclass
class Warp:
    cluster: Cluster
    cta: int
    number: int
    registers: dict[str, np.ndarray] = field(default_factory=dict)
    waits_for: int = 0
    spins: bool = False  # the barrier that was looked at last was not there yet: going back to it is no progress

    def run(self) -> Iterator[bool]:
        """Yields when another warp may run: False where this one waits."""
        grid, at, lanes, joins = self.cluster.grid, 0, np.ones(LANES, bool), []
        while True:
            while joins and joins[-1][0] == at:
                lanes = joins.pop()[1]
            guard, negate, opcode, o = grid.code[at]
            at += 1
            active = lanes if guard is None else lanes & (self.registers[guard] ^ negate)
            if opcode == "ret":
                return
            if opcode == "bra":
                if not active.any():
                    continue
                if active[lanes].all():
                    yield not self.spins
                    at = grid.labels[o[0]]
                else:
                    assert grid.labels[o[0]] > at, "a backward branch that divides a warp"
                    joins.append((grid.labels[o[0]], lanes))
                    lanes = lanes & ~active
            elif active.any():
                yield from self.step(opcode, o, active, bool(lanes.all())) or ()

    # --- operands

    def bits(self, x: str) -> np.ndarray:
        if x in self.registers:
            return self.registers[x]
        special = {
            "%tid.x": LANE + LANES * self.number,
            "%ctaid.x": np.full(LANES, self.cluster.number),
            "%nctaid.x": np.full(LANES, self.cluster.count),
            "%cluster_ctarank": np.full(LANES, self.cta),
            "%clusterid.x": np.full(LANES, self.cluster.number),
            "%nclusterid.x": np.full(LANES, self.cluster.count),
            "shared_memory": np.full(LANES, BASE),
        }
        if x in special:
            return special[x].astype(np.uint32)
        if x.startswith("0f"):
            return np.full(LANES, int(x[2:], 16), np.uint32)
        return np.full(LANES, int(x, 0) & 0xFFFFFFFFFFFFFFFF, np.uint64)

    def value(self, x: str, kind: str) -> np.ndarray:
        wanted = np.dtype(TYPES[kind])
        bits = self.bits(x)
        return bits.astype(f"u{wanted.itemsize}").view(wanted)

    def put(self, name: str, value: np.ndarray, active: np.ndarray) -> None:
        kind = np.dtype(BITS[name[:2]])
        bits = value if kind == bool else np.ascontiguousarray(value).view(f"u{value.dtype.itemsize}").astype(kind)
        old = self.registers.get(name)
        self.registers[name] = bits if old is None or active.all() else np.where(active, bits, old)

    def address(self, x: str) -> np.ndarray:
        base, offset = re.fullmatch(r"\[(%\w+)(?:\+(-?\d+))?\]", x).groups()
        return self.bits(base).astype(np.int64) + int(offset or 0)

    # --- instructions

    def step(self, opcode: str, o: list[str], active: np.ndarray, together: bool):
        root, *words = opcode.split(".")
        if root == "mbarrier":
            return self.mbarrier(words, o, active)
        if root == "atom" or opcode.startswith("st.async"):
            self.atomic(words, o, active) if root == "atom" else self.send(words, o, active)
        elif root in ("ld", "st", "atom", "red"):
            self.memory(root, words, o, active)
        elif opcode == "bar.sync":
            assert together
            return self.cluster.named_barrier(self.cta, int(o[0]), int(o[1]) // LANES if len(o) > 1 else self.cluster.grid.warps)
        elif opcode == "barrier.cluster.arrive.release":
            self.waits_for = self.cluster.arrive()
        elif opcode == "barrier.cluster.wait.acquire":
            return self.cluster_wait()
        elif opcode == "elect.sync":
            assert together, "an election of a warp that is not together"
            self.put(o[0].partition("|")[2], LANE == ELECTED, active)
        elif root not in ("createpolicy", "griddepcontrol", "bar", "fence"):
            self.put_all(o[0], self.result(root, words, o), active)
        return None

    def window(self, x: str, active: np.ndarray) -> tuple[int, int]:
        """The CTA and the address in it that all active lanes name: the own one's, or another's in the cluster's window."""
        (found,) = set(self.address(x)[active].tolist())
        return (found >> RANK) - 1 if found >> RANK else self.cta, found & (1 << RANK) - 1

    def mbarrier(self, words: list[str], o: list[str], active: np.ndarray) -> Iterator[bool]:
        at = self.window(o[0] if words[0] == "init" else o[1], active)
        if words[0] == "init":
            self.cluster.mbarriers[at] = {"count": int(o[1]), "pending": int(o[1]), "bytes": 0, "phase": 0}
        elif words[0] == "arrive":
            self.cluster.count_in(at, int(active.sum()), int(o[2]) if "expect_tx" in words else 0)
        else:
            (parity,) = set(self.value(o[2], "u32")[active].tolist())
            done = self.cluster.mbarriers[at]["phase"] != parity
            self.put(o[0], np.full(LANES, done), active)
            self.spins = not done
            yield done
            return
        yield True

    def send(self, words: list[str], o: list[str], active: np.ndarray) -> None:
        """One lane's element into a CTA, and its bytes on a barrier there."""
        cta, at = self.window(o[0], active)
        to, barrier = self.window(o[2], active)
        assert active.sum() == 1 and cta == to and words[-1] in ("b32", "s32"), words
        self.cluster.shared[cta][at - BASE : at - BASE + 4] = self.value(o[1], "b32")[active].view(np.uint8)
        self.cluster.count_in((to, barrier), landed=4)

    def atomic(self, words: list[str], o: list[str], active: np.ndarray) -> None:
        """Lane by lane; warps run by turns, so nothing comes between the read and the write."""
        kind, old = words[-1], np.zeros(LANES, TYPES[words[-1]])
        action = ATOMIC[next(w for w in words if w in ATOMIC)]
        for lane in np.flatnonzero(active):
            data, at = self.place(words, self.address(o[1])[lane : lane + 1], 4)
            index = at[0] + np.arange(4)
            old[lane] = data[index].view(TYPES[kind])[0]
            data[index] = np.atleast_1d(action(old[lane], self.value(o[2], kind)[lane]).astype(TYPES[kind])).view(np.uint8)
        self.put(o[0], old.view(np.uint32), active)

    def cluster_wait(self) -> Iterator[bool]:
        while self.cluster.phase == self.waits_for:
            yield False
        yield True

    def put_all(self, names: str, value, active: np.ndarray) -> None:
        if names.startswith("{"):  # mov.b32 {a, b}, x
            for i, name in enumerate(names.strip("{}").split(",")):
                self.put(name.strip(), (value >> np.uint32(16 * i)).astype(np.uint16), active)
        else:
            self.put(names, value, active)

    def result(self, root: str, words: list[str], o: list[str]) -> np.ndarray:
        kind = next((w for w in reversed(words) if w in TYPES), "")
        v = lambda n, k=kind: self.value(o[n], k)  # noqa: E731
        match root:
            case "mov" | "cvta":
                if o[1].startswith("{"):
                    low, high = (self.bits(x.strip()).astype(np.uint32) for x in o[1].strip("{}").split(","))
                    return low | high << np.uint32(16)
                return self.bits(o[1]).astype(f"u{np.dtype(TYPES[kind]).itemsize}")
            case "mapa":
                return v(1) + ((v(2) + np.uint32(1)) << np.uint32(RANK))
            case "setp":
                return COMPARE[words[0]](v(1), v(2))
            case "and" | "or" | "xor" | "not" if words == ["pred"]:
                return ~self.bits(o[1]) if root == "not" else TWO[root](self.bits(o[1]), self.bits(o[2]))
            case "selp":
                return np.where(self.bits(o[3]), v(1), v(2))
            case "fma":
                return (v(1).astype(np.float64) * v(2) + v(3)).astype(np.float32)
            case "mad" | "mul" if "wide" in words:
                product = v(1).astype(np.int64) * v(2)
                return product + self.value(o[3], "s64") if root == "mad" else product
            case "mad":
                return v(1) * v(2) + v(3)
            case "shl":
                return v(1) << self.value(o[2], "u32").astype(v(1).dtype)
            case "shr":
                return v(1) >> self.value(o[2], "u32").astype(v(1).dtype)
            case "div" | "rem" if kind not in ("f32", "f64"):
                x, y = v(1).astype(np.int64), v(2).astype(np.int64)
                quotient = np.abs(x) // np.maximum(np.abs(y), 1) * np.sign(x) * np.sign(y)
                found = np.where(y == 0, -1, quotient if root == "div" else x - quotient * y)
                return found.astype(np.int32) if kind == "s32" else found if kind == "s64" else (found & 0xFFFFFFFF).astype(np.uint32)
            case "div":
                return v(1) / v(2)
            case "min" | "max":
                names = {("min", True): np.minimum, ("max", True): np.maximum, ("min", False): np.fmin, ("max", False): np.fmax}
                return names[root, "NaN" in words](v(1), v(2))
            case "copysign":
                return np.copysign(v(2), v(1))
            case "redux":
                return np.full(LANES, np.bitwise_or.reduce(self.bits(o[1])))
            case "shfl":
                return self.bits(o[1])[LANE ^ int(o[2]) if words[1] == "bfly" else np.full(LANES, int(o[2]))]
            case "cvt":
                return self.converted(words, o)
        if root in ONE:
            return ONE[root](v(1)).astype(TYPES[kind])
        return TWO[root](v(1), v(2))

    def converted(self, words: list[str], o: list[str]) -> np.ndarray:
        small = {"bf16x2": ml_dtypes.bfloat16, "f16x2": np.float16}
        eight = {"e4m3x2": ml_dtypes.float8_e4m3fn, "e5m2x2": ml_dtypes.float8_e5m2}
        to, of = words[-2], words[-1]
        if to in small and of == "f32":
            high, low = (self.value(x, "f32").astype(small[to]).view(np.uint16).astype(np.uint32) for x in o[1:])
            return low | high << np.uint32(16)
        if to in eight:
            most = float(ml_dtypes.finfo(eight[to]).max)
            high, low = (np.clip(self.value(x, "f32"), -most, most).astype(eight[to]).view(np.uint8).astype(np.uint16) for x in o[1:])
            return low | high << np.uint16(8)
        if of in eight:
            pair = self.bits(o[1]).astype(np.uint16)
            low, high = ((pair >> np.uint16(s)).astype(np.uint8).view(eight[of]).astype(np.float16).view(np.uint16).astype(np.uint32) for s in (0, 8))
            return low | high << np.uint32(16)
        if of == "f16":
            return self.bits(o[1]).astype(np.uint16).view(np.float16).astype(np.float32)
        return self.value(o[1], of).astype(TYPES[to])

    def memory(self, root: str, words: list[str], o: list[str], active: np.ndarray) -> None:
        grid, kind = self.cluster.grid, words[-1]
        if words[0] == "param":
            name = o[1].strip("[]")
            found = grid.bases[name[4:]] if name.startswith("ptr_") else grid.scalars[name[4:]]
            self.put(o[0], np.full(LANES, found, TYPES[kind] if not isinstance(found, float) else np.float32), active)
            return
        reads = root in ("ld", "atom")
        held = [x.strip() for x in (o[0] if root == "ld" else o[1]).strip("{}").split(",")]
        where = self.address(o[1] if reads and root == "ld" else o[0])[active]
        each = np.dtype(TYPES[kind]).itemsize
        data, at = self.place(words, where, each * len(held))
        for i, name in enumerate(held):
            index = (at + each * i)[:, None] + np.arange(each)
            if root == "ld":
                found = np.zeros(LANES, f"u{each}")
                found[active] = np.ascontiguousarray(data[index]).view(f"u{each}").ravel()
                self.put(name, found, active)
                continue
            new = self.value(name, kind)[active]
            if root == "st":
                data[index] = np.ascontiguousarray(new).view(np.uint8).reshape(-1, each)
                continue
            action = ATOMIC[next(w for w in words if w in ATOMIC)]
            for n, lane in zip(new, index, strict=True):  # one after another
                old = np.ascontiguousarray(data[lane]).view(TYPES[kind])
                data[lane] = np.atleast_1d(action(old, n).astype(TYPES[kind])).view(np.uint8)

    def place(self, words: list[str], where: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Bytes of a memory, and where in them the accesses lie."""
        space = next(w for w in words if w.startswith(("global", "shared")))
        if space == "global":
            return self.cluster.grid.bytes_at(where, size)
        ranks = set((where >> RANK).tolist())
        assert len(ranks) == 1 and (ranks == {0}) == (space != "shared::cluster"), "an address of another window"
        (rank,) = ranks
        data, at = self.cluster.shared[rank - 1 if rank else self.cta], (where & (1 << RANK) - 1) - BASE
        assert (at % size == 0).all() and (at >= 0).all() and (at + size <= data.size).all(), "an access outside of shared memory"
        return data, at
