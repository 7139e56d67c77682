"""The elementwise kernels against the copy bandwidth of the same run, torch, and torch.compile, bf16.

    PYTHONPATH=. python bench/elementwise.py out/silu_mul_bias out/scale_shift [..] [--compile]

Bandwidth counts each tensor once. The copy moves as many bytes as the kernel must: its bandwidth is what there is to reach.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from harness import BURST, RESULTS, SUSTAINED, compare, environment, record

import cake_core as cake


def silu_mul_bias(shape):
    a, b = (torch.randn(*shape, device="cuda").bfloat16() for _ in range(2))
    bias = torch.randn(shape[-1], device="cuda").bfloat16()
    return {"A": a, "B": b, "BIAS": bias}, lambda A, B, BIAS: torch.nn.functional.silu(A) * B + BIAS


def scale_shift(shape):
    x, t = torch.randn(*shape, device="cuda").bfloat16(), torch.randn(shape[0], shape[-1], device="cuda").bfloat16()
    s = torch.randn(*shape[:-1], device="cuda")
    return {"X": x, "S": s, "T": t}, lambda X, S, T: (X * S[..., None] + T[:, None, :]).bfloat16()


CASES = {
    "silu_mul_bias": (silu_mul_bias, ((8192, 14336), (32768, 4096))),
    "scale_shift": (scale_shift, ((16, 2048, 4096), (4, 8192, 8192))),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifacts", type=Path, nargs="+", help="artifact folders, from 'cake build -o'; several of one kernel are compared")
    parser.add_argument("--compile", action="store_true", help="torch.compile's kernel as a further side")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    kernels = {folder.name: cake.load(folder) for folder in args.artifacts}
    found = []
    for name, (make, shapes) in CASES.items():
        ours = {n: k for n, k in kernels.items() if k.name == name}
        for shape in shapes if ours else ():
            inputs, formula = make(shape)
            y = torch.empty(shape, dtype=torch.bfloat16, device="cuda")
            moved = y.nbytes + sum(t.nbytes for t in inputs.values())
            source = torch.empty(moved // 2, dtype=torch.uint8, device="cuda")
            copied = torch.empty_like(source)
            wanted = formula(**inputs)
            row = {"kernel": name, "shape": shape, "bytes": moved, "largest_difference": {}}
            sides = {n: k.prepare(**inputs, Y=y) for n, k in ours.items()}
            for n, side in sides.items():
                y.fill_(float("nan"))
                side()
                row["largest_difference"][n] = float((y.float() - wanted.float()).abs().max())
            sides |= {"copy": lambda: copied.copy_(source), "torch": lambda: formula(**inputs)}
            if args.compile:
                compiled = torch.compile(formula, dynamic=False)
                sides["compiled"] = lambda: compiled(**inputs)
            for mode_name, mode in (("burst", BURST), ("sustained", SUSTAINED)):
                row[mode_name] = compare(sides, "copy", mode)
                copy = row[mode_name]["sides"]["copy"]["median_us"]
                for side in row[mode_name]["sides"].values():
                    side["gb_per_s"] = round(moved / side["median_us"] / 1e3, 1)
                    side["of_copy"] = round(copy / side["median_us"], 4)
                shown = ", ".join(f"{s} {v['median_us']:.1f} us ({v['of_copy']:.3f} of copy)" for s, v in row[mode_name]["sides"].items())
                print(f"{name} {'x'.join(map(str, shape))} {mode_name}: {shown}", flush=True)
            found.append(row)
            del inputs, y, source, copied, wanted, sides
    record(args.out, "elementwise", {"method": {"burst": BURST, "sustained": SUSTAINED}, "environment": environment(*kernels.values()), "shapes": found})


if __name__ == "__main__":
    main()
