"""What the scripts of this folder share: timing that compares only inside one process, and a record of where it ran.

Big matrix products run into the power limit, and the clock that a GPU then takes depends on what ran before. So the
sides alternate, each after a pause (`burst`), and without pauses (`sustained`); ratios of one run are what counts.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from cake_core.runtime import Kernel
from cake_core.runtime.driver import driver

RESULTS = Path(__file__).parent / "results"
#: Libraries that scripts measure beside ours; their versions stand in the record where they are installed.
COMPETITORS = ("fa3-fwd", "flash-kmeans", "flashlib", "nvidia-cutlass-dsl")
BURST = {"rounds": 8, "calls": 7, "idle_s": 0.13, "untimed": 1}
SUSTAINED = {"rounds": 40, "calls": 4, "idle_s": 0.0, "untimed": 0}


def arguments(description: str, *artifacts: str, **extra: dict) -> argparse.Namespace:
    """The command line: artifact folders, `--out` and what a script adds."""
    parser = argparse.ArgumentParser(description=description)
    for name in artifacts:
        parser.add_argument(name, type=Path, metavar=name.upper(), help="an artifact folder, from 'cake build -o'")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the JSON goes (default: bench/results)")
    parser.add_argument("--seed", type=int, default=0)
    for name, options in extra.items():
        parser.add_argument(f"--{name}", **options)
    return parser.parse_args()


def timed(sides: dict[str, Callable[[], object]], rounds: int, calls: int, idle_s: float, untimed: int) -> dict[str, list[float]]:
    """Microseconds of every timed call of every side. A round visits each side once, the first one changing round by
    round: a pause, `untimed` calls, then `calls` ones, each between its own pair of events."""
    names = list(sides)
    events: dict[str, list] = {name: [] for name in names}
    for name in names:  # first calls load code and choose algorithms
        sides[name]()
        sides[name]()
    torch.cuda.synchronize()
    for r in range(rounds):
        for name in names[r % len(names) :] + names[: r % len(names)]:
            call = sides[name]
            if idle_s:
                torch.cuda.synchronize()
                time.sleep(idle_s)
            for _ in range(untimed):
                call()
            for _ in range(calls):
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                call()
                end.record()
                events[name].append((start, end))
    torch.cuda.synchronize()
    return {name: [1e3 * start.elapsed_time(end) for start, end in pairs] for name, pairs in events.items()}


def summary(samples: list[float]) -> dict[str, float | int]:
    """Median, 10th and 90th percentile."""
    tenths = statistics.quantiles(samples, n=10, method="inclusive")
    return {
        "median_us": round(statistics.median(samples), 3),
        "p10_us": round(tenths[0], 3),
        "p90_us": round(tenths[-1], 3),
        "samples": len(samples),
    }


def compare(sides: dict[str, Callable[[], object]], ours: str, mode: dict) -> dict:
    """Summaries of all sides, and how many times faster `ours` is than each other (medians)."""
    result = {name: summary(samples) for name, samples in timed(sides, **mode).items()}
    medians = {name: s["median_us"] for name, s in result.items()}
    ratios = {name: round(m / medians[ours], 4) for name, m in medians.items() if name != ours}
    return {"sides": result, f"{ours}_speed_over": ratios}


def environment(*kernels: Kernel) -> dict:
    """Hardware, driver, libraries and the artifacts measured."""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    version = driver().call("cuDriverGetVersion")
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "gpu": properties.name,
        "multiprocessors": properties.multi_processor_count,
        "memory_bytes": properties.total_memory,
        "driver_cuda": f"{version // 1000}.{version % 1000 // 10}",
        "nvidia_smi": _smi(),
        "host": {"processor": _processor(), "cores": os.cpu_count(), "python": platform.python_version()},
        "libraries": {
            "torch": torch.__version__,
            "torch_cuda": torch.version.cuda,
            **_versions("cuda-bindings", "nvidia-cublas", "nvidia-cublas-cu12", "triton", *COMPETITORS),
        },
        "artifacts": dict(_artifacts(kernels)),
    }


def _artifacts(kernels: tuple[Kernel, ...]) -> Iterator[tuple[str, dict]]:
    """By the kernel's name; several builds of one kernel are told apart by target and constants."""
    names = [k.name for k in kernels]
    for k in kernels:
        m = k.manifest
        build = ", ".join((m.arch, *(f"{n} = {v}" for n, v in m.constants.items())))
        facts = {"arch": m.arch, "cubin_sha256": m.hashes.get("kernel.cubin"), "constants": m.constants}
        yield k.name if names.count(k.name) == 1 else f"{k.name}, {build}", facts | {"compiler": m.compiler, "assembled": m.assembled}


def _versions(*names: str) -> dict[str, str]:
    found = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _smi() -> dict[str, str] | None:
    fields = ["driver_version", "power.limit", "clocks.max.sm", "clocks.max.mem"]
    try:
        command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader", f"--id={torch.cuda.current_device()}"]
        out = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return dict(zip(fields, (x.strip() for x in out.strip().split(","))))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())


def record(folder: Path, name: str, result: dict) -> Path:
    """Write `result` as JSON and say where."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written: {path}", flush=True)
    return path
