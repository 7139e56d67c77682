"""A machine that runs the PTX of a whole kernel for one cluster: warps that diverge and meet, barriers with phases, engines that
work when they like.

Written from the PTX ISA; it shares nothing with the compiler. It is no device: what it shows is that the text does what it should under
the rules written here and in `sm100_engines.py`. Warps and engines take turns in an order drawn from a seed, so that a hand-off that is
missing or counts wrongly shows as a wrong result, an assertion, or a machine that stands still.

    addresses of shared memory   own CTA: the offset; another's: (rank + 1) << 24 | offset
    lanes of a warp              each has its place in the text; those at the first place go on together
"""

from __future__ import annotations

import random
import re
import struct
from dataclasses import dataclass, field

import numpy as np
from sm100_engines import BulkCopies, TensorEngine

SHARED_BASE = 0x410  # of dynamic shared memory: 16-byte aligned and no more
SHARED_SIZE = 240 << 10
LANES = 32


def signed(x):
    return (np.asarray(x, np.int64) + 2**31) % 2**32 - 2**31


def unsigned(x):
    return np.asarray(x, np.int64) % 2**32


@dataclass
class Barrier:
    """Of one phase: arrivals and bytes that are still to come. `phase`: how many are complete."""

    count: int
    pending: int
    bytes: int = 0
    phase: int = 0

    def arrive(self, n: int = 1, expect: int = 0) -> None:
        self.bytes += expect
        self.pending -= n
        assert self.pending >= 0, "more arrivals than the phase counts"
        self._close()

    def complete(self, n: int) -> None:
        self.bytes -= n
        self._close()

    def _close(self) -> None:
        if self.pending == 0 and self.bytes == 0:
            self.phase, self.pending = self.phase + 1, self.count


@dataclass
class Cta:
    rank: int
    shared: np.ndarray = field(default_factory=lambda: np.full(SHARED_SIZE, 0xFF, np.uint8))  # NaNs, whatever is read
    barriers: dict[int, Barrier] = field(default_factory=dict)
    tensor: np.ndarray = field(default_factory=lambda: np.full((128, 512), 0x7FC00001, np.uint32))
    columns: int = 0  # of tensor memory that are allocated
    dirty: dict[int, set] = field(default_factory=dict)  # 16-byte pieces written by threads, and those that owe a fence
    meeting: dict[int, int] = field(default_factory=dict)  # arrivals at named barriers
    met: dict[int, int] = field(default_factory=dict)  # how often each has opened
    left: bool = False  # all of its warps have exited


class Warp:
    def __init__(self, machine: Machine, cta: Cta, number: int):
        self.m, self.cta, self.number = machine, cta, number
        self.at = np.zeros(LANES, np.int64)  # place of each lane
        # special registers and numbers are kept here too, once they were read
        special = {"%tid.x": 32 * number + np.arange(LANES), "%cluster_ctarank": cta.rank, "shared_memory": SHARED_BASE} | machine.special
        self.registers: dict[str, np.ndarray] = {n: np.broadcast_to(np.asarray(v, np.int64), LANES) for n, v in special.items()}
        self.done = False
        self.waiting = None  # a function that says whether the warp can go on
        self.loads: list = []  # loads of tensor memory whose registers are not written yet

    def step(self) -> None:
        """One instruction of the lanes that are behind the others."""
        first = int(self.at[0])
        lanes = self.at == first
        if not lanes.all():
            first = int(self.at[self.at >= 0].min())
            lanes = self.at == first
        negate, guard, opcode, operands = self.m.code[first]
        mask = lanes if guard is None else lanes & (self.registers[guard].astype(bool) ^ negate)
        self.at[lanes] = first + 1
        if opcode == "bra":
            self.at[mask] = self.m.labels[operands[0]]
        elif opcode == "ret":
            self.at[mask] = -1
            self.done = not (self.at >= 0).any()
        elif guard is None or mask.any():
            self.execute(opcode, operands, mask)

    # --- operands

    def read(self, text: str):
        known = self.registers.get(text)
        if known is not None or text.startswith("%"):
            return self.registers[text]
        if text.startswith("0f"):
            value = np.full(LANES, struct.unpack(">f", bytes.fromhex(text[2:]))[0], np.float32)
        else:
            number = self.m.names.index(text) if text in self.m.maps else int(text)
            value = np.full(LANES, (number + 2**63) % 2**64 - 2**63, np.int64)
        self.registers[text] = value
        return value

    def one(self, text: str, mask) -> int:
        """A value that the executing lanes agree on."""
        found = set(np.asarray(self.read(text))[mask].tolist())
        assert len(found) == 1, f"{text} differs among the lanes"
        return found.pop()

    def address(self, text: str):
        base, _, offset = text.strip("[]").partition("+")
        return self.read(base) + int(offset or 0)

    def write(self, name: str, value, mask) -> None:
        if name == "_":
            return
        value = np.asarray(value)
        if name.startswith("%f") and value.dtype != np.float32:
            value = unsigned(value).astype(np.uint32).view(np.float32)
        if name.startswith("%r"):
            value = signed(value.view(np.uint32) if value.dtype == np.float32 else value)
        old = self.registers.get(name)
        if mask.all():
            self.registers[name] = value
            return
        self.registers[name] = np.where(mask, value, np.zeros(LANES, value.dtype) if old is None else old)

    def bits(self, text: str):
        x = self.read(text)
        return x.view(np.uint32).astype(np.int64) if x.dtype == np.float32 else unsigned(x)

    def place(self, address: int) -> tuple[Cta, int]:
        rank = address >> 24
        cta = self.m.ctas[rank - 1] if rank else self.cta
        assert not cta.left, "an access to a CTA that has left"
        return cta, address & 0xFFFFFF

    def barrier(self, address: int) -> Barrier:
        cta, offset = self.place(address)
        return cta.barriers[offset]

    # --- instructions

    def execute(self, opcode: str, o: list[str], mask) -> None:
        family, *rest = opcode.split(".")
        if family in ALU:
            args = [self.bits(x) if rest[-1] in ("u32", "b32") and family != "mov" else self.read(x) for x in o[1:]]
            return self.write(o[0], ALU[family](*args), mask)
        if family == "setp":
            a, b = (self.bits(x) if rest[1] == "u32" else self.read(x) for x in o[1:])
            return self.write(o[0], COMPARE[rest[0]](a, b), mask)  # signed unless the type says otherwise
        return self.m.rule(opcode)(self, opcode, o, mask)


