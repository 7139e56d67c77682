"""A dense GEMM on random shapes against float64, with poisoned, guarded outputs and, where the kernel takes them, padded rows.

    PYTHONPATH=. python bench/check_gemm.py out/gemm_sm90 [--shapes 200]

Bounds as in kernels/gemm/gemm_sm90.py: one rounding to bf16, and truncating f32 steps of 16 products.
"""

from __future__ import annotations

import random

import torch
from guarded import Guarded, good, matrix, verdict
from harness import arguments, environment, record

import cake_core as cake

FIRST = (
    *((m, n, k) for m in (1, 130) for n in (8, 64, 72, 264) for k in (0, 8, 64, 72, 264)),
    (128, 256, 64),
    (256, 256, 64),
    (257, 512, 320),
    (4096, 4096, 4096),
    (4095, 4088, 4088),
    (4096, 8, 4096),
    (1, 4096, 4096),
)


def shapes(count: int, seed: int) -> list[tuple[int, int, int]]:
    """Corner cases, then random ones: sizes spread evenly in their logarithm, so that small and large ones come."""
    rng = random.Random(seed)
    size = lambda most: max(1, round(2 ** rng.uniform(0, most)))  # noqa: E731
    more = ((min(size(12), 4096), 8 * min(size(9), 512), rng.choice((1, 1, 1, 1, 1, 1, 1, 0)) * 8 * min(size(9), 512)) for _ in range(max(count - len(FIRST), 0)))
    return [*FIRST, *more][:count]


def check(kernel, shape: tuple[int, int, int], generator: torch.Generator, pads: tuple[int, int, int]) -> dict:
    m, n, k = shape
    a, b, out = matrix(m, k, pads[0], generator), matrix(n, k, pads[1], generator), Guarded(m, n, pads[2])
    kernel(A=a, B=b, D=out.tensor)
    torch.cuda.synchronize()
    expected = a.double() @ b.double().T
    accumulation = (k / 16 + 16) * 2.0**-23 * (a.double().abs() @ b.double().abs().T)
    result = verdict(out, expected, 2.0**-8 * (expected.abs() + accumulation) + accumulation)
    return {"shape": shape, "pads": pads, **result, "equal_to_torch": bool(torch.equal(out.tensor, torch.matmul(a, b.T)))}


def main() -> None:
    args = arguments(__doc__, "gemm", shapes={"type": int, "default": 200})
    kernel = cake.load(args.gemm)
    generator = torch.Generator("cuda").manual_seed(args.seed)
    pad = random.Random(args.seed + 1)
    packed = {p.name for p in kernel.manifest.params if p.contiguous}
    rows = []
    for i, shape in enumerate(shapes(args.shapes, args.seed)):
        pads = (0, 0, 0) if i % 3 else tuple(0 if name in packed else 8 * pad.randint(0, 9) for name in "ABD")
        rows.append(check(kernel, shape, generator, pads))
        if not good(rows[-1]):
            print("WRONG", rows[-1], flush=True)
    bad = [r for r in rows if not good(r)]
    equal = sum(r["equal_to_torch"] for r in rows)
    worst = max(r["worst"] for r in rows)
    print(f"{len(rows)} shapes, {len(bad)} wrong, largest error {worst} of the bound, {equal} equal to torch.matmul bit by bit", flush=True)
    record(args.out, f"check_{kernel.name}", {"seed": args.seed, "environment": environment(kernel), "wrong": bad, "worst": worst, "equal_to_torch": equal, "shapes": rows})
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
