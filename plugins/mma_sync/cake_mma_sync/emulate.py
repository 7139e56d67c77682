"""mma.sync and movmatrix as the PTX ISA has them.

In all fragments of a factor register j of lane l has the word 4 (j / 2) + l mod 4 of row l / 4 + 8 (j mod 2); factors of 8 rows have every second of
these registers (PTX ISA, Matrix Fragments for mma: one rule for every type, checked against its tables in the tests). Sums of floats are exact and then
cut off to f32, rounded to f16 (`numbers`); of f64 each step is a fused multiply-add, as the ISA has it, from C on along K. The ISA leaves the order open.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from cake_core.ptx import numbers
from cake_core.ptx.emulated import Coder, Lanes, Step
from cake_core.ptx.reader import Group, Operand, Statement
from cake_mma_sync import quads
from cake_mma_sync.forms import Form, form_of

COLUMNS = 8


def product(s: Statement, c: Coder) -> Step:
    """PTX ISA, mma: D = A B + C; with `.block_scale` D = (A scale_A) (B scale_B) + C."""
    if "m8n8k4" in s.words and "f64" not in s.words:
        return quads.product(s, c)
    form = form_of(s, c)
    d, a, b, acc, *scales = s.operands
    get_a = c.sources(_registers(c, a, form.m // 8 * form.words // 4), form.word)
    get_b = c.sources(_registers(c, b, form.words // 4), form.word)
    get_c = c.sources(_registers(c, acc, form.m // (8 if form.c == "f16" else 4)), _accumulator(form.c))
    put = c.results(_registers(c, d, form.m // (8 if form.d == "f16" else 4)), _accumulator(form.d))
    scale_a, scale_b = _scales(c, form, scales)
    c.meets()

    def step(lanes: Lanes) -> None:
        if not lanes.full:
            raise lanes.fault(
                "emulate/divergent",
                "lanes of the warp are missing from a matrix product",
                why="all threads of the warp must execute it (PTX ISA, mma)",
            )
        left, right = factor(get_a(lanes), form.m), factor(get_b(lanes), COLUMNS)
        sums = matrix(get_c(lanes), form.m, form.c)
        if form.a == "b1":
            out = bit_counts(form, left, right, sums)
        else:
            left, right = _values(form, left, form.a), _values(form, right, form.b)
            if form.a == "f64":
                return put(lanes, registers(chain(left, right, sums), "f64"))
            if scale_a is not None and scale_b is not None:
                left *= np.repeat(scale_a(lanes), form.k // form.scales, 1)
                right *= np.repeat(scale_b(lanes), form.k // form.scales, 1)
            out = rounded(form, left @ right.T, sums)
        put(lanes, registers(out, form.d))

    return step


def movmatrix(s: Statement, c: Coder) -> Step:
    """PTX ISA, movmatrix.sync.aligned.m8n8.trans.b16: lane l holds elements 2 (l mod 4) and the next of row l / 4, before and after."""
    if s.words != ("movmatrix", "sync", "aligned", "m8n8", "trans", "b16"):
        raise c.unsupported(f"the words of '{s.opcode}'")
    to, get = c.result(s.operands[0], "b32"), c.source(s.operands[1], "b32")
    c.meets()

    def step(lanes: Lanes) -> None:
        if not lanes.full:
            raise lanes.fault("emulate/divergent", "lanes of the warp are missing from movmatrix", why="all must execute it (PTX ISA, movmatrix)")
        rows = np.ascontiguousarray(get(lanes)).view(np.uint16).reshape(8, 8)
        to(lanes, np.ascontiguousarray(rows.T).view(np.uint32).reshape(32))

    return step


# --- fragments -----------------------------------------------------------------------------------------------------


def factor(held: np.ndarray, rows: int) -> np.ndarray:
    """Registers (n, 32) as the bytes of a factor's rows, uint8 (rows, ..)."""
    halves = rows // 8
    places = held.reshape(-1, halves, 8, 4).transpose(1, 2, 0, 3)
    return np.ascontiguousarray(places).reshape(rows, -1).view(np.uint8)


