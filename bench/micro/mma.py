"""mma.sync (PTX ISA, Warp Level Matrix Instructions): every shape and type of sm_90.

Fragments are filled register by register from memory, whatever element that is, so a lane or register that the emulator takes for another shows. Data: small
whole numbers, whose sums are exact in any order, and then every bit must be the same; and numbers of all sizes, where a unit adds in an order and with a
precision of its own (PTX ISA leaves both open): products are exact, and each of the K + 1 terms may be cut off at 2**-22 of the largest.
"""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from .case import Case, Exact, Within, entry, rounded

FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "tf32": np.float32, "f64": np.float64}  # fmt: skip
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "f64": 64}
WARPS = 4


def forms() -> Iterator[tuple[str, str, str, str, str]]:
    """Shape, type of A, of B, of C and D, and what stands behind."""
    for k in (8, 16):
        for acc in ("f16", "f32"):
            yield f"m16n8k{k}", "f16", "f16", acc, ""
        yield f"m16n8k{k}", "bf16", "bf16", "f32", ""
    for k in (4, 8):
        yield f"m16n8k{k}", "tf32", "tf32", "f32", ""
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            yield "m16n8k32", a, b, "f32", ""
    for shape, types in (
        *((s, ("s8", "u8")) for s in ("m8n8k16", "m16n8k16", "m16n8k32")),
        *((s, ("s4", "u4")) for s in ("m8n8k32", "m16n8k32", "m16n8k64")),
    ):
        for a in types:
            for b in types:
                for sat in ("", ".satfinite"):
                    yield shape, a, b, "s32", sat
    for shape in ("m8n8k128", "m16n8k128", "m16n8k256"):
        for op in (".xor.popc", ".and.popc"):
            yield shape, "b1", "b1", "s32", op
    for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"):
        yield shape, "f64", "f64", "f64", ""


def cases() -> Iterator[Case]:
    for shape, a, b, acc, more in forms():
        yield product(shape, a, b, acc, more, "whole")
        if acc in ("f16", "f32", "f64"):
            yield product(shape, a, b, acc, more, "random")
        if acc != "s32":
            yield product(shape, a, b, acc, more, "special")


def numbers(kind: str, what: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Elements as the bytes of registers."""
    if kind not in FLOATS:
        return rng.integers(0, 256, count * BITS[kind] // 8, np.uint8)
    if what == "whole":
        x = rng.integers(-4, 5, count).astype(np.float64)
    else:
        x = rng.standard_normal(count) * 2.0 ** rng.integers(-3, 4, count)
    if what == "special":
        chosen = rng.random(count)
        x = np.where(chosen < 0.01, np.inf, np.where(chosen < 0.02, -np.inf, np.where(chosen < 0.04, np.nan, x)))
        x = np.where((chosen > 0.5) & (chosen < 0.6), x * {"f16": 2.0**-16, "bf16": 2.0**-128, "tf32": 2.0**-128}.get(kind, 2.0**-10), x)
    with np.errstate(all="ignore"):
        of = rounded(x, FLOATS[kind])
    if kind == "tf32":
        of = (of.view(np.uint32) & 0xFFFFE000).view(np.float32)
    return of.view(np.uint8)


def accumulator(kind: str, what: str, count: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "s32":
        x = rng.integers(-1000, 1000, count).astype(np.int32)
        x[::7] = 2**31 - 1 - rng.integers(0, 1000, len(x[::7]))
        return x
    of = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind]
    return rounded(rng.integers(-64, 65, count) if what == "whole" else rng.standard_normal(count) * 4, of)


def product(shape: str, a: str, b: str, acc: str, more: str, what: str) -> Case:
    m, n, k = map(int, shape.replace("n", " ").replace("k", " ")[1:].split())
    rng = np.random.default_rng(sum(map(ord, shape + a + b + acc + what)))
    counts = {"A": m * k * BITS[a] // 32, "B": n * k * BITS[b] // 32}  # registers of 32 bits of a warp
    wide = acc == "f64"
    each = {x: max(c // (2 if wide else 1) // 32, 1) for x, c in counts.items()}
    sums = m * n // 32 // (2 if acc == "f16" else 1)
    word = "f64" if wide else "b32"
    sum_word = {"f32": "f32", "f64": "f64"}.get(acc, "b32")
    left, right = numbers(a, what, m * k * WARPS, rng), numbers(b, what, n * k * WARPS, rng)
    c = accumulator(acc, what, m * n * WARPS, rng)
    lines = [f".reg .u32 %t, %w; .reg .u64 %g, %o; .reg .{word} %a<{each['A']}>, %b<{each['B']}>; .reg .{sum_word} %c<{sums}>, %d<{sums}>;"]
    lines += ["mov.u32 %t, %tid.x;"]
    size, sum_size = 8 if wide else 4, 8 if wide else 4
    for x, register, number, bytes_ in (("A", "a", each["A"], size), ("B", "b", each["B"], size), ("C", "c", sums, sum_size)):
        lines.append(f"mul.wide.u32 %o, %t, {number * bytes_}; add.u64 %g, %{x}, %o;")
        of = sum_word if x == "C" else word
        lines += [f"ld.global.{of} %{register}{i}, [%g+{bytes_ * i}];" for i in range(number)]
    group = lambda r, count: "{" + ", ".join(f"%{r}{i}" for i in range(count)) + "}"
    types = f"{acc}.{a}.{b}.{acc}"
    op = f"mma.sync.aligned.{shape}.row.col{more if more == '.satfinite' else ''}.{types}{more if more.endswith('popc') else ''}"
    lines.append(f"{op} {group('d', sums)}, {group('a', each['A'])}, {group('b', each['B'])}, {group('c', sums)};")
    lines.append(f"mul.wide.u32 %o, %t, {sums * sum_size}; add.u64 %g, %D, %o;")
    lines += [f"st.global.{sum_word} [%g+{sum_size * i}], %d{i};" for i in range(sums)]
    if acc == "s32" or what == "whole":
        how = Exact()
    else:
        how = Within(distance(a, b, acc, k, what, left, right, c))
    params = {"A": left, "B": right, "C": c, "D": np.zeros(m * n * WARPS, c.dtype)}
    form = f"{shape}.{types}{more} {what}"
    return Case("mma.sync", form, entry("A B C D", "\n".join(lines)), params, {"D": how}, 32 * WARPS)


def distance(a: str, b: str, acc: str, k: int, what: str, left: np.ndarray, right: np.ndarray, c: np.ndarray) -> float:
    """What two sums of the same terms may differ by: one bound for all elements, of the largest terms."""
    largest = finite(left, a) * finite(right, b) + float(np.abs(c[np.isfinite(c)].astype(np.float64)).max())
    unit = {"f32": 2.0**-22, "f16": 2.0**-10, "f64": 2.0**-52}[acc]
    return (k + 1) * largest * unit


def finite(bytes_: np.ndarray, kind: str) -> float:
    x = bytes_.view(FLOATS[kind]).astype(np.float64)
    return float(np.abs(x[np.isfinite(x)]).max())
