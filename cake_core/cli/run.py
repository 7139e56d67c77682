"""`cake run`, and what it shares with `cake bench`: an artifact out of a file or a folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click

from cake_core.cli import exits
from cake_core.cli.build import build_options, compile_kernel, settings_of
from cake_core.cli.judged import LOCKED, Judged
from cake_core.cli.output import MACHINE, chosen_format, format_options, print_findings, read_source
from cake_core.diagnostics.model import CakeError, Diagnostic, Severity

EPILOG = """\b
Examples:
  cake run gemm.cake
  cake run gemm.cake --shape M=512,N=512,K=64 --shape M=1,N=8,K=0
  cake run gemm.cake --on cpu --shape M=128,N=256,K=64
  cake run out/gemm --on cpu --schedule random:1 --reference gemm.py
  cake run gemm.cake --on sim --schedule adversarial
  cake run gemm.cake --on sim --shape M=128,N=256,K=256 --trace run.json
  cake run labelled.cake --on cpu --shape M=128,N=256,K=64 --break done
  cake run out/gemm --reference gemm.py
  cake run gemm.cake --if-available

\b
Inputs, the reference and its tolerance come from the Python file beside the text (kernel.cake: kernel.py) or --reference.
Without one the kernel is run, and only writes outside its outputs are looked for.

\b
--on cpu executes the kernel's PTX without a GPU and looks at every access: outside of memory, of what nobody has written, in a race,
without a proxy fence. Choose small shapes: it takes seconds a tile.

