"""What a proof costs: every kernel of the zoo, for each of its targets, proved in a process of its own.

    python bench/prove.py [--runs 3] [--cores 2] [--only NAME] [--out bench/results]

Wall time from a kernel's facts to the verdicts of all rules, the solver's import included and Python's start not: `cold`, nothing kept, and
`kept`, what was proved read from the folder of proofs. Runs of kernels alternate; medians. `processor`: of a cold run, the copy of the process included.
`budget`: what a proof may take on two cores, by kind of kernel, and whether each keeps it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from start import processor

import cake_core
from cake_core import smt

ROOT = Path(__file__).resolve().parents[1]

#: Milliseconds that a cold proof may take on two cores, by the folder of its kernel, and one of what is kept.
COLD, KEPT = {"gemm": 1000, "attention": 5000}, 100

ONE = """
import gc, json, os, sys, time
from pathlib import Path
from cake_core.facts import facts_of, rows_of
from cake_core.pipeline import frontend, prover
from cake_core.plugins import load_registry
from cake_core.rules import Outcome, judge, rulebook
from cake_core.source import Source
gc.set_threshold(100_000)
path, arch, cores = sys.argv[1:]
registry, rules = load_registry(), rulebook().rules
front = frontend(Source(path, Path(path).read_text(encoding="utf-8")), registry, arch)
rows = rows_of(facts_of(front.typed, registry, front.arch), front.arch, registry)
wall, before = time.perf_counter(), os.times()
asked = prover(int(cores))(rows, rules)
found = judge(rules, rows, asked, kept=asked.kept)
asked.close()
wall, after = time.perf_counter() - wall, os.times()
left = [v.rule.id for v in found if v.outcome not in (Outcome.PROVED, Outcome.INAPPLICABLE)]
print(json.dumps({"wall": wall, "cpu": sum(after[:4]) - sum(before[:4]), "left": left}))
"""


def kernels(only: str | None) -> list[tuple[Path, str]]:
    """Texts and targets."""
    from cake_core.pipeline import choose_kernel
    from cake_core.source import Source
    from cake_core.syntax import parse

    paths = [p for p in sorted((ROOT / "kernels").rglob("*.cake")) if only is None or p.stem == only]
    return [(p, arch) for p in paths for arch in choose_kernel(parse(Source(str(p), p.read_text(encoding="utf-8"))), None).targets]


def once(path: Path, arch: str, cores: int, cache: str) -> dict:
    out = subprocess.run(
        [sys.executable, "-c", ONE, str(path), arch, str(cores)],
        cwd=ROOT,
        env=os.environ | {"CAKE_CACHE": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(out.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="cold processes a kernel")
    parser.add_argument("--cores", type=int, default=2, help="cores of a proof")
    parser.add_argument("--only", help="one kernel of the zoo, by the name of its file")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results", help="folder of the JSON")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)  # before the minutes that it takes
    zoo = kernels(args.only)
    cold: dict[tuple[Path, str], list[dict]] = {k: [] for k in zoo}
    for _ in range(args.runs):
        for k in zoo:
            cold[k].append(once(*k, args.cores, ""))
    rows = []
    with tempfile.TemporaryDirectory() as kept:
        for path, arch in zoo:
            once(path, arch, args.cores, kept)
            again = [once(path, arch, args.cores, kept) for _ in range(args.runs)]
            runs = cold[path, arch]
            row = {
                "kernel": path.stem,
                "arch": arch,
                "cold_ms": round(1e3 * statistics.median(r["wall"] for r in runs), 1),
                "processor_ms": round(1e3 * statistics.median(r["cpu"] for r in runs), 1),
                "kept_ms": round(1e3 * statistics.median(r["wall"] for r in again), 1),
                "budget_ms": COLD.get(path.parent.name),
                "not_proved": sorted({x for r in runs for x in r["left"]}),
            }
            row["within"] = row["kept_ms"] <= KEPT and (row["budget_ms"] is None or row["cold_ms"] <= row["budget_ms"])
            rows.append(row)
            what = f", not proved: {', '.join(row['not_proved'])}" if row["not_proved"] else ""
            what += "" if row["within"] else f", over its budget of {row['budget_ms'] or 'any'} and {KEPT} ms"
            print(f"{path.stem:28} {arch:6} cold {row['cold_ms']:7.1f} ms, kept {row['kept_ms']:6.1f} ms{what}", flush=True)
    host = {"processor": processor(), "cores": os.cpu_count(), "python": platform.python_version(), "load": round(os.getloadavg()[0], 1)}
    versions = {"cake": cake_core.__version__, "z3": smt.version()}
    result = {
        "kernels": rows,
        "budget": {"cold_ms": COLD, "kept_ms": KEPT, "cores": 2},
        "cores": args.cores,
        "runs": args.runs,
        "environment": {"date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), "host": host, "versions": versions},
    }
    path = args.out / "prove.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(f"Wrote {path}")


if __name__ == "__main__":
    main()
