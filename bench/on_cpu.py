"""What a tile costs without a GPU: the matrix products in the emulator (`cake run --on cpu`) and in the simulator (`--on sim`).

    PYTHONPATH=.:<plugins> python bench/on_cpu.py [--runs 5] [--out bench/results]

One item of work of 128 x 256 and K = 512 (eight steps of K): random inputs, every output compared with the reference; one thread does all of it. A first run, which
imports and translates, goes before the others; medians of these. Build and proof are not in it (bench/start.py, bench/prove.py).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy

from start import processor

import cake_core
from cake_core import artifact
from cake_core.cli.emulated import run_emulated
from cake_core.cli.simulated import simulated
from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.source import Source

ROOT = Path(__file__).resolve().parents[1]
SHAPE = {"M": 128, "N": 256, "K": 512}
#: Text, target, and seconds that a run may take by the executor.
KERNELS = (("gemm_sm80", "sm80"), ("gemm_sm90", "sm90"), ("gemm_sm100", "sm100"), ("gemm_sm100_pair", "sm100"))
MOST = {"emulator": 5.0, "simulator": 0.5}


def measured(name: str, arch: str, runs: int) -> dict:
    """Medians of one kernel; raises SystemExit where a run is wrong."""
    path = ROOT / "kernels" / "gemm" / f"{name}.cake"
    made = build(Source(str(path), path.read_text(encoding="utf-8")), load_registry(), arch, prove=True)
    companion, samples = path.with_suffix(".py"), {e: [] for e in MOST}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / name
        artifact.write(folder, made.files)
        for turn in range(runs + 1):
            for executor, found in samples.items():
                told: list = []
                begun, before = time.perf_counter(), time.process_time()
                if executor == "emulator":
                    report = run_emulated(folder, companion, [SHAPE], turn, "round-robin", told, None)
                else:
                    report = simulated(made, folder, companion, [SHAPE], turn, "round-robin", told)
                spent = time.perf_counter() - begun, time.process_time() - before
                if told or not report.ok:
                    raise SystemExit(f"{name} for {arch} is wrong in the {executor}: {[d.message for d in told] or report}")
                if turn:
                    found.append(spent)
    row = {"kernel": name, "arch": arch}
    for executor, found in samples.items():
        wall, cpu = (round(statistics.median(column), 3) for column in zip(*found, strict=True))
        row[executor] = {"wall_s": wall, "cpu_s": cpu, "within": wall <= MOST[executor]}
        print(f"{name:<16} {arch:<6} {executor:<10} {wall:7.3f} s", flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results", help="folder of the JSON")
    args = parser.parse_args()
    rows = [measured(*kernel, args.runs) for kernel in KERNELS]
    host = {"processor": processor(), "cores": os.cpu_count(), "python": platform.python_version()}
    versions = {"cake": cake_core.__version__, "numpy": version("numpy")}
    result = {
        "shape": SHAPE,
        "most_s": MOST,
        "runs": args.runs,
        "kernels": rows,
        "environment": {"date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), "host": host, "versions": versions},
    }
    out = args.out / "on_cpu.json"
    out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {out}")
    raise SystemExit(0 if all(row[e]["within"] for row in rows for e in MOST) else 1)


if __name__ == "__main__":
    main()
