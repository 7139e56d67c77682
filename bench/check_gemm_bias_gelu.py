"""gemm_bias_gelu_sm90 on random shapes against float64, with poisoned, guarded outputs and padded rows.

    PYTHONPATH=. python bench/check_gemm_bias_gelu.py out/gemm_bias_gelu_sm90 [--shapes 100]

Bounds as in kernels/gemm/gemm_bias_gelu_sm90.py.
"""

from __future__ import annotations

import random

import torch
from check_gemm import shapes
from guarded import Guarded, good, matrix, verdict
from harness import arguments, environment, record

import cake_core as cake


def check(kernel, shape: tuple[int, int, int], g: torch.Generator, pads: tuple[int, int, int]) -> dict:
    m, n, k = shape
    a, b, out = matrix(m, k, pads[0], g), matrix(n, k, pads[1], g), Guarded(m, n, pads[2])
    b.mul_(max(k, 1) ** -0.5)
    bias = torch.randn(n, device="cuda", generator=g).bfloat16()
    kernel(A=a, B=b, BIAS=bias, D=out.tensor)
    torch.cuda.synchronize()
    x = a.double() @ b.double().T + bias.double()
    expected = torch.nn.functional.gelu(x)
    accumulation = (k / 16 + 16) * 2.0**-23 * (a.double().abs() @ b.double().abs().T + bias.double().abs())
    f32 = 1.13 * accumulation + 7e-7 + 2.0**-23 * x.abs()
    return {"shape": shape, "pads": pads, **verdict(out, expected, 2.0**-8 * (expected.abs() + f32) + f32)}


def main() -> None:
    args = arguments(__doc__, "gemm", shapes={"type": int, "default": 100})
    kernel = cake.load(args.gemm)
    g = torch.Generator("cuda").manual_seed(args.seed)
    pad = random.Random(args.seed + 1)
    rows = []
    for i, shape in enumerate(shapes(args.shapes, args.seed)):
        pads = (0, 0, 0) if i % 3 else tuple(8 * pad.randint(0, 9) for _ in range(3))
        rows.append(check(kernel, shape, g, pads))
        if not good(rows[-1]):
            print("WRONG", rows[-1], flush=True)
    bad = [r for r in rows if not good(r)]
    worst = max(r["worst"] for r in rows)
    print(f"{len(rows)} shapes, {len(bad)} wrong, largest error {worst} of the bound", flush=True)
    result = {"seed": args.seed, "environment": environment(kernel), "wrong": bad, "worst": worst, "shapes": rows}
    record(args.out, "check_gemm_bias_gelu", result)
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
