"""`cake show`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import click

from cake_core.cli import exits
from cake_core.cli.build import settings_of, unproved_option
from cake_core.cli.host import registry
from cake_core.cli.judged import Judged, rule_options
from cake_core.cli.output import print_findings, progress, read_source, suppressed_lines, table
from cake_core.cli.plans import print_plan
from cake_core.cli.proofs import proof_lines, proof_object
from cake_core.diagnostics.model import CakeError, Diagnostic

#: How often someone is picked to go on in a run whose sizes were named, by CTA, before the picture ends.
PICKS = 4000

EPILOG = """\b
Examples:
  cake show gemm.cake
  cake show gemm.cake --html gemm.html
  cake show gemm.cake --shape M=256,N=256,K=512 --trace gemm.json
  cake show gemm.cake --json > gemm.show.json

\b
Roles over time are a run of the event machine in which everything starts as soon as it can: order and overlap, not nanoseconds.
A trace opens in Perfetto (ui.perfetto.dev) and chrome://tracing.
"""


@click.command("show", epilog=EPILOG)
@click.argument("file")
@click.option("--arch", metavar="ARCH", help="Which of the text's targets; may be left out where it has one.")
@click.option("--kernel", metavar="NAME", help="Which kernel, where the text has several.")
@click.option("--set", "settings", multiple=True, metavar="N=V", help="Override a constant; may be repeated.")
@click.option("--shape", metavar="N=V,..", help="Sizes of the run. [default: those of a finding's example, else some that show much]")
@click.option("--html", metavar="FILE", help="Write one page that needs nothing else.")
@click.option("--trace", metavar="FILE", help="Write the run as a trace for viewers.")
@unproved_option
@rule_options
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(file, arch, kernel, settings, shape, html, trace, allowed, judged: Judged, as_json) -> int:
    """Show one kernel of FILE ('-' is stdin): roles, maps of memory, barriers, roles over time, and what `cake check` finds.

    A text with errors is shown too, as far as it has a meaning.
    """
    overrides, sizes = settings_of(settings), settings_of(tuple(shape.split(","))) if shape else {}
    sources: dict = {}
    try:
        source = read_source(file)
        sources[source.name] = source
        book = judged.book()
    except CakeError as error:
        print_findings(error.diagnostics, sources, "json" if as_json else "text", to_stdout=True)
        return exits.code_of(error.diagnostics)
    with progress(f"looking at {source.name}", as_json) as on_step:
        seen = _seen(source, arch, kernel, overrides, sizes, book, allowed, on_step)
    findings = (*registry().problems(), *book.notes, *seen.picture.findings)
    picture = replace(seen.picture, findings=findings)
    if trace:
        if picture.timeline is None:
            print_findings(findings, sources, "json" if as_json else "text", to_stdout=True)
            raise click.UsageError(f"--trace: nothing to write: {picture.missing['timeline']}")
        from cake_core.trace import trace_bytes

        _write(trace, trace_bytes(picture.timeline.trace))
    if html:
        from cake_core.show import page

        _write(html, page(picture).encode())
    if as_json:
        from cake_core.show import picture_object

        print_findings(findings, sources, "json", packs=judged.packs, suppressed=seen.suppressed, show=picture_object(picture))
        return exits.code_of(findings)
    if not html:
        _report(seen, picture)
    print_findings(findings, sources, "text", to_stdout=True)
    for line in suppressed_lines(seen.suppressed):
        click.echo(line)
    for path in (html, trace):
        if path:
            click.echo(f"Wrote {path}")
    return exits.code_of(findings)


class Seen:
    """What was found out: the picture, and what the report in words is made of beside it."""

    def __init__(self, picture, arch=None, plan=None, tables=None, suppressed=()) -> None:
        self.picture, self.arch, self.plan, self.tables, self.suppressed = picture, arch, plan, tables, suppressed


def _seen(source, arch, kernel, overrides: dict, sizes: dict, book, allowed, on_step) -> Seen:
    """The kernel as far as it has a meaning: with errors of checks all of it, with errors of the text the text and what is found."""
    from cake_core.facts import facts_of
    from cake_core.ir.plan import read_plan
    from cake_core.pipeline import build, frontend, pipelines, role_record, shared_map
    from cake_core.primitive.groups import warps_of
    from cake_core.prove.beside import cores
    from cake_core.show import gathered

    proof, findings, suppressed, front = None, (), (), None
    try:
        how = {"kernel": kernel, "book": book, "prove": True, "cores": cores(), "allow_unproved": allowed, "read_back": False, "on_step": on_step}
        front = built = build(source, registry(), arch, overrides, **how)
        findings, suppressed, proof = built.diagnostics, built.suppressed, proof_object(built)
    except CakeError as error:
        findings = error.diagnostics
    try:
        front = front or frontend(source, registry(), arch, overrides, kernel=kernel)
        facts = facts_of(front.typed, registry(), front.arch)
        plan = read_plan(front.typed, warps_of(front.typed, registry()), registry().spaces)
    except CakeError:
        return Seen(_outline(source, arch, kernel, overrides, findings))
    on_step("run")
    timeline, missing = _timeline(facts, sizes, findings)
    limits = front.arch.limit("shared_bytes_per_block"), front.arch.limit("tensor_columns") if plan.tensors else 0
    of = tuple(pipelines(front.schedule or front.typed, plan))
    picture = gathered(source, findings, plan, facts, limits, of, timeline, proof, missing)
    return Seen(picture, front.arch, plan, (tuple(map(role_record, plan.roles)), shared_map(plan), of), suppressed)


def _outline(source, arch, kernel, overrides: dict, findings: tuple[Diagnostic, ...]):
    """What is known of a text that can't be derived: what it declares, where its names and types are right."""
    from cake_core.elaborate import elaborate
    from cake_core.ir.plan import read_plan
    from cake_core.pipeline import choose_kernel, choose_target, for_target, pipelines
    from cake_core.primitive.groups import warps_of
    from cake_core.show import Picture, outlined
    from cake_core.syntax import parse

    why = "Nothing runs: the text has errors that leave it without a meaning."
    try:
        program = parse(source)
        chosen = choose_kernel(program, kernel)
        target = choose_target(chosen, registry(), arch)
        typed = elaborate(for_target(chosen, target.name), registry(), target, derived=program.derived, overrides=overrides)
        plan = read_plan(typed, warps_of(typed, registry()), registry().spaces)
    except CakeError:
        return Picture(source, kernel, arch, findings, missing={"timeline": why})
    why = "Nothing runs: the text has errors, and barriers and places of memory could not be derived."
    return outlined(source, findings, typed.name, target.name, plan, tuple(pipelines(typed, plan)), why)


