"""wmma as the PTX ISA has it: fragments whose layout a program does not know (Warp Level Matrix Multiply-Accumulate Instructions).

Which element a register of a lane holds is left open, "and may vary by architecture"; here lane l has the elements from l * n on of its n, in rows of A and of
C, in columns of B, and begins again where a fragment has more room than elements, as those of f16 have. Programs may treat all elements of a fragment alike
and no more, so any layout gives what a device gives. A fragment that one wmma instruction has made and `mma.sync` takes has no defined meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from cake_core.frozen import frozen
from cake_core.ptx import numbers
from cake_core.ptx.emulated import LANES, TYPES, Coder, Lanes, Step, bytes_of
from cake_core.ptx.forms import Words
from cake_core.ptx.reader import Group, Operand, Statement
from cake_mma_sync.emulate import bit_counts, chain, rounded
from cake_mma_sync.forms import Form

_WIDE = {"m16n16k16": (16, 16, 16), "m32n8k16": (32, 8, 16), "m8n32k16": (8, 32, 16)}
#: Shapes of each type of a factor (PTX ISA, Matrix Shape).
SHAPES: dict[str, dict[str, tuple[int, int, int]]] = {
    **dict.fromkeys(("f16", "bf16", "s8", "u8"), _WIDE),
    "tf32": {"m16n16k8": (16, 16, 8)},
    "f64": {"m8n8k4": (8, 8, 4)},
    **dict.fromkeys(("s4", "u4"), {"m8n8k32": (8, 8, 32)}),
    "b1": {"m8n8k128": (8, 8, 128)},
}
#: Types of C and D by type of the factors.
RESULTS = {"f16": ("f16", "f32"), "bf16": ("f32",), "tf32": ("f32",), "f64": ("f64",)} | dict.fromkeys(("s8", "u8", "s4", "u4", "b1"), ("s32",))
_ALL = ("f16", "bf16", "tf32", "f32", "f64", "s8", "u8", "s4", "u4", "b1", "s32")
_SPACES = ("global", "shared", "shared::cta", "shared::cluster")
_MISSING = "PTX ISA, wmma: all threads in the warp must execute the same instruction"


@frozen
class Fragment:
    """`lines` along which elements lie one behind another in registers, `units` a line: elements, or words of those that are smaller than a byte, `size` bytes each.
    `registers` a lane, of `type`; `bits` of an element."""

    lines: int
    units: int
    size: int
    bits: int
    registers: int
    type: str

    @property
    def held(self) -> int:
        """Units a lane."""
        return self.registers * np.dtype(TYPES[self.type]).itemsize // self.size

    def gathered(self, values: np.ndarray) -> np.ndarray:
        """Registers (n, 32) as the bytes of lines, uint8 (lines, ..)."""
        bytes = np.ascontiguousarray(values.T).view(np.uint8).reshape(-1)
        return bytes[: self.lines * self.units * self.size].reshape(self.lines, -1)

    def spread(self, lines: np.ndarray) -> np.ndarray:
        """The inverse: registers (n, 32)."""
        bytes = np.ascontiguousarray(lines).reshape(-1)
        wanted = LANES * self.held * self.size
        return np.resize(bytes, wanted).view(TYPES[self.type]).reshape(LANES, self.registers).T


@lru_cache
def fragment(which: str, shape: tuple[int, int, int], kind: str) -> Fragment:
    """Of `a`, `b`, or `c`, which stands for D too (PTX ISA, Matrix Fragments for wmma: registers and their types)."""
    m, n, k = shape
    lines, along = {"a": (m, k), "b": (n, k), "c": (m, n)}[which]
    bits = 32 if kind in ("tf32", "f32", "s32") else numbers.BITS[kind]
    size = max(bits, 32) // 8 if bits < 8 else bits // 8
    units = along * bits // (8 * size)
    type = {"f32": "f32", "f64": "f64"}.get(kind, "b32")
    registers = lines * units * size // (LANES * np.dtype(TYPES[type]).itemsize)
    return Fragment(lines, units, size, bits, 8 if kind == "f16" and which != "c" else registers, type)


def _moved(s: Statement, c: Coder) -> tuple[str, Fragment, Callable[[Lanes], np.ndarray], str, Operand]:
    """(which, fragment, byte of each unit that a lane holds as uint64 (units, 32), space, registers) of a load or store."""
    w = Words(s, c)
    loads = w.need("load", "store") == "load"
    which = w.need("a", "b", "c") if loads else w.need("d")
    w.need("sync"), w.need("aligned")
    layout, space = w.need("row", "col"), w.one(*_SPACES)
    shape = w.starting("m8n", "m16n", "m32n")
    kind = w.need(*_ALL)
    w.end()
    role = "c" if which == "d" else which
    factors = [f for f, shapes in SHAPES.items() if shape in shapes and (kind == f if role != "c" else kind in RESULTS[f])]
    if not factors:
        raise c.unsupported(f"the shape {shape} of {kind}")
    made = fragment(role, SHAPES[factors[0]][shape], kind)
    across = (layout == "col") != (role == "b")  # lines lie beside each other
    if made.bits < 8 and role != "c" and across:
        raise c.unsupported(f"a {which} of {kind} in .{layout}")
    p, registers = (s.operands[1], s.operands[0]) if loads else s.operands[:2]
    at = c.address(p, generic=not space)
    stride = c.source(s.operands[2], "u32") if len(s.operands) > 2 else None
    number = (np.arange(LANES * made.held) % (made.lines * made.units)).reshape(LANES, made.held).T
    line, place = number // made.units, number % made.units
    c.meets()

    def units(lanes: Lanes) -> np.ndarray:
        if not lanes.full:
            raise lanes.fault("emulate/divergent", "lanes of the warp are missing from a matrix that it moves", why=_MISSING)
        base = lanes.uniform(at(lanes))
        step = (made.lines if across else made.units) * made.size
        if stride is not None:
            step = lanes.uniform(stride(lanes)) * made.bits // 8
        offsets = place * step + line * made.size if across else line * step + place * made.size
        return (base + offsets).astype(np.uint64)

    return which, made, units, space.partition("::")[0] or "generic", registers


def load(s: Statement, c: Coder) -> Step:
    """`wmma.load.{a,b,c}.sync.aligned.layout.shape{.ss}.type r, [p]{, stride}`: rows, or columns, `stride` elements from each other."""
    _, made, units, space, registers = _moved(s, c)
    to = c.results(_registers(c, registers, made.registers), made.type)

    def step(lanes: Lanes) -> None:
        found = [lanes.load(space, one, made.size) for one in units(lanes)]
        to(lanes, np.concatenate(found, 1).view(TYPES[made.type]).T)

    return step


def store(s: Statement, c: Coder) -> Step:
    """`wmma.store.d.sync.aligned.layout.shape{.ss}.type [p], r{, stride}`."""
    _, made, units, space, registers = _moved(s, c)
    of = c.sources(_registers(c, registers, made.registers), made.type)

    def step(lanes: Lanes) -> None:
        data = np.ascontiguousarray(of(lanes).T).view(np.uint8).reshape(LANES, made.held, made.size)
        for n, one in enumerate(units(lanes)):
            lanes.store(space, one, data[:, n])

    return step


def product(s: Statement, c: Coder) -> Step:
    """`wmma.mma{.op.popc}.sync.aligned.alayout.blayout.shape.dtype{.atype.btype}.ctype{.rn}{.satfinite} d, a, b, c`; factors of f16 bear no types."""
    words = [x for x in s.words[2:] if x not in ("sync", "aligned")]
    bits = next((x for x in words if x in ("and", "xor")), "")
    words = [x for x in words if x not in (bits, "popc")]
    satfinite = words[-1:] == ["satfinite"]
    words = words[: len(words) - satfinite]
    if words[-2:] == ["f64", "rn"]:
        words.pop()
    if len(words) not in (5, 7) or {"sync", "aligned"} - set(s.words) or {*words[:2]} - {"row", "col"}:
        raise c.unsupported(f"the words of '{s.opcode}'")
    shape, d, *kinds, acc = words[2:]
    a, b = kinds or ("f16", "f16")
    if shape not in SHAPES.get(a, {}) or a != b or d not in RESULTS[a] or acc not in RESULTS[a] or (a == "f16") != (len(words) == 5):
        raise c.unsupported(f"the shape {shape} of {a} and {b} with {d} and {acc}")
    if bool(bits) != (a == "b1") or satfinite and (d != "s32" or bits) or a in ("b1", "s4", "u4") and words[:2] != ["row", "col"]:
        raise c.unsupported(f"the words of '{s.opcode}'")
    sizes = SHAPES[a][shape]
    form = Form(sizes[0], sizes[2], d, a, b, acc, bits=bits, satfinite=satfinite)
    parts = [fragment(which, sizes, kind) for which, kind in (("c", d), ("a", a), ("b", b), ("c", acc))]
    to = c.results(_registers(c, s.operands[0], parts[0].registers), parts[0].type)
    of = [c.sources(_registers(c, o, p.registers), p.type) for o, p in zip(s.operands[1:], parts[1:], strict=True)]
    c.meets()

    def step(lanes: Lanes) -> None:
        if not lanes.full:
            raise lanes.fault("emulate/divergent", "lanes of the warp are missing from a matrix product", why=_MISSING)
        left, right, sums = (part.gathered(get(lanes)) for part, get in zip(parts[1:], of, strict=True))
        sums = sums.view({"f16": "float16", "f32": "float32", "f64": "float64", "s32": "int32"}[acc])
        if bits:
            out = bit_counts(form, left, right, sums)
        else:
            left, right = numbers.values(left, a), numbers.values(right, b)
            out = chain(left, right, sums) if a == "f64" else rounded(form, left @ right.T, sums)
        to(lanes, parts[0].spread(bytes_of(out)))

    return step


def _registers(c: Coder, operand: Operand, count: int) -> tuple[Operand, ...]:
    items = operand.items if isinstance(operand, Group) else (operand,)
    if len(items) != count:
        raise c.unsupported(f"a fragment of {len(items)} registers where the shape has {count}")
    return items
