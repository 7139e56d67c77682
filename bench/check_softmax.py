"""softmax on random shapes and on rows that are masked, huge or not finite, against float64, with poisoned, guarded outputs.

    PYTHONPATH=. python bench/check_softmax.py out/softmax [--shapes 60]

Bounds as in kernels/softmax/softmax.py. Works for every kernel of that family: the longest row is read from the artifact. It also
asks whether the rows that have no softmax are those that torch.softmax makes NaN.
"""

from __future__ import annotations

import random

import torch
from guarded import Guarded, good, verdict
from harness import arguments, environment, record

import cake_core as cake

LARGEST = torch.finfo(torch.bfloat16).max


def longest(kernel) -> int:
    consts = kernel.manifest.constants
    return consts["CMAX"]


def shapes(most: int, count: int, seed: int) -> list[tuple[int, int]]:
    rng = random.Random(seed)
    first = [(0, 64), (1, 8), (16, most), (17, most - 8), (131, 64), (132, 72), (133, 264), (1057, 2048), (300, most // 2 + 8), (528, most)]
    more = ((rng.randint(0, 2000), 8 * min(max(1, round(2 ** rng.uniform(0, 14))), most // 8)) for _ in range(max(count - len(first), 0)))
    return [*first, *more][:count]


def rows(r: int, c: int, generator: torch.Generator) -> torch.Tensor:
    """Rows 5 to 11 of every 16 are special, as in the companion."""
    x = torch.randn(r, c, device="cuda", generator=generator)
    x *= torch.exp2(6 * torch.rand(r, 1, device="cuda", generator=generator) - 2)
    x = x.bfloat16()
    column = random.randrange(c)
    some = torch.rand(c, device="cuda", generator=generator) < 0.3
    x[5::16] = torch.where(some, float("-inf"), x[5::16])
    x[5::16, -1] = float("-inf")
    x[6::16] = float("-inf")
    x[7::16, column] = float("nan")
    x[8::16, column] = float("inf")
    x[9::16] = torch.where(some, LARGEST, -LARGEST).bfloat16()
    x[10::16] = -LARGEST
    x[11::16, -1] = 1e4
    return x


def check(kernel, r: int, c: int, generator: torch.Generator) -> dict:
    x = rows(r, c, generator)
    out = Guarded(r, c)
    kernel(X=x, Y=out.tensor)
    torch.cuda.synchronize()
    expected = torch.softmax(x.double(), 1)
    result = verdict(out, expected, (2.0**-8 + 2.0**-13) * expected.abs() + 2.0**-126)
    nan_as_torch = torch.equal(out.tensor.isnan(), torch.softmax(x.float(), 1).isnan())
    return {"shape": (r, c), **result, "nan_as_torch": nan_as_torch}


def main() -> None:
    args = arguments(__doc__, "softmax", shapes={"type": int, "default": 60})
    kernel = cake.load(args.softmax)
    generator = torch.Generator("cuda").manual_seed(args.seed)
    random.seed(args.seed)
    rows_ = []
    for r, c in shapes(longest(kernel), args.shapes, args.seed):
        rows_.append(check(kernel, r, c, generator))
        if not good(rows_[-1]) or not rows_[-1]["nan_as_torch"]:
            print("WRONG", rows_[-1], flush=True)
    bad = [r for r in rows_ if not good(r) or not r["nan_as_torch"]]
    worst = max(r["worst"] for r in rows_)
    print(f"{kernel.name}: {len(rows_)} shapes, {len(bad)} wrong, largest error {worst} of the bound", flush=True)
    record(args.out, f"check_{kernel.name}", {"seed": args.seed, "environment": environment(kernel), "wrong": bad, "worst": worst, "shapes": rows_})
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
