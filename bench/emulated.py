"""Artifacts in the emulator, on all shapes of their companions, against the references: no GPU is asked for.

    PYTHONPATH=.:<plugins> python bench/emulated.py out/gemm_sm100 out/gemm_sm100_pair .. [--schedules round-robin,random:1] [--processes N]

What `cake run --on cpu` does with one shape, one process a shape and schedule, the longest first. Recorded are, for each, how far the outputs are from the
reference in units of what the companion admits, what the emulator found, and the processor time that it took.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import cache
from math import prod
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: a process a core is enough

from start import processor

import cake_core
from cake_core.emulate.device import Api
from cake_core.emulate.outcome import Unsupported
from cake_core.emulate.turns import turns_of
from cake_core.plugins import load_registry
from cake_core.runtime import driver
from cake_core.runtime.companion import load_companion
from cake_core.runtime.execute import run_artifact
from cake_core.runtime.loader import read_manifest

ROOT = Path(__file__).resolve().parents[1]


def companion(kernel: str) -> Path:
    return next((ROOT / "kernels").glob(f"*/{kernel}.py"))


@cache
def emulates():
    return load_registry().emulates


def one(folder: Path, shape: dict, schedule: str, seed: int) -> dict:
    """One shape of one artifact."""
    manifest, told, begun = read_manifest(folder), [], time.process_time()
    api = Api(emulates(), tuple(manifest.compute_capability), lambda grid: told.extend(grid.findings), lambda: turns_of(schedule))
    case = {"kernel": manifest.kernel, "arch": manifest.arch, "shape": shape, "schedule": schedule}
    try:
        with driver.use(api):
            (result,) = run_artifact(folder, companion(manifest.kernel), [shape], seed, text=True).results
    except Unsupported as error:
        return case | {"right": False, "refused": str(error)}
    outputs = {o.name: {"ok": o.ok, "worst": o.worst} for o in result.outputs}
    seconds = round(time.process_time() - begun, 2)
    findings = sorted({f"{f.code}: {f.message}" for f in told})[:5]
    return case | {"right": result.ok and not told, "fault": result.fault, "outputs": outputs, "findings": findings, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("artifacts", type=Path, nargs="+", help="artifact folders, from 'cake build -o'")
    parser.add_argument("--schedules", default="round-robin,random:1", help="names as of 'cake run --schedule', with commas between")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "emulated.json", help="file of the JSON")
    args = parser.parse_args()
    todo = [
        (folder, shape, schedule, args.seed)
        for folder in args.artifacts
        for shape in load_companion(companion(read_manifest(folder).kernel)).call("shapes")
        for schedule in args.schedules.split(",")
    ]
    todo.sort(key=lambda job: -prod(max(v, 1) for v in job[1].values()))
    begun, cases = time.perf_counter(), []
    with ProcessPoolExecutor(args.processes, get_context("spawn")) as pool:
        for n, case in enumerate(pool.map(one, *zip(*todo, strict=True)), 1):
            cases.append(case)
            at = " ".join(f"{k}={v}" for k, v in case["shape"].items())
            told = "" if case["right"] else f"  WRONG {case.get('refused') or case['fault'] or case['findings'] or case['outputs']}"
            print(f"{n}/{len(todo)} {case['kernel']} {case['arch']} {at} {case['schedule']} {case.get('seconds', 0)} s{told}", flush=True)
    wrong = [c for c in cases if not c["right"]]
    host = {"processor": processor(), "cores": os.cpu_count(), "python": platform.python_version()}
    result = {
        "cases": sorted(cases, key=lambda c: (c["kernel"], c["arch"], *c["shape"].values(), c["schedule"])),
        "wrong": len(wrong),
        "wall_s": round(time.perf_counter() - begun, 1),
        "environment": {"date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), "host": host, "versions": {"cake": cake_core.__version__}},
    }
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{len(cases)} runs, {len(wrong)} wrong; wrote {args.out}")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
