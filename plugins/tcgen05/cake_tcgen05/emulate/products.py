"""tcgen05.mma: D = A B + D over tensor memory, by one CTA or by a pair (PTX ISA, tcgen05.mma).

Sums are exact in float64 and cut off to f32 (`numbers.cut`), or rounded to f16; the ISA leaves order and rounding open. A result of f16 has the lower
half of its cell, and the upper one becomes 0. Fills and uses of collectors do not change a result and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cake_core.frozen import frozen
from cake_core.ptx import numbers
from cake_core.ptx.emulated import Agent, Coder, Cta, Lanes, Step
from cake_core.ptx.reader import At, Group, Operand, Statement
from cake_tcgen05.emulate.columns import CELL, LANES, cells, group_of, members, offsets, owned
from cake_tcgen05.emulate.descriptors import KINDS, NARROW, Factor, Instruction, factor, instruction, unused_columns
from cake_tcgen05.emulate.orders import queue
from cake_tcgen05.emulate.places import Layout, layout, read_a, scales

#: Scales a row, by kind and the word that says it; '' where none does (PTX ISA, tcgen05.mma, `.scale_vectorsize`).
SIZES: dict[str, dict[str, int]] = {
    "mxf8f6f4": {"": 1, "scale_vec::1X": 1, "block32": 1},
    "mxf4": {"": 2, "scale_vec::2X": 2, "block32": 2},
    "mxf4nvf4": {"scale_vec::2X": 2, "block32": 2, "scale_vec::4X": 4, "block16": 4},
}


@frozen
class Form:
    kind: str
    group: int
    scales: int
    ws: bool


@frozen
class Given:
    """Operands of one product, as its thread gave them."""

    found: Instruction
    where: Layout
    column: int
    a: Factor | int  # or a column of tensor memory
    b: Factor
    scale_a: int
    scale_b: int
    add: bool
    halved: int  # D is divided by two so often
    written: tuple[np.ndarray, ...]  # lanes that are written, of each CTA, as indices of `where.lanes`
    skipped: np.ndarray | None  # columns of B that are taken for zeros


def product(s: Statement, c: Coder) -> Step:
    form = _form(s, c)
    operands = list(s.operands)
    d, a, b, idesc = c.address(operands[0]), operands[1], c.source(operands[2], "b64"), c.source(operands[3], "b32")
    in_memory = isinstance(a, At)
    a_of = c.address(a) if in_memory else c.source(a, "b64")
    rest = operands[4:]
    columns = c.source(rest.pop(), "b64") if form.ws and len(rest) == 2 else None
    scaled = [c.address(rest.pop(0)) for _ in range(2)] if form.scales else []
    mask = _mask(c, form, rest)
    enable = _flag(c, rest.pop(0)) if rest else None
    halved = _halved(c, form, rest.pop(0)) if rest else 0
    if enable is None or rest:
        raise c.unsupported(f"{len(operands)} operands")

    def step(lanes: Lanes) -> None:
        pair = members(lanes, form.group)
        off = None if mask is None else mask(lanes)
        get = [f(lanes) for f in (d, a_of, b, idesc, enable, *scaled)]
        skips = None if columns is None else columns(lanes)
        for lane in np.flatnonzero(lanes.active).tolist():
            values = [int(v[lane]) for v in get]
            bits = None if off is None else off[:, lane]
            given = _given(lanes, form, pair, values, in_memory, halved, bits, 0 if skips is None else int(skips[lane]))
            lanes.start(queue(lanes, lane), _work(given, pair), f"tcgen05.mma of line {s.line}")

    return step


def _work(given: Given, pair: tuple[Cta, ...]) -> Callable[[Agent], None]:
    return lambda agent: work(agent, given, pair)


def work(agent: Agent, given: Given, pair: tuple[Cta, ...]) -> None:
    """Each CTA holds its rows of A and of D, and its part of the columns of B."""
    found, where = given.found, given.where
    packed = found.k == 64
    right = np.concatenate([elements(given.b.read(agent, cta), found.b, packed) for cta in pair])
    if found.b_negated:
        right = -right
    if given.skipped is not None:
        right[given.skipped] = 0.0
    for cta, written in zip(pair, given.written, strict=True):
        rows = read_a(agent, cta, where, given.a) if isinstance(given.a, int) else given.a.read(agent, cta)
        left = elements(rows, found.a, packed)
        if found.a_negated:
            left = -left
        here = right
        if found.scale:
            left = left * scales(agent, cta, found, given.scale_a, "A", len(left))
            here = right * scales(agent, cta, found, given.scale_b, "B", found.n)
        total = left @ here.T
        memory, at = cells(cta), offsets(where.lanes, given.column)
        if given.add:
            held = memory.read(agent, at, where.columns * CELL)
            total += where.rows(_numbers(held, found.d)) * 0.5**given.halved
        out = where.cells(_cells(total, found))
        memory.write(agent, at[written], out[written].view(np.uint8))


def elements(rows: np.ndarray, kind: str, packed: bool) -> np.ndarray:
    """Values of the elements of rows as they lie in shared memory. Of the kinds f8f6f4 and mxf8f6f4 sixteen elements of 4 and 6 bits stand in the first
    8 and 12 of 16 bytes (PTX ISA, tcgen05, Packing formats in shared memory); `packed`: two of 4 bits a byte, without gaps."""
    if packed or kind not in NARROW:
        return numbers.values(rows, kind)
    chunks = rows.reshape(len(rows), -1, 16)
    if kind == "e2m1":
        return numbers.values(np.ascontiguousarray(chunks[:, :, :8]), kind).reshape(len(rows), -1)
    bits = np.unpackbits(np.ascontiguousarray(chunks[:, :, :12]), axis=-1, bitorder="little").reshape(len(rows), -1, 6)
    return numbers.values(np.packbits(bits, axis=-1, bitorder="little")[..., 0], kind)


def _numbers(held: np.ndarray, kind: str) -> np.ndarray:
    """Cells as values, float64."""
    if kind == "f16":
        return held.view(np.float16)[:, ::2].astype(np.float64)
    return held.view(np.float32 if kind == "f32" else np.int32).astype(np.float64)


def _cells(total: np.ndarray, found: Instruction) -> np.ndarray:
    match found.d:
        case "f32":
            return numbers.cut(total)
        case "f16":
            return numbers.halves(total).view(np.uint16).astype(np.uint32)
    return numbers.wrapped(total.astype(np.int64), found.saturate)


# --- operands ------------------------------------------------------------------------------------------------------


def _given(
    lanes: Lanes, form: Form, pair: tuple[Cta, ...], values: Sequence[int], in_memory: bool, halved: int, off: np.ndarray | None, skips: int
) -> Given:
    d, a, b, idesc, enable, *scaled = values
    found = instruction(lanes, idesc, form.kind, form.group, form.scales, form.ws)
    where, column = layout(lanes, found, form.group, d >> 16, form.ws), d & 0xFFFF
    rows, size = found.m // form.group, {"f16": 2, "bf16": 2, "tf32": 4}
    for cta in pair:
        owned(lanes, cta, column, where.columns, "D of tcgen05.mma")
    if in_memory:
        if where.folds == 4:
            raise lanes.fault("emulate/unsupported", "A of 32 rows in tensor memory", why="how often it lies there no text says")
        left: Factor | int = _in_memory(lanes, pair, found, d, a)
    else:
        left = factor(lanes, a, rows, "mn" if found.a_turned else "k", size.get(found.a, 1), "A")
    right = factor(lanes, b, found.n // form.group, "mn" if found.b_turned else "k", size.get(found.b, 1), "B")
    for address, wide, which in zip(scaled, (rows, found.n), "AB", strict=False):
        if address >> 16:
            raise lanes.fault(
                "emulate/operand", f"scales of {which} from lane {address >> 16} on", why="they start in lane 0 (PTX ISA, Scale factor layout)"
            )
        for cta in pair:
            owned(lanes, cta, address & 0xFFFF, -(-wide // 32), f"scales of {which} of tcgen05.mma")
    if scaled and form.group == 2 and found.m == 128:
        raise lanes.fault("emulate/unsupported", "block scales of 128 rows in a pair", why="where those of B lie has one source alone")
    skipped = unused_columns(lanes, skips, found) if skips else None
    scale_a, scale_b = [x & 0xFFFF for x in scaled] or (0, 0)
    return Given(found, where, column, left, right, scale_a, scale_b, bool(enable), halved, _written(where, pair, off), skipped)


def _in_memory(lanes: Lanes, pair: tuple[Cta, ...], found: Instruction, d: int, a: int) -> int:
    if found.a_turned:
        raise lanes.fault("emulate/operand", "A in tensor memory with its rows along M", why="there it is K-major (Triton, tcgen05 dialect; CUTLASS)")
    if found.a in NARROW and found.k != 64:
        raise lanes.fault(
            "emulate/unsupported", f"A of {found.a} in tensor memory", why="which bits of a byte an element has there only a figure shows"
        )
    if a >> 16 != d >> 16:
        raise lanes.fault(
            "emulate/operand",
            f"A from lane {a >> 16} and D from lane {d >> 16} on",
            why="both start in the same lane (PTX ISA, Data path layout organization)",
        )
    for cta in pair:
        owned(lanes, cta, a & 0xFFFF, 8, "A of tcgen05.mma")
    return a & 0xFFFF


def _written(where: Layout, pair: tuple[Cta, ...], off: np.ndarray | None) -> tuple[np.ndarray, ...]:
    """Bit i of the mask is lane i; of a pair the second four words are the odd CTA's."""
    everything = np.arange(len(where.lanes))
    if off is None or not off.any():
        return (everything,) * len(pair)
    bits = np.unpackbits(np.ascontiguousarray(off).view(np.uint8), bitorder="little").reshape(len(pair), LANES)
    return tuple(everything[mask[where.lanes] == 0] for mask in bits)


