"""Run and time an artifact on a GPU with nothing but the driver: what `cake run` and `cake bench` call.

Inputs are numpy arrays, copied by the driver; no array library for GPUs is needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from cake_core.frozen import frozen
from cake_core.runtime.companion import Companion, load_companion
from cake_core.runtime.compare import Guarded, judge
from cake_core.runtime.device_array import DeviceArray
from cake_core.runtime.driver import Driver, driver
from cake_core.runtime.elements import ELEMENTS
from cake_core.runtime.errors import DriverError, LaunchError
from cake_core.runtime.formula import compile_formula, formula_text
from cake_core.runtime.host import element_name, packed_bytes, random_bits
from cake_core.runtime.kernel import Kernel, load
from cake_core.runtime.report import BenchReport, BenchResult, DeviceInfo, RunReport, ShapeReport, Timing

#: One burst: idle, one launch that is not timed, then timed ones. Short bursts keep the power limit out of the numbers.
ROUNDS, CALLS, IDLE_S = 8, 7, 0.13
METHOD = f"{ROUNDS} bursts of {CALLS} launches after {IDLE_S} s idle and one untimed launch; a pair of events each"
NO_REFERENCE = "no reference: outputs were only checked for unwritten elements and writes outside"

#: Faults of one shape. After the first the context still works, after the second it does not.
_OF_A_SHAPE, _FATAL, _DIRTY = "runtime/out-of-memory", "runtime/device-fault", "runtime/workspace"


def run_artifact(
    folder: Path,
    companion: Path | None,
    shapes: list[dict[str, int]] | None,
    seed: int,
    device: int = 0,
    *,
    violated: bool = False,
    text: bool = False,
    trouble: Callable[[dict], str | None] = lambda shape: None,
) -> RunReport:
    """Run the kernel on each shape (default: the companion's) and compare with the companion's reference.

    Outputs are poisoned with NaN and lie between guard bands. Without a companion inputs are random and there is no
    reference. A shape that the contract refuses, or that faults, is reported as such; what concerns every shape (no GPU,
    another architecture, a broken companion) raises CakeError. `violated`, `text`: as `load` has them. `trouble`: asked behind each shape for what
    its driver found besides.
    """
    kernel, beside, cases = _open(folder, companion, shapes, "shapes", violated, text)
    cuda = driver()
    info = device_info(cuda, device)
    results: list[ShapeReport] = []
    notes = () if beside else (NO_REFERENCE,)
    with cuda.active(cuda.primary(device)):
        for shape in cases:
            try:
                result = _run_shape(kernel, beside, shape, seed, device, cuda)
            except DriverError as error:
                result = ShapeReport(shape, False, (), _fault(error))
            if found := trouble(shape):
                result = replace(result, ok=False, fault=result.fault or found)
            results.append(result)
            if result.fault and _FATAL in result.fault:
                notes += tuple([f"{len(cases) - len(results)} further shapes were not run"] if len(cases) > len(results) else [])
                break
    ok = all(r.ok for r in results)
    return RunReport(kernel.name, kernel.manifest.arch, str(folder), info, seed, beside is not None, ok, tuple(results), notes, kernel.unproved)


def bench_artifact(
    folder: Path, companion: Path | None, shapes: list[dict[str, int]] | None, seed: int, device: int = 0, *, violated: bool = False
) -> BenchReport:
    """Time the kernel on each shape (default: the companion's `bench_shapes`, else its shapes) by events of the driver.

    Arrays stay in place between launches, so small ones are read from cache. Raises as `run_artifact` does.
    """
    kernel, beside, cases = _open(folder, companion, shapes, "bench_shapes", violated, False)
    cuda = driver()
    info = device_info(cuda, device)
    results: list[BenchResult] = []
    with cuda.active(cuda.primary(device)):
        for shape in cases:
            try:
                result = _bench_shape(kernel, beside, shape, seed, device, cuda)
            except DriverError as error:
                result = BenchResult(shape, None, 0, None, None, None, _fault(error))
            results.append(result)
            if result.fault and _FATAL in result.fault:
                break
    ok = all(r.fault is None for r in results)
    return BenchReport(kernel.name, kernel.manifest.arch, str(folder), info, seed, ok, METHOD, tuple(results), (), kernel.unproved)


def device_info(cuda: Driver, device: int) -> DeviceInfo:
    version = cuda.call("cuDriverGetVersion")
    return DeviceInfo(
        device,
        cuda.device_name(device),
        cuda.compute_capability(device),
        cuda.attribute(device, "MULTIPROCESSOR_COUNT"),
        f"{version // 1000}.{version % 1000 // 10}",
    )


def _open(
    folder: Path, companion: Path | None, shapes: list[dict] | None, which: str, violated: bool, text: bool
) -> tuple[Kernel, Companion | None, list[dict]]:
    kernel = load(folder, violated=violated, text=text)
    beside = load_companion(companion) if companion else None
    if not shapes and beside:
        shapes = list(beside.call(which if hasattr(beside.module, which) else "shapes"))
    if not shapes:
        raise LaunchError("runtime/no-shapes", f"there is no shape to run '{kernel.name}' on", fix="give one with '--shape NAME=SIZE,..'")
    scalars = [p.name for p in kernel.manifest.params if p.kind == "scalar" and p.name not in kernel.manifest.hidden]
    for shape in shapes:
        for name in shape:
            if name not in scalars:
                raise LaunchError("runtime/unknown-argument", f"a shape names '{name}', and '{kernel.name}' has the sizes {', '.join(scalars)}")
    return kernel, beside, [dict(s) for s in shapes]


def _fault(error: DriverError | LaunchError) -> str:
    """The text of a fault that concerns one shape; any other is raised again."""
    d = error.diagnostic
    if isinstance(error, LaunchError) or d.code in (_OF_A_SHAPE, _FATAL):
        return f"{d.code}: {d.message}" + (f"; {d.why}" if d.why else "")
    raise error


@frozen
class Case:
    """One shape's arguments: what the companion made on the host, and everything on the device by parameter name."""

    inputs: dict[str, Any]
    arguments: dict[str, Any]
    outputs: dict[str, Guarded]
    bytes: int


def _run_shape(kernel: Kernel, beside: Companion | None, shape: dict, seed: int, device: int, cuda: Driver) -> ShapeReport:
    case = arguments_of(kernel, beside, shape, seed, device, cuda)
    expected = beside.call("reference", case.inputs) if beside else {}  # before the launch: it may want `inout` as it was
    if beside and (missing := case.outputs.keys() - expected.keys()):
        raise LaunchError("runtime/companion-incomplete", f"'reference' of '{beside.path}' has no {', '.join(sorted(missing))}")
    admitted = beside.admitted(case.inputs, expected) if beside else {}
    try:
        if beside:  # random inputs keep no contract about their values
            kernel.check(**case.arguments, stream=0)
        kernel(**case.arguments, stream=0)
    except LaunchError as error:
        return ShapeReport(shape, False, (), _fault(error))
    cuda.call("cuCtxSynchronize")
    left = kernel.workspaces.dirty()
    try:
        outputs = tuple(judge(name, out, expected.get(name), admitted.get(name)) for name, out in case.outputs.items())
    except ValueError as error:
        raise LaunchError("runtime/companion-failed", str(error)) from None
    fault = f"{_DIRTY}: '{left[0]}' does not hold zeros behind the launch" if left else None
    return ShapeReport(shape, all(o.ok for o in outputs) and not left, outputs, fault)


def _bench_shape(kernel: Kernel, beside: Companion | None, shape: dict, seed: int, device: int, cuda: Driver) -> BenchResult:
    case = arguments_of(kernel, beside, shape, seed, device, cuda)
    try:
        launch = kernel.prepare(**case.arguments)
    except LaunchError as error:
        return BenchResult(shape, None, case.bytes, None, None, None, _fault(error))
    if not launch.blocks:
        return BenchResult(shape, None, case.bytes, None, None, None, "runtime/nothing-to-launch: this shape has no work items")
    samples = sorted(_time(cuda, lambda: launch(0)))
    timing = Timing(_percentile(samples, 0.5), _percentile(samples, 0.1), _percentile(samples, 0.9), len(samples))
    flops = beside.flops(shape) if beside else None
    seconds = timing.median_us * 1e-6
    return BenchResult(shape, timing, case.bytes, case.bytes / seconds / 1e9, flops, flops / seconds / 1e12 if flops is not None else None)


def _time(cuda: Driver, launch: Any) -> list[float]:
    """Microseconds of each timed launch."""
    api = cuda.api
    events = [[cuda.call("cuEventCreate", api.CUevent_flags.CU_EVENT_DEFAULT) for _ in range(2)] for _ in range(CALLS)]
    samples = []
    try:
        for _ in range(ROUNDS):
            cuda.call("cuCtxSynchronize")
            time.sleep(IDLE_S)
            launch()
            for start, end in events:
                cuda.call("cuEventRecord", start, api.CUstream(0))
                launch()
                cuda.call("cuEventRecord", end, api.CUstream(0))
            cuda.call("cuCtxSynchronize")
            samples += [1e3 * cuda.call("cuEventElapsedTime", start, end) for start, end in events]
    finally:
        for event in (e for pair in events for e in pair):
            cuda.api.cuEventDestroy(event)
    return samples


def _percentile(ordered: list[float], p: float) -> float:
    """Linear interpolation between the neighbours, as numpy's default."""
    at = p * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


# --- arguments of a shape --------------------------------------------------------------------------------------


def arguments_of(kernel: Kernel, beside: Companion | None, shape: dict, seed: int, device: int, cuda: Driver) -> Case:
    """Inputs of a shape, by the companion or else random, on the device; outputs poisoned, between guard bands. Raises LaunchError."""
    import numpy

    rng = numpy.random.default_rng([seed, *(abs(int(v)) for v in shape.values())])  # one shape, one set of inputs
    inputs = dict(beside.call("inputs", dict(shape), rng)) if beside else {}
    params = {p.name: p for p in kernel.manifest.params if p.name not in kernel.manifest.hidden}
    if unknown := [name for name in inputs if name not in params]:
        raise LaunchError("runtime/companion-incomplete", f"'inputs' of '{beside.path}' gives '{unknown[0]}', which '{kernel.name}' does not have")
    values = {n: v for n, v in (inputs | shape).items() if params[n].kind == "scalar"}
    extents = {p.name: _extents(kernel, p, values) for p in params.values() if p.kind == "tensor"}
    arguments: dict[str, Any] = dict(values)
    outputs: dict[str, Guarded] = {}
    total = 0
    for name, extent in extents.items():
        p = params[name]
        total += prod(extent) * ELEMENTS[p.elem].bytes
        if p.mode == "in":
            array = DeviceArray(extent, p.elem, device, cuda)
        else:
            outputs[name] = Guarded(extent, p.elem, device, cuda)
            array = outputs[name].array
        arguments[name] = array
        if p.mode != "out":
            array.copy_from(_host_bytes(name, p.elem, extent, inputs, beside, rng))
    return Case(inputs, arguments, outputs, total)


def _extents(kernel: Kernel, p: Any, values: dict) -> tuple[int, ...]:
    extents = []
    for dim in p.shape:
        try:
            extents.append(int(compile_formula(dim, [q.name for q in kernel.manifest.params])(values)))
        except KeyError as error:
            raise LaunchError("runtime/size-unknown", f"the shape gives no '{error.args[0]}', which '{p.name}' needs", fix=f"add '{error.args[0]}=..'") from None
        except ZeroDivisionError:
            raise LaunchError("runtime/division-by-zero", f"'{formula_text(dim)}' of '{p.name}' divides by zero") from None
        if extents[-1] < 0:
            raise LaunchError("runtime/shape", f"'{formula_text(dim)}' of '{p.name}' is {extents[-1]}")
    return tuple(extents)


def _host_bytes(name: str, elem: str, extent: tuple[int, ...], inputs: dict, beside: Companion | None, rng: Any) -> Any:
    import numpy

    if beside is None:
        return packed_bytes(random_bits(extent, ELEMENTS[elem], rng))
    if name not in inputs:
        raise LaunchError("runtime/companion-incomplete", f"'inputs' of '{beside.path}' gives no '{name}'")
    array = numpy.asarray(inputs[name])
    if element_name(array) != elem or array.shape != extent:
        got = f"{element_name(array)}{list(array.shape)}"
        raise LaunchError("runtime/companion-failed", f"'inputs' of '{beside.path}' gives '{name}' as {got}, the kernel needs {elem}{list(extent)}")
    return packed_bytes(array)


