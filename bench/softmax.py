"""Kernels of the softmax family against the copy bandwidth of the same run and torch.softmax, bf16.

    PYTHONPATH=. python bench/softmax.py out/softmax [out/softmax_cluster ..] [--shape 8192x32768 ..] [--compile]

Each artifact is timed on the shapes whose rows it holds. `copy` is torch's copy of X to Y, which moves the bytes that softmax must
move: its time is the floor. `--compile` adds torch.compile's kernel.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from harness import BURST, RESULTS, SUSTAINED, compare, environment, record

import cake_core as cake

SHAPES = ((32768, 8192), (8192, 32768), (8192, 131072))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifacts", type=Path, nargs="+", help="artifact folders, from 'cake build -o'")
    parser.add_argument("--shape", nargs="*", help="RxC, several")
    parser.add_argument("--compile", action="store_true", help="torch.compile's kernel as a further side")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--name", default="softmax", help="of the record")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    loaded = {folder.name: cake.load(folder) for folder in args.artifacts}
    names = [k.manifest.kernel for k in loaded.values()]
    # A side bears its kernel's name, and its folder's where several artifacts are of one kernel.
    kernels = {k.manifest.kernel if names.count(k.manifest.kernel) == 1 else folder: k for folder, k in loaded.items()}
    shapes = [tuple(map(int, s.split("x"))) for s in args.shape] if args.shape else SHAPES
    found = []
    for r, c in shapes:
        able = {n: k for n, k in kernels.items() if k.manifest.constants["CMAX"] >= c}
        if not able:
            continue
        x = torch.randn(r, c, device="cuda").bfloat16()
        y, copied = torch.full_like(x, float("nan")), torch.empty_like(x)
        sides = {n: k.prepare(X=x, Y=y) for n, k in able.items()}
        wanted = torch.softmax(x, 1)
        row = {"R": r, "C": c, "bytes": 2 * x.nbytes, "largest_difference": {}}
        for n, side in sides.items():
            y.fill_(float("nan"))
            side()
            row["largest_difference"][n] = float((y.float() - wanted.float()).abs().max())
        sides |= {"copy": lambda: copied.copy_(x), "torch": lambda: torch.softmax(x, 1)}
        if args.compile:
            compiled = torch.compile(lambda x: torch.softmax(x, 1), dynamic=False)
            sides["compiled"] = lambda: compiled(x)
        for name, mode in (("burst", BURST), ("sustained", SUSTAINED)):
            row[name] = compare(sides, "copy", mode)
            copy = row[name]["sides"]["copy"]["median_us"]
            for side in row[name]["sides"].values():
                side["gb_per_s"] = round(row["bytes"] / side["median_us"] / 1e3, 1)
                side["of_copy"] = round(copy / side["median_us"], 4)
            shown = ", ".join(f"{s} {v['median_us']:.1f} us ({v['of_copy']:.3f} of copy)" for s, v in row[name]["sides"].items())
            print(f"{r}x{c} {name}: {shown}", flush=True)
        found.append(row)
        del x, y, copied, wanted, sides
    record(args.out, args.name, {"method": {"burst": BURST, "sustained": SUSTAINED}, "environment": environment(*kernels.values()), "shapes": found})


if __name__ == "__main__":
    main()
