"""moe_grouped_sm90 against torch's grouped product, where it has one, and against one product an expert: alternating bursts.

    PYTHONPATH=. python bench/moe.py out/moe_grouped_sm90 [--variants out/moe_grouped_dynamic_sm90 ..]

Rows are dealt to the experts at random, so groups differ in size and end inside blocks.
"""

from __future__ import annotations

import torch
from harness import BURST, arguments, compare, environment, record

import cake_core as cake

#: Experts, rows, N, K.
SHAPES = ((8, 16384, 14336, 4096), (64, 16384, 4096, 2048), (128, 8192, 1536, 4096))


def grouped_product():
    """torch's function for A [T, K] and B [E, K, N] with the groups' ends, by either of its names; None in older versions."""
    return getattr(torch.nn.functional, "grouped_mm", None) or getattr(torch, "_grouped_mm", None)


def sides_of(kernels: dict, e: int, t: int, n: int, k: int) -> tuple[dict, dict]:
    """Calls by name, and what the record says of the groups and of how far the results are apart."""
    sizes = torch.bincount(torch.randint(0, e, (t,)), minlength=e).tolist()
    ends = torch.tensor([0, *sizes]).cumsum(0).to(torch.int32)
    a, w, off = torch.randn(t, k, device="cuda").bfloat16(), torch.randn(e, n, k, device="cuda").bfloat16(), ends.cuda()
    ours, theirs = (torch.full((t, n), float("nan"), dtype=torch.bfloat16, device="cuda") for _ in range(2))
    sides = {name: kernel.prepare(OFF=off, A=a, W=w, D=ours) for name, kernel in kernels.items()}
    parts = [(i, slice(int(x), int(y))) for i, (x, y) in enumerate(zip(ends[:-1], ends[1:], strict=True)) if x < y]

    def one_by_one():
        for i, part in parts:
            torch.matmul(a[part], w[i].T, out=theirs[part])

    sides["matmul an expert"] = one_by_one
    one_by_one()
    differences = {}
    for name in kernels:
        ours.fill_(float("nan"))
        sides[name]()
        differences[name] = float((ours.float() - theirs.float()).abs().max())
    facts = {
        "smallest_group": min(sizes),
        "largest_group": max(sizes),
        "largest_difference": max(differences.values()),
    }
    if (product := grouped_product()) is not None:
        turned, behind = w.transpose(1, 2), off[1:].contiguous()
        grouped = lambda: product(a, turned, offs=behind)  # noqa: E731
        try:
            facts["difference_to_grouped"] = float((grouped().float() - ours.float()).abs().max())
            sides["torch grouped"] = grouped
        except RuntimeError as error:
            facts["grouped_refused"] = str(error).splitlines()[0]
    return sides, facts


def main() -> None:
    args = arguments(
        __doc__, "moe", variants={"nargs": "*", "default": (), "metavar": "DIR", "help": "its other schedules, timed beside it"}
    )
    torch.manual_seed(args.seed)
    kernels = {"cake": cake.load(args.moe)}
    for kernel in map(cake.load, args.variants):
        kernels["cake " + kernel.name.removeprefix("moe_grouped_").removesuffix("_sm90")] = kernel
    rows = []
    for e, t, n, k in SHAPES:
        sides, facts = sides_of(kernels, e, t, n, k)
        row = {"E": e, "T": t, "N": n, "K": k, **facts, "burst": compare(sides, "cake", BURST)}
        for side in row["burst"]["sides"].values():
            side["tflop_per_s"] = round(2 * t * n * k / side["median_us"] / 1e6, 1)
        shown = ", ".join(f"{s} {v['median_us']:.1f} us ({v['tflop_per_s']} TFLOP/s)" for s, v in row["burst"]["sides"].items())
        print(
            f"E{e} T{t} N{n} K{k}: {shown}, speed over {row['burst']['cake_speed_over']}, difference {facts['largest_difference']}",
            flush=True,
        )
        rows.append(row)
        del sides
        torch.cuda.empty_cache()
    record(args.out, "moe", {"method": BURST, "environment": environment(*kernels.values()), "shapes": rows})


if __name__ == "__main__":
    main()
