"""Every kernel 50 times on one input while another stream keeps the multiprocessors and the memory busy: the bits must not change.

    PYTHONPATH=. python bench/check_repeats.py out/gemm_sm90 out/rmsnorm .. [--repeats 50]

All sums of these kernels have a stated order, so a difference is a race, a lost wait or a place that was not written. Outputs are
poisoned before each launch, with another pattern each time.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy
import torch
from check_companions import companion
from harness import RESULTS, environment, record

import cake_core as cake
from cake_core.runtime.companion import load_companion

#: More items than CTAs, tails, several blocks of the reduction. A kernel that is not here gets the largest shape of its companion.
SHAPES = {
    "attn_fwd_sm90": {"B": 9, "H": 16, "HK": 4, "TQ": 9000, "TK": 10000},
    "gemm_bias_gelu_sm90": {"M": 3000, "N": 4104, "K": 1096},
    "gemm_sm80": {"M": 3000, "N": 4104, "K": 1096},
    "gemm_sm90": {"M": 3000, "N": 4104, "K": 1096},
    "kmeans_assign_sm90": {"NB": 3, "N": 40001, "K": 1020},
    "knn_part_sm90": {"Q": 3000, "N": 30000},
    "moe_grouped_sm90": {"E": 16, "T": 5000, "N": 1032, "K": 1032},
    "moe_grouped_dynamic_sm90": {"E": 16, "T": 5000, "N": 1032, "K": 1032},
    "quantize_e4m3": {"R": 3001, "C": 8176},
    "rmsnorm": {"R": 3001, "C": 8184},
    "scale_shift": {"B": 3, "R": 1001, "C": 4104},
    "silu_mul_bias": {"R": 3001, "C": 4104},
    "softmax": {"R": 701, "C": 32760},
    "softmax_cluster": {"R": 301, "C": 131064},
    "softmax_short": {"R": 3001, "C": 8184},
}


def on_device(value):
    """A numpy array as a tensor of the same bits; numpy's own types, and bf16, which numpy has from ml_dtypes."""
    if not isinstance(value, numpy.ndarray):
        return value
    if value.dtype.kind == "V" or value.dtype.name == "bfloat16":
        return torch.from_numpy(value.view(numpy.int16)).cuda().view(torch.bfloat16)
    return torch.from_numpy(value).cuda()


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.uint8)


class Load:
    """Matrix products and copies on a stream of their own."""

    def __init__(self):
        self.stream = torch.cuda.Stream()
        self.a = torch.randn(4096, 4096, device="cuda").bfloat16()
        self.d = torch.empty_like(self.a)
        self.x, self.y = (torch.zeros(1 << 28, dtype=torch.uint8, device="cuda") for _ in range(2))

    def put(self, i: int) -> None:
        """About half a millisecond of work, in another mixture each time."""
        with torch.cuda.stream(self.stream):
            for j in range(3):
                if (i + j) % 3:
                    torch.matmul(self.a, self.a, out=self.d)
                else:
                    self.y.copy_(self.x)


def check(kernel, repeats: int, seed: int, load: Load) -> dict:
    beside = load_companion(companion(kernel.manifest.kernel))
    shape = SHAPES.get(kernel.manifest.kernel) or max(beside.call("shapes"), key=lambda s: sum(map(abs, s.values())))
    inputs = {n: on_device(v) for n, v in beside.call("inputs", dict(shape), numpy.random.default_rng(seed)).items()}
    launch = kernel.prepare(**inputs)
    outputs = launch.outputs if isinstance(launch.outputs, tuple) else (launch.outputs,)
    launch()
    torch.cuda.synchronize()
    first = [bits(o).clone() for o in outputs]
    changed = []
    for i in range(repeats):
        for o in outputs:
            bits(o).fill_((37 * i + 165) % 256)
        torch.cuda.synchronize()
        load.put(i)
        launch()
        load.put(i + 1)
        torch.cuda.synchronize()
        changed.append(sum(int((bits(o) != f).sum()) for o, f in zip(outputs, first, strict=True)))
    return {
        "kernel": kernel.name,
        "arch": kernel.manifest.arch,
        "shape": shape,
        "repeats": repeats,
        "changed_bytes": changed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifacts", type=Path, nargs="+", help="artifact folders, from 'cake build -o'")
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    kernels = [cake.load(folder) for folder in args.artifacts]
    load, cases = Load(), []
    for kernel in kernels:
        cases.append(check(kernel, args.repeats, args.seed, load))
        print(
            f"{kernel.name} {cases[-1]['shape']}: {sum(map(bool, cases[-1]['changed_bytes']))} of {args.repeats} repeats differ",
            flush=True,
        )
        torch.cuda.empty_cache()
    wrong = [c for c in cases if any(c["changed_bytes"])]
    record(
        args.out,
        "repeats",
        {
            "seed": args.seed,
            "environment": environment(*kernels),
            "wrong": wrong,
            "cases": cases,
        },
    )
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
