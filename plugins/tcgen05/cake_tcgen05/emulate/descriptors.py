"""The two descriptors of a product: where a factor lies in shared memory, and of which types and shape the product is.

PTX ISA, tcgen05, Shared memory descriptor and Instruction descriptor; the same fields in CUTLASS, cute/arch/mma_sm100_desc.hpp (SmemDescriptor,
InstrDescriptor, InstrDescriptorBlockScaled). A value that the tables do not have is a fault.
"""

from __future__ import annotations

import numpy as np

from cake_core.frozen import frozen
from cake_core.ptx import tiles
from cake_core.ptx.emulated import Agent, Cta, Lanes

#: Bits 61 to 63: bytes that the swizzle spans, and those it moves together.
SWIZZLES = {0: (0, 16), 1: (128, 32), 2: (128, 16), 4: (64, 16), 6: (32, 16)}
LINE = 32  # bytes along K that one product reads of a row

_F8F6F4 = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
#: Codes of the types of A and B, by kind (PTX ISA, Instruction descriptor: Format of A, of B).
FACTORS: dict[str, dict[int, str]] = {
    "f16": {0: "f16", 1: "bf16"},
    "tf32": {2: "tf32"},
    "f8f6f4": _F8F6F4,
    "i8": {0: "u8", 1: "s8"},
    "mxf8f6f4": _F8F6F4,
    "mxf4": {1: "e2m1"},
    "mxf4nvf4": {1: "e2m1"},
}
RESULTS = {0: "f16", 1: "f32", 2: "s32"}
#: K of a product, and what results a kind has.
KINDS: dict[str, tuple[int, tuple[str, ...]]] = {
    "f16": (16, ("f16", "f32")),
    "tf32": (8, ("f32",)),
    "f8f6f4": (32, ("f16", "f32")),
    "i8": (32, ("s32",)),
    "mxf8f6f4": (32, ("f32",)),
    "mxf4": (64, ("f32",)),
    "mxf4nvf4": (64, ("f32",)),
}
NARROW = ("e2m3", "e3m2", "e2m1")


@frozen
class Factor:
    """A factor in shared memory: `lines` lines of `width` pieces from `start` on; `element`: bytes."""

    start: int
    how: tiles.Strides
    lines: int
    width: int
    element: int = 1

    def read(self, agent: Agent, cta: Cta) -> np.ndarray:
        """uint8 (rows, bytes along K)."""
        phase = self.start % tiles.PATTERN
        at = self.start - phase + tiles.pieces(self.how, self.lines, self.width, phase)
        return tiles.rows_of(cta.shared.read(agent, at, tiles.PIECE), self.how.major, self.element)