def _mask(c: Coder, form: Form, rest: list[Operand]) -> Callable[[Lanes], np.ndarray] | None:
    if not rest or not isinstance(rest[0], Group):
        return None
    items = rest.pop(0).items
    if form.scales or len(items) != 4 * form.group:
        raise c.unsupported(f"a mask of lanes of {len(items)} registers")
    return c.sources(items, "b32")


def _flag(c: Coder, operand: Operand) -> Callable[[Lanes], np.ndarray]:
    fixed = c.constant(operand)
    if fixed is None:
        return c.source(operand, "pred")
    always = np.full(32, bool(fixed))
    return lambda lanes: always


def _halved(c: Coder, form: Form, operand: Operand) -> int:
    """D 2 ** -s is added to, of kinds f16 and tf32."""
    s = c.constant(operand)
    if s is None or not 0 <= s <= 15 or form.kind not in ("f16", "tf32"):
        raise c.unsupported(f"a scale of D, in kind {form.kind}")
    return s


def _form(s: Statement, c: Coder) -> Form:
    words = set(s.words[2:])
    for word, what in (("sp", "sparse products (`.sp`)"), ("ashift", "A shifted by a row (`.ashift`)")):
        if word in words:
            raise c.unsupported(what)
    group = group_of(s, c)
    kind = next((w.removeprefix("kind::") for w in words if w.startswith("kind::")), "")
    if kind not in KINDS:
        raise c.unsupported(f"the kind '{kind}'")
    words -= {f"cta_group::{group}", f"kind::{kind}"}
    ws = "ws" in words
    if ws and (group == 2 or kind in SIZES):
        raise c.unsupported(f"`.ws` of kind {kind} with `.cta_group::{group}`")
    buffers = ("b0", "b1", "b2", "b3") if ws else ("a",)
    words -= {"ws"} | {f"collector::{b}::{how}" for b in buffers for how in ("fill", "use", "lastuse", "discard")}
    if (kind in SIZES) != ("block_scale" in words):
        raise c.unsupported(f"kind {kind} {'without' if kind in SIZES else 'with'} block scales")
    size = ""
    if kind in SIZES:
        words.remove("block_scale")
        size = words.pop() if words else ""
        if size not in SIZES[kind]:
            raise c.unsupported(f"`.{size}` of kind {kind}" if size else f"kind {kind} without a number of scales")
    if words:
        raise c.unsupported(f"the words of '{s.opcode}'")
    return Form(kind, group, SIZES[kind][size] if kind in SIZES else 0, ws)
