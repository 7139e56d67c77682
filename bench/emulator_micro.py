"""The emulator held against a GPU, instruction by instruction: the cases of `micro/`, each on both, compared.

    PYTHONPATH=.:<plugins> python bench/emulator_micro.py [--module integers ..] [--both-emulated] [--processes N] [--out bench/results]
    PYTHONPATH=.:<plugins> python bench/emulator_micro.py --assemble

On the GPU the driver compiles each text; a module's cases run in one process, and after a fault in a new one behind the case that failed. On the
processor the emulator executes the same text, in as many processes as there are cores. `--both-emulated`: without a GPU, the emulator under two schedules.
`--assemble`: the assembler takes every text for sm_90a, and nothing is run.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cache
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: a process a core is enough

import numpy as np
from micro.case import Case, compared, digest, run
from micro.families import MODULES, of_module
from start import processor

import cake_core
from cake_core.emulate.device import Api
from cake_core.emulate.outcome import Unsupported
from cake_core.emulate.turns import turns_of
from cake_core.plugins import load_registry
from cake_core.ptx.reader import PtxSyntaxError
from cake_core.runtime import driver
from cake_core.runtime.errors import DriverError

ROOT = Path(__file__).resolve().parents[1]
#: Seconds that the cases of one module may take on a GPU.
SECONDS = 120
#: Of every so many cases what the GPU wrote is kept, for tests.
EACH = 7


@cache
def listed(module: str) -> list[Case]:
    return list(of_module(module))


@cache
def emulates():
    return load_registry().emulates


def emulated(module: str, number: int, schedule: str = "round-robin") -> dict:
    """Outputs and findings of one case in the emulator."""
    told, begun = [], time.process_time()
    api = Api(
        emulates(), (9, 0), lambda grid: told.extend(f"{f.code}: {f.message} (line {f.line})" for f in grid.findings), lambda: turns_of(schedule)
    )
    try:
        with driver.use(api) as cuda:
            found = run(listed(module)[number], cuda)
    except (Unsupported, PtxSyntaxError) as error:
        return {"refused": f"line {error.line}: {error.why}", "opcode": getattr(error, "opcode", None)}
    return {"outputs": found, "findings": told[:3], "seconds": time.process_time() - begun}


def on_gpu(module: str, first: int, folder: Path) -> None:
    """Cases of a module from one on; what each wrote goes to a file of its own."""
    cuda = driver.driver()
    with cuda.active(cuda.primary(0)):
        for n, case in enumerate(listed(module)[first:], first):
            try:
                found = {"outputs": run(case, cuda)}
            except DriverError as error:
                found = {"failed": error.diagnostic.message}
                if error.diagnostic.code == "runtime/device-fault":
                    (folder / f"{n}.pickle").write_bytes(pickle.dumps(found))
                    raise SystemExit(1) from None
            (folder / f"{n}.pickle").write_bytes(pickle.dumps(found))


def from_gpu(module: str, folder: Path) -> list[dict]:
    """What the GPU gave for each case of a module, in processes of their own."""
    folder.mkdir()
    total, first, failed = len(listed(module)), 0, {}
    while first < total:
        command = [sys.executable, __file__, "--on-gpu", module, str(first), str(folder)]
        try:
            told = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS).stderr
        except subprocess.TimeoutExpired:
            told = f"more than {SECONDS} seconds"
        done = next((n for n in range(first, total) if not (folder / f"{n}.pickle").exists()), total)
        if done < total and (done == first or not _failed(folder / f"{done - 1}.pickle")):
            failed[done] = {"failed": (told.strip().splitlines() or ["its process ended"])[-1]}
            done += 1
        first = done
    return [failed[n] if n in failed else pickle.loads((folder / f"{n}.pickle").read_bytes()) for n in range(total)]


def _failed(path: Path) -> bool:
    return "failed" in pickle.loads(path.read_bytes())


def assembled(modules: list[str]) -> int:
    """How many texts the assembler refuses; each is told."""
    from cake_core.assemble import find_assembler

    ptxas, bad = find_assembler().path, 0
    with tempfile.TemporaryDirectory() as scratch:
        for module in modules:
            for case in listed(module):
                path = Path(scratch) / "k.ptx"
                path.write_text(case.text, encoding="utf-8")
                told = subprocess.run([ptxas, "-arch=sm_90a", "-O1", path, "-o", os.devnull], capture_output=True, text=True)
                if told.returncode:
                    bad += 1
                    print(f"{case.name}: {told.stderr.strip()}", flush=True)
            print(f"{module}: {len(listed(module))} texts", flush=True)
    return bad


def judged(module: str, case: Case, theirs: dict, mine: dict) -> dict:
    """One case: what each output is like, or why there is none."""
    said = {"module": module, "family": case.family, "form": case.form}
    if "failed" in theirs:
        return said | {"ok": False, "gpu": theirs["failed"]}
    if "refused" in mine or "refused" in theirs:
        return said | {"ok": False, "refused": mine.get("refused") or theirs["refused"]}
    outputs = {n: compared(how, mine["outputs"][n], theirs["outputs"][n]) for n, how in case.outputs.items()}
    said |= {"ok": all(o["ok"] for o in outputs.values()) and not mine["findings"], "outputs": outputs}
    return said | ({"findings": mine["findings"]} if mine["findings"] else {})


def main() -> None:
    if sys.argv[1:2] == ["--on-gpu"]:
        on_gpu(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", nargs="+", choices=MODULES, default=list(MODULES))
    parser.add_argument("--both-emulated", action="store_true", help="no GPU: the emulator on both sides, under two schedules")
    parser.add_argument("--assemble", action="store_true", help="only assemble the texts")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "emulator_micro.json", help="file of the JSON")
    parser.add_argument("--kept", type=Path, help="file for what the GPU wrote, case by case (pickle)")
    args = parser.parse_args()
    if args.assemble:
        raise SystemExit(1 if assembled(args.module) else 0)
    rows, gpu = [], {}
    with (
        ProcessPoolExecutor(args.processes, get_context("spawn")) as pool,
        ThreadPoolExecutor(4) as modules,  # the driver compiles texts: several at once
        tempfile.TemporaryDirectory() as scratch,
    ):
        if not args.both_emulated:
            from_device = {m: modules.submit(from_gpu, m, Path(scratch) / m) for m in args.module}
        jobs = {(m, n): pool.submit(emulated, m, n) for m in args.module for n in range(len(listed(m)))}
        for m in args.module:
            if args.both_emulated:
                others = [pool.submit(emulated, m, n, "random:1") for n in range(len(listed(m)))]
                theirs = (o.result() for o in others)
            else:
                theirs = from_device[m].result()
            for n, (case, found) in enumerate(zip(listed(m), theirs, strict=True)):
                gpu[case.name] = found
                rows.append(judged(m, case, found, jobs[m, n].result()))
                if not rows[-1]["ok"]:
                    print(
                        f"{case.name}: {json.dumps({k: v for k, v in rows[-1].items() if k not in ('module', 'family', 'form', 'ok')})}", flush=True
                    )
            mine = [r for r in rows if r["module"] == m]
            print(f"{m}: {len(mine)} cases, {sum(r['ok'] for r in mine)} agree", flush=True)
    if args.kept:
        args.kept.write_bytes(pickle.dumps(gpu))
    if args.both_emulated:
        raise SystemExit(0 if all(r["ok"] for r in rows) else 1)
    where = driver.driver()
    version = where.call("cuDriverGetVersion")
    environment = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "gpu": where.device_name(0),
        "cuda": f"{version // 1000}.{version % 1000 // 10}",
        "driver": _driver_version(),
        "host": {"processor": processor(), "cores": os.cpu_count(), "python": platform.python_version()},
        "versions": {"cake": cake_core.__version__, "numpy": np.__version__},
    }
    apart = [r for r in rows if not equal(r)]
    head = {"differ": sum(not r["ok"] for r in rows), "environment": environment, "families": table(rows), "equal": equals(rows)}
    args.out.write_text(written(head, "cases", map(json.dumps, apart)))
    agree = {f"{r['family']}/{r['form']}" for r in rows if r["ok"]}  # the others are in the record
    sample = [(m, case) for m in args.module for case in listed(m)[::EACH] if case.name in agree]
    kept = [json.dumps([m, case.name, d]) for m, case in sample if (d := determined(case, gpu[case.name]))]
    args.out.with_stem(args.out.stem + "_sample").write_text(written({"environment": environment}, "cases", kept))
    for family, told in table(rows).items():
        print(f"{family}: {', '.join(f'{k} {v}' for k, v in told.items())}")
    print(f"{len(rows)} cases, {sum(r['ok'] for r in rows)} agree; wrote {args.out}")
    raise SystemExit(0 if all(r["ok"] for r in rows) else 1)


def equal(row: dict) -> bool:
    """Whether every bit of every output is the GPU's."""
    return row["ok"] and not any(o["differ"] for o in row["outputs"].values())


