"""wmma (PTX ISA, Warp Level Matrix Instructions: wmma.load, wmma.mma, wmma.store): every shape and type of sm_90, by rows and by columns.

Which element a lane holds is the machine's own choice, so that only whole fragments tell: A, B and C are loaded, D is stored. Data are small whole numbers, whose sums are
exact in any order: every bit must be the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Case, Exact, entry
from .mma import BITS, numbers

WIDE = ("m16n16k16", "m32n8k16", "m8n32k16")
#: Bits of a register, and its type, by what it holds.
SUMS = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "s32": np.int32}


def forms() -> Iterator[tuple[str, str, str, str, str, tuple[str, str]]]:
    """Shape, type of the factors, of C and of D, the operation on bits, and the layouts of A and B."""
    for layouts in (("row", "col"), ("col", "row")):
        for shape in WIDE:
            for acc in ("f16", "f32"):
                for d in ("f16", "f32"):
                    yield shape, "f16", acc, d, "", layouts
            yield shape, "bf16", "f32", "f32", "", layouts
            for kind in ("s8", "u8"):
                yield shape, kind, "s32", "s32", "", layouts
        yield "m16n16k8", "tf32", "f32", "f32", "", layouts
        yield "m8n8k4", "f64", "f64", "f64", "", layouts
    for kind in ("s4", "u4"):
        yield "m8n8k32", kind, "s32", "s32", "", ("row", "col")
    for op in ("xor", "and"):
        yield "m8n8k128", "b1", "s32", "s32", f".{op}.popc", ("row", "col")


def cases() -> Iterator[Case]:
    for form in forms():
        yield product(*form)


def product(shape: str, kind: str, acc: str, d: str, op: str, layouts: tuple[str, str]) -> Case:
    m, n, k = map(int, shape.replace("n", " ").replace("k", " ")[1:].split())
    rng = np.random.default_rng(sum(map(ord, shape + kind + acc + d + op)))
    held = lambda count, bits, whole: 8 if kind == "f16" and not whole else max(count * bits // (64 if bits == 64 else 32) // 32, 1)
    sets = {
        "a": (kind, held(m * k, BITS[kind], False)),
        "b": (kind, held(n * k, BITS[kind], False)),
        "c": (acc, held(m * n, 8 * np.dtype(SUMS[acc]).itemsize, True)),
        "d": (d, held(m * n, 8 * np.dtype(SUMS[d]).itemsize, True)),
    }
    word = lambda t: {"f32": "f32", "f64": "f64"}.get(t, "b32")
    lines = [f".reg .{word(t)} %{r}<{count}>;" for r, (t, count) in sets.items()]
    group = {r: "{" + ", ".join(f"%{r}{i}" for i in range(count)) + "}" for r, (_, count) in sets.items()}
    la, lb = layouts
    types = f"{d}.{acc}" if kind == "f16" else f"{d}.{kind}.{kind}.{acc}"
    stride = {"a": k if la == "row" else m, "b": k if lb == "col" else n, "c": m}
    lines += [
        f"wmma.load.{r}.sync.aligned.{layout}.{shape}.global.{sets[r][0]} {group[r]}, [%{r.upper()}], {stride[r]};"
        for r, layout in zip("abc", (la, lb, "col"), strict=True)
    ]
    lines.append(f"wmma.mma{op}.sync.aligned.{la}.{lb}.{shape}.{types} {', '.join(group[r] for r in 'dabc')};")
    lines.append(f"wmma.store.d.sync.aligned.row.{shape}.global.{d} [%D], {group['d']}, {n + 8};")
    c = rng.integers(-64, 65, m * n).astype(SUMS[acc])
    params = {"A": numbers(kind, "whole", m * k, rng), "B": numbers(kind, "whole", n * k, rng), "C": c, "D": np.zeros(m * (n + 8), SUMS[d])}
    return Case("wmma", f"{shape}.{la}.{lb}.{types}{op}", entry("A B C D", "\n".join(lines)), params, {"D": Exact()}, 32)