def factor(lanes: Lanes, bits: int, rows: int, major: str, element: int, which: str) -> Factor:
    """The factor of `rows` rows that a descriptor names, LINE bytes along K."""
    how = strides(lanes, bits, major, which)
    if how.atom == 32 and (major == "k" or element != 4):
        raise lanes.fault(
            "emulate/unsupported",
            f"the descriptor of {which} has the swizzle of 128 bytes in atoms of 32, {'K-major' if major == 'k' else f'for elements of {element} bytes'}",
            why="it is for factors of 32-bit elements with their rows along M or N (PTX ISA, Canonical layouts)",
        )
    if major == "mn" and element == 4 and how.atom != 32:
        raise lanes.fault(
            "emulate/operand",
            f"the descriptor of {which}, of 32-bit elements with rows along M or N, has another swizzle than 128 bytes in atoms of 32",
            why="such factors are read with that one alone (PTX ISA, Shared memory layout and swizzling)",
        )
    lines, width = (rows, LINE // tiles.PIECE) if major == "k" else (LINE // element, -(-rows * element // tiles.PIECE))
    return Factor((bits & 0x3FFF) << 4, how, lines, width, element)


def strides(lanes: Lanes, bits: int, major: str, which: str) -> tiles.Strides:
    """Start 0-13, leading offset 16-29, stride offset 32-45, each without its low 4 bits; 46-48 are 0b001; base offset 49-51; mode of the leading offset
    52; swizzle 61-63; the others are 0."""
    if bits & 0x1FE0_0000_C000_C000 or bits >> 46 & 7 != 1:
        raise lanes.fault(
            "emulate/operand",
            f"the descriptor of {which}, 0x{bits:016x}, is none of tensor memory's engine",
            why="bits 46-48 are 0b001, bits 14-15, 30-31 and 53-60 are zero (PTX ISA, tcgen05, Shared memory descriptor)",
        )
    if bits >> 61 not in SWIZZLES:
        raise lanes.fault("emulate/operand", f"the descriptor of {which} has the swizzle {bits >> 61}", why="0, 1, 2, 4 and 6 are swizzles")
    if bits >> 49 & 7 or bits >> 52 & 1:
        raise lanes.fault(
            "emulate/unsupported",
            f"the descriptor of {which} has " + ("an absolute leading offset" if bits >> 52 & 1 else f"the base offset {bits >> 49 & 7}"),
            why="patterns that do not start at a multiple of their size, and absolute offsets, are not emulated",
        )
    span, atom = SWIZZLES[bits >> 61]
    return tiles.Strides(major, (bits >> 16 & 0x3FFF) << 4, (bits >> 32 & 0x3FFF) << 4, span, atom)


@frozen
class Instruction:
    """What an instruction descriptor says. `m`, `n`: of all CTAs together. `a_turned`, `b_turned`: rows along M, N. `scales` a row of type `scale`, 0 and
    '' without; `a_scales`, `b_scales`: the byte of a cell with the first."""

    kind: str
    d: str
    a: str
    b: str
    m: int
    n: int
    a_negated: bool = False
    b_negated: bool = False
    a_turned: bool = False
    b_turned: bool = False
    saturate: bool = False
    scales: int = 0
    scale: str = ""
    a_scales: int = 0
    b_scales: int = 0

    @property
    def k(self) -> int:
        return KINDS[self.kind][0]


def instruction(lanes: Lanes, bits: int, kind: str, group: int, scales: int, ws: bool = False) -> Instruction:
    """Decodes, and faults where the tables have no such product. `scales` a row, 0 of kinds without; `ws`: of `.ws`."""
    wrong = _Wrong(lanes, bits)
    if bits >> 2 & 1:
        raise lanes.fault("emulate/unsupported", "the instruction descriptor says that A is sparse", why="sparse products are not emulated")
    wrong(bits & 3 or bits >> 6 & 1, "bits 0-1 and 6, which are zero of a dense product, are not")
    if ws and bits >> 30:
        raise lanes.fault("emulate/unsupported", "the instruction descriptor has a maximum shift of B", why="what it does to a result no text says")
    found = _scaled(wrong, bits, kind, scales) if scales else _plain(wrong, bits, kind)
    wrong(
        (found.a_turned and found.a in NARROW) or (found.b_turned and found.b in NARROW), "a factor of 4- or 6-bit elements has its rows along M or N"
    )
    if ws:
        wrong(found.m not in (32, 64, 128) or found.n not in (64, 128, 256), f"the shape {found.m} x {found.n} of `.ws`")
    else:
        _shape(wrong, found, group)
    return found


class _Wrong:
    def __init__(self, lanes: Lanes, bits: int) -> None:
        self.lanes, self.bits = lanes, bits

    def __call__(self, it_is: object, what: str) -> None:
        if it_is:
            raise self.lanes.fault(
                "emulate/operand", f"the instruction descriptor 0x{self.bits:08x}: {what}", why="PTX ISA, tcgen05.mma, Instruction descriptor"
            )


def _plain(wrong: _Wrong, bits: int, kind: str) -> Instruction:
    codes, results = FACTORS[kind], KINDS[kind][1]
    a, b, d = codes.get(bits >> 7 & 7, ""), codes.get(bits >> 10 & 7, ""), RESULTS.get(bits >> 4 & 3, "")
    wrong(not a or not b, f"types {bits >> 7 & 7} and {bits >> 10 & 7} of A and B are none of kind {kind}")
    wrong(kind == "f16" and a != b, "A and B of kind f16 differ in type")
    wrong(d not in results or (d == "f16" and "bf16" in (a, b)), f"a result of {d or 'no type'} from {a} and {b} in kind {kind}")
    wrong(bits >> 23 & 1 or bits >> 29, "bits 23 and 29-31, which are zero, are not")
    whole = kind == "i8"
    wrong(bits >> 3 & 1 and not whole, f"kind {kind} does not saturate")
    wrong(whole and bits >> 13 & 3, "integers are not negated")
    return Instruction(
        kind, d, a, b, (bits >> 24 & 31) << 4, (bits >> 17 & 63) << 3,
        bool(bits >> 13 & 1), bool(bits >> 14 & 1), bool(bits >> 15 & 1), bool(bits >> 16 & 1), bool(bits >> 3 & 1),
    )  # fmt: skip


def _scaled(wrong: _Wrong, bits: int, kind: str, scales: int) -> Instruction:
    codes, four = FACTORS[kind], kind != "mxf8f6f4"
    a, b = codes.get(bits >> 7 & 7, ""), codes.get(bits >> 10 & (3 if four else 7), "")
    wrong(not a or not b, f"types {bits >> 7 & 7} and {bits >> 10 & 7} of A and B are none of kind {kind}")
    wrong(bits >> 3 & 1 or bits >> 24 & 7 or (four and bits >> 12 & 1), "bits 3, 12 and 24-26, which are zero with block scales, are not")
    wrong(four and bits >> 15 & 3, f"factors of kind {kind} have their rows along M or N")
    wrong(bits >> 31, "K of 96, which sm_100a does not have" if four else "bit 31, which is zero, is not")
    scale = "ue8m0" if bits >> 23 & 1 else "ue4m3"
    wrong(scale == "ue4m3" and (kind, scales) != ("mxf4nvf4", 4), f"scales of ue4m3 in kind {kind}, {scales} a row")
    a_at, b_at = bits >> 29 & 3, bits >> 4 & 3
    starts = {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)}[scales]
    wrong(a_at not in starts or b_at not in starts, f"scales from byte {a_at} of A and {b_at} of B on, of {scales} a row")
    return Instruction(
        kind, "f32", a, b, (bits >> 24 & 31) << 4, (bits >> 17 & 63) << 3,
        bool(bits >> 13 & 1), bool(bits >> 14 & 1), bool(bits >> 15 & 1), bool(bits >> 16 & 1), False, scales, scale, a_at, b_at,
    )  # fmt: skip


