"""The engines of the machine: bulk copies by tensor map, and the tensor engine with its memory.

From the PTX ISA (cp.async.bulk.tensor, tensor maps and swizzling modes; tcgen05: descriptors, tensor memory, data movement) and,
where its text leaves something to figures, from the descriptions of other producers of code for this target.
"""

from __future__ import annotations

import re
from itertools import product

import ml_dtypes
import numpy as np

KINDS = {
    "f16": {0: np.float16, 1: ml_dtypes.bfloat16},
    "tf32": {2: np.float32},
    "f8f6f4": {0: ml_dtypes.float8_e4m3fn, 1: ml_dtypes.float8_e5m2},
    "mxf8f6f4": {0: ml_dtypes.float8_e4m3fn, 1: ml_dtypes.float8_e5m2},
    "mxf4": {1: ml_dtypes.float4_e2m1fn},
    "mxf4nvf4": {1: ml_dtypes.float4_e2m1fn},
}
#: Of the kinds with block scales: scales of a row that one instruction takes.
SCALES = {"mxf8f6f4": 1, "mxf4": 2, "mxf4nvf4": 4}


def permuted(address: int, swizzle: int) -> int:
    """Swizzling modes: bits of the address XORed with higher ones, by the width of a row in bytes."""
    match swizzle:
        case 128:
            return address ^ (address >> 7 & 7) << 4
        case 64:
            return address ^ (address >> 7 & 3) << 4
        case 32:
            return address ^ (address >> 7 & 1) << 4
    return address


