"""knn_part_sm90 and knn_merge on random shapes against float64, with poisoned, guarded outputs.

    PYTHONPATH=. python bench/check_knn.py out/knn_part_sm90 out/knn_merge [--shapes 40]

A list is right if it ascends (equal keys by index), each key is its point's distance and the r-th least one, both up to rounding,
no point stands twice, and no point is missing whose distance is surely less than the last key's. Of exact copies the first must be there;
a point whose norm is NaN must not; a list that is not full ends in (+inf, -1). Both artifacts must have the same SPLIT and KK.
"""

from __future__ import annotations

import random

import torch
from harness import arguments, environment, record
from search import Guarded, distances, norms, normal

import cake_core as cake

FIRST = ((1, 4), (256, 4096), (3, 8), (300, 1000), (128, 132), (513, 70000), (1000, 33332), (77, 1024), (129, 256))
ROWS = 512  # queries whose distances are in memory at one time


def shapes(count: int, seed: int) -> list[tuple[int, int]]:
    rng = random.Random(seed)
    more = ((rng.randint(1, 1500), 4 * round(2 ** rng.uniform(0, 14.3))) for _ in range(max(count - len(FIRST), 0)))
    return [*FIRST, *more][:count]


def constants(part, merge) -> tuple[int, int]:
    split, kk = (part.manifest.constants[n] for n in ("SPLIT", "KK"))
    if (split, kk) != tuple(merge.manifest.constants[n] for n in ("SPLIT", "KK")):
        raise SystemExit("the two artifacts differ in SPLIT or KK")
    return split, kk


def check(part, merge, q: int, n: int, generator: torch.Generator) -> dict:
    split, kk = constants(part, merge)
    x, p = normal(generator, q, 128), normal(generator, n, 128)
    pn = norms(p)
    copies = n // 10 if n >= 100 else 0
    if copies:
        p[n - copies :], pn[n - copies :] = p[:copies], pn[:copies]
        pn[3] = torch.nan
    lists = [Guarded((split, q, kk), t) for t in (torch.float32, torch.int32)]
    outs = [Guarded((q, kk), t) for t in (torch.float32, torch.int32)]
    part(X=x, P=p, PN=pn, V=lists[0].tensor, I=lists[1].tensor)
    merge(V=lists[0].tensor, I=lists[1].tensor, VO=outs[0].tensor, IO=outs[1].tensor)
    torch.cuda.synchronize()
    wrong, worst = 0, 0.0
    for start in range(0, q, ROWS):
        rows = slice(start, start + ROWS)
        bad, ratio = judge(outs[0].tensor[rows].double(), outs[1].tensor[rows].long(), *distances(pn, x[rows], p), copies)
        wrong, worst = wrong + int(bad.sum()), max(worst, ratio)
    faults = [g.faults() for g in (*lists, *outs)]
    return {"shape": (q, n), "wrong": wrong, **{w: sum(f[w] for f in faults) for w in ("unwritten", "outside")}, "worst": round(worst, 4)}


def judge(keys: torch.Tensor, indices: torch.Tensor, d: torch.Tensor, error: torch.Tensor, copies: int) -> tuple[torch.Tensor, float]:
    """Which queries have a wrong list, and the largest error of a key over the admitted one."""
    n, kk = d.shape[1], keys.shape[1]
    there = d.isfinite().sum(1).clamp(max=kk)[:, None] > torch.arange(kk, device="cuda")[None]
    bound = error.max(1).values[:, None]
    at = indices.clamp(0, n - 1)
    own = (keys - d.gather(1, at)).abs()
    least = d.sort(1).values[:, :kk]
    least = torch.nn.functional.pad(least, (0, kk - least.shape[1]), value=torch.inf)
    rank = torch.where(there, (keys - least).abs(), 0.0)
    bad = ((indices < 0) | (indices >= n) | ~(own <= bound) | ~(rank <= bound)) & there
    bad |= ~there & ((indices != -1) | (keys != torch.inf))
    ahead, behind = (slice(None), slice(0, -1)), (slice(None), slice(1, None))
    disorder = (keys[ahead] > keys[behind]) | (keys[ahead] == keys[behind]) & (indices[ahead] >= indices[behind])
    bad[behind] |= disorder & there[behind]
    taken = torch.zeros(d.shape[0], n + 1, dtype=torch.bool, device="cuda")
    taken = taken.scatter_(1, torch.where(there, at, n), True)[:, :n]  # entries that are none go to a column of their own
    row = bad.any(1) | (taken.sum(1) != there.sum(1))
    last = torch.where(there.all(1), keys[:, -1], torch.inf)[:, None]
    row |= ((d < last - 2 * bound) & ~taken).any(1)
    if copies:  # a copy has the same bits, so the first of both comes before it; but for the one whose norm is NaN
        lost = taken[:, n - copies :] & ~taken[:, :copies]
        lost[:, 3] = taken[:, 3]
        row |= lost.any(1)
    return row, float((rank / bound.clamp(min=1e-30)).max())


def main() -> None:
    args = arguments(__doc__, "part", "merge", shapes={"type": int, "default": 40})
    part, merge = cake.load(args.part), cake.load(args.merge)
    generator = torch.Generator("cuda").manual_seed(args.seed)
    rows = []
    for q, n in shapes(args.shapes, args.seed):
        rows.append(check(part, merge, q, n, generator))
        if any(rows[-1][w] for w in ("wrong", "unwritten", "outside")):
            print("WRONG", rows[-1], flush=True)
    bad = [r for r in rows if any(r[w] for w in ("wrong", "unwritten", "outside"))]
    worst = max(r["worst"] for r in rows)
    print(f"{len(rows)} shapes, {len(bad)} wrong, largest error {worst} of the bound", flush=True)
    record(
        args.out, "check_knn", {"seed": args.seed, "environment": environment(part, merge), "wrong": bad, "worst": worst, "shapes": rows}
    )
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
