"""Forms of wgmma.mma_async, and its descriptors: what the words of the instruction and the bits of a descriptor say (PTX ISA)."""

from __future__ import annotations

import re

import numpy as np

from cake_core.frozen import frozen
from cake_core.ptx import numbers, tiles
from cake_core.ptx.emulated import Agent, Coder, Lanes
from cake_core.ptx.reader import Group, Statement

M = 64
LINE = 32  # bytes along K of one product

#: K, and the types of D, by the types of A and B (PTX ISA, wgmma.mma_async: Matrix Shape, Matrix Data-types).
_F8 = ("e4m3", "e5m2")
_I8 = ("s8", "u8")
TYPES: dict[tuple[str, str], tuple[int, tuple[str, ...]]] = {
    ("f16", "f16"): (16, ("f16", "f32")),
    ("bf16", "bf16"): (16, ("f32",)),
    ("tf32", "tf32"): (8, ("f32",)),
    **{(a, b): (32, ("f16", "f32")) for a in _F8 for b in _F8},
    **{(a, b): (32, ("s32",)) for a in _I8 for b in _I8},
    ("b1", "b1"): (256, ("s32",)),
}
#: N of integers and bits: 8, 16, 24, 32, then every 16; of all else every 8.
WHOLE_N = {8, 16, 24, *range(32, 257, 16)}

#: Bits 62 and 63 of a descriptor (PTX ISA, Matrix Descriptor Format; CUTLASS, cute/arch/mma_sm90_desc.hpp: LayoutType).
SWIZZLES = (0, 128, 64, 32)
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")


@frozen
class Factor:
    """A factor in shared memory: `lines` lines of `width` pieces from `start` on."""

    start: int
    how: tiles.Strides
    lines: int
    width: int
    element: int  # bytes

    def read(self, agent: Agent) -> np.ndarray:
        """uint8 (rows, 32)."""
        phase = self.start % tiles.PATTERN
        at = self.start - phase + tiles.pieces(self.how, self.lines, self.width, phase)
        return tiles.rows_of(agent.cta.shared.read(agent, at, tiles.PIECE), self.how.major, self.element)


