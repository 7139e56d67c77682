"""kmeans_assign_sm90 on random shapes against float64, with poisoned, guarded labels.

    PYTHONPATH=. python bench/check_kmeans.py out/kmeans_assign_sm90 [--shapes 60]

A label is right if its distance exceeds the least one by no more than the rounding of both. Of exact copies the first must win; a
centroid whose norm is NaN must never win; a point that is NaN has label 0.
"""

from __future__ import annotations

import random

import torch
from harness import arguments, environment, record
from search import Guarded, distances, norms, normal

import cake_core as cake

FIRST = (
    (1, 1, 4),
    (1, 256, 128),
    (1, 128, 128),
    (1, 127, 4),
    (2, 300, 132),
    (3, 257, 1024),
    (1, 1000, 4),
    (2, 4096, 512),
    (5, 777, 260),
    (1, 100000, 64),
    (32, 4096, 1024),
)


def shapes(count: int, seed: int) -> list[tuple[int, int, int]]:
    rng = random.Random(seed)
    more = ((rng.randint(1, 6), rng.randint(1, 9000), 4 * round(2 ** rng.uniform(0, 9.3))) for _ in range(max(count - len(FIRST), 0)))
    return [*FIRST, *more][:count]


def check(kernel, nb: int, n: int, k: int, generator: torch.Generator) -> dict:
    x, c = normal(generator, nb, n, 128), normal(generator, nb, k, 128)
    cn = norms(c)
    if k >= 12:
        c[:, k // 2], cn[:, k // 2] = c[:, 1], cn[:, 1]
        cn[:, 2] = torch.nan
    if n >= 200:
        x[:, 199, 0] = torch.nan
    out = Guarded((nb, n), torch.int32)
    kernel(X=x, C=c, CN=cn, L=out.tensor)
    torch.cuda.synchronize()
    wrong, worst, other = 0, 0.0, 0
    for b in range(nb):
        label = out.tensor[b].long()
        inside = (label >= 0) & (label < k)
        d, error = distances(cn[b], x[b], c[b])
        if k >= 12:
            d[:, k // 2] = torch.inf  # the copy: it must not win
        least, first = d.min(1)
        first = torch.where(least.isinf(), 0, first)
        at = label.clamp(0, k - 1)[:, None]
        mine, slack = d.gather(1, at)[:, 0], error.gather(1, at)[:, 0] + error.gather(1, first[:, None])[:, 0]
        excess = torch.where(least.isinf(), torch.where(label == 0, 0.0, torch.inf), mine - least)
        bad = ~inside | ~(excess <= slack)
        if k >= 12:
            bad |= (label == k // 2) | (label == 2)
        wrong += int(bad.sum())
        worst = max(worst, float((excess / slack.clamp(min=1e-30))[excess.isfinite()].max()))
        other += int((label != first).sum())
    return {"shape": (nb, n, k), "wrong": wrong, **out.faults(), "worst": round(worst, 4), "near_ties": other}


def main() -> None:
    args = arguments(__doc__, "kmeans", shapes={"type": int, "default": 60})
    kernel = cake.load(args.kmeans)
    generator = torch.Generator("cuda").manual_seed(args.seed)
    rows = []
    for nb, n, k in shapes(args.shapes, args.seed):
        rows.append(check(kernel, nb, n, k, generator))
        if any(rows[-1][w] for w in ("wrong", "unwritten", "outside")):
            print("WRONG", rows[-1], flush=True)
    bad = [r for r in rows if any(r[w] for w in ("wrong", "unwritten", "outside"))]
    worst = max(r["worst"] for r in rows)
    near = sum(r["near_ties"] for r in rows)
    print(f"{len(rows)} shapes, {len(bad)} wrong, largest excess {worst} of the bound, {near} labels of near-ties", flush=True)
    record(args.out, "check_kmeans", {"seed": args.seed, "environment": environment(kernel), "wrong": bad, "worst": worst, "shapes": rows})
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
