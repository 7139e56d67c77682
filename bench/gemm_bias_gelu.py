"""gemm_bias_gelu_sm90 against torch, bf16, D = gelu(A @ B.T + BIAS): alternating bursts, and sustained.

    PYTHONPATH=. python bench/gemm_bias_gelu.py out/gemm_bias_gelu_sm90 [--gemm out/gemm_sm90]

`eager` is addmm and gelu, two kernels; `cublaslt` is addmm with the epilogue of cuBLASLt, which takes gelu in its tanh form; `product` is
torch's addmm alone. `--gemm` adds our product without the epilogue.
"""

from __future__ import annotations

from pathlib import Path

import torch
from harness import BURST, SUSTAINED, arguments, compare, environment, record

import cake_core as cake

SHAPES = ((8192, 8192, 8192), (4096, 14336, 4096), (4096, 4096, 4096))


def main() -> None:
    args = arguments(__doc__, "fused", gemm={"type": Path, "default": None, "help": "an artifact of gemm_sm90"})
    torch.manual_seed(args.seed)
    kernel, plain = cake.load(args.fused), cake.load(args.gemm) if args.gemm else None
    gelu, rows = torch.nn.functional.gelu, []
    for m, n, k in SHAPES:
        a, b = torch.randn(m, k, device="cuda").bfloat16(), (torch.randn(n, k, device="cuda") * k**-0.5).bfloat16()
        bias = torch.randn(n, device="cuda").bfloat16()
        ours, other, theirs = (torch.full((m, n), float("nan"), dtype=torch.bfloat16, device="cuda") for _ in range(3))
        sides = {
            "cake": kernel.prepare(A=a, B=b, BIAS=bias, D=ours),
            "eager": lambda: gelu(torch.addmm(bias, a, b.T)),
            "cublaslt": lambda: torch._addmm_activation(bias, a, b.T, use_gelu=True),
            "product": lambda: torch.addmm(bias, a, b.T, out=theirs),
        }
        if plain:
            sides["cake_product"] = plain.prepare(A=a, B=b, D=other)
        sides["cake"]()
        wanted = gelu(a.float() @ b.float().T + bias.float())
        row = {"M": m, "N": n, "K": k, "largest_difference": float((ours.float() - wanted).abs().max())}
        for name, mode in (("burst", BURST), ("sustained", SUSTAINED)):
            row[name] = compare(sides, "cake", mode)
            for side in row[name]["sides"].values():
                side["tflop_per_s"] = round(2 * m * n * k / side["median_us"] / 1e6, 1)
            shown = ", ".join(f"{s} {v['median_us']:.1f} us ({v['tflop_per_s']} TFLOP/s)" for s, v in row[name]["sides"].items())
            print(f"{m}x{n}x{k} {name}: {shown}; cake over {row[name]['cake_speed_over']}", flush=True)
        rows.append(row)
        del a, b, bias, ours, other, theirs, wanted, sides
    kernels = [k for k in (kernel, plain) if k]
    record(args.out, "gemm_bias_gelu", {"method": {"burst": BURST, "sustained": SUSTAINED}, "environment": environment(*kernels), "shapes": rows})


if __name__ == "__main__":
    main()
