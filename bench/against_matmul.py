"""A GEMM artifact beside torch.matmul (cuBLAS), bf16, D = A @ B.T: alternating bursts, and sustained. What the scripts `gemm_*.py` run."""

from __future__ import annotations

import torch
from harness import BURST, SUSTAINED, arguments, compare, environment, record

import cake_core as cake

SHAPES = ((8192, 8192, 8192), (4096, 14336, 4096), (4096, 4096, 4096))


def main(description: str) -> None:
    args = arguments(
        description,
        "gemm",
        variants={"nargs": "*", "default": (), "metavar": "DIR", "help": "artifacts of other settings, timed beside it"},
    )
    torch.manual_seed(args.seed)
    kernel = cake.load(args.gemm)
    others = {str(folder): cake.load(folder) for folder in args.variants}
    rows = []
    for m, n, k in SHAPES:
        a, b = (torch.randn(rows_, k, device="cuda").bfloat16() for rows_ in (m, n))
        ours, theirs = (torch.full((m, n), float("nan"), dtype=torch.bfloat16, device="cuda") for _ in range(2))
        sides = {"cake": kernel.prepare(A=a, B=b, D=ours), "torch": lambda: torch.matmul(a, b.T, out=theirs)}
        sides |= {name: other.prepare(A=a, B=b, D=torch.empty_like(ours)) for name, other in others.items()}
        for call in sides.values():
            call()
        torch.cuda.synchronize()
        row = {
            "M": m,
            "N": n,
            "K": k,
            "equal_to_torch": bool(torch.equal(ours, theirs)),
            "largest_difference": float((ours.float() - theirs.float()).abs().max()),
        }
        for name, mode in (("burst", BURST), ("sustained", SUSTAINED)):
            row[name] = compare(sides, "cake", mode)
            for side in row[name]["sides"].values():
                side["tflop_per_s"] = round(2 * m * n * k / side["median_us"] / 1e6, 1)
            shown = ", ".join(f"{s} {v['median_us']:.1f} us ({v['tflop_per_s']} TFLOP/s)" for s, v in row[name]["sides"].items())
            print(f"{m}x{n}x{k} {name}: {shown}, cake over torch {row[name]['cake_speed_over']['torch']}", flush=True)
        rows.append(row)
        del a, b, ours, theirs, sides
    record(args.out, kernel.name, {"method": {"burst": BURST, "sustained": SUSTAINED}, "environment": environment(kernel), "shapes": rows})
