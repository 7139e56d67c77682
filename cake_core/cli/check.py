"""`cake check`."""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from pathlib import Path

import click

from cake_core.cli import exits
from cake_core.cli.build import settings_of, unproved_option
from cake_core.cli.host import registry
from cake_core.cli.judged import Judged, rule_options
from cake_core.cli.output import MACHINE, chosen_format, format_options, print_findings, progress, read_source, suppressed_lines
from cake_core.cli.proofs import explanation_of, print_explanations, proof_lines, proof_object
from cake_core.diagnostics.model import CakeError, Diagnostic, Severity, Suppressed
from cake_core.frozen import thawed
from cake_core.ir.nodes import Target

EPILOG = """\b
Examples:
  cake check kernels/*/*.cake
  cake check kernel.cake --set BM=64
  cake check kernel.cake --pack rules/cake_rules_acme --preview
  cake check --format sarif kernel.cake > findings.sarif
  cake check kernels/*/*.cake --write-baseline
  cake check kernels/*/*.cake --baseline cake-baseline.json
"""


@click.command("check", epilog=EPILOG)
@click.argument("files", nargs=-1, required=True)
@click.option("--arch", metavar="ARCH", help="Check for this target alone. [default: every target of each text]")
@click.option("--set", "settings", multiple=True, metavar="N=V", help="Override a constant; may be repeated.")
@click.option("--explain-proof", is_flag=True, help="Say which contracts each proof needs and what it took; about a proof a contract.")
@click.option(
    "--baseline", metavar="FILE", help="Let pass as many findings of advice as FILE counts of a text; a count that is too high is an error."
)
@click.option("--write-baseline", is_flag=True, help="Count the findings of advice of FILES anew. [default: to cake-baseline.json]")
@click.option("--prune-baseline", is_flag=True, help="Take out what the baseline counts and is not there.")
@unproved_option
@rule_options
@format_options
def command(files, arch, settings, explain_proof, baseline, write_baseline, prune_baseline, allowed, judged: Judged, format, as_json) -> int:
    """Run every check on every kernel of FILES ('-' is stdin), for each of its targets; write nothing.

    Findings go to stdout, and what is proved for which sizes. A safety category that is not proved is an error. A target whose plugin is not
    installed is a warning, if another one is.
    """
    format = chosen_format(format, as_json)
    overrides = settings_of(settings)
    if (write_baseline or prune_baseline) and (arch or settings or write_baseline and prune_baseline):
        raise click.UsageError("a baseline is written of whole texts as they stand: without --arch and --set, and either anew or pruned")
    if (baseline or write_baseline or prune_baseline) and "-" in files:
        raise click.UsageError("a baseline counts by the names of files, and '-' has none")
    sources, findings, states, passed = {}, [], [], []
    try:
        book = judged.book()
        base = _baseline(baseline, write_baseline, prune_baseline, book)
    except CakeError as error:
        print_findings(error.diagnostics, sources, format, to_stdout=True, files=[])
        return exits.code_of(error.diagnostics)
    with progress("checking", format in MACHINE) as on_step:
        for file in dict.fromkeys(files):
            on_step(file)
            counted = () if base is None else _advice(book) if write_baseline else base.of(file)
            c = check_file(file, arch, overrides, sources, book, allowed, explain_proof, counted)
            if base is not None and c.whole and not overrides:
                base.seen[base.key(file)] = _counts(c)
            if base is not None and not write_baseline:
                _compare(c, base, file)
            findings += [d for d in c.findings if d not in findings]
            passed += c.suppressed
            states.append({"file": file, "state": "errors" if exits.code_of(c.findings) else "clean", "kernels": c.proofs})
    if base is not None:
        findings += _settle(base, book, write_baseline, prune_baseline, findings)
    findings = [*registry().problems(), *book.notes, *findings]  # asked last: a plugin may have been loaded by what a text names
    print_findings(findings, sources, format, to_stdout=True, packs=judged.packs, suppressed=passed, files=states)
    if format == "text":
        for line in (*proof_lines([p for s in states for p in s["kernels"]]), *suppressed_lines(passed)):
            click.echo(line)
        print_explanations([p for s in states for p in s["kernels"]])
    if format == "text" and not exits.code_of(findings):
        click.echo(f"{len(states)} text{'s' if len(states) != 1 else ''} clean")
    return exits.code_of(findings)