@frozen
class Form:
    """Types and shape. `d`, `a`, `b`: words of PTX; `turned`: A, B are MN-major; `negated`: the immediates that negate A, B; `satfinite`."""

    d: str
    a: str
    b: str
    n: int
    turned: tuple[bool, bool] = (False, False)
    negated: tuple[bool, bool] = (False, False)
    satfinite: bool = False

    @property
    def registers(self) -> int:
        """Of D, a thread."""
        return self.n // 4 if self.d == "f16" else self.n // 2

    @property
    def word(self) -> str:
        return {"f16": "b32", "f32": "f32", "s32": "s32"}[self.d]

    def same_shape(self, other: Form) -> bool:
        return (self.n, self.d) == (other.n, other.d)

    def matrix(self, held: np.ndarray) -> np.ndarray:
        """Registers of a warp, (registers, 32), as its 16 rows (16, N): element i of lane l is row l / 4 + 8 (i / 2 mod 2), column
        8 (i / 4) + 2 (l mod 4) + i mod 2 (PTX ISA, Register Fragments: Accumulator D); two elements of f16 a register."""
        if self.d == "f16":
            pairs = np.ascontiguousarray(held.T).view(np.float16)  # (32, N / 2)
            held = pairs.T
        places = held.reshape(self.n // 8, 2, 2, 8, 4)  # column block, row half, column, row, column pair
        return places.transpose(1, 3, 0, 4, 2).reshape(16, self.n).copy()

    def registers_of(self, rows: np.ndarray) -> np.ndarray:
        """The inverse of `matrix`."""
        elements = rows.reshape(2, 8, self.n // 8, 4, 2).transpose(2, 0, 4, 1, 3).reshape(self.n // 2, 32)
        if self.d == "f16":
            return np.ascontiguousarray(np.ascontiguousarray(elements.T).view(np.uint32).T)
        return np.ascontiguousarray(elements)

    def rounded(self, total: np.ndarray) -> np.ndarray:
        """float64 sums as D has them."""
        match self.d:
            case "f32":
                return numbers.cut(total)
            case "f16":
                return numbers.halves(total)
        return numbers.wrapped(total.astype(np.int64), self.satfinite)

    def factor(self, lanes: Lanes, bits: int, which: str) -> Factor:
        """The factor that a descriptor names. Faults where it names none."""
        turned, rows = (self.turned[0], M) if which == "a" else (self.turned[1], self.n)
        element = max(numbers.BITS[self.a if which == "a" else self.b] // 8, 1)
        how = strides(lanes, bits, "mn" if turned else "k", which)
        lines, width = (LINE // element, rows * element // tiles.PIECE) if turned else (rows, LINE // tiles.PIECE)
        return Factor((bits & 0x3FFF) << 4, how, lines, width, element)


def strides(lanes: Lanes, bits: int, major: str, which: str) -> tiles.Strides:
    """Fields of a descriptor: start 0-13, leading offset 16-29, stride offset 32-45, each without its low 4 bits; base offset 49-51; swizzle 62-63;
    the others are 0."""
    if bits & ~0xC00E_3FFF_3FFF_3FFF:
        raise lanes.fault(
            "emulate/operand",
            f"the descriptor of {which}, 0x{bits:016x}, has bits set that are none of its fields",
            why="bits 14-15, 30-31, 46-48 and 52-61 are zero (PTX ISA, Matrix Descriptor Format)",
        )
    if bits >> 49 & 7:
        raise lanes.fault(
            "emulate/unsupported",
            f"the descriptor of {which} has the base offset {bits >> 49 & 7}",
            why="swizzle patterns that do not start at a multiple of their size are not emulated",
        )
    return tiles.Strides(major, (bits >> 16 & 0x3FFF) << 4, (bits >> 32 & 0x3FFF) << 4, SWIZZLES[bits >> 62])


def form_of(s: Statement, c: Coder) -> Form:
    """The form of a statement. Raises `unsupported`."""
    words = list(s.words[2:])
    for word in ("sync", "aligned"):
        if word not in words:
            raise c.unsupported(f"a form without `.{word}`")
        words.remove(word)
    if "sp" in words:
        raise c.unsupported("sparse products (`.sp`)")
    satfinite = "satfinite" in words
    if satfinite:
        words.remove("satfinite")
    shape = _SHAPE.fullmatch(words[0])
    if shape is None or len(words) < 4:
        raise c.unsupported(f"the words '{'.'.join(words)}'")
    m, n, k = (int(x) for x in shape.groups())
    d, a, b, rest = *words[1:4], words[4:]
    if (a, b) not in TYPES or d not in TYPES[a, b][1]:
        raise c.unsupported(f"factors of {a} and {b} with a result of {d}")
    whole = d == "s32"
    if rest != (["and", "popc"] if a == "b1" else []) or (satfinite and (not whole or a == "b1")):
        raise c.unsupported(f"the words '{s.opcode}'")
    if (m, k) != (M, TYPES[a, b][0]) or not 8 <= n <= 256 or n % 8 or (whole and n not in WHOLE_N):
        raise c.unsupported(f"the shape m{m}n{n}k{k} of {a}")
    given = [c.constant(o) for o in s.operands[4:]]
    from_registers = isinstance(s.operands[1], Group)
    half = a in ("f16", "bf16")
    if len(given) != (0 if whole else 2 + (half and 2 - from_registers)):
        raise c.unsupported(f"{len(s.operands)} operands")
    if whole:
        return Form(d, a, b, n, satfinite=satfinite)
    if any(x not in (1, -1) for x in given[:2]) or any(x not in (0, 1) for x in given[2:]):
        raise c.unsupported("scales that are not 1 or -1, or transposition that is not 0 or 1")
    turned = [bool(x) for x in given[2:]]
    if half and from_registers:
        turned.insert(0, False)
    return Form(d, a, b, n, (turned[0], turned[1]) if half else (False, False), (given[0] == -1, given[1] == -1))
