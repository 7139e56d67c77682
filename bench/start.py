"""What a command costs before and around its work: processor time and wall time of new processes.

    python bench/start.py [--runs 10] [--out bench/results]

`cake --help`, `cake check` and `cake build --emit ptx` of the matrix product, each in new processes, in turn. Processor time is user and system
time of the child; it is what counts on a machine that does other things too. Twice: with the bytecode that Python keeps of every
module (an installed wheel has it, and so has a checkout from its second command on), and `no bytecode`, where Python may not keep
it (PYTHONDONTWRITEBYTECODE) and the compiler's own modules are compiled in each process. Proofs are made
anew in each process (CAKE_CACHE is empty). Needs no torch.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KERNEL = "kernels/gemm/gemm_sm90.cake"
COMMANDS = {
    "help": ["--help"],
    "check": ["check", KERNEL],
    "build": ["build", KERNEL, "--emit", "ptx", "--output", "-"],
}


def measured(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Milliseconds of processor time and of wall time of one process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-m", "cake_core", *command], cwd=ROOT, env=environment | {"CAKE_CACHE": ""}, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime), 1e3 * wall


def rounds(runs: int, environment: dict[str, str]) -> dict[str, dict[str, float]]:
    """Medians by command; one run of each goes before, the others alternate."""
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for turn in range(runs + 1):
        for name, command in COMMANDS.items():
            found = measured(command, environment)
            if turn:
                samples[name].append(found)
    return {
        name: {
            "cpu_ms": round(statistics.median(cpu for cpu, _ in found), 1),
            "cpu_least_ms": round(min(cpu for cpu, _ in found), 1),
            "wall_ms": round(statistics.median(wall for _, wall in found), 1),
        }
        for name, found in samples.items()
    }


def without_own(folder: Path) -> None:
    """Of a folder of bytecode, drop the compiler's own: what is left is the standard library's and the dependencies'."""
    for file in folder.rglob("*.pyc"):
        if any(part.startswith("cake_") for part in file.parts):
            file.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="processes a command and way")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results", help="folder of the JSON")
    args = parser.parse_args()
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE" and not k.startswith("CAKE_")}
    with tempfile.TemporaryDirectory() as kept:
        environment = clean | {"PYTHONPYCACHEPREFIX": kept}
        result = {"bytecode": rounds(args.runs, environment)}
        without_own(Path(kept))
        result["no bytecode"] = rounds(args.runs, environment | {"PYTHONDONTWRITEBYTECODE": "1"})
    result |= {
        "runs": args.runs,
        "environment": {
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "host": {"processor": processor(), "cores": os.cpu_count(), "python": platform.python_version(), "load": round(os.getloadavg()[0], 1)},
        },
    }
    path = args.out / "start.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    for way in ("bytecode", "no bytecode"):
        for name, r in result[way].items():
            print(f"{way:12} {name:6} {r['cpu_ms']:7.1f} ms of processor time (least {r['cpu_least_ms']:.1f}), {r['wall_ms']:7.1f} ms of wall time")
    print(f"Wrote {path}")


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())


if __name__ == "__main__":
    main()
