"""The emulator held against a GPU: every kernel on all shapes of its companion, the same inputs on both, outputs compared bit by bit.

    PYTHONPATH=.:<plugins> python bench/emulator.py out/gemm_sm90 out/rmsnorm ..

An artifact runs on the GPU as `cake run` has it; then its PTX is executed on this machine's processor, one process a shape. Recorded are, for each
output, elements that differ in a bit, by how many steps of their type at the most, and how far the emulator's are from the reference in units of what the
companion admits. Matrix units add in an order of their own, so outputs behind them may differ inside of the tolerance; all else should not differ at all but
for approximations whose bits the ISA leaves open (ex2, rsqrt, tanh and their kin).
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from math import prod
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: a process a core is enough

import numpy as np

import cake_core as cake
from cake_core.emulate.device import Api
from cake_core.emulate.outcome import Unsupported
from cake_core.emulate.turns import Turns
from cake_core.plugins import load_registry
from cake_core.runtime import driver
from cake_core.runtime.companion import load_companion
from cake_core.runtime.compare import judge
from cake_core.runtime.execute import arguments_of
from cake_core.runtime.kernel import load
from cake_core.runtime.loader import read_manifest
from cake_core.runtime.report import OutputReport

ROOT = Path(__file__).resolve().parents[1]
KERNELS, RESULTS = ROOT / "kernels", ROOT / "bench" / "results"


def outputs_of(folder: Path, shape: dict, seed: int, text: bool) -> tuple[dict[str, np.ndarray], dict[str, OutputReport]]:
    """The outputs of one shape, as bits, and how they are against the reference."""
    kernel = load(folder, text=text)
    beside = load_companion(companion(kernel.name))
    cuda = driver.driver()
    with cuda.active(cuda.primary(0)):
        case = arguments_of(kernel, beside, shape, seed, 0, cuda)
        expected = beside.call("reference", case.inputs)  # before the launch: it may want `inout` as it was
        admitted = beside.admitted(case.inputs, expected)
        kernel(**case.arguments, stream=0)
        cuda.call("cuCtxSynchronize")
        bits = {name: out.array.numpy() for name, out in case.outputs.items()}
        return bits, {name: judge(name, out, expected[name], admitted[name]) for name, out in case.outputs.items()}


def companion(kernel: str) -> Path:
    return next(KERNELS.glob(f"*/{kernel}.py"))


def on_cpu(folder: Path, shape: dict, seed: int, kept: str) -> dict:
    """The same on the processor, compared with the bits in `kept`."""
    begun, findings = time.process_time(), []
    api = Api(
        load_registry().emulates,
        tuple(read_manifest(folder).compute_capability),
        lambda grid: findings.extend(f"{f.code}: {f.message}" for f in grid.findings),
        Turns,
    )
    try:
        with driver.use(api):
            mine, judged = outputs_of(folder, shape, seed, True)
    except Unsupported as error:
        return {"refused": str(error)}
    theirs, outputs = np.load(kept), {}
    for name, bits in mine.items():
        off = np.abs(_steps(bits) - _steps(theirs[name]))
        of = judged[name]
        outputs[name] = {"elements": off.size, "differ": int((off > 0).sum()), "steps": int(off.max(initial=0)), "ok": of.ok, "worst": of.worst}
    return {"outputs": outputs, "findings": findings[:5], "seconds": round(time.process_time() - begun, 2)}


def _steps(bits: np.ndarray) -> np.ndarray:
    """Numbers in the order of the values, one a step of the type, of floats and of integers; what is not a number lies beyond the largest."""
    words = bits.view(f"i{bits.dtype.itemsize}").astype(np.int64)
    return np.where(words < 0, np.iinfo(f"i{bits.dtype.itemsize}").min - words, words)


def main() -> None:
    from harness import environment, record  # needs torch, which processes of the pool do not

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifacts", type=Path, nargs="+", help="artifact folders, from 'cake build -o'")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--budget", type=float, default=500, help="seconds; shapes that are not done by then are recorded as such")
    args = parser.parse_args()
    end = time.monotonic() + args.budget
    jobs, cases, kernels = [], [], [cake.load(folder) for folder in args.artifacts]
    todo = [(f, k, s, n) for f, k in zip(args.artifacts, kernels, strict=True) for n, s in enumerate(load_companion(companion(k.name)).call("shapes"))]
    todo.sort(key=lambda of: -prod(max(v, 1) for v in of[2].values()))  # the longest first
    with tempfile.TemporaryDirectory() as scratch, ProcessPoolExecutor(args.processes, get_context("spawn")) as pool:
        for folder, kernel, shape, n in todo:
            kept = f"{scratch}/{folder.name}.{n}.npz"
            np.savez(kept, **outputs_of(folder, shape, args.seed, False)[0])
            jobs.append((folder, kernel, shape, pool.submit(on_cpu, folder, shape, args.seed, kept)))
        for folder, kernel, shape, job in jobs:
            try:
                found = job.result(max(end - time.monotonic(), 0))
            except TimeoutError:
                found = {"late": True}
            result = {"kernel": kernel.name, "arch": kernel.manifest.arch, "shape": shape, **found}
            cases.append(result)
            print(
                folder.name,
                " ".join(f"{k}={v}" for k, v in shape.items()),
                {k: v for k, v in result.items() if k not in ("kernel", "arch", "shape")},
                flush=True,
            )
        for process in list(pool._processes.values()):  # what is late is not waited for
            process.kill()
    bad = [c for c in cases if "refused" in c or c.get("findings") or any(not o["ok"] for o in c.get("outputs", {}).values())]
    record(
        args.out,
        "emulator",
        {"seed": args.seed, "environment": environment(*kernels), "bad": bad, "late": [c for c in cases if "late" in c], "cases": cases},
    )
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
