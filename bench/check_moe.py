"""moe_grouped_sm90, or moe_grouped_dynamic_sm90, on random groups against float64, with a poisoned, guarded output.

    PYTHONPATH=. python bench/check_moe.py out/moe_grouped_sm90 [--cases 200]

Groups may be empty. Bounds as in kernels/moe/moe_grouped_sm90.py: one rounding to bf16, truncating f32 steps of 16 products.
"""

from __future__ import annotations

import random

import torch
from guarded import Guarded, good, verdict
from harness import arguments, environment, record

import cake_core as cake

#: (rows a group, N, K)
FIRST = (
    ([], 8, 8),
    ([0, 0], 64, 64),
    ([1], 8, 8),
    ([128, 128], 256, 64),
    ([127, 129, 64, 0, 63, 65], 264, 72),
    ([64] * 30, 512, 256),
    ([5000], 1024, 512),
    ([0] * 500 + [3] + [0] * 500, 256, 128),
    ([700, 0, 1200, 33], 4096, 1024),
)


def cases(count: int, seed: int) -> list[tuple[list[int], int, int]]:
    rng = random.Random(seed)
    rows = lambda: 0 if rng.random() < 0.25 else min(round(2 ** rng.uniform(0, 10)), 1000)  # noqa: E731
    out = list(FIRST)
    while len(out) < count:
        out.append(
            (
                [rows() for _ in range(rng.randint(1, 24))],
                8 * min(round(2 ** rng.uniform(0, 7.5)), 160),
                8 * min(round(2 ** rng.uniform(0, 7)), 128),
            )
        )
    return out[:count]


def check(kernel, case: tuple[list[int], int, int], generator: torch.Generator) -> dict:
    sizes, n, k = case
    e, t = len(sizes), sum(sizes)
    draw = lambda *shape: torch.randn(*shape, device="cuda", generator=generator).bfloat16()  # noqa: E731
    a, w, out = draw(t, k), draw(e, n, k), Guarded(t, n)
    off = torch.tensor([0, *sizes], dtype=torch.int64).cumsum(0).to(torch.int32).cuda()
    kernel(OFF=off, A=a, W=w, D=out.tensor)
    torch.cuda.synchronize()
    expected, size = torch.zeros(t, n, dtype=torch.float64, device="cuda"), torch.zeros(t, n, dtype=torch.float64, device="cuda")
    start = 0
    for i, rows in enumerate(sizes):
        part = slice(start, start + rows)
        expected[part], size[part] = a[part].double() @ w[i].double().T, a[part].double().abs() @ w[i].double().abs().T
        start += rows
    accumulation = (k / 16 + 16) * 2.0**-23 * size
    return {"groups": sizes, "N": n, "K": k, **verdict(out, expected, 2.0**-8 * (expected.abs() + accumulation) + accumulation)}


def main() -> None:
    args = arguments(__doc__, "moe", cases={"type": int, "default": 200})
    kernel = cake.load(args.moe)
    generator = torch.Generator("cuda").manual_seed(args.seed)
    rows = []
    for case in cases(args.cases, args.seed):
        rows.append(check(kernel, case, generator))
        if not good(rows[-1]):
            print("WRONG", rows[-1], flush=True)
    bad = [r for r in rows if not good(r)]
    worst = max(r["worst"] for r in rows)
    print(f"{len(rows)} cases, {len(bad)} wrong, largest error {worst} of the bound", flush=True)
    name = kernel.name.removesuffix("_sm90").replace("moe_grouped", "check_moe")
    record(args.out, name, {"seed": args.seed, "environment": environment(kernel), "wrong": bad, "worst": worst, "cases": rows})
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
