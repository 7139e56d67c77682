"""rmsnorm on random shapes against float64, with poisoned, guarded outputs.

    PYTHONPATH=. python bench/check_rmsnorm.py out/rmsnorm [--shapes 50]

Bounds as in kernels/rmsnorm/rmsnorm.py.
"""

from __future__ import annotations

import random

import torch
from guarded import Guarded, good, verdict
from harness import arguments, environment, record

import cake_core as cake

FIRST = ((0, 64), (1, 8), (1, 8192), (2, 8184), (131, 64), (132, 72), (133, 264), (1057, 2048), (4096, 8192))
EPS = 1e-6


def shapes(count: int, seed: int) -> list[tuple[int, int]]:
    rng = random.Random(seed)
    more = ((rng.randint(0, 5000), 8 * min(max(1, round(2 ** rng.uniform(0, 10))), 1024)) for _ in range(max(count - len(FIRST), 0)))
    return [*FIRST, *more][:count]


def check(kernel, r: int, c: int, generator: torch.Generator) -> dict:
    scale = torch.exp2(8 * torch.rand(r, 1, device="cuda", generator=generator) - 4)
    x = (torch.randn(r, c, device="cuda", generator=generator) * scale).bfloat16()
    w = (1 + 0.25 * torch.randn(c, device="cuda", generator=generator)).bfloat16()
    out = Guarded(r, c)
    kernel(X=x, W=w, Y=out.tensor, eps=EPS)
    torch.cuda.synchronize()
    eps = float(torch.tensor(EPS, dtype=torch.float32))
    expected = x.double() / (x.double().square().mean(1, keepdim=True) + eps).sqrt() * w.double()
    return {"shape": (r, c), **verdict(out, expected, (2.0**-8 + 2.0**-14) * expected.abs() + 2.0**-126)}


def main() -> None:
    args = arguments(__doc__, "rmsnorm", shapes={"type": int, "default": 50})
    kernel = cake.load(args.rmsnorm)
    generator = torch.Generator("cuda").manual_seed(args.seed)
    rows = []
    for r, c in shapes(args.shapes, args.seed):
        rows.append(check(kernel, r, c, generator))
        if not good(rows[-1]):
            print("WRONG", rows[-1], flush=True)
    bad = [r for r in rows if not good(r)]
    worst = max(r["worst"] for r in rows)
    print(f"{len(rows)} shapes, {len(bad)} wrong, largest error {worst} of the bound", flush=True)
    record(args.out, "check_rmsnorm", {"seed": args.seed, "environment": environment(kernel), "wrong": bad, "worst": worst, "shapes": rows})
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
