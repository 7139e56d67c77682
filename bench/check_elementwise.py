"""The elementwise kernels on random shapes against float64, with poisoned, guarded outputs.

    PYTHONPATH=. python bench/check_elementwise.py out/silu_mul_bias out/scale_shift [--shapes 60]

Bounds as in kernels/elementwise/. The artifact says which kernel it is.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import torch
from guarded import Guarded, good, verdict
from harness import RESULTS, environment, record

import cake_core as cake


def silu_mul_bias(kernel, r: int, c: int, g: torch.Generator) -> dict:
    scale = torch.exp2(8 * torch.rand(r, 1, device="cuda", generator=g) - 3)
    a = (torch.randn(r, c, device="cuda", generator=g) * scale).bfloat16()
    b, bias = (torch.randn(*s, device="cuda", generator=g).bfloat16() for s in ((r, c), (c,)))
    out = Guarded(r, c)
    kernel(A=a, B=b, BIAS=bias, Y=out.tensor)
    torch.cuda.synchronize()
    product = a.double() / (1 + (-a.double()).exp()) * b.double()
    expected = product + bias.double()
    f32 = 2.0**-16 * product.abs() + 2.0**-119 * b.double().abs() + 2.0**-24 * expected.abs() + 2.0**-126
    return {"shape": (r, c), **verdict(out, expected, 2.0**-8 * (expected.abs() + f32) + f32)}


def scale_shift(kernel, r: int, c: int, g: torch.Generator) -> dict:
    n = random.choice((1, 2, 5)) if r else 1
    x, t = (torch.randn(*s, device="cuda", generator=g).bfloat16() for s in ((n, r, c), (n, c)))
    s = torch.randn(n, r, device="cuda", generator=g)
    out = Guarded(n * r, c)
    kernel(X=x, S=s, T=t, Y=out.tensor.view(n, r, c))
    torch.cuda.synchronize()
    expected = (x.double() * s.double()[:, :, None] + t.double()[:, None, :]).view(n * r, c)
    return {"shape": (n, r, c), **verdict(out, expected, (2.0**-8 + 2.0**-15) * expected.abs() + 2.0**-126)}


CHECKS = {"silu_mul_bias": silu_mul_bias, "scale_shift": scale_shift}
FIRST = [(0, 64), (1, 8), (15, 504), (16, 512), (17, 520), (33, 1032), (300, 264), (5, 20000), (4097, 4104)]


def shapes(count: int, seed: int) -> list[tuple[int, int]]:
    rng = random.Random(seed)
    more = ((rng.randint(1, 3000), 8 * max(1, round(2 ** rng.uniform(0, 10)))) for _ in range(max(count - len(FIRST), 0)))
    return [*FIRST, *more][:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifacts", type=Path, nargs="+", help="artifact folders, from 'cake build -o'")
    parser.add_argument("--shapes", type=int, default=60)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    wrong = 0
    for folder in args.artifacts:
        kernel = cake.load(folder)
        g = torch.Generator("cuda").manual_seed(args.seed)
        random.seed(args.seed)
        rows = [CHECKS[kernel.name](kernel, r, c, g) for r, c in shapes(args.shapes, args.seed)]
        bad = [r for r in rows if not good(r)]
        for r in bad:
            print("WRONG", r, flush=True)
        worst = max(r["worst"] for r in rows)
        print(f"{kernel.name}: {len(rows)} shapes, {len(bad)} wrong, largest error {worst} of the bound", flush=True)
        record(args.out, f"check_{kernel.name}", {"seed": args.seed, "environment": environment(kernel), "wrong": bad, "worst": worst, "shapes": rows})
        wrong += len(bad)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
