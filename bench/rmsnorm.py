"""rmsnorm against the copy bandwidth of the same run and torch's F.rms_norm, bf16.

    PYTHONPATH=. python bench/rmsnorm.py out/rmsnorm [--compile] [--also out/rmsnorm_w16 ..]

`copy` is torch's copy of X to Y, which moves the bytes that the norm must move: its time is the floor. `--compile` adds
torch.compile's kernel, `--also` further artifacts of the same kernel, built with other constants.
"""

from __future__ import annotations

from pathlib import Path

import torch
from harness import BURST, SUSTAINED, arguments, compare, environment, record

import cake_core as cake

SHAPES = ((32768, 8192), (65536, 4096), (8192, 8192))
EPS = 1e-6


def main() -> None:
    args = arguments(
        __doc__,
        "rmsnorm",
        compile={"action": "store_true", "help": "torch.compile's kernel as a further side"},
        also={"type": Path, "nargs": "*", "default": [], "help": "further artifacts"},
    )
    torch.manual_seed(args.seed)
    kernel, others = cake.load(args.rmsnorm), {folder.name: cake.load(folder) for folder in args.also}
    norm = torch.nn.functional.rms_norm
    rows = []
    for r, c in SHAPES:
        x, w = torch.randn(r, c, device="cuda").bfloat16(), (1 + 0.25 * torch.randn(c, device="cuda")).bfloat16()
        y, copied = torch.full_like(x, float("nan")), torch.empty_like(x)
        sides = {"cake": kernel.prepare(X=x, W=w, Y=y, eps=EPS), "copy": lambda: copied.copy_(x), "torch": lambda: norm(x, (c,), w, EPS)}
        sides |= {n: k.prepare(X=x, W=w, Y=y, eps=EPS) for n, k in others.items() if k.manifest.constants["CMAX"] >= c}
        if args.compile:
            compiled = torch.compile(lambda x, w: norm(x, (x.shape[-1],), w, EPS), dynamic=False)
            sides["compiled"] = lambda: compiled(x, w)
        sides["cake"]()
        difference = (y.float() - norm(x.float(), (c,), w.float(), EPS)).abs().max()
        row = {"R": r, "C": c, "bytes": 2 * x.nbytes, "largest_difference": float(difference)}
        for name, mode in (("burst", BURST), ("sustained", SUSTAINED)):
            row[name] = compare(sides, "cake", mode)
            for side in row[name]["sides"].values():
                side["gb_per_s"] = round(row["bytes"] / side["median_us"] / 1e3, 1)
            shown = ", ".join(f"{s} {v['median_us']:.1f} us ({v['gb_per_s']} GB/s)" for s, v in row[name]["sides"].items())
            print(f"{r}x{c} {name}: {shown}; of the copy's bandwidth {row[name]['cake_speed_over']['copy']}", flush=True)
        rows.append(row)
    record(args.out, "rmsnorm", {"method": {"burst": BURST, "sustained": SUSTAINED}, "environment": environment(kernel), "shapes": rows})


if __name__ == "__main__":
    main()
