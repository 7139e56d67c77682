"""`cake run --on sim`: the derived form of a text, executed on data by the simulator in the place of a GPU's driver."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cake_core.cli import exits
from cake_core.cli.build import settings_of
from cake_core.cli.host import registry
from cake_core.cli.judged import Judged
from cake_core.cli.output import MACHINE, print_findings, progress, read_source
from cake_core.diagnostics.model import CakeError, Diagnostic

if TYPE_CHECKING:
    from cake_core.cli.tracing import Clusters


def run_text(
    target: str,
    schedule: str,
    shapes: tuple[str, ...],
    seed: int,
    reference: str | None,
    built: tuple,
    format: str,
    breaks: tuple[str, ...] = (),
    trace: str | None = None,
) -> int:
    """Build a text without proving it, simulate it on each shape, compare and report. `built`: arch, kernel, settings, locked; `breaks`: labels at
    which to print what is where; `trace`: file for a trace of the first launch."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: its threads cost more than tiles of this size take
    from cake_core import artifact
    from cake_core.cli.reports import show_run
    from cake_core.cli.run import parse_shape
    from cake_core.cli.tracing import Clusters, write_trace

    if os.path.isdir(target):
        raise click.UsageError("'--on sim' takes a text: an artifact holds machine code")
    if reference and not os.path.isfile(reference):
        raise click.FileError(reference, "no such file")
    wanted = [parse_shape(s) for s in shapes] or None
    sources: dict = {}
    found: list[Diagnostic] = []
    clusters = Clusters() if trace is not None else None
    try:
        source = read_source(target)
        sources[source.name] = source
        made = _built(source, *built, quiet=format in MACHINE)
        watch = _printer(made, breaks)
        beside = Path(target).with_suffix(".py")
        companion = Path(reference) if reference else beside if target != "-" and beside.is_file() else None
        with tempfile.TemporaryDirectory(prefix="cake-") as scratch:
            folder = Path(scratch, made.manifest.kernel)
            artifact.write(folder, made.files)
            result = replace(simulated(made, folder, companion, wanted, seed, schedule, found, watch, clusters), artifact=target)
    except CakeError as error:
        print_findings([*found, *error.diagnostics], sources, format)
        return exits.code_of(error.diagnostics)
    if clusters is not None and (data := clusters.file(("schedule", schedule), *(wanted or [{}])[0].items())) is not None:
        write_trace(data, trace)
    findings = told_once(made.diagnostics, found)
    print_findings(findings, sources, format, runs=[result.to_dict()])
    if format not in MACHINE:
        show_run(result)
    return exits.code_of(findings) or (exits.CLEAN if result.ok else exits.FINDINGS)


def told_once(checked: Iterable[Diagnostic], run: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Findings of the checks and of runs: what both tell of one place is the check's, with the run that shows it."""
    shown = {(d.code, d.span): d for d in run}
    out = []
    for d in checked:
        same = shown.pop((d.code, d.span), None)
        out.append(d if same is None else replace(d, witness=same.witness, stage=d.stage or same.stage, iteration=d.iteration or same.iteration))
    return (*out, *shown.values())


def _printer(made, breaks: tuple[str, ...]):
    """What prints at labels; None without any."""
    from cake_core.cli.stops import Printer, checked_labels
    from cake_core.simulate import labels_of

    checked_labels(breaks, labels_of(made.typed))
    return Printer(breaks) if breaks else None


def _built(source, arch, kernel, settings, locked: bool, quiet: bool):
    """The build, proved or not: what the verifier would refuse is what the simulator is for."""
    from cake_core.pipeline import build

    with progress(f"building {source.name}", quiet) as on_step:
        overrides = settings_of(settings)
        made = build(
            source, registry(), arch, overrides, kernel=kernel, book=Judged(locked=locked).book(), violated=True, read_back=False, on_step=on_step
        )
    said = replace(made.manifest, unproved=(), allowed_unproved=(), violated=())  # of what is not built to be kept
    return replace(made, manifest=said, files={**made.files, "manifest.json": said.to_json().encode()})


def simulated(
    made,
    folder: Path,
    companion: Path | None,
    shapes: list[dict] | None,
    seed: int,
    schedule: str,
    found: list[Diagnostic],
    watch=None,
    clusters: Clusters | None = None,
):
    """The report of `run_artifact`, with the simulator for a device; its findings go to `found`, and what the first launch does to `clusters`."""
    from cake_core.machine import MachineError
    from cake_core.runtime import driver
    from cake_core.runtime.execute import run_artifact
    from cake_core.simulate import Plot, Simulator, diagnostic

    name, _, number = schedule.partition(":")
    simulator = Simulator.of(made.typed, registry(), made.arch, watch)
    told: list[str] = []

    def launch(params: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
        try:
            faults = simulator.run(params, tensors, Plot(name, int(number or 0)), told=clusters.told() if clusters is not None else None)
        except MachineError as error:
            raise CakeError(Diagnostic("runtime/not-simulated", f"'{made.typed.name}' can't be simulated here: {error}", made.typed.span)) from None
        for f in faults:
            d = diagnostic(f, simulator.facts, params, schedule)
            told.append(f"{d.code}: {d.message}")
            if (d.code, d.span) not in {(x.code, x.span) for x in found}:
                found.append(d)

    def trouble(shape: dict) -> str | None:
        first = told[0] if told else None
        told.clear()
        return first

    with driver.use(_api(made.manifest, launch)):
        return run_artifact(folder, companion, shapes, seed, text=True, trouble=trouble)


def _api(manifest, launch):
    """The driver's functions, with host memory for a device's and the simulator for launches of the kernel."""
    from cake_core.emulate.device import Api
    from cake_core.simulate import over_bytes

    class Simulation(Api):
        """`bound`: what each argument block stands for, by its address."""

        def __init__(self) -> None:
            super().__init__(registry().emulates, tuple(manifest.compute_capability), lambda grid: None, races=False)
            self.arguments: dict[int, tuple[dict, dict]] = {}

        def bound(self, address: int, values: dict, tensors: dict) -> None:
            self.arguments[address] = values, tensors

        def _cuDeviceGetName(self, size: int, device: int) -> bytes:
            return b"simulator"

        def _cuLibraryGetKernel(self, library: bytes, name: bytes) -> Any:
            return None if name.decode() == manifest.entry else super()._cuLibraryGetKernel(library, name)

        def _cuLaunchKernelEx(self, config: Any, function: Any, address: int, extra: Any) -> None:
            if function is not None:
                return super()._cuLaunchKernelEx(config, function, address, extra)
            values, tensors = self.arguments[address]
            blocks = {}
            for p in manifest.params:
                if p.name in tensors:
                    pointer, shape = tensors[p.name]
                    memory, at = self.device.locate(pointer, 1) if pointer else (None, 0)
                    blocks[p.name] = over_bytes(p.elem, shape, memory and memory.data, memory and memory.written if p.mode != "in" else None, at)
            launch({n: v for n, v in values.items() if n not in tensors}, blocks)

    return Simulation()
