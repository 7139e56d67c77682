"""knn_part_sm90 and knn_merge against flashlib's nearest neighbours, where it is installed, and torch's product and topk.

    PYTHONPATH=. python bench/knn.py out/knn_part_sm90 out/knn_merge [--variants out/part,out/merge ..] [--torch]

A side of ours is both kernels, one after the other; the first one is timed alone, too. Norms of the points are given and not timed;
flashlib computes its own. `--torch` adds the product and topk, in pieces.
"""

from __future__ import annotations

from contextlib import suppress

import torch
from harness import arguments, compare, environment, record
from search import norms, normal, usable

import cake_core as cake

SHAPES = ((4096, 1048576), (65536, 65536))
PIECE = 131072  # points a piece: torch's fastest at the first shape
#: Fewer calls than for other kernels: some sides take tens of milliseconds.
BURST = {"rounds": 6, "calls": 4, "idle_s": 0.13, "untimed": 1}
SUSTAINED = {"rounds": 10, "calls": 3, "idle_s": 0.0, "untimed": 0}


class Search:
    """Both kernels, bound to their tensors."""

    def __init__(self, part, merge, x: torch.Tensor, p: torch.Tensor, pn: torch.Tensor):
        split, kk = (part.manifest.constants[n] for n in ("SPLIT", "KK"))
        lists = [torch.empty(split, len(x), kk, dtype=t, device="cuda") for t in (torch.float32, torch.int32)]
        self.keys, self.indices = (torch.empty(len(x), kk, dtype=t, device="cuda") for t in (torch.float32, torch.int32))
        self.part = part.prepare(X=x, P=p, PN=pn, V=lists[0], I=lists[1])
        self.merge = merge.prepare(V=lists[0], I=lists[1], VO=self.keys, IO=self.indices)

    def __call__(self) -> None:
        self.part()
        self.merge()


def by_flashlib(x: torch.Tensor, p: torch.Tensor, kk: int) -> dict:
    found = {}
    with suppress(ImportError):
        from flashlib.primitives.knn import flash_knn

        for backend in ("auto", "triton", "cutedsl"):
            found[f"flashlib {backend}"] = lambda b=backend: flash_knn(
                x, p, kk, return_distances=False, **({} if b == "auto" else {"backend": b})
            )
    return usable(found)


def by_torch(x: torch.Tensor, p: torch.Tensor, pn: torch.Tensor, kk: int):
    def run():
        found = []
        for at in range(0, len(p), PIECE):
            near = torch.addmm(pn[None, at : at + PIECE].bfloat16(), x, p[at : at + PIECE].T, alpha=-2).topk(kk, 1, largest=False)
            found.append((near.values, near.indices + at))
        values, indices = (torch.cat(v, 1) for v in zip(*found, strict=True))
        return indices.gather(1, values.topk(kk, 1, largest=False).indices)

    return run


def main() -> None:
    variants = {"nargs": "*", "default": (), "metavar": "PART,MERGE", "help": "pairs of artifacts of other settings, timed beside it"}
    args = arguments(
        __doc__, "part", "merge", variants=variants, torch={"action": "store_true", "help": "torch's product and topk as a further side"}
    )
    pairs = {"cake": (cake.load(args.part), cake.load(args.merge))}
    for part, merge in (map(cake.load, v.split(",")) for v in args.variants):
        pairs[f"cake SPLIT {merge.manifest.constants['SPLIT']}"] = part, merge
    generator = torch.Generator("cuda").manual_seed(args.seed)
    rows = []
    for q, n in SHAPES:
        x, p = normal(generator, q, 128), normal(generator, n, 128)
        pn = norms(p)
        ours = {name: Search(*pair, x, p, pn) for name, pair in pairs.items()}
        sides = dict(ours) | {f"{name}, part alone": search.part for name, search in ours.items()}
        kk = ours["cake"].indices.shape[1]
        sides |= by_flashlib(x, p, kk) | ({"torch": by_torch(x, p, pn, kk)} if args.torch else {})
        for search in ours.values():
            search()
        same = all(bool((s.indices == ours["cake"].indices).all()) for s in ours.values())
        row = {"Q": q, "N": n, "k": kk, "flop": 2 * q * n * 128, "lists_agree": same}
        for name, mode in (("burst", BURST), ("sustained", SUSTAINED)):
            row[name] = compare(sides, "cake", mode)
            shown = ", ".join(
                f"{s} {v['median_us']:.1f} us ({row['flop'] / v['median_us'] / 1e6:.0f} TFLOP/s)" for s, v in row[name]["sides"].items()
            )
            print(f"{q} queries, {n} points, {name}: {shown}; speed over {row[name]['cake_speed_over']}", flush=True)
        rows.append(row)
        del x, p, pn, ours, sides
    record(
        args.out,
        "knn",
        {
            "method": {"burst": BURST, "sustained": SUSTAINED},
            "environment": environment(*(k for pair in pairs.values() for k in pair)),
            "shapes": rows,
        },
    )


if __name__ == "__main__":
    main()