@thawed
class Checked:
    """One text: its findings, those that are let pass, and what is proved. `whole`: every kernel was checked for every target, and none has an
    error, so that what was not found is not there."""

    findings: list[Diagnostic] = field(default_factory=list)
    proofs: list[dict] = field(default_factory=list)
    suppressed: list[Suppressed] = field(default_factory=list)
    whole: bool = False


def check_file(
    file: str,
    arch: str | None,
    overrides: dict,
    sources: dict,
    book,
    allowed: tuple[str, ...] = (),
    explain_proof: bool = False,
    counted: tuple[str, ...] = (),
) -> Checked:
    """One text, each kernel and target apart, so that one error hides no other's. `counted`: rules whose findings are let pass, all of them."""
    from cake_core.check.suppressions import unused
    from cake_core.pipeline import build
    from cake_core.prove.beside import cores
    from cake_core.syntax import parse

    try:
        source = read_source(file)
        sources[source.name] = source
        program = parse(source)
    except CakeError as error:
        return Checked(list(error.diagnostics))
    out = Checked(whole=arch is None)
    for kernel in program.kernels:
        targets, left_out = ([arch], []) if arch else installed(kernel)
        out.findings += left_out
        out.whole &= not left_out
        for target in targets:
            try:
                how = {"book": book, "prove": True, "cores": cores(), "allow_unproved": allowed, "counted": counted, "read_back": False}
                built = build(source, registry(), target, overrides, program=program, kernel=kernel.name, **how)
                new = built.diagnostics
                explained = explanation_of(built, registry(), book, overrides) if explain_proof else None
                out.proofs.append(proof_object(built, explained))
                out.suppressed += [s for s in built.suppressed if s not in out.suppressed]
            except CakeError as error:
                new, out.whole = error.diagnostics, False
            out.findings += [d for d in new if d not in out.findings]
    if out.whole:
        out.findings += unused(source, book, out.suppressed)
    return out


# --- the baseline ------------------------------------------------------------------------------------------------


def _baseline(path: str | None, write: bool, prune: bool, book):
    """The baseline that the options name, None without. Raises CakeError where it can't be read."""
    if path is None and not (write or prune):
        return None
    from cake_core.check import baseline

    where = Path(path or baseline.NAME)
    if write and not where.exists():
        return baseline.Baseline(where)
    try:
        return baseline.read(where, book)
    except OSError as error:
        raise click.FileError(str(where), error.strerror) from None


def _advice(book) -> tuple[str, ...]:
    from cake_core.check.suppressions import suppressible

    return tuple(r.id for r in book.rules if suppressible(r))


def _counts(c: Checked) -> dict[str, int]:
    return dict(Counter(s.rule for s in c.suppressed if s.kind == "external"))


def _compare(c: Checked, base, file: str) -> None:
    """Tell all findings of a rule that has more of them than are counted: which are the new ones nobody knows."""
    counts = _counts(c)
    more = {id for id, n in base.of(file).items() if counts.get(id, 0) > n}
    for id in sorted(more):
        c.findings += [s.finding for s in c.suppressed if s.rule == id and s.kind == "external"]
    c.suppressed = [s for s in c.suppressed if s.kind != "external" or s.rule not in more]


def _settle(base, book, write: bool, prune: bool, findings: list[Diagnostic]) -> list[Diagnostic]:
    """What is stale; or the file written. A text with errors is not counted, so that no error ends in a baseline."""
    if write and exits.code_of(findings):
        return []
    try:
        if write:
            base.renew()
        elif prune:
            base.prune(book)
    except OSError as error:
        raise click.FileError(str(base.path), error.strerror) from None
    return list(base.stale(book))


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
