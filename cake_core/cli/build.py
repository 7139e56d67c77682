"""`cake build`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cake_core.cli import exits
from cake_core.cli.host import registry
from cake_core.cli.judged import Judged, rule_options
from cake_core.cli.output import MACHINE, chosen_format, format_options, is_terminal, print_findings, progress, read_source, suppressed_lines
from cake_core.cli.plans import print_plan
from cake_core.cli.proofs import proof_lines, proof_object
from cake_core.diagnostics.model import CakeError, Diagnostic, Severity

if TYPE_CHECKING:
    from cake_core.pipeline import Build

#: What --emit writes, and whether it needs the assembler (None: the artifact takes a cubin where it can have one).
EMITTED = {"ptx": "kernel.ptx", "cubin": "kernel.cubin", "derived": "derived.cake"}
CUBIN = {"ptx": False, "derived": False, "cubin": True, None: None}

EPILOG = """\b
Examples:
  cake build gemm.cake
  cake build gemm.cake -o out/gemm --set BN=128
  cake build gemm.cake --emit derived
  cake build kernel.cake --emit ptx -o kernel.ptx
  cake build kernel.cake --json

\b
The artifact is a folder: kernel.ptx, kernel.cubin, manifest.json, sourcemap.json, derived.cake, assumes.ptx (the check of assume).
Without an assembler it has no cubin (the driver compiles the PTX when it loads it).
"""


def parse_setting(text: str) -> tuple[str, int | float | bool]:
    """`N=V` of --set: an integer, a float, true or false."""
    name, equals, value = (x.strip() for x in text.partition("="))
    if not equals or not name.isidentifier():
        raise click.BadParameter(f"'{text}' is not NAME=VALUE", param_hint="--set")
    if value in ("true", "false"):
        return name, value == "true"
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    raise click.BadParameter(f"'{value}' is no number, true or false", param_hint="--set")


def _categories(ctx, param, values: tuple[str, ...]) -> tuple[str, ...]:
    if not values:
        return ()
    from cake_core.check.safety import SAFETY, named

    for v in values:
        if named(v) is None:
            raise click.BadParameter(f"'{v}' is no safety category; they are: {', '.join(c.replace(' ', '-') for c in SAFETY)}")
    return tuple(dict.fromkeys(map(named, values)))


def unproved_option(command):
    """Which safety categories may be unproved: --allow-unproved."""
    text = "Go on though this safety category is not proved; a manifest says so. May be repeated."
    return click.option("--allow-unproved", "allowed", multiple=True, metavar="CATEGORY", callback=_categories, help=text)(command)


def build_options(command):
    """What every command takes that builds: --arch, --kernel, --set, --allow-unproved, --ptxas."""
    for option in (
        click.option("--ptxas", metavar="PATH", help="The assembler. [default: $CAKE_PTXAS, the nvidia-cuda-nvcc wheel, PATH]"),
        unproved_option,
        click.option("--set", "settings", multiple=True, metavar="N=V", help="Override a constant; may be repeated."),
        click.option("--kernel", metavar="NAME", help="Which kernel, where the text has several."),
        click.option("--arch", metavar="ARCH", help="Which of the text's targets; may be left out where it has one."),
    ):
        command = option(command)
    return command


def settings_of(settings: tuple[str, ...]) -> dict[str, int | float | bool]:
    return dict(map(parse_setting, settings))


def assembler_or_finding(ptxas: str | None, required: bool):
    """(assembler, findings): without one a warning, or the error where a cubin or this assembler was asked for."""
    from dataclasses import replace

    from cake_core.assemble import find_assembler

    try:
        return find_assembler(ptxas), ()
    except CakeError as error:
        if required or ptxas or os.environ.get("CAKE_PTXAS"):
            raise
        return None, tuple(replace(d, severity=Severity.WARNING) for d in error.diagnostics)


@click.command("build", epilog=EPILOG)
@click.argument("file")
@build_options
@rule_options
@click.option("-o", "--output", metavar="PATH", help="Folder of the artifact, or the file of --emit. [default: out/KERNEL.ARCH; stdout]")
@click.option("--emit", type=click.Choice(tuple(EMITTED)), help="Write this alone, to -o or stdout, instead of an artifact.")
@format_options
def command(file, arch, kernel, settings, allowed, ptxas, judged: Judged, output, emit, format, as_json) -> int:
    """Compile one kernel of FILE ('-' is stdin) to an artifact folder.

    Prints roles, shared memory, pipelines, registers, and what is proved for which sizes. A safety category that is not proved is an error.
    """
    format = chosen_format(format, as_json)
    overrides = settings_of(settings)
    if emit == "cubin" and not output and is_terminal(sys.stdout):
        raise click.UsageError("a cubin is binary: name a file with -o")
    if emit and not output and format in MACHINE:
        raise click.UsageError(f"--emit and --format {format} would both write to stdout: name a file with -o")
    sources = {}
    try:
        source = read_source(file)
        sources[source.name] = source
        book = judged.book()
        built, findings = compile_kernel(source, arch, kernel, overrides, ptxas, CUBIN[emit], book, allowed, quiet=format in MACHINE)
    except CakeError as error:
        print_findings(error.diagnostics, sources, format, packs=judged.packs)
        return exits.code_of(error.diagnostics)
    if emit:
        write_one(built.files[EMITTED[emit]], output)
        folder = None
    else:
        folder = Path(output) if output else Path("out", f"{built.manifest.kernel}.{built.manifest.arch}")
        write_artifact(folder, built.files)
    if format in MACHINE or emit:
        print_findings(findings, sources, format, packs=judged.packs, suppressed=built.suppressed, builds=[build_object(built, folder)])
    else:
        print_findings(findings, sources, format)
        report(built, folder)
    return exits.code_of(findings)


def compile_kernel(
    source, arch, kernel, overrides, ptxas, cubin: bool | None, book, allowed: tuple[str, ...], quiet: bool
) -> tuple[Build, tuple[Diagnostic, ...]]:
    """Build in memory: (Build, findings). `cubin`: needed, not needed, or None: where there is an assembler. `allowed`: safety categories that may
    be unproved. Raises CakeError."""
    from cake_core.check.suppressions import unused
    from cake_core.pipeline import build
    from cake_core.prove.beside import cores

    assembler, missing = (None, ()) if cubin is False else assembler_or_finding(ptxas, required=bool(cubin))
    with progress(f"building {source.name}", quiet) as on_step:
        how = {"assembler": assembler, "book": book, "prove": True, "cores": cores(), "allow_unproved": allowed}
        built = build(source, registry(), arch, overrides, kernel=kernel, on_step=on_step, **how)
    alone = len(built.program.kernels) == 1 and len(built.program.kernels[0].targets) == 1  # no other one may need what this does not
    useless = unused(source, book, built.suppressed) if alone else ()
    return built, (*registry().problems(), *book.notes, *missing, *built.diagnostics, *useless)


def write_artifact(folder: Path, files: dict[str, bytes]) -> None:
    """The artifact, whole or not at all. A folder that holds something else is not replaced."""
    from cake_core import artifact

    if Path.cwd().is_relative_to(os.path.realpath(folder)):
        raise click.UsageError(f"'{folder}' holds the current folder: an artifact is replaced whole")
    try:
        if folder.exists() and not ((folder / "manifest.json").is_file() or folder.is_dir() and not any(folder.iterdir())):
            raise click.UsageError(f"'{folder}' exists and is no artifact; it is left alone")
        artifact.write(folder, files)
    except OSError as error:
        raise click.FileError(str(error.filename or folder), error.strerror) from None


def write_one(data: bytes, output: str | None) -> None:
    if not output or output == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        Path(output).write_bytes(data)
    except OSError as error:
        raise click.FileError(output, error.strerror) from None


def build_object(built, folder: Path | None) -> dict:
    """The entry of `builds` in the JSON document."""
    from dataclasses import asdict

    from cake_core.artifact import sha256

    files = [{"name": n, "bytes": len(d), "sha256": sha256(d)} for n, d in sorted(built.files.items())]
    m = built.manifest
    return {"kernel": m.kernel, "arch": m.arch, "folder": folder.as_posix() if folder else None, "files": files, "manifest": asdict(m)}


# --- the report --------------------------------------------------------------------------------------------------


def report(built, folder: Path) -> None:
    m, plan = built.manifest, built.lowered.plan
    click.echo(
        f"{m.kernel} for {m.arch}: {m.launch.threads} threads a CTA, cluster of {m.launch.cluster}, {m.launch.shared_bytes} bytes of shared memory\n"
    )
    print_plan(built.arch, plan, m.roles, m.shared_map, m.pipelines)
    if a := m.assembled:
        click.echo(
            f"Assembler {m.compiler['assembler']}: {a['registers']} registers a thread at entry, {a['barriers']} named barriers, {_spills(a)}\n"
        )
    click.echo("Proof")
    click.echo("\n".join([*proof_lines([proof_object(built)]), *suppressed_lines(built.suppressed)]).partition("\n")[2] + "\n")
    click.echo(f"Wrote {folder}")
    for name, data in sorted(built.files.items()):
        click.echo(f"  {name:<14} {len(data):>8} bytes")


def _spills(a: dict) -> str:
    spilled = a["spill_store_bytes"] + a["spill_load_bytes"]
    return f"spills {a['spill_store_bytes']} bytes stored, {a['spill_load_bytes']} loaded" if spilled else "no spills"