ALU = {
    "mov": lambda a: a,
    "cvta": lambda a: a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "min": np.minimum,
    "max": np.maximum,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: ~a.astype(bool),
    "div": lambda a, b: a // np.where(b == 0, 1, b),
    "rem": lambda a, b: a % np.where(b == 0, 1, b),
}
COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}


def _convert(w: Warp, opcode: str, o, mask) -> None:
    if opcode == "cvt.u64.u32":
        return w.write(o[0], w.bits(o[1]), mask)
    assert opcode == "cvt.rn.bf16x2.f32"
    high, low = (_bf16(w.read(x)) for x in o[1:])
    w.write(o[0], high << 16 | low, mask)


def _bf16(x):
    import ml_dtypes

    return x.astype(np.float32).astype(ml_dtypes.bfloat16).view(np.uint16).astype(np.int64)


def _param(w: Warp, opcode: str, o, mask) -> None:
    kind = np.float32 if opcode.endswith(".f32") else np.int64
    w.write(o[0], np.full(LANES, w.m.scalars[o[1].strip("[]").removeprefix("arg_")], kind), mask)


def _load_shared(w: Warp, opcode: str, o, mask) -> None:
    registers = o[0].strip("{}").split(", ")
    data = np.array([w.cta.shared[a : a + 4 * len(registers)].view(np.uint32) for a in w.address(o[1])], np.int64)
    for i, r in enumerate(registers):
        w.write(r, data[:, i], mask)