def equals(rows: list[dict]) -> dict[str, list[str]]:
    """By family the forms whose every bit is the GPU's."""
    found: dict[str, list[str]] = {}
    for row in filter(equal, rows):
        found.setdefault(row["family"], []).append(row["form"])
    return found


def table(rows: list[dict]) -> dict[str, dict[str, int]]:
    """By family: cases, elements, cases equal in every bit, others within what the ISA leaves open, and those that are neither."""
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        told = found.setdefault(row["family"], dict.fromkeys(("cases", "elements", "equal", "admitted", "different"), 0))
        told["cases"] += 1
        told["elements"] += sum(o["elements"] for o in row.get("outputs", {}).values())
        told["equal" if equal(row) else "admitted" if row["ok"] else "different"] += 1
    return found


def determined(case: Case, found: dict) -> dict[str, str]:
    """Digests of what the GPU wrote, of the outputs whose bits are determined."""
    return {n: d for n, how in case.outputs.items() if "outputs" in found and (d := digest(how, found["outputs"][n])) is not None}


def written(head: dict, name: str, items: Iterable[str]) -> str:
    """JSON with one item of the list a line."""
    return json.dumps(head)[:-1] + f',\n"{name}": [\n' + ",\n".join(items) + "\n]}\n"


def _driver_version() -> str | None:
    try:
        told = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True, timeout=20)
        return told.stdout.strip() or None
    except OSError:
        return None


if __name__ == "__main__":
    main()
