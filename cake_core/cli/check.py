"""`cake check`."""

from __future__ import annotations

from dataclasses import replace

import click

from cake_core.cli import exits
from cake_core.cli.build import rule_options, rules_of, settings_of, unproved_option
from cake_core.cli.host import registry
from cake_core.cli.output import MACHINE, chosen_format, format_options, print_findings, progress, read_source
from cake_core.cli.proofs import explanation_of, print_explanations, proof_lines, proof_object
from cake_core.diagnostics.model import CakeError, Diagnostic, Severity
from cake_core.ir.nodes import Target

EPILOG = """\b
Examples:
  cake check kernels/*/*.cake
  cake check kernel.cake --set BM=64
  cake check kernel.cake --pack rules/cake_rules_acme --preview
  cake check --format sarif kernel.cake > findings.sarif
"""


@click.command("check", epilog=EPILOG)
@click.argument("files", nargs=-1, required=True)
@click.option("--arch", metavar="ARCH", help="Check for this target alone. [default: every target of each text]")
@click.option("--set", "settings", multiple=True, metavar="N=V", help="Override a constant; may be repeated.")
@click.option("--explain-proof", is_flag=True, help="Say which contracts each proof needs and what it took; about a proof a contract.")
@unproved_option
@rule_options
@format_options
def command(files, arch, settings, explain_proof, allowed, packs, preview, format, as_json) -> int:
    """Run every check on every kernel of FILES ('-' is stdin), for each of its targets; write nothing.

    Findings go to stdout, and what is proved for which sizes. A safety category that is not proved is an error. A target whose plugin is not
    installed is a warning, if another one is.
    """
    format = chosen_format(format, as_json)
    overrides = settings_of(settings)
    sources, findings, states = {}, [], []
    try:
        book = rules_of(packs, preview)
    except CakeError as error:
        print_findings(error.diagnostics, sources, format, to_stdout=True, files=[])
        return exits.code_of(error.diagnostics)
    with progress("checking", format in MACHINE) as on_step:
        for file in dict.fromkeys(files):
            on_step(file)
            found, proofs = check_file(file, arch, overrides, sources, book, allowed, explain_proof)
            findings += [d for d in found if d not in findings]
            states.append({"file": file, "state": "errors" if exits.code_of(found) else "clean", "kernels": proofs})
    findings = [*registry().problems(), *findings]  # asked last: a plugin may have been loaded by what a text names
    print_findings(findings, sources, format, to_stdout=True, packs=packs, files=states)
    if format == "text":
        for line in proof_lines([p for s in states for p in s["kernels"]]):
            click.echo(line)
        print_explanations([p for s in states for p in s["kernels"]])
    if format == "text" and not exits.code_of(findings):
        click.echo(f"{len(states)} text{'s' if len(states) != 1 else ''} clean")
    return exits.code_of(findings)


def check_file(
    file: str, arch: str | None, overrides: dict, sources: dict, book, allowed: tuple[str, ...] = (), explain_proof: bool = False
) -> tuple[list[Diagnostic], list[dict]]:
    """All findings of one text, and what is proved of it; each kernel and target is checked apart, so that one error hides no other's."""
    from cake_core.pipeline import build
    from cake_core.prove.beside import cores
    from cake_core.syntax import parse

    try:
        source = read_source(file)
        sources[source.name] = source
        program = parse(source)
    except CakeError as error:
        return list(error.diagnostics), []
    found: list[Diagnostic] = []
    proofs: list[dict] = []
    for kernel in program.kernels:
        targets, left_out = ([arch], []) if arch else installed(kernel)
        found += left_out
        for target in targets:
            try:
                how = {"book": book, "prove": True, "cores": cores(), "allow_unproved": allowed}
                built = build(source, registry(), target, overrides, program=program, kernel=kernel.name, **how)
                new = built.diagnostics
                explained = explanation_of(built, registry(), book, overrides) if explain_proof else None
                proofs.append(proof_object(built, explained))
            except CakeError as error:
                new = error.diagnostics
            found += [d for d in new if d not in found]
    return found, proofs


def installed(kernel) -> tuple[list[str | None], list[Diagnostic]]:
    """The targets of a kernel that a plugin offers, and a warning for each other. Without any, all: the errors say why."""
    there = [t for t in kernel.targets if t in registry().architectures]
    if not there:
        return list(kernel.targets) or [None], []
    left_out = []
    for name in kernel.targets:
        if name not in there:
            try:
                registry().architecture(name, kernel.clause(Target)[0].span)
            except CakeError as error:
                note = {"severity": Severity.WARNING, "fix": f"install the plugin that offers '{name}'"}
                left_out += [replace(d, message=f"not checked for '{name}': {d.message}", **note) for d in error.diagnostics]
    return list(there), left_out
