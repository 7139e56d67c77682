"""Cases of instructions that work on the registers of one thread: one text a form, a thread an element."""

from __future__ import annotations

from itertools import product
from typing import Any
from zlib import crc32

import ml_dtypes
import numpy as np

from .case import Case, Exact, entry, rounded

#: Elements a case, and threads a CTA.
COUNT, BLOCK = 1024, 128

#: Values of each kind that are worth a pair with every other.
_WHOLE = {
    8: (0, 1, 2, 3, 7, 8, 0x55, 0x7F, 0x80, 0x81, 0xAA, 0xC0, 0xFE, 0xFF),
    16: (0, 1, 2, 3, 15, 16, 0x5555, 0x7FFE, 0x7FFF, 0x8000, 0x8001, 0xAAAA, 0xFF00, 0xFFFE, 0xFFFF),
    32: (0, 1, 2, 3, 24, 31, 32, 33, 0x7F, 0x80, 0xFFFF, 0x10000, 0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xAAAAAAAA, 0xFFFFFFFE, 0xFFFFFFFF),
    64: (0, 1, 2, 63, 64, 0xFFFFFFFF, 0x100000000, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0x8000000000000001, 0xAAAAAAAAAAAAAAAA, 0xFFFFFFFFFFFFFFFF),
}  # fmt: skip
_REAL = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, 3.5, 0.75, 2.0, 255.5, -256.5, 448.0, 464.0, 480.0, 57344.0, 61440.0, 65504.0, 65519.0, 65520.0),
    *(2147483520.0, 2147483648.0, -2147483648.0, 4294967296.0, 9.223372036854775e18, -1e10, 3.3895e38, 6.0e-8, -6.1e-5, 1.1754944e-38, 1e-40, -1e-45),
    *(float("inf"), float("-inf"), float("nan")),
)
DTYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}


def dtype_of(kind: str) -> np.dtype:
    """The numpy type of a register's kind: b16, u32, f32, bf16 .."""
    return DTYPES.get(kind) or np.dtype(f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:]) // 8}")


def edges(kind: str) -> np.ndarray:
    of = dtype_of(kind)
    if kind in DTYPES:
        with np.errstate(all="ignore"):
            return rounded(np.array(_REAL, np.float64), of)
    return np.array(_WHOLE[of.itemsize * 8], np.uint64).astype(f"u{of.itemsize}").view(of)


def data(kinds: list[str], name: str, count: int = COUNT) -> list[np.ndarray]:
    """An array an operand: all pairs (triples, as far as they go) of values at the edges, then random bits, then numbers of a size."""
    rng = np.random.default_rng(crc32(name.encode()))
    least = [edges(k) for k in kinds]
    if len(kinds) > 1:  # of many combinations those that a seed chooses
        all_ = np.array(list(product(*(range(len(e)) for e in least)))) if np.prod([len(e) for e in least]) < 200_000 else None
        picks = (
            all_[rng.permutation(len(all_))[: count // 2]] if all_ is not None else np.stack([rng.integers(0, len(e), count // 2) for e in least], 1)
        )
    else:
        picks = np.arange(len(least[0]))[:, None]
    out = []
    for n, kind in enumerate(kinds):
        of = dtype_of(kind)
        first = least[n][picks[:, n]]
        left = count - len(first)
        bits = rng.integers(0, 256, left * of.itemsize, np.uint8).view(of)
        if kind in DTYPES:
            half = left // 2
            bits = np.concatenate([bits[:half], rounded(rng.standard_normal(left - half) * 2.0 ** rng.integers(-8, 9, left - half), of)])
        out.append(np.concatenate([first, bits]))
    return out


def case(family: str, form: str, text: str, ins: str, out: str, how: Any = None, given: list[np.ndarray] | None = None, head: str = "") -> Case:
    """`text`: statements that compute {d}, and {x}, of {a}, {b}, {c}; of more than three operands they are {r} and {s}. `ins`, `out`: kinds of these. `given`: the operands, else chosen here."""
    kinds, outs = ins.split(), out.split()
    arrays = given or data(kinds, f"{family}/{form}")
    count = len(arrays[0])
    names = [chr(ord("A") + n) for n in range(len(kinds))]
    results = ["D", "E", "F", "G"][: len(outs)] if len(kinds) < 4 else ["W", "X", "Y", "Z"][: len(outs)]
    body = [".reg .u32 %i, %n; .reg .u64 %at; .reg .pred %p, %q;", head]
    body += ["mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mul.lo.u32 %i, %i, %n; mov.u32 %n, %tid.x; add.u32 %i, %i, %n;"]
    slots = {}
    for name, kind in zip((*names, *results), (*kinds, *outs), strict=True):
        size = dtype_of(kind).itemsize
        body.append(f".reg .b{max(8 * size, 16)} %v{name};")
        slots[name] = size
    for name in names:
        body.append(f"mul.wide.u32 %at, %i, {slots[name]}; add.u64 %at, %{name}, %at; ld.global.b{8 * slots[name]} %v{name}, [%at];")
    given_as = {chr(ord("a") + n): f"%v{name}" for n, name in enumerate(names)}
    where = dict(zip("dx" if len(kinds) < 4 else "rs", (f"%v{r}" for r in results), strict=False)) | given_as
    body.append(text.format(**where))
    for name in results:
        body.append(f"mul.wide.u32 %at, %i, {slots[name]}; add.u64 %at, %{name}, %at; st.global.b{8 * slots[name]} [%at], %v{name};")
    params = dict(zip(names, arrays, strict=True)) | {r: np.zeros(count, dtype_of(k)) for r, k in zip(results, outs, strict=True)}
    how = how or Exact()
    return Case(family, form, entry(" ".join(params), "\n".join(body)), params, {r: how for r in results}, block=BLOCK, grid=count // BLOCK)