def unused_columns(lanes: Lanes, bits: int, found: Instruction) -> np.ndarray:
    """Columns of B that are taken for zeros, bool (N,), of a zero-column mask: one part for each fold of the result, in which runs of columns that are
    used and of such that are skipped follow each other. The table of the ISA has the words of the two spans exchanged; its four examples, which
    CUTLASS agrees with, have them so."""
    if bits >> 36 & 7 or bits >> 62:
        raise lanes.fault("emulate/operand", f"the zero-column mask 0x{bits:016x} has reserved bits set", why="PTX ISA, Zero-Column Mask Descriptor")
    if bits >> 56 & 63:
        raise lanes.fault("emulate/unsupported", "a zero-column mask that shifts columns", why="which columns it is of then no text says")
    if not bits >> 39 & 1:
        return np.zeros(found.n, bool)
    folds = 128 // found.m
    wide, spans = found.n // folds, ((bits >> 48 & 255) + 1, (bits >> 40 & 255) + 1)  # of columns that are used, and that are not
    parts = []
    for i in range(folds):
        first, start = bits >> 32 + i & 1, bits >> 8 * i & 255
        run = np.repeat([bool(first), not first], (spans[first], spans[1 - first]))
        parts.append(np.tile(run, (start + wide) // len(run) + 1)[start : start + wide])
    return np.concatenate(parts)


def _shape(wrong: _Wrong, found: Instruction, group: int) -> None:
    """PTX ISA, Shapes: M and N by kind and group."""
    m, n, kind = found.m, found.n, found.kind
    if found.scale:
        fits = m in ((128,) if group == 1 else (128, 256))
    else:
        fits = m in ((64, 128) if group == 1 else (128, 256))
    step = 8 * group
    if kind == "i8":
        few = group == 1 and n in (8, 24)
        step = 16 * group
        fits = fits and (few or not n % step)
    else:
        fits = fits and not n % step
    wrong(
        not fits or not step // (2 if kind == "i8" and group == 1 else 1) <= n <= 256,
        f"the shape {m} x {n} of kind {kind} with `.cta_group::{group}`",
    )
    bytes_of_b = found.b in ("e4m3", "e5m2", "s8", "u8")
    wrong(found.b_turned and bytes_of_b and n % (16 * group), f"N of {n}, where B of 8-bit elements has its rows along N")
