"""Every kernel on all shapes of its companion, against the companion's float64 reference: what `cake run` does, put on record.

    PYTHONPATH=. python bench/check_companions.py out/gemm_sm90 out/rmsnorm ..

Outputs are poisoned and lie between guard bands. The companion is found by the kernel's name. Needs no torch but for the record.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from harness import RESULTS, environment, record

import cake_core as cake
from cake_core.runtime.execute import run_artifact

KERNELS = Path(__file__).resolve().parents[1] / "kernels"


def companion(kernel: str) -> Path:
    return next(KERNELS.glob(f"*/{kernel}.py"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifacts", type=Path, nargs="+", help="artifact folders, from 'cake build -o'")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    kernels = [cake.load(folder) for folder in args.artifacts]
    cases = []
    for folder, kernel in zip(args.artifacts, kernels, strict=True):
        report = run_artifact(folder, companion(kernel.manifest.kernel), None, args.seed).to_dict()
        results = report["results"]
        cases += [{"kernel": kernel.name, "arch": kernel.manifest.arch, **result} for result in results]
        bad = [r for r in results if not r["ok"]]
        print(
            f"{kernel.name} for {kernel.manifest.arch}: {len(results)} shapes, {len(bad)} wrong",
            *bad,
            sep="\n  ",
            flush=True,
        )
    wrong = [c for c in cases if not c["ok"]]
    record(
        args.out,
        "companions",
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