\b
--on sim executes the derived form on whole tiles, proved or not, and finds races, deadlocks, reads of what nobody has written.
"""


#: What --if-available lets pass: no GPU, or none that the artifact is built for. A driver that fails is not among them.
UNAVAILABLE = {"runtime/no-gpu", "runtime/device-mismatch"}


def parse_shape(text: str) -> dict[str, int]:
    """`M=4096,N=4096` of --shape."""
    shape = {}
    for part in text.split(","):
        name, equals, value = (x.strip() for x in part.partition("="))
        if not equals or not name.isidentifier() or not value.isdecimal():
            raise click.BadParameter(f"'{part}' is not NAME=SIZE", param_hint="--shape")
        if name in shape:
            raise click.BadParameter(f"'{name}' is given twice", param_hint="--shape")
        shape[name] = int(value)
    return shape


def run_options(command):
    """What run and bench share."""
    for option in (
        click.option("--reference", metavar="FILE.py", help="The Python file with shapes, inputs and reference. [default: beside the text]"),
        click.option("--device", type=click.IntRange(min=0), default=0, show_default=True, help="Which GPU."),
        click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the inputs."),
        click.option("--if-available", is_flag=True, help="Where there is no GPU to run on, say so in a note and end clean."),
        click.option("--shape", "shapes", multiple=True, metavar="M=..,N=..", help="A shape; may be repeated. [default: those of the reference]"),
        LOCKED,
    ):
        command = option(command)
    return build_options(command)


@contextmanager
def artifact_of(
    target: str, reference: str | None, arch, kernel, settings, allowed, ptxas, locked: bool, sources: dict, cubin: bool = True
) -> Iterator[tuple[Path, Path | None, tuple]]:
    """(artifact folder, companion, findings of the build): a folder as it is, a text built into a temporary one."""
    from cake_core import artifact

    companion = Path(reference) if reference else None
    if companion and not os.path.isfile(companion):
        raise click.FileError(reference, "no such file")
    if os.path.isdir(target):  # Path.is_dir raises for a name that is too long or in a closed folder
        if arch or kernel or settings or allowed or locked:
            raise click.UsageError("an artifact is built already: --arch, --kernel, --set, --allow-unproved and --locked go with a text")
        yield Path(target), companion, ()
        return
    source = read_source(target)
    sources[source.name] = source
    built, findings = compile_kernel(source, arch, kernel, settings_of(settings), ptxas, cubin, Judged(locked=locked).book(), allowed, quiet=False)
    beside = Path(target).with_suffix(".py")
    with tempfile.TemporaryDirectory(prefix="cake-") as scratch:
        folder = Path(scratch, f"{built.manifest.kernel}.{built.manifest.arch}")
        artifact.write(folder, built.files)
        yield folder, companion or (beside if target != "-" and beside.is_file() else None), findings


def checked_schedule(context, parameter, value: str) -> str:
    from cake_core.emulate.turns import NAMES, turns_of

    if turns_of(value) is None:
        raise click.BadParameter(f"'{value}' is none of {', '.join(NAMES)}")
    return value


@click.command("run", epilog=EPILOG)
@click.argument("target", metavar="FILE|ARTIFACT")
@click.option("--on", type=click.Choice(["gpu", "cpu", "sim"]), default="gpu", show_default=True, help="Where it runs: 'cpu' executes the PTX without a GPU, 'sim' the derived form.")
@click.option(
    "--schedule",
    metavar="NAME",
    default="round-robin",
    show_default=True,
    callback=checked_schedule,
    help="Whose turn it is on 'cpu' and 'sim': round-robin, random:SEED or adversarial.",
)
@click.option("--trace", metavar="FILE", help="Write what warps, engines and barriers do, for viewers of traces; with --on cpu or sim, and one --shape.")
@click.option("--break", "breaks", multiple=True, metavar="LABEL", help="With --on cpu or sim: print registers, memory and barriers in front of `@LABEL`; may be repeated.")
@run_options
@format_options
def command(
    target, on, schedule, trace, breaks, shapes, if_available, seed, device, reference, arch, kernel, settings, allowed, ptxas, locked, format, as_json
) -> int:
    """Run a kernel and compare its outputs with the reference.

    Outputs are poisoned before and guarded around; a wrong element, an unwritten one or a write outside is a finding.
    """
    from cake_core.cli.reports import show_run
    from cake_core.runtime.execute import run_artifact

    format = chosen_format(format, as_json)
    if trace is not None:
        from cake_core.cli.tracing import checked_file

        if on == "gpu" or len(shapes) != 1:
            raise click.UsageError("a trace is of one run on the CPU: --trace goes with --on cpu or --on sim, and one --shape")
        checked_file(trace)
    if breaks and on == "gpu":
        raise click.UsageError("--break goes with --on cpu or --on sim: a GPU is not looked into")
    if breaks and format in MACHINE:
        raise click.UsageError(f"--break prints text, and --format {format} would write to stdout too")
    found: list[Diagnostic] = []
    if on == "sim":
        from cake_core.cli.simulated import run_text

        return run_text(target, schedule, shapes, seed, reference, (arch, kernel, settings, locked), format, breaks, trace)
    if on == "cpu":
        from cake_core.cli.emulated import run_emulated

        file = None if os.path.isdir(target) else "<stdin>" if target == "-" else target

        def job(folder, companion, wanted, seed, device):
            return run_emulated(folder, companion, wanted, seed, schedule, found, file, trace, breaks)
    else:
        job = run_artifact
    cubin = on == "gpu"
    built = (reference, arch, kernel, settings, allowed, ptxas, locked)
    return execute(job, show_run, target, shapes, if_available, seed, device, built, format, cubin, found)


def execute(job, show, target, shapes, if_available, seed, device, built: tuple, format, cubin=True, found=()) -> int:
    """Run `job` on the artifact and show its report; findings and exit code as everywhere. `built`: how a text is built, the options that
    `artifact_of` takes; `found`: where the job puts findings of its own."""
    wanted = [parse_shape(s) for s in shapes] or None
    sources: dict = {}
    findings: tuple = ()
    try:
        with artifact_of(target, *built, sources, cubin) as (folder, companion, findings):
            result = replace(job(folder, companion, wanted, seed, device), artifact=target)  # a scratch folder's name says nothing
    except CakeError as error:
        if if_available and all(d.code in UNAVAILABLE for d in error.diagnostics):
            print_findings([*findings, *(_not_run(d, target) for d in error.diagnostics)], sources, format, runs=[])
            return exits.CLEAN
        print_findings([*found, *error.diagnostics], sources, format)
        return exits.code_of(error.diagnostics)
    findings = (*findings, *found)
    print_findings(findings, sources, format, runs=[result.to_dict()])
    if format in ("text", "concise"):
        show(result)
    return exits.code_of(findings) or (exits.CLEAN if result.ok else exits.FINDINGS)


def _not_run(d: Diagnostic, target: str) -> Diagnostic:
    return replace(d, severity=Severity.NOTE, message=f"'{target}' was not run: {d.message}")
