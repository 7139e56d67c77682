"""Mutants of kernels on a GPU: what becomes of each, beside what the verifier says of it. Needs neither the compiler nor torch.

    PYTHONPATH=. python bench/mutants_device.py [--budget 420] [--out bench/results]

Takes `build/mutants_device` (`mutants_build.py`). Each mutant has a process of its own, which runs it at several shapes, as drawn and with
waits put into it, three times each, into poisoned outputs between guard bands, and compares with the companion's reference:

    right     every launch, the same bits each time
    varies    right, but not the same bits
    wrong     some launch is wrong, leaves something unwritten or writes outside
    fault     the driver reports one
    hang      a launch that does not end within `DEADLINE_S`; the process is ended

The kernels themselves, with the same waits, run first and last: they must be right. What is not right though the verifier accepts it is
run once more alone, after all others.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from cake_core.artifact import sha256
from cake_core.runtime.companion import load_companion
from cake_core.runtime.compare import judge
from cake_core.runtime.driver import driver
from cake_core.runtime.errors import DriverError
from cake_core.runtime.execute import arguments_of, device_info
from cake_core.runtime.kernel import load

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "mutants_device"
SEED = 0
REPEATS = 3
DEADLINE_S = 5.0  # of a launch; the longest that is right takes some milliseconds
PROCESS_S = 60.0
GRACE_S = 5.0  # for a process that reported a hang to end
WORST = ("right", "varies", "wrong", "fault", "hang")
NOT_READY = 600  # CUDA_ERROR_NOT_READY
#: By kernel: tails, several blocks of the reduction, more items than clusters that are resident.
SHAPES = {
    "gemm_sm90": [{"M": 130, "N": 264, "K": 72}, {"M": 300, "N": 520, "K": 1000}, {"M": 2100, "N": 2056, "K": 328}],
    "gemm_bias_gelu_sm90": [{"M": 130, "N": 264, "K": 72}, {"M": 300, "N": 520, "K": 1000}, {"M": 2100, "N": 2056, "K": 328}],
    "gemm_sm80": [{"M": 130, "N": 264, "K": 72}, {"M": 300, "N": 520, "K": 1000}, {"M": 2100, "N": 2056, "K": 200}],
    "attn_fwd_sm90": [
        {"B": 2, "H": 4, "HK": 2, "TQ": 5, "TK": 700},
        {"B": 3, "H": 2, "HK": 1, "TQ": 300, "TK": 300},
        {"B": 9, "H": 16, "HK": 4, "TQ": 3000, "TK": 4000},
    ],
    "kmeans_assign_sm90": [{"NB": 1, "N": 256, "K": 128}, {"NB": 3, "N": 257, "K": 1024}, {"NB": 2, "N": 20000, "K": 260}],
    "knn_part_sm90": [{"Q": 129, "N": 1028}, {"Q": 513, "N": 5000}, {"Q": 70, "N": 20000}],
    "moe_grouped_sm90": [{"E": 2, "T": 300, "N": 264, "K": 200}, {"E": 9, "T": 2000, "N": 1032, "K": 328}],
    "softmax": [{"R": 5, "C": 4104}, {"R": 300, "C": 2048}, {"R": 270, "C": 16392}],
    "softmax_cluster": [{"R": 5, "C": 4104}, {"R": 17, "C": 131072}, {"R": 100, "C": 40000}],
    "rmsnorm": [{"R": 5, "C": 8192}, {"R": 300, "C": 264}, {"R": 300, "C": 8184}],
}


# --- one process: one mutant -------------------------------------------------------------------------------------


def one(folder: Path, delays: list[int], references: Path, control: bool) -> None:
    """Prints a line of JSON for each delay and shape."""
    first = load(folder / str(delays[0]), violated=True)
    name = first.manifest.kernel
    beside = load_companion(next((ROOT / "kernels").glob(f"*/{name}.py")))
    cuda = driver()
    with cuda.active(cuda.primary(0)):
        cases = [arguments_of(first, beside, shape, SEED, 0, cuda) for shape in SHAPES[name]]
        if control:
            write_references(beside, cases, references)
        for delay in delays:
            kernel = load(folder / str(delay), violated=True)
            for n, case in enumerate(cases):
                found = launches(kernel, case, reader(references, n), cuda)
                print(json.dumps({"delay": delay, "shape": SHAPES[name][n], **found}), flush=True)
                if found["outcome"] in ("fault", "hang"):
                    os._exit(1)  # the context is lost, and its objects with it


def launches(kernel, case, expected, cuda) -> dict:
    """One shape, `REPEATS` times."""
    launch = kernel.prepare(**case.arguments)
    bits, outcome, detail = None, "right", None
    for _ in range(REPEATS):
        for out in case.outputs.values():
            out.clear()
        try:
            launch(0)
            if not ended(cuda):
                return {"outcome": "hang", "detail": f"no end within {DEADLINE_S:g} s"}
            cuda.call("cuCtxSynchronize")
        except DriverError as error:
            return {"outcome": "fault", "detail": error.diagnostic.message}
        now = [out.array.numpy().tobytes() for out in case.outputs.values()]
        outside = sum(out.guard_bytes() for out in case.outputs.values())
        if bits == now and not outside:
            continue
        seen = "right"
        if bits is not None and bits != now:
            seen = "varies"
        for output, out in case.outputs.items():
            r = judge(output, out, *expected(output))
            if not r.ok:
                seen, detail = "wrong", f"{output}: {r.wrong} wrong, {r.unwritten} unwritten, {r.guard_bytes} bytes outside"
        bits = bits or now
        outcome = max(outcome, seen, key=WORST.index)
    return {"outcome": outcome, "detail": detail}


def ended(cuda) -> bool:
    until = time.monotonic() + DEADLINE_S
    while int(cuda.api.cuStreamQuery(cuda.api.CUstream(0))[0]) == NOT_READY:
        if time.monotonic() > until:
            return False
        time.sleep(0.0005)
    return True


def write_references(beside, cases, folder: Path) -> None:
    import numpy

    for n, case in enumerate(cases):
        expected = beside.call("reference", case.inputs)
        admitted = beside.admitted(case.inputs, expected)
        for output, values in expected.items():
            numpy.save(folder / f"{n}.{output}.npy", values)
            numpy.save(folder / f"{n}.{output}.admitted.npy", numpy.broadcast_to(admitted[output], values.shape))


def reader(folder: Path, n: int):
    import numpy

    return lambda output: [numpy.load(folder / f"{n}.{output}{end}.npy") for end in ("", ".admitted")]


# --- all of them -------------------------------------------------------------------------------------------------


def run(row: dict, unpacked: Path, references: Path) -> dict:
    """What became of one mutant: its row with `outcome`, and the runs that are not right."""
    own = references / row["kernel"].replace("/", ".")
    own.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, "--one", str(unpacked / row["name"]), "--delays", *map(str, row["delays"]), "--references", str(own)]
    if row["n"] < 0:
        command.append("--control")
    start = time.monotonic()
    out, err, stopped = finished(command, own / f"{row['name']}.out")
    runs = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    outcome = max((r["outcome"] for r in runs), key=WORST.index, default=None)
    whole = len(runs) == len(row["delays"]) * len(SHAPES[Path(row["kernel"]).name])
    error = "" if whole or outcome in ("fault", "hang") else stopped or err.strip()[-600:] or "it ended early"
    return row | {
        "outcome": outcome if not error else "not run",
        "launches": len(runs) * REPEATS,
        "runs": [r for r in runs if r["outcome"] != "right"],
        **({"error": error} if error else {}),
        "seconds": round(time.monotonic() - start, 1),
    }


def finished(command: list[str], log: Path) -> tuple[str, str, str]:
    """What a process of its own printed, to either side, and why it was ended. One that hangs says so, and may not get away from its GPU by
    itself: then it is killed, and left alone if that does not end it."""
    with log.open("w+") as out, log.with_suffix(".err").open("w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True, cwd=ROOT)
        until, stopped = time.monotonic() + PROCESS_S, ""
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
            if '"hang"' in log.read_text():
                until = min(until, time.monotonic() + GRACE_S)
        if process.poll() is None:
            stopped = f"the process did not end within {PROCESS_S:g} s"
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
        return log.read_text(), log.with_suffix(".err").read_text(), stopped


def campaign(rows: list[dict], unpacked: Path, references: Path, workers: int, until: float) -> list[dict]:
    done = []

    def task(row: dict) -> dict | None:
        if time.monotonic() > until:
            return None
        found = run(row, unpacked, references)
        print(
            f"{found['name']:<32} {row['operator']:<18} {row['verdict']:<12} {found['outcome']:<8} {found['seconds']:5} s",
            found.get("error", ""),
            flush=True,
        )
        return found

    with ThreadPoolExecutor(workers) as pool:
        for found in pool.map(task, rows):
            if found is not None:
                done.append(found)
    return done


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--folder", type=Path, default=FOLDER)
    args.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    args.add_argument("--budget", type=float, default=420.0, help="seconds after which no further mutant is begun")
    args.add_argument("--workers", type=int, default=5)
    args.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    args.add_argument("--delays", type=int, nargs="*", help=argparse.SUPPRESS)
    args.add_argument("--references", type=Path, help=argparse.SUPPRESS)
    args.add_argument("--control", action="store_true", help=argparse.SUPPRESS)
    given = args.parse_args()
    if given.one:
        one(given.one, given.delays, given.references, given.control)
        return
    start = time.monotonic()
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    index = []
    with tempfile.TemporaryDirectory() as temporary:
        unpacked, references = Path(temporary, "artifacts"), Path(temporary, "references")
        for path in sorted(given.folder.glob("*.zip")):
            of = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
            if sha256(path.read_bytes()) != of["sha256"]:
                raise SystemExit(f"'{path.name}' and its list are not of one build")
            index += of["mutants"]
            zipfile.ZipFile(path).extractall(unpacked)
        until = start + given.budget
        controls = campaign([r for r in index if r["n"] < 0], unpacked, references, given.workers, until)
        sound = {c["kernel"] for c in controls if c["outcome"] == "right"}
        rows = [r for r in index if r["n"] >= 0 and r["kernel"] in sound]
        rows.sort(key=lambda r: r["rank"])
        mutants = campaign(rows, unpacked, references, given.workers, until)
        again = [m for m in mutants if m["verdict"] == "accepted" and m["outcome"] != "right"]
        alone = campaign([{k: m[k] for k in index[0]} for m in again], unpacked, references, 1, until + 30)
        last = campaign([r for r in index if r["n"] < 0 and r["kernel"] in sound], unpacked, references, given.workers, until + 60)
    found = {
        "environment": environment(),
        "seconds": round(time.monotonic() - start),
        "deadline_s": DEADLINE_S,
        "repeats": REPEATS,
        "sizes": SHAPES,
        "controls": controls,
        "controls_afterwards": last,
        "mutants": sorted(mutants, key=lambda m: (m["kernel"], m["n"])),
        "alone": alone,
    }
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "mutants_device.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for verdict in ("accepted", "refused", "not analysed"):
        print(verdict, dict(Counter(m["outcome"] for m in mutants if m["verdict"] == verdict)))
    print("controls", dict(Counter(c["outcome"] for c in controls)), "afterwards", dict(Counter(c["outcome"] for c in last)), f"{found['seconds']} s")


def environment() -> dict:
    info = device_info(driver(), 0)
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "gpu": info.name,
        "multiprocessors": info.multiprocessors,
        "driver_cuda": info.driver,
    }


if __name__ == "__main__":
    main()
