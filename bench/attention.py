"""attn_fwd_sm90 against cuDNN's attention by torch, and against FlashAttention-3 where it can be imported: alternating bursts.

    PYTHONPATH=. python bench/attention.py out/attn_fwd_sm90 out/attn_fwd_sm90_full

The second artifact is built with '--set CAUSAL=false'. Every side gets its inputs in the layout that it takes: cuDNN [B, H, S, D],
the others [B, S, H, D]. The table of items is made before; what that costs is timed apart, on the host, and stands in the record.
"""

from __future__ import annotations

import statistics
import time

import torch
import torch.nn.functional as F
from harness import BURST, arguments, compare, environment, record
from torch.nn.attention import SDPBackend, sdpa_kernel

import cake_core as cake

D = 128
#: Batch, heads, key heads, rows of each sequence.
SHAPES = ((4, 16, 16, 8192), (16, 16, 16, 2048), (1, 32, 8, 16384))
LOG2_E = 1.4426950408889634


def flash3():
    """FlashAttention-3's function, by either of its names; None where it is not installed."""
    for module in ("fa3_fwd_interface", "flash_attn_interface", "flash_attn_3.flash_attn_interface", "hopper.flash_attn_interface"):
        try:
            return __import__(module, fromlist=["flash_attn_func"]).flash_attn_func
        except ImportError:
            continue
    return None


def planning_us(kernel, b: int, s: int, h: int) -> float:
    """Median host time of a table that was not made before: offsets shifted by a row or two each time."""
    samples = []
    for n in range(9):
        c = torch.arange(b + 1, dtype=torch.int32) * s
        c[1:] -= n
        start = time.perf_counter()
        kernel.plan(CQ=c, CK=c, H=h, device=0)
        samples.append(1e6 * (time.perf_counter() - start))
    return round(statistics.median(samples), 1)


def sides_of(kernel, causal: bool, shape: tuple[int, int, int, int]) -> tuple[dict, dict]:
    """Calls by name, and what each computes in [B, S, H, D]."""
    b, h, hk, s = shape
    q, k, v = (torch.randn(b * s, heads, D, device="cuda").bfloat16() for heads in (h, hk, hk))
    o, lse = torch.empty_like(q), torch.empty(h, b * s, device="cuda")
    c = torch.arange(b + 1, dtype=torch.int32) * s
    plan = kernel.plan(CQ=c, CK=c, H=h, device=0)
    launch = kernel.prepare(sl2=D**-0.5 * LOG2_E, CQ=c.cuda(), CK=c.cuda(), Q=q, K=k, V=v, O=o, LSE=lse, plan=plan)
    split = [x.view(b, s, x.shape[1], D) for x in (q, k, v)]
    turned = [x.transpose(1, 2).contiguous() for x in split]

    def cudnn():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return F.scaled_dot_product_attention(*turned, is_causal=causal, enable_gqa=h != hk)

    sides = {"cake": launch, "cudnn": cudnn}
    results = {"cake": lambda: (launch(), o.view(b, s, h, D))[1], "cudnn": lambda: cudnn().transpose(1, 2)}
    if (other := flash3()) is not None:
        call = lambda: other(*split, causal=causal)  # noqa: E731
        sides["flash3"] = call
        results["flash3"] = lambda: out[0] if isinstance(out := call(), tuple) else out
    return sides, results


def main() -> None:
    args = arguments(__doc__, "causal", "full")
    torch.manual_seed(args.seed)
    kernels = {False: cake.load(args.full), True: cake.load(args.causal)}
    rows = []
    for shape in SHAPES:
        for causal, kernel in kernels.items():
            b, h, hk, s = shape
            sides, results = sides_of(kernel, causal, shape)
            ours = results["cake"]().float()
            difference = {n: float((f().float() - ours).norm() / ours.norm()) for n, f in results.items() if n != "cake"}
            row = {
                "B": b,
                "H": h,
                "HK": hk,
                "S": s,
                "causal": causal,
                "relative_difference": difference,
                "planning_us": planning_us(kernel, b, s, h),
            }
            row["burst"] = compare(sides, "cake", BURST)
            flops = 4 * b * h * s * s * D / (2 if causal else 1)
            for side in row["burst"]["sides"].values():
                side["tflop_per_s"] = round(flops / side["median_us"] / 1e6, 1)
            shown = ", ".join(f"{n} {v['median_us']:.1f} us ({v['tflop_per_s']} TFLOP/s)" for n, v in row["burst"]["sides"].items())
            print(f"b{b} h{h}/{hk} s{s} {'causal' if causal else 'full'}: {shown}, speed over {row['burst']['cake_speed_over']}", flush=True)
            print(f"    relative difference {difference}, table of items {row['planning_us']} us", flush=True)
            rows.append(row)
            del sides, results, ours
            torch.cuda.empty_cache()
    record(args.out, "attention", {"method": BURST, "environment": environment(*kernels.values()), "shapes": rows})


if __name__ == "__main__":
    main()