def _store_shared(w: Warp, opcode: str, o, mask) -> None:
    words = [w.bits(x) for x in o[1].strip("{}").split(", ")]
    for lane in np.flatnonzero(mask):
        a = int(w.address(o[0])[lane])
        w.cta.shared[a : a + 4 * len(words)].view(np.uint32)[:] = [x[lane] for x in words]
        for piece in range(a // 16, (a + 4 * len(words) - 1) // 16 + 1):
            w.cta.dirty.setdefault(piece, set()).add((w.number, lane))


def _proxy_fence(w: Warp, opcode: str, o, mask) -> None:
    mine = {(w.number, lane) for lane in np.flatnonzero(mask)}
    for owing in w.cta.dirty.values():
        owing -= mine


def _elect(w: Warp, opcode: str, o, mask) -> None:
    assert mask.all(), "an election of a warp that is not together"
    w.write(o[0].partition("|")[2], np.arange(LANES) == w.m.elected, mask)


def _warp_sync(w: Warp, opcode: str, o, mask) -> None:
    if not mask.all():  # lanes that are ahead wait here: those behind go on first, and all come back to this place
        w.at[mask] -= 1
        assert (w.at[~mask & (w.at >= 0)] > w.at[mask][0]).sum() == 0, "a lane has passed a barrier of its warp"


def _bar(w: Warp, opcode: str, o, mask) -> None:
    assert mask.all(), "a barrier of the CTA in a warp that is not together"
    number, threads = int(o[0]), int(o[1]) if len(o) > 1 else w.m.threads
    cta, opened = w.cta, w.cta.met.get(number, 0)
    cta.meeting[number] = cta.meeting.get(number, 0) + LANES
    assert cta.meeting[number] <= threads
    if cta.meeting[number] == threads:
        cta.meeting[number], cta.met[number] = 0, opened + 1
    else:
        w.waiting = lambda: cta.met.get(number, 0) > opened


def _cluster_barrier(w: Warp, opcode: str, o, mask) -> None:
    m = w.m
    if opcode.startswith("barrier.cluster.arrive"):
        m.arrived += int(mask.sum())
        if m.arrived == m.threads * len(m.ctas):
            m.arrived, m.generation = 0, m.generation + 1
        w.registers["generation"] = np.where(
            mask, m.generation if m.arrived == 0 else m.generation + 1, w.registers.get("generation", np.zeros(LANES, np.int64))
        )
    else:
        target = int(w.registers["generation"][mask].max())
        w.waiting = lambda: m.generation >= target


def _mbarrier(w: Warp, opcode: str, o, mask) -> None:
    if opcode.startswith("mbarrier.try_wait"):
        assert mask.all(), "a wait of a warp that is not together"
        barrier, parity = w.barrier(w.one_address(o[1], mask)), w.one(o[2], mask)
        if barrier.phase % 2 == parity:  # the phase of this parity is the one that runs
            seen = barrier.phase
            w.waiting = lambda: barrier.phase != seen
        return w.write(o[0], np.full(LANES, barrier.phase % 2 != parity), mask)
    for lane in np.flatnonzero(mask):
        where = o[0] if opcode.startswith("mbarrier.init") else o[1]
        cta, offset = w.place(int(w.address(where)[lane]))
        if opcode.startswith("mbarrier.init"):
            assert offset % 8 == 0 and offset not in cta.barriers
            cta.barriers[offset] = Barrier(int(o[1]), int(o[1]))
        else:
            cta.barriers[offset].arrive(expect=int(o[2]) if "expect_tx" in opcode else 0)


def _mapa(w: Warp, opcode: str, o, mask) -> None:
    w.write(o[0], w.read(o[1]) & 0xFFFFFF | w.read(o[2]) + 1 << 24, mask)


def _nothing(w: Warp, opcode: str, o, mask) -> None:
    """Fences of the barriers' initialisation and of the tensor engine: this machine has one view of both."""


Warp.one_address = lambda w, text, mask: (lambda found: found.pop() if len(found) == 1 else None)(set(w.address(text)[mask].tolist()))


class Machine:
    """Runs one cluster to its end. `maps`: by parameter name, (array, box, swizzle), outermost dimension first."""

    def __init__(self, ptx: str, threads: int, cluster: int, scalars: dict, maps: dict, index: int, clusters: int, seed: int):
        self.random, self.threads, self.scalars, self.maps = random.Random(seed), threads, scalars, maps
        self.names = list(maps)
        self.special = {"%clusterid.x": index, "%nclusterid.x": clusters, "%ctaid.x": index, "%nctaid.x": clusters}
        self.elected = self.random.randrange(LANES)
        self.arrived = self.generation = 0
        self.ctas = [Cta(rank) for rank in range(cluster)]
        self.copies, self.engine = BulkCopies(self), TensorEngine(self)
        self.code, self.labels = [], {}
        for line in (line.strip() for line in ptx[ptx.index("\n{\n") + 3 :].splitlines()):
            if line.endswith(":"):
                self.labels[line[:-1]] = len(self.code)
            elif m := re.fullmatch(r"(?:@(!?)(%p\d+) )?([a-z][\w.:]*)(?: (.*))?;", line):
                operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", m[4] or "")
                self.code.append((bool(m[1]), m[2], m[3], operands))
        self.table = {
            "cvt": _convert,
            "ld.param": _param,
            "ld.shared": _load_shared,
            "st.shared": _store_shared,
            "elect": _elect,
            "bar.warp": _warp_sync,
            "bar.sync": _bar,
            "barrier.cluster": _cluster_barrier,
            "mbarrier": _mbarrier,
            "mapa": _mapa,
            "fence.proxy.async": _proxy_fence,
            "fence.mbarrier_init": _nothing,
            "tcgen05.fence": _nothing,
            "cp.async.bulk": self.copies.issue,
            "tcgen05": self.engine.issue,
        }
        self.rules: dict[str, object] = {}
        self.warps = [Warp(self, cta, n) for cta in self.ctas for n in range(threads // LANES)]

    def rule(self, opcode: str):
        if opcode not in self.rules:
            self.rules[opcode] = next(run for prefix, run in self.table.items() if opcode.startswith(prefix))
        return self.rules[opcode]

    def run(self) -> None:
        steps = 0
        while not all(w.done for w in self.warps):
            ready = [w for w in self.warps if not w.done and (w.waiting is None or w.waiting())]
            engines = [e for e in (self.copies, self.engine) if e.queue]
            assert ready or engines, "the machine stands still: a wait that nothing ends"
            actor = self.random.choice([*ready, *engines])
            for _ in range(self.random.randrange(1, 60)):
                steps += 1
                assert steps < 2_000_000, "the kernel does not end"
                if not isinstance(actor, Warp):
                    actor.work()
                    break
                actor.waiting = None
                actor.step()
                if actor.done or actor.waiting is not None:
                    break
            if isinstance(actor, Warp) and actor.done:
                actor.cta.left = all(w.done for w in self.warps if w.cta is actor.cta)
        while self.copies.queue or self.engine.queue:  # what is in flight behind the exit comes to a CTA that has left
            (self.copies if self.copies.queue else self.engine).work()
        for cta in self.ctas:
            assert cta.columns == 0, "tensor memory was not given back"
            assert not any(cta.meeting.values())