class BulkCopies:
    """Copies land in any order; stores read late, a group at a time."""

    def __init__(self, machine):
        self.m, self.queue = machine, []
        self.open: dict[tuple, list] = {}  # by thread: stores since its last commit
        self.groups: dict[tuple, list] = {}  # by thread: committed groups, oldest first; each a list of stores, read or not

    def issue(self, w, opcode: str, o, mask) -> None:
        (lane,) = np.flatnonzero(mask)  # one thread issues
        thread = (w.cta.rank, w.number, int(lane))
        if opcode.startswith("cp.async.bulk.commit_group"):
            self.groups.setdefault(thread, []).append(self.open.pop(thread, []))
        elif opcode.startswith("cp.async.bulk.wait_group"):
            for group in self.groups.get(thread, [])[: -int(o[0]) or None]:
                for store in group:
                    self._store(store)
        elif ".global.shared::cta" in opcode:
            name, at = self._box(w, o[0], mask)
            store = [w.cta, name, at, w.one_address(o[1], mask), False]
            self.open.setdefault(thread, []).append(store)
        else:
            name, at = self._box(w, o[1], mask)
            to, signal = w.place(w.one_address(o[0], mask)), w.one_address(o[2], mask)
            cta, offset = w.place(signal)
            assert cta is w.cta or ".cta_group::2" in opcode, "a signal to another CTA without .cta_group::2"
            self.queue.append((name, at, to, cta.barriers[offset]))

    def _box(self, w, operand: str, mask):
        name, *at = re.findall(r"[%\w.-]+", operand)
        return self.m.names[w.one(name, mask)], tuple(w.one(x, mask) for x in reversed(at))

    def work(self) -> None:
        name, at, (cta, start), barrier = self.queue.pop(self.m.random.randrange(len(self.queue)))
        assert not cta.left, "a copy to a CTA that has left"
        array, box, swizzle = self.m.maps[name]
        size = array.dtype.itemsize
        assert start % (max(8 * swizzle, 128)) == 0 and box[-1] * size % 16 == 0 and (not swizzle or box[-1] * size <= swizzle)
        flat = start
        for index in product(*(range(n) for n in box[:-1])):
            where = tuple(a + i for a, i in zip(at, index, strict=False))
            row = np.zeros(box[-1], array.dtype)
            if all(0 <= x < n for x, n in zip(where, array.shape, strict=False)):
                inside = array[where][max(at[-1], 0) : at[-1] + box[-1]]
                row[: len(inside)] = inside
            data = row.view(np.uint8)
            for byte in range(0, len(data), 16):
                to = permuted(flat + byte, swizzle)
                cta.shared[to : to + 16] = data[byte : byte + 16]
            flat += len(data)
        barrier.complete(flat - start)

    def _store(self, store) -> None:
        cta, name, at, start, done = store
        if done:
            return
        store[-1] = True
        array, box, swizzle = self.m.maps[name]
        size, flat = array.dtype.itemsize, start
        for index in product(*(range(n) for n in box[:-1])):
            data = np.zeros(box[-1] * size, np.uint8)
            for byte in range(0, len(data), 16):
                of = permuted(flat + byte, swizzle)
                assert not cta.dirty.get(of // 16), "a store reads what a thread wrote without a proxy fence"
                data[byte : byte + 16] = cta.shared[of : of + 16]
            flat += len(data)
            where = tuple(a + i for a, i in zip(at, index, strict=False))
            assert min(at) >= 0
            if all(x < n for x, n in zip(where, array.shape, strict=False)):
                row = array[where][at[-1] : at[-1] + box[-1]]
                row[:] = data.view(array.dtype)[: len(row)]


class TensorEngine:
    """Does what each thread gave it in that thread's order, later; a commit arrives in its turn. The order between threads is drawn."""

    def __init__(self, machine):
        self.m, self.queues = machine, {}

    @property
    def queue(self) -> bool:
        return any(self.queues.values())

    def work(self) -> None:
        thread = self.m.random.choice([t for t, q in self.queues.items() if q])
        self.queues[thread].pop(0)()

    def issue(self, w, opcode: str, o, mask) -> None:
        pair = "cta_group::2" in opcode
        assert not pair or len(self.m.ctas) == 2
        name = opcode.split(".")[1]
        if name in ("alloc", "dealloc", "relinquish_alloc_permit", "ld", "st", "wait::ld", "wait::st"):
            assert mask.all(), f"{opcode} in a warp that is not together"
            more = (opcode,) if name in ("ld", "st") else ()
            return getattr(self, "_" + name.replace("::", "_"))(w, o, mask, *more)
        (lane,) = np.flatnonzero(mask)  # one thread issues
        thread = (w.cta.rank, w.number, int(lane))
        ctas = self.m.ctas if pair else [w.cta]
        self.queues.setdefault(thread, []).append(
            {"mma": self._mma, "commit": self._commit, "cp": self._copy}[name](w, opcode, o, mask, ctas)
        )

    # --- memory

    def _alloc(self, w, o, mask) -> None:
        n, at = int(o[1]), int(w.address(o[0])[0])
        assert w.cta.columns == 0 and n in (32, 64, 128, 256, 512)
        w.cta.columns, w.cta.first = n, 0 if n == 512 else 64 if n <= 256 else 0
        w.cta.shared[at : at + 4].view(np.uint32)[0] = w.cta.first

    def _relinquish_alloc_permit(self, w, o, mask) -> None:
        assert w.cta.columns

    def _dealloc(self, w, o, mask) -> None:
        assert (w.one(o[0], mask), int(o[1])) == (w.cta.first, w.cta.columns) and not self.queue
        w.cta.columns = 0

    def _cells(self, cta, column: int, n: int):
        """Columns of all lanes, inside what is allocated."""
        column &= 0xFFFF
        assert cta.first <= column and column + n <= cta.first + cta.columns, "columns of somebody else"
        return cta.tensor[:, column : column + n]

    def _held(self, w, operand: str, mask, opcode: str, registers: int):
        """The columns of this warp's lanes, and of each register the lane and the column of every thread."""
        address, t = w.one_address(operand, mask), np.arange(32)
        assert address >> 16 == 32 * (w.number % 4), "lanes of another warp"
        if ".32x32b." in opcode:
            n, at = registers, [(t, r + 0 * t) for r in range(registers)]
        else:
            assert ".16x256b." in opcode and registers % 4 == 0
            n = 2 * registers
            at = [(t // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (t % 4) + r % 2) for r in range(registers)]
        assert f".x{registers // (4 if '16x256b' in opcode else 1)}." in opcode
        return self._cells(w.cta, address, n)[32 * (w.number % 4) :][:32], at

    def _ld(self, w, o, mask, opcode) -> None:
        registers = o[0].strip("{}").split(", ")
        w.loads.append((registers, *self._held(w, o[1], mask, opcode, len(registers))))
        for r in registers:
            w.write(r, np.full(32, 0x7FC00002), mask)  # nobody may look before the wait

    def _wait_ld(self, w, o, mask) -> None:
        for registers, cells, at in w.loads:
            for r, (lane, column) in zip(registers, at, strict=True):
                w.write(r, cells[lane, column].astype(np.int64), mask)
        w.loads.clear()

    def _st(self, w, o, mask, opcode) -> None:
        registers = o[1].strip("{}").split(", ")
        cells, at = self._held(w, o[0], mask, opcode, len(registers))
        for r, (lane, column) in zip(registers, at, strict=True):
            cells[lane, column] = w.bits(r)

    def _wait_st(self, w, o, mask) -> None:
        """Stores of this machine are complete at once."""

    # --- work of the engine

    def _commit(self, w, opcode, o, mask, ctas):
        cta, offset = w.place(w.one_address(o[0], mask))
        ranks = [r for r in range(16) if w.one(o[1], mask) >> r & 1] if "multicast" in opcode else [cta.rank]

        def arrive():
            for r in ranks:
                assert not self.m.ctas[r].left, "an arrival at a CTA that has left"
                self.m.ctas[r].barriers[offset].arrive()

        return arrive

    def _copy(self, w, opcode, o, mask, ctas):
        assert ".32x128b.warpx4" in opcode
        to, (start, _, sbo, swizzle) = w.one_address(o[0], mask), fields(w.one(o[1], mask))
        assert swizzle == 0

        def copy():
            for cta in ctas:
                rows = np.stack([cta.shared[start + r // 8 * sbo + r % 8 * 16 :][:16] for r in range(32)])
                cells = self._cells(cta, to, 4)
                for part in range(4):
                    cells[32 * part : 32 * part + 32] = rows.view(np.uint32)

        return copy

    def _mma(self, w, opcode, o, mask, ctas):
        kind = re.search(r"kind::(\w+)", opcode)[1]
        scaled = "block_scale" in opcode
        d, a, b, idesc, *scales, enable = o
        d, bits, adds = w.one_address(d, mask), w.one(idesc, mask), bool(w.one(enable, mask))
        a = ("tensor", w.one_address(a, mask)) if a.startswith("[") else ("shared", w.one(a, mask))
        b, scales = w.one(b, mask), [w.one_address(s, mask) for s in scales]
        n, m = (bits >> 17 & 63) << 3, (bits >> 24 & (7 if scaled else 31)) << 4
        m = m or 256 if not scaled else (bits >> 27 & 3) << 7
        rows, one_of_64 = m // len(ctas), m == 64 and len(ctas) == 1 and not scaled
        assert (rows == 128 and n % 16 == 0 or one_of_64 and n % 8 == 0) and n <= 256
        lanes = np.arange(rows) if rows == 128 else np.arange(64) // 16 * 32 + np.arange(64) % 16  # data path layouts D and F
        types = KINDS[kind][bits >> 7 & 7], KINDS[kind][bits >> 10 & 7]
        turned = bits >> 15 & 1, bits >> 16 & 1
        assert scaled == (len(scales) == 2 == 2 * (kind in SCALES)) and (scaled or bits >> 4 & 3 == 1 and not bits >> 23 & 1)
        ids, each = (bits >> 29 & 3, bits >> 4 & 3), SCALES.get(kind, 0)
        assert not scaled or f"scale_vec::{each}X" in opcode and all(i % each == 0 for i in ids)
        power = bits >> 23 & 1  # the scales are ue8m0
        assert power or kind == "mxf4nvf4" or not scaled

        def multiply():
            above = [self._a(cta, a, types[0], turned[0], lanes) for cta in ctas]
            columns = [factor(cta.shared, b, n // len(ctas), types[1], turned[1]) for cta in ctas]
            right = np.concatenate(columns)
            for cta, left in zip(ctas, above, strict=True):
                x, y = left.astype(np.float64), right.astype(np.float64)
                if scaled:
                    x = x * self._scales(cta, scales[0], 128, ids[0], each, x.shape[1], power)
                    y = y * self._scales(cta, scales[1], n, ids[1], each, y.shape[1], power)
                cells = self._cells(cta, d, n)
                before = cells[lanes].view(np.float32).astype(np.float64) if adds else 0.0
                with np.errstate(invalid="ignore", over="ignore"):  # of what a broken kernel multiplies
                    cells[lanes] = (before + x @ y.T).astype(np.float32).view(np.uint32)

        return multiply

    def _a(self, cta, where, kind, turned, lanes):
        space, value = where
        if space == "shared":
            return factor(cta.shared, value, len(lanes), kind, turned)
        assert not turned
        return np.ascontiguousarray(self._cells(cta, value, 8)[lanes]).view(np.uint8).view(kind)

    def _scales(self, cta, column: int, rows: int, byte: int, each: int, depth: int, power: int):
        """[rows, depth], of each row: lane m mod 32 of each quarter, column m / 32, `each` bytes from the chosen one on, along K."""
        cells = np.ascontiguousarray(self._cells(cta, column, rows // 32)).view(np.uint8).reshape(4, 32, rows // 32, 4)
        cells = cells[..., byte : byte + each]
        assert all(np.array_equal(cells[0], c) for c in cells[1:]), "the quarters hold different scales"
        kind = ml_dtypes.float8_e8m0fnu if power else ml_dtypes.float8_e4m3fn
        found = np.ascontiguousarray(cells[0].transpose(1, 0, 2)).reshape(rows, each).view(kind).astype(np.float64)
        return np.repeat(found, depth // each, axis=1)


def fields(descriptor: int) -> tuple[int, int, int, int]:
    """Start, leading and stride offset in bytes, swizzle in bytes."""
    get = lambda bit, width: descriptor % 2**64 >> bit & (1 << width) - 1  # noqa: E731
    assert get(46, 3) == 1 and get(49, 12) == 0
    return get(0, 14) << 4, get(16, 14) << 4, get(32, 14) << 4, {0: 0, 2: 128, 4: 64, 6: 32}[get(61, 3)]


def factor(shared, descriptor: int, extent: int, kind, turned: int):
    """[extent, 32 bytes of K] of one instruction, by the canonical layouts."""
    start, leading, stride, swizzle = fields(descriptor)
    packed = kind is ml_dtypes.float4_e2m1fn  # two in a byte, the first in the low half
    size = np.dtype(kind).itemsize
    assert swizzle and not (packed and turned)
    e, k = np.meshgrid(np.arange(extent), np.arange(32 // size), indexing="ij")
    if turned:
        byte = e * size
        linear = start + byte // swizzle * leading + k // 8 * stride + k % 8 * swizzle + byte % swizzle
    else:
        linear = start + e // 8 * stride + e % 8 * swizzle + k * size
    at = permuted_all(linear, swizzle)
    data = np.stack([shared[at + i] for i in range(size)], axis=-1)
    if packed:
        data = np.concatenate([data & 15, data >> 4], axis=-1).reshape(extent, -1, 1)
    return np.ascontiguousarray(data).view(kind)[..., 0]


def permuted_all(address, swizzle: int):
    return address ^ (address >> 7 & {128: 7, 64: 3, 32: 1}[swizzle]) << 4
