"""One shape of each artifact, with tails and several items a cluster, for compute-sanitizer. Needs no torch.

    for tool in memcheck racecheck synccheck initcheck; do
      PYTHONPATH=. compute-sanitizer --tool $tool --error-exitcode 1 python bench/sanitize.py out/gemm_sm90 out/rmsnorm
    done
"""

from __future__ import annotations

import sys
from pathlib import Path

from cake_core.runtime import load
from cake_core.runtime.execute import run_artifact

KERNELS = Path(__file__).resolve().parents[1] / "kernels"
#: Kernel to its companion and one shape: a tail in each dimension, more blocks of K than pipeline slots, more rows than CTAs.
SHAPES = {
    "gemm_sm90": ("gemm/gemm_sm90.py", {"M": 300, "N": 520, "K": 392}),
    "rmsnorm": ("rmsnorm/rmsnorm.py", {"R": 300, "C": 264}),
}


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    failed = 0
    for folder in map(Path, sys.argv[1:]):
        name = load(folder).name
        if name not in SHAPES:
            print(f"{folder}: no shape of '{name}' is known here, only of {', '.join(SHAPES)}")
            return 2
        companion, shape = SHAPES[name]
        report = run_artifact(folder, KERNELS / companion, [shape], seed=0)
        print(f"{report.kernel} {shape}: {'ok' if report.ok else report.to_json()}", flush=True)
        failed += not report.ok
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
