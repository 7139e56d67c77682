"""Approximations (PTX ISA, Floating Point Instructions: rcp, rsqrt, sqrt, ex2, lg2, sin, cos, tanh, div.approx, div.full).

The ISA bounds their error and leaves the bits open; the emulator gives the true value, rounded. So what is admitted between the two is the bound, and half a
step for the rounding; the largest difference is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Case, Near, Within
from .lanewise import case, data


def one(form: str, ins: str, out: str, how, given=None) -> Case:
    operands = ", ".join("{" + "abc"[n] + "}" for n in range(len(ins.split())))
    return case("approximate", form, f"{form} {{d}}, {operands};", ins, out, how, given)


def between(form: str, low: float, high: float) -> list[np.ndarray]:
    rng = np.random.default_rng(len(form))
    return [np.concatenate([rng.uniform(low, high, 1016), [0.0, -0.0, low, high, 1e-40, -1e-40, np.inf, np.nan]]).astype(np.float32)]


def sizes(form: str) -> list[np.ndarray]:
    """Positive numbers of every size, and what is none."""
    (a,) = data(["f32"], form)
    return [np.concatenate([np.abs(a[:512]), a[512:]])]


def cases() -> Iterator[Case]:
    for ftz in ("", ".ftz"):
        yield one(f"rcp.approx{ftz}.f32", "f32", "f32", Near(2))  # 1 ulp
        yield one(f"rsqrt.approx{ftz}.f32", "f32", "f32", Near(4), sizes("rsqrt"))  # 2**-22.9
        yield one(f"sqrt.approx{ftz}.f32", "f32", "f32", Near(4), sizes("sqrt"))  # 2**-23
        yield one(f"ex2.approx{ftz}.f32", "f32", "f32", Near(4), between("ex2", -140, 128))  # 2**-22.5
        x = sizes("lg2")
        with np.errstate(all="ignore"):
            size = np.abs(np.log2(np.abs(x[0].astype(np.float64))))
        near = np.where((x[0] > 0.5) & (x[0] < 2), 2.0**-22, np.nan_to_num(size, nan=1, posinf=1) * 2.0**-22) + 2.0**-23
        yield one(f"lg2.approx{ftz}.f32", "f32", "f32", Within(near), x)
        for op in ("sin", "cos"):
            yield one(f"{op}.approx{ftz}.f32", "f32", "f32", Within(2.0**-20.5 + 2.0**-24), between(op, -np.pi, np.pi))
        yield one(f"div.approx{ftz}.f32", "f32 f32", "f32", Near(4), quotients())  # 2 ulp for 2**-126 <= |b| <= 2**126
        yield one(f"div.full{ftz}.f32", "f32 f32", "f32", Near(4), quotients())  # 2 ulp
    yield one("tanh.approx.f32", "f32", "f32", Near(1 << 13), between("tanh", -8, 8))  # relative 2**-11
    yield one("rcp.approx.ftz.f64", "f64", "f64", Near(1 << 33))  # the upper 32 bits alone count
    yield one("rsqrt.approx.f64", "f64", "f64", Near(1 << 8), [np.abs(x) for x in data(["f64"], "rsqrt64")])
    halves = [np.concatenate([np.arange(-512, 512).astype(np.float32) / 64])]
    for of in ("f16", "bf16"):
        kind = halves[0].astype(data([of], "x")[0].dtype)
        yield one(f"tanh.approx.{of}", of, of, Near(2 if of == "f16" else 1), [kind])  # absolute 2**-10.987 of f16, 2**-8 of bf16
        yield one(f"ex2.approx.{'ftz.' if of == 'bf16' else ''}{of}", of, of, Near(2), [kind])
        for op in ("tanh.approx", f"ex2.approx{'.ftz' if of == 'bf16' else ''}"):
            text = f".reg .b32 %y; mov.b32 %y, {{{{{{a}}, {{b}}}}}}; {op}.{of}x2 %y, %y; mov.b32 {{{{{{d}}, {{x}}}}}}, %y;"
            yield case("approximate", f"{op}.{of}x2", text, f"{of} {of}", f"{of} {of}", Near(2), [kind, kind[::-1].copy()])
    yield one("rsqrt.approx.ftz.f64", "f64", "f64", Near(1 << 33), [np.abs(x) for x in data(["f64"], "rsqrt ftz 64")])


def quotients() -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(1024) * 2.0 ** rng.integers(-40, 41, 1024) for _ in range(2))
    a[:8], b[:8] = (0, 1, np.inf, 1, np.nan, 1, -0.0, np.inf), (1, 0, 1, np.inf, 1, np.nan, 1, np.inf)
    return [a.astype(np.float32), b.astype(np.float32)]