def _timeline(facts, sizes: dict, findings: tuple[Diagnostic, ...]):
    """(the run, why there is none): at the sizes that were named, those of a finding's example, or some that show much."""
    from cake_core.machine import MachineError, Scenario
    from cake_core.machine.timeline import telling, timeline

    if sizes:
        _admitted(facts, sizes)
    try:
        if sizes:
            return timeline(facts, Scenario(sizes), picks=PICKS * facts.cluster), {}
        for d in findings:
            if d.witness is not None and d.witness.confirmed and set(facts.scalars) <= dict(d.witness.params).keys():
                at = {n: v for n, v in d.witness.params if n in facts.scalars}
                return timeline(facts, Scenario(at), picks=PICKS * facts.cluster), {}
        return telling(facts), {}
    except MachineError as error:
        return None, {"timeline": f"No run is shown: {error}."}


def _admitted(facts, sizes: dict) -> None:
    """A usage error unless these are all sizes of the kernel, and its `require`s admit them."""
    from cake_core.machine import MachineError
    from cake_core.machine.scenarios import value

    if wrong := [n for n in sizes if n not in facts.scalars]:
        raise click.UsageError(f"--shape: the kernel has no size '{wrong[0]}'; it has {', '.join(facts.scalars) or 'none'}")
    if missing := [n for n in facts.scalars if n not in sizes]:
        raise click.UsageError(f"--shape: '{missing[0]}' has no value")
    if not all(isinstance(v, int) and not isinstance(v, bool) for v in sizes.values()):
        raise click.UsageError("--shape: sizes are integers")
    try:
        kept = all(value(e, sizes) for e in facts.requires)
    except MachineError:  # a division by zero
        kept = False
    if not kept:
        raise click.UsageError("--shape: these sizes break a 'require' of the kernel")


def _report(seen: Seen, picture) -> None:
    """The picture in words."""
    if seen.plan is None:
        click.echo(f"{picture.source.name}: {picture.missing['timeline']}\n")
        return
    size = f"{picture.threads} threads a CTA, cluster of {picture.cluster}, {picture.shared_bytes} bytes of shared memory"
    click.echo(f"{picture.kernel} for {picture.arch}: {size}\n")
    print_plan(seen.arch, seen.plan, *seen.tables)
    if picture.barriers:
        rows = [
            (f"{b.name}[{b.slots}]" if b.slots > 1 else b.name, b.count, _who(b, "waits"), _who(b, "arrives"), _who(b, "sends bytes"))
            for b in picture.barriers
        ]
        table("Barriers", ("barrier", "arrivals", "who waits, at line", "who arrives", "whose bytes"), rows)
    if picture.timeline is not None:
        _over_time(picture.timeline)
    else:
        click.echo(picture.missing["timeline"] + "\n")
    if picture.proof is not None:
        click.echo("\n".join(("Proof", *list(proof_lines([picture.proof]))[1:])) + "\n")


def _who(b, what: str) -> str | None:
    return "; ".join(f"{u.who} {', '.join(map(str, u.lines))}".strip() for u in b.uses if u.what == what) or None


def _over_time(t) -> None:
    from cake_core.show.picture import roles_of

    rows = roles_of(t)
    several = len({group for group, *_ in rows}) > 1
    sizes = ", ".join(f"{n} = {v}" for n, v in t.trace.about)
    title = f"Roles over time{', ' + sizes if sizes else ''}: {t.trace.end} units, everything as soon as it can"
    columns = ("CTA", "role", "statements", "units", "waits", "longest wait") if several else ("role", "statements", "units", "waits", "longest wait")
    note = "units say what waits for what, not how long it takes" + ("; the run is longer than what is shown" if t.cut else "")
    table(title, columns, [r if several else r[1:] for r in _alike(rows)], note)
    for f in t.faults:
        click.echo(f"The run goes wrong: {f.kind}, {f.message}")
    if t.faults:
        click.echo()


def _alike(rows: list[tuple]) -> list[tuple]:
    """Instances of a CTA that do the same in one row."""
    role = lambda r: r[1].partition("[")[0]
    counts = Counter((r[0], role(r), *r[2:]) for r in rows)
    out = {}
    for r in rows:
        key = (r[0], role(r), *r[2:])
        out.setdefault(key, (r[0].removeprefix("CTA "), r[1] if counts[key] == 1 else f"{role(r)}, {counts[key]} instances", *r[2:]))
    return list(out.values())


def _write(path: str, data: bytes) -> None:
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise click.FileError(path, error.strerror) from None
