"""What of shared and tensor memory an instruction reaches, by its descriptors and addresses as they are read back from machine code: from the PTX ISA (tcgen05:
Shared Memory Descriptor, Instruction Descriptor, Data Movement Shapes, Block Scaling) and apart from lowering."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from cake_core.ptx.acts import ADDED, LANE, READ, WRITTEN, Act, Moment, anywhere, form_of, in_rank, rows_used, tensor_used
from cake_core.ptx.matrices import ROWS, STEP, matrix_used
from cake_core.ptx.reader import At, Group, Operand, Statement

ENGINE = "tcgen05.commit"
#: Lanes of tensor memory, and those that one warp reaches.
LANES, OWN = 128, 32
#: Bits 61-63 of a descriptor of shared memory. 1 is 128 bytes in units of 32, which is not read.
SWIZZLE = {0: 0, 2: 128, 4: 64, 6: 32}
#: By kind, types by their code in the instruction descriptor, as a text calls them, and bytes of one; two e2m1 are a byte where the kind packs them.
TYPES = {
    "f16": ({0: "f16", 1: "bf16"}, 2),
    "tf32": ({2: "f32"}, 4),
    "f8f6f4": ({0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}, 1),
    "mxf8f6f4": ({0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}, 1),
    "mxf4": ({1: "e2m1x2"}, 1),
    "mxf4nvf4": ({1: "e2m1x2"}, 1),
    "i8": ({0: "u8", 1: "i8"}, 1),
}
#: Lanes and columns that one instruction of a warp moves, times its `.num` (Data Movement Shapes).
SHAPES = {"32x32b": (32, 1), "16x64b": (16, 2), "16x128b": (16, 4), "16x256b": (16, 8)}


def product(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`[d], a-desc | [a], b-desc, idesc {, [scale-a], [scale-b]} {, disable-output-lane}, enable-input-d, ..`. Of a pair each CTA holds half of M, and
    half of B's N."""
    d, a, b, described, *rest = s.operands
    scales = rest[:2] if isinstance(rest[0], At) else []
    reads = next(x for x in rest[len(scales) :] if not isinstance(x, Group))
    bits, kind = at.value(described), next(w.removeprefix("kind::") for w in s.words if w.startswith("kind::"))
    types, size = TYPES[kind]
    pair = "cta_group::2" in s.words
    m, n = (bits >> 24 & 31) << 4, (bits >> 17 & 63) << 3
    sums, scaled = _instruction(bits, bool(scales))
    held = m // (2 if pair else 1), n
    found: list[Act] = []
    for rank in (at.rank & ~1, at.rank | 1) if pair else (at.rank,):
        for factor, rows, code, turned in (
            (a, m // (2 if pair else 1), bits >> 7 & 7, bits >> 15 & 1),
            (b, n // (2 if pair else 1), bits >> 10 & 7, bits >> 16 & 1),
        ):
            if isinstance(factor, At):
                found.append(tensor_used(ENGINE, READ, *_place(at, factor, STEP // 4), rank, form_of(types.get(code, f"type {code}"))))
            else:
                found += _matrix(at.value(factor), rank, types.get(code, f"type {code}"), size, rows, bool(turned))
        found += (tensor_used(ENGINE, READ, *_place(at, x, 4 * -(-r // LANES)), rank, scaled) for x, r in zip(scales, held, strict=False))
        onto = at.known(reads)
        if onto is None:
            found.append(anywhere(f"{ADDED} by '{ENGINE}'"))
        elif onto:
            found.append(tensor_used(ENGINE, ADDED, *_place(at, d, n), rank, sums))
        found.append(tensor_used(ENGINE, WRITTEN, *_place(at, d, n), rank, sums))
    return tuple(found)


def _instruction(bits: int, scaled: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What an instruction descriptor says of D, and of block scales. Bits 0-3, 6, 13, 14 and 31 are sparsity, saturation, negation and a shift; without
    scales so are 23, 29 and 30, and with them bits 4, 5, 29 and 30 say which byte of a cell is the first scale."""
    strange = bits & (0x8000604F if scaled else 0xE080604F)
    if strange:
        return form_of(f"an instruction descriptor with {strange:#x}"), ()
    if scaled:
        return form_of("f32"), form_of("ue8m0" if bits >> 23 & 1 else "e4m3")
    return form_of({0: "f16", 1: "f32", 2: "i32"}.get(bits >> 4 & 3, "type 3")), ()


def _place(at: Moment, operand: Operand, columns: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """All lanes of so many columns, from an address on: lane in its upper half, column in its lower one."""
    address = at.value(operand)
    return (address >> LANE, LANES), (address & (1 << LANE) - 1, columns)


@lru_cache(1024)
def _matrix(bits: int, rank: int, elem: str, size: int, rows: int, turned: bool) -> tuple[Act, ...]:
    swizzle, stride, leading = SWIZZLE.get(bits >> 61 & 7, 0), (bits >> 32 & 0x3FFF) << 4, (bits >> 16 & 0x3FFF) << 4
    first = in_rank((bits & 0x3FFF) << 4, rank)
    return tuple(matrix_used(ENGINE, first, stride, leading, swizzle, size, rows, turned, _form(bits, elem)))


def _form(bits: int, elem: str | None) -> tuple[str, ...]:
    """Bits 46-48 are 1, bits 49-51 the base offset, bit 52 the mode of the leading offset: both 0 here."""
    if bits >> 46 & 0x7F != 1 or bits >> 61 not in SWIZZLE:
        return form_of(f"a descriptor of the form {bits >> 46:#x}")
    return form_of(elem, SWIZZLE[bits >> 61])


def copied(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`[taddr], s-desc` of .32x128b.warpx4: 32 rows of 16 bytes, four columns of all lanes. Of other shapes the first byte is known."""
    to, descriptor = s.operands
    bits = at.value(descriptor)
    form, stride = _form(bits, None), (bits >> 32 & 0x3FFF) << 4
    ranks = (at.rank & ~1, at.rank | 1) if "cta_group::2" in s.words else (at.rank,)
    found: list[Act] = []
    for rank in ranks:
        first = in_rank((bits & 0x3FFF) << 4, rank)
        if "32x128b" in s.words:
            found.append(rows_used(ENGINE, first, 4, stride, 16 * ROWS, form))
            found.append(tensor_used(ENGINE, WRITTEN, *_place(at, to, 4), rank))
        else:
            found += (anywhere(ENGINE), anywhere(f"{WRITTEN} by '{ENGINE}'"))
    return tuple(found)


def moved(name: str, how: str) -> Callable[[Statement, Moment], tuple[Act, ...]]:
    """`r, [taddr]` and `[taddr], r`: a warp moves lanes of its own quarter, and the address names the first of them."""

    def read(s: Statement, at: Moment) -> tuple[Act, ...]:
        address = at.value(next(o for o in s.operands if isinstance(o, At)))
        shape = next((w for w in s.words if w in SHAPES), None)
        if shape is None:
            return (anywhere(f"{how} by '{name}'"),)
        lanes, columns = SHAPES[shape]
        count = columns * int(next(w for w in s.words if w[0] == "x" and w[1:].isdigit())[1:])
        lane = (address >> LANE) - OWN * (at.warp % (LANES // OWN))
        return (tensor_used(name, how, (lane, lanes), (address & (1 << LANE) - 1, count), at.rank),)

    return read
