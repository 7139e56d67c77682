"""kmeans_assign_sm90 against flashlib's and flash-kmeans' assignment, where they are installed, and torch's product and argmin.

    PYTHONPATH=. python bench/kmeans.py out/kmeans_assign_sm90 [--variants out/other ..] [--torch]

Artifacts of other constants are sides of their own. Norms of the centroids are given to every side that takes them, and not timed.
`--torch` adds the product and argmin, in pieces.
"""

from __future__ import annotations

from contextlib import suppress

import torch
from harness import BURST, SUSTAINED, arguments, compare, environment, record
from search import norms, normal, usable

import cake_core as cake

SHAPES = ((32, 65536, 1024), (1, 1048576, 1024), (1, 65536, 1024))
PIECE = 1 << 28  # elements of a product that torch keeps


def others(x: torch.Tensor, c: torch.Tensor, cn: torch.Tensor) -> dict:
    """Assignments of other libraries, by name. Norms are given, as they are to ours; one that does not take the shape is left out."""
    out, squares, found = torch.empty(x.shape[:2], dtype=torch.int32, device="cuda"), x.float().square().sum(-1), {}
    with suppress(ImportError):
        from flash_kmeans.assign_euclid_triton import euclid_assign_triton as flash_kmeans

        found["flash-kmeans"] = lambda: flash_kmeans(x, c, squares, out=out)
    with suppress(ImportError):
        from flashlib.primitives.kmeans.triton.assign import euclid_assign_triton as flashlib_triton

        found["flashlib triton"] = lambda: flashlib_triton(x, c, out=out, c_sq=cn)
    with suppress(ImportError):
        from flashlib.primitives.kmeans.cutedsl import cutedsl_assign_euclid

        if x.shape[0] == 1:  # for more batches it hands over to the Triton kernel, and says nothing
            found["flashlib cutedsl"] = lambda: cutedsl_assign_euclid(x, c, out=out, c_sq=cn)
    return usable(found)


def by_torch(x: torch.Tensor, c: torch.Tensor, cn: torch.Tensor):
    step = max(PIECE // c.shape[1], 1)

    def run():
        return [(cn[b] - 2 * (x[b, at : at + step] @ c[b].T)).argmin(1) for b in range(x.shape[0]) for at in range(0, x.shape[1], step)]

    return run


def main() -> None:
    variants = {"nargs": "*", "default": (), "metavar": "DIR", "help": "artifacts of other settings, timed beside it"}
    args = arguments(
        __doc__, "kmeans", variants=variants, torch={"action": "store_true", "help": "torch's product and argmin as a further side"}
    )
    kernels = {"cake": cake.load(args.kmeans)} | {str(folder): cake.load(folder) for folder in args.variants}
    generator = torch.Generator("cuda").manual_seed(args.seed)
    rows = []
    for nb, n, k in SHAPES:
        x, c = normal(generator, nb, n, 128), normal(generator, nb, k, 128)
        cn = norms(c)
        labels = {name: torch.empty(nb, n, dtype=torch.int32, device="cuda") for name in kernels}
        sides = {name: kernel.prepare(X=x, C=c, CN=cn, L=labels[name]) for name, kernel in kernels.items()}
        sides |= others(x, c, cn) | ({"torch": by_torch(x, c, cn)} if args.torch else {})
        for name in kernels:
            sides[name]()
        row = {
            "NB": nb,
            "N": n,
            "K": k,
            "flop": 2 * nb * n * k * 128,
            "labels_agree": all(bool((v == labels["cake"]).all()) for v in labels.values()),
        }
        for name, mode in (("burst", BURST), ("sustained", SUSTAINED)):
            row[name] = compare(sides, "cake", mode)
            shown = ", ".join(
                f"{s} {v['median_us']:.1f} us ({row['flop'] / v['median_us'] / 1e6:.0f} TFLOP/s)" for s, v in row[name]["sides"].items()
            )
            print(f"{nb}x{n}, {k} centroids, {name}: {shown}; speed over {row[name]['cake_speed_over']}", flush=True)
        rows.append(row)
        del x, c, cn, labels, sides
    record(
        args.out,
        "kmeans",
        {"method": {"burst": BURST, "sustained": SUSTAINED}, "environment": environment(*kernels.values()), "shapes": rows},
    )


if __name__ == "__main__":
    main()