def matrix(held: np.ndarray, rows: int, kind: str) -> np.ndarray:
    """Registers (n, 32) of C as (rows, 8): element i of lane l is row l / 4 + 8 (i / 2), column 2 (l mod 4) + i mod 2; two of f16 a register."""
    if kind == "f16":
        pairs = np.ascontiguousarray(held.reshape(rows // 8, 8, 4))
        return pairs.view(np.float16).reshape(rows, COLUMNS)
    return held.reshape(rows // 8, 2, 8, 4).transpose(0, 2, 3, 1).reshape(rows, COLUMNS)


def registers(out: np.ndarray, kind: str) -> np.ndarray:
    """The inverse of `matrix`."""
    if kind == "f16":
        return np.ascontiguousarray(out).view(np.uint32).reshape(-1, 32)
    halves = out.shape[0] // 8
    return out.reshape(halves, 8, 4, 2).transpose(0, 3, 1, 2).reshape(2 * halves, 32)


# --- numbers -------------------------------------------------------------------------------------------------------


def rounded(form: Form, product: np.ndarray, sums: np.ndarray) -> np.ndarray:
    match form.d:
        case "s32":
            return numbers.wrapped(product.astype(np.int64) + sums, form.satfinite)
        case "f16":
            return numbers.halves(product + sums)
    return numbers.cut(product + sums)


def chain(left: np.ndarray, right: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Fused multiply-adds of float64, one behind another along K, each rounded once to the nearest."""
    out = [[_fused_row(x, y, c) for y, c in zip(right.tolist(), row, strict=True)] for x, row in zip(left.tolist(), sums.tolist(), strict=True)]
    return np.array(out)


def _fused_row(x: list[float], y: list[float], total: float) -> float:
    for a, b in zip(x, y, strict=True):
        rough = a * b + total
        if math.isfinite(a) and math.isfinite(b) and math.isfinite(total) and (exact := Fraction(a) * Fraction(b) + Fraction(total)):
            try:
                total = float(exact)
            except OverflowError:
                total = math.inf if exact > 0 else -math.inf
        else:
            total = rough
    return total


def _values(form: Form, rows: np.ndarray, kind: str) -> np.ndarray:
    """Of a lone e2m1 in a byte bits 2 to 5 count (PTX ISA, mma with .kind::f8f6f4; CUTLASS shifts them there for these instructions)."""
    if form.wide and kind == "e2m1":
        return numbers.table(kind)[rows >> 2 & 15]
    return numbers.values(rows, kind)


def bit_counts(form: Form, left: np.ndarray, right: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """The set bits of `and` or `xor` of each row with each column, counted, and C (PTX ISA, mma: .bitOp)."""
    a, b = numbers.values(left, "b1"), numbers.values(right, "b1")
    common = a @ b.T
    count = common if form.bits == "and" else a.sum(1)[:, None] + b.sum(1)[None, :] - 2 * common
    return numbers.wrapped(count.astype(np.int64) + sums, False)


# --- operands ------------------------------------------------------------------------------------------------------


def _accumulator(kind: str) -> str:
    return "b32" if kind == "f16" else kind


def _registers(c: Coder, operand: Operand, count: int) -> tuple[Operand, ...]:
    items = operand.items if isinstance(operand, Group) else (operand,)
    if len(items) != count:
        raise c.unsupported(f"a fragment of {len(items)} registers where the shape has {count}")
    return items


def _scales(c: Coder, form: Form, operands: list[Operand]) -> tuple[Callable[[Lanes], np.ndarray] | None, Callable[[Lanes], np.ndarray] | None]:
    """Scales of rows, float64 (rows, scales), of A and B."""
    if not form.scales:
        if operands:
            raise c.unsupported(f"{len(operands)} operands behind the accumulator")
        return None, None
    if len(operands) != 4 or not all(isinstance(operands[i], Group) and len(operands[i].items) == 2 for i in (1, 3)):
        raise c.unsupported("block scales without two registers and two selectors")
    return _scale(c, form, operands[0], operands[1], form.m, "A"), _scale(c, form, operands[2], operands[3], COLUMNS, "B")


def _scale(c: Coder, form: Form, data: Operand, selector: Operand, rows: int, which: str) -> Callable[[Lanes], np.ndarray]:
    """Row m of A is told by lane 4 (m mod 8) + 2 t + m / 8, column n of B by lane 4 n + t, where t is the thread-id; scale s is the byte byte-id + s
    (PTX ISA, Block Scaling for mma.sync, figures of the selectors; the same in CuTe's SM120 traits, and as others measured on sm_120)."""
    get = c.sources(_registers(c, data, 1), "b32")
    byte_of, thread_of = (c.source(o, "u16") for o in selector.items)
    row = np.arange(rows)
    lane_of = 4 * (row % 8) + row // 8
    threads, step = (2, 2) if which == "A" else (4, 1)
    starts = {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)}[form.scales]

    def scale(lanes: Lanes) -> np.ndarray:
        byte, thread = lanes.uniform(byte_of(lanes)), lanes.uniform(thread_of(lanes))
        if byte not in starts or thread >= threads:
            raise lanes.fault(
                "emulate/operand",
                f"the selector {{{byte}, {thread}}} of the scales of {which}",
                why=f"byte-id is one of {', '.join(map(str, starts))} and thread-id below {threads} here (PTX ISA, Block Scaling for mma.sync)",
            )
        held = np.ascontiguousarray(get(lanes)[0][lane_of + step * thread]).view(np.uint8).reshape(rows, 4)
        codes = held[:, byte : byte + form.scales]
        if form.scale == "ue4m3" and (codes > 127).any():
            raise lanes.fault(
                "emulate/operand", f"a scale of {which} is a negative ue4m3", why="it has no sign (PTX ISA, Alternate Floating Point Data Formats)"
            )
        return numbers.values(codes, form.scale)

    return scale
