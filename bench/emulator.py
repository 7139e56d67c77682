"""The emulator held against a GPU: every kernel on all shapes of its companion, the same inputs on both, outputs compared bit by bit.

    PYTHONPATH=.:<plugins> python bench/emulator.py out/gemm_sm90 out/rmsnorm ..

An artifact runs on the GPU as `cake run` has it; then its PTX is executed on this machine's processor, one process a shape. Recorded are, for each
output, elements that differ in a bit, and the largest difference in units of what the companion admits. Matrix units add in an order of their
own, so outputs behind them may differ inside of the tolerance; all else should not differ at all but for approximations whose bits the ISA
leaves open (ex2, rsqrt, tanh and their kin).
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from harness import RESULTS, environment, record

import cake_core as cake
from cake_core.emulate.device import Api
from cake_core.emulate.outcome import Unsupported
from cake_core.emulate.turns import Turns
from cake_core.plugins import load_registry
from cake_core.runtime import driver
from cake_core.runtime.companion import load_companion
from cake_core.runtime.execute import arguments_of
from cake_core.runtime.host import to_float64
from cake_core.runtime.kernel import load

KERNELS = Path(__file__).resolve().parents[1] / "kernels"


def outputs_of(folder: Path, shape: dict, seed: int, text: bool) -> dict[str, np.ndarray]:
    """The outputs of one shape, as bits."""
    kernel = load(folder, text=text)
    beside = load_companion(companion(kernel.name))
    cuda = driver.driver()
    with cuda.active(cuda.primary(0)):
        case = arguments_of(kernel, beside, shape, seed, 0, cuda)
        kernel(**case.arguments, stream=0)
        cuda.call("cuCtxSynchronize")
        return {name: out.array.numpy() for name, out in case.outputs.items()}


def companion(kernel: str) -> Path:
    return next(KERNELS.glob(f"*/{kernel}.py"))


def on_cpu(folder: Path, shape: dict, seed: int, kept: str) -> dict:
    """The same on the processor, compared with the bits in `kept`."""
    begun, findings = time.process_time(), []
    manifest = load(folder, text=True).manifest
    api = Api(
        load_registry().emulates,
        tuple(manifest.compute_capability),
        lambda grid: findings.extend(f"{f.code}: {f.message}" for f in grid.findings),
        Turns,
    )
    try:
        with driver.use(api):
            mine = outputs_of(folder, shape, seed, True)
    except Unsupported as error:
        return {"refused": str(error)}
    theirs = np.load(kept)
    beside = load_companion(companion(manifest.kernel))
    elems = {p.name: p.elem for p in manifest.params}
    rng = np.random.default_rng([seed, *(abs(int(v)) for v in shape.values())])
    inputs = beside.call("inputs", dict(shape), rng)
    admitted = beside.admitted(inputs, beside.call("reference", inputs))
    outputs = {}
    for name, a in mine.items():
        b = theirs[name]
        differ = int((a.view(np.uint8) != b.view(np.uint8)).reshape(*a.shape, -1).any(-1).sum()) if a.size else 0
        worst = 0.0
        if differ:
            from cake_core.runtime.elements import ELEMENTS

            x, y = to_float64(a, ELEMENTS[elems[name]]), to_float64(b, ELEMENTS[elems[name]])
            with np.errstate(all="ignore"):
                off = np.where(
                    (x == y) | np.isnan(x) & np.isnan(y), 0.0, np.abs(x - y) / np.broadcast_to(np.asarray(admitted[name], np.float64), x.shape)
                )
            worst = float(np.nanmax(off))
        outputs[name] = {"elements": int(a.size), "differ": differ, "worst": worst}
    return {"outputs": outputs, "findings": findings[:5], "seconds": round(time.process_time() - begun, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifacts", type=Path, nargs="+", help="artifact folders, from 'cake build -o'")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--budget", type=float, default=500, help="seconds; shapes that are not done by then are recorded as such")
    args = parser.parse_args()
    end = time.monotonic() + args.budget
    jobs, cases, kernels = [], [], []
    with tempfile.TemporaryDirectory() as scratch, ProcessPoolExecutor(args.processes) as pool:
        for folder in args.artifacts:
            kernel = cake.load(folder)
            kernels.append(kernel)
            for n, shape in enumerate(load_companion(companion(kernel.name)).call("shapes")):
                kept = f"{scratch}/{folder.name}.{n}.npz"
                np.savez(kept, **outputs_of(folder, shape, args.seed, False))
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
    bad = [c for c in cases if "refused" in c or c.get("findings") or any(o["worst"] > 1 for o in c.get("outputs", {}).values())]
    record(
        args.out,
        "emulator",
        {"seed": args.seed, "environment": environment(*kernels), "bad": bad, "late": [c for c in cases if "late" in c], "cases": cases},
    )
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
