"""quantize_e4m3 on random shapes against float64, with poisoned outputs; rows of zeros, with NaN and with infinities among them.

    PYTHONPATH=. python bench/check_quantize.py out/quantize_e4m3 [--shapes 60]

Bounds as in kernels/quantize/quantize_e4m3.py.
"""

from __future__ import annotations

import random

import torch
from harness import arguments, environment, record

import cake_core as cake

LARGEST, LEAST = 448.0, 1e-30
GUARD = 4096


def shapes(count: int, seed: int) -> list[tuple[int, int]]:
    rng = random.Random(seed)
    first = [(0, 64), (1, 16), (1, 8192), (17, 80), (133, 272), (1057, 2048), (64, 8176), (2000, 8192)]
    more = ((rng.randint(0, 3000), 16 * min(max(1, round(2 ** rng.uniform(0, 9))), 512)) for _ in range(max(count - len(first), 0)))
    return [*first, *more][:count]


def wrong(got: torch.Tensor, expected: torch.Tensor, admitted: torch.Tensor) -> tuple[int, float]:
    """How many elements differ by more than admitted, and the largest error over the admitted one; two NaNs agree."""
    error = (got.double() - expected).abs()
    error[(got.double() == expected) | (got.isnan() & expected.isnan())] = 0
    ratio = error / admitted
    ratio = ratio[ratio.isfinite()]
    return int((~((error == 0) | expected.isfinite() & (error <= admitted))).sum()), float(ratio.max()) if ratio.numel() else 0.0


def check(kernel, r: int, c: int, g: torch.Generator) -> dict:
    x = torch.randn(r, c, device="cuda", generator=g) * torch.exp2(40 * torch.rand(r, 1, device="cuda", generator=g) - 20)
    x[5::16] = 0
    x[7::16, random.randrange(c)] = float("nan")
    x[8::16, random.randrange(c)] = float("-inf")
    x = x.bfloat16()
    whole = torch.full((2 * GUARD + r * c,), 0x5A, dtype=torch.uint8, device="cuda")
    y = whole[GUARD : GUARD + r * c].view(torch.float8_e4m3fn).view(r, c)
    s = torch.full((r,), float("nan"), device="cuda")
    kernel(X=x, Y=y, S=s)
    torch.cuda.synchronize()
    top = x.double().abs().amax(1) if r else x.double().sum(1)
    expected = x.double() * (LARGEST / (top + LEAST))[:, None]
    wrong_y, worst = wrong(y.float(), expected, (2.0**-4 + 2.0**-18) * expected.abs() + 2.0**-10 + 2.0**-28)
    wrong_s, _ = wrong(s, top / LARGEST, 2.0**-23 * (top / LARGEST) + 2.0**-149)
    outside = int((whole[:GUARD] != 0x5A).sum() + (whole[GUARD + r * c :] != 0x5A).sum())
    return {"shape": (r, c), "wrong": wrong_y + wrong_s, "outside": outside, "worst": round(worst, 4)}


def main() -> None:
    args = arguments(__doc__, "quantize", shapes={"type": int, "default": 60})
    kernel = cake.load(args.quantize)
    g = torch.Generator("cuda").manual_seed(args.seed)
    random.seed(args.seed)
    rows = [check(kernel, r, c, g) for r, c in shapes(args.shapes, args.seed)]
    bad = [r for r in rows if r["wrong"] or r["outside"]]
    for r in bad:
        print("WRONG", r, flush=True)
    worst = max(r["worst"] for r in rows)
    print(f"{len(rows)} shapes, {len(bad)} wrong, largest error {worst} of the bound", flush=True)
    record(args.out, "check_quantize_e4m3", {"seed": args.seed, "environment": environment(kernel), "wrong": bad, "worst": worst, "shapes": rows})
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
