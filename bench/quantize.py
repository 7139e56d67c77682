"""quantize_e4m3 against the copy bandwidth of the same run, torch, and torch.compile.

    PYTHONPATH=. python bench/quantize.py out/quantize_e4m3 [--compile]

The copy moves as many bytes as the kernel must: two read and one written an element, and a scale a row.
"""

from __future__ import annotations

import torch
from harness import BURST, SUSTAINED, arguments, compare, environment, record

import cake_core as cake

SHAPES = ((32768, 8192), (8192, 8192), (65536, 4096))
LARGEST, LEAST = 448.0, 1e-30


def by_rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What the kernel computes, written in torch."""
    top = x.float().abs().amax(1, keepdim=True)
    return (x.float() * (LARGEST / (top + LEAST))).to(torch.float8_e4m3fn), top[:, 0] / LARGEST


def sides_of(kernel, x: torch.Tensor, compiled) -> tuple[dict, dict]:
    """Calls by name, and what the record says of the results."""
    y, s = torch.zeros(x.shape, dtype=torch.float8_e4m3fn, device="cuda"), torch.zeros(len(x), device="cuda")
    moved = x.nbytes + y.nbytes + s.nbytes
    source = torch.empty(moved // 2, dtype=torch.uint8, device="cuda")
    copied = torch.empty_like(source)
    sides = {"cake": kernel.prepare(X=x, Y=y, S=s), "copy": lambda: copied.copy_(source), "torch": lambda: by_rows(x)}
    if compiled is not None:
        sides["compiled"] = lambda: compiled(x)
    sides["cake"]()
    wanted, scales = by_rows(x)
    facts = {
        "bytes": moved,
        "elements_unlike_torch": int((y.float() != wanted.float()).sum()),
        "scales_agree": bool(torch.equal(s, scales)),
    }
    return sides, facts


def main() -> None:
    args = arguments(__doc__, "quantize", compile={"action": "store_true", "help": "torch.compile's kernel as a further side"})
    torch.manual_seed(args.seed)
    kernel = cake.load(args.quantize)
    compiled = torch.compile(by_rows, dynamic=False) if args.compile else None
    rows = []
    for r, c in SHAPES:
        sides, facts = sides_of(kernel, torch.randn(r, c, device="cuda").bfloat16(), compiled)
        row = {"R": r, "C": c, **facts}
        for name, mode in (("burst", BURST), ("sustained", SUSTAINED)):
            row[name] = compare(sides, "cake", mode)
            for side in row[name]["sides"].values():
                side["gb_per_s"] = round(facts["bytes"] / side["median_us"] / 1e3, 1)
            shown = ", ".join(f"{s} {v['median_us']:.1f} us ({v['gb_per_s']} GB/s)" for s, v in row[name]["sides"].items())
            print(f"{r}x{c} {name}: {shown}; speed over {row[name]['cake_speed_over']}", flush=True)
        rows.append(row)
        del sides
    result = {"method": {"burst": BURST, "sustained": SUSTAINED}, "environment": environment(kernel), "shapes": rows}
    record(args.out, "quantize_e4m3", result)


if __name__ == "__main__":
    main()
