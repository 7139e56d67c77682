"""A text to an artifact, one function readable from top to bottom: `build`. The rooms do the work; the order stands here."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cake_core import __version__, artifact
from cake_core.architecture import Architecture
from cake_core.artifact import Check, EntryParamInfo, LaunchInfo, Manifest, ParamInfo, TensorMapInfo
from cake_core.check import Checked, checked
from cake_core.check.safety import Account
from cake_core.check.suppressions import Suppressions, allows_of
from cake_core.derive import derive
from cake_core.diagnostics import CakeError, Diagnostic, Related, Severity, Sink, Suppressed, fail
from cake_core.elaborate import constants, elaborate
from cake_core.frozen import frozen
from cake_core.ir.formula import formula
from cake_core.ir.nodes import Assume, Int, Kernel, Pipeline, Program, Target
from cake_core.ir.printer import expr_text, program_text
from cake_core.ir.recipe import plan_info
from cake_core.lower import device_check, lower
from cake_core.plugins import Registry, Status
from cake_core.rules import Rulebook, rulebook
from cake_core.source import Source, Span
from cake_core.syntax import parse

if TYPE_CHECKING:
    from cake_core.assemble import Assembled, Assembler
    from cake_core.facts import Rows
    from cake_core.lower import Lowered
    from cake_core.reread import Reading
    from cake_core.rules import Predicates, Rule


@frozen
class Build:
    """Every stage of one kernel for one target. `schedule` is None where the text was in derived form already."""

    source: Source
    program: Program
    arch: Architecture
    schedule: Kernel | None  # typed
    derived: Kernel  # untyped, as written or derived: what `derived_text` prints
    typed: Kernel  # the derived form, elaborated
    lowered: Lowered
    assembled: Assembled | None
    diagnostics: tuple[Diagnostic, ...]  # warnings and notes
    derived_text: str
    manifest: Manifest
    files: dict[str, bytes]
    account: Account  # what is proved and what is not
    suppressed: tuple[Suppressed, ...] = ()  # findings that are let pass


def build(
    source: Source,
    registry: Registry,
    arch: str | None = None,
    overrides: Mapping[str, int | float | bool] | None = None,
    *,
    program: Program | None = None,
    kernel: str | None = None,
    assembler: Assembler | None = None,
    book: Rulebook | None = None,
    prove: bool = False,
    allow_unproved: Collection[str] = (),
    counted: Collection[str] = (),
    cores: int = 1,
    violated: bool = False,
    read_back: bool = True,
    on_step=lambda step: None,
) -> Build:
    """Build one kernel of `source`. Without an `assembler` there is no cubin. Raises CakeError with all findings.

    `program`: the text, where it was parsed already. `kernel`: which of a text with several. `arch`: which of its targets, by
    exact name; may be left out where it has one.
    `overrides`: constants by name. `book`: the rules to judge; without it the default suites of the packs that are there. `prove`: ask the prover
    what rules ask, and refuse a kernel of which a safety category is left unproved, those in `allow_unproved` excepted; without it those rules are
    left out, and all that they cover is allowed to be unproved. Either way the manifest says what is. `counted`: rules whose
    findings a baseline counts, which end nothing. `cores`: 2 lets a copy of this process prove
    its half. `violated`, for tests of what goes wrong on
    hardware alone: errors that the checks find end nothing; the manifest has their codes, and the runtime refuses it unless it is told to.
    `read_back`: compare the machine code with what was judged (`reread`); False where nobody keeps that code.
    `on_step` is told the name of each step as it starts.
    """
    front = frontend(source, registry, arch, overrides, program=program, kernel=kernel, on_step=on_step)
    program, chosen, target = front.program, front.chosen, front.arch
    schedule, derived, typed, findings = front.schedule, front.derived, front.typed, list(front.findings)

    on_step("check")
    book = book or rulebook()
    sink = Sink()
    suppressions = Suppressions(allows_of(source, book, sink), frozenset(counted))
    judged = checked(typed, registry, target, book, prover(cores) if prove else None, allow_unproved, suppressions)
    findings += [*sink.items, *judged.findings]
    wrong = tuple(sorted({d.code for d in findings if d.severity is Severity.ERROR}))
    if wrong and not violated:
        raise CakeError(*findings)

    on_step("lower")
    lowered = lower(typed, registry, target)
    reading = None
    if read_back and judged.facts is not None:
        from cake_core.reread import reread

        on_step("read back")
        reading = reread(lowered, judged.facts, registry.rereads, target)
        if reading.findings:
            raise CakeError(*findings, *reading.findings)

    assembled = None
    if assembler is not None:
        from cake_core.assemble import assemble

        on_step("assemble")
        roles = [(r.name, r.span) for r in chosen.roles]
        assembled = assemble(lowered.ptx, target.assembler_target, chosen.name, lines=lowered.lines, roles=roles, assembler=assembler)

    derived_text = program_text(Program(program.version, True, (derived,)))
    consts = constants(chosen, registry, target, derived=program.derived, overrides=dict(overrides or {}))
    manifest, files = artifact_files(
        source, registry, target, schedule or typed, typed, consts, lowered, assembled, derived_text, book, judged, wrong, reading
    )
    diagnostics = (*findings, *(assembled.diagnostics if assembled else ()))
    of = (judged.account, judged.suppressed)
    return Build(source, program, target, schedule, derived, typed, lowered, assembled, diagnostics, derived_text, manifest, files, *of)


@frozen
class Front:
    """A kernel as far as the meaning goes: what checks, facts and lowering start from. Fields as in `Build`."""

    program: Program
    chosen: Kernel  # as parsed, narrowed to its target
    arch: Architecture
    schedule: Kernel | None
    derived: Kernel
    typed: Kernel
    findings: tuple[Diagnostic, ...]  # warnings of observers


def frontend(
    source: Source,
    registry: Registry,
    arch: str | None = None,
    overrides: Mapping | None = None,
    *,
    program: Program | None = None,
    kernel: str | None = None,
    on_step=lambda step: None,
) -> Front:
    """Parse, elaborate, derive and elaborate again; arguments as of `build`. Raises CakeError with all findings."""
    on_step("parse")
    program = parse(source) if program is None else program
    chosen = choose_kernel(program, kernel)
    target = choose_target(chosen, registry, arch)
    chosen = for_target(chosen, target.name)
    findings = [*registry.after_pass("parse", chosen)]

    on_step("elaborate")
    typed = elaborate(chosen, registry, target, derived=program.derived, overrides=dict(overrides or {}))
    findings += registry.after_pass("elaborate", typed)
    if program.derived:
        return Front(program, chosen, target, None, chosen, typed, tuple(findings))
    on_step("derive")
    derived = derive(typed, registry, target)
    findings += registry.after_pass("derive", derived)
    return Front(program, chosen, target, typed, derived, elaborate(derived, registry, target, derived=True, overrides={}), tuple(findings))


def prover(cores: int = 1) -> Callable[[Rows, tuple[Rule, ...]], Predicates]:
    """Who answers the predicates of rules. The solver is imported when it is first asked, with two `cores` at once."""
    from cake_core.prove.prover import Prover

    def begun(rows: Rows, rules: tuple[Rule, ...]) -> Prover:
        made = Prover(rows, rules, cores)
        made.begin()
        return made

    return begun


# --- which kernel, which target ----------------------------------------------------------------------------------


def choose_kernel(program: Program, name: str | None) -> Kernel:
    kernels: dict[str, Kernel] = {}
    for k in program.kernels:
        if (other := kernels.setdefault(k.name, k)) is not k:
            raise fail("type/repeated", f"two kernels are called '{k.name}'", k.span, related=(Related("the other one", other.span),), fix="choose another name")
    if name is not None and name not in kernels:
        raise fail("type/no-such-kernel", f"the text has no kernel '{name}'", fix=f"name one of {_listed(kernels)}")
    if name is None and len(kernels) != 1:
        if not kernels:
            raise fail("type/no-such-kernel", "the text has no kernel")
        raise fail("type/several-kernels", f"the text has {len(kernels)} kernels", fix=f"choose with --kernel: {_listed(kernels)}")
    return kernels[name] if name is not None else next(iter(kernels.values()))


def choose_target(kernel: Kernel, registry: Registry, name: str | None) -> Architecture:
    """The architecture of a kernel: one of its targets, never a newer or older one instead."""
    clauses = kernel.clause(Target)
    span = clauses[0].span if clauses else kernel.span
    targets = kernel.targets
    if not targets:
        raise fail("type/no-target", f"kernel '{kernel.name}' names no target", kernel.span, fix="add a line 'target NAME'; 'cake plugins' lists the architectures")
    if (twice := next((t for n, t in enumerate(targets) if t in targets[:n]), None)) is not None:
        raise fail("type/repeated", f"target '{twice}' stands twice", clauses[-1].span, why="a kernel is built for each of its targets once", fix="leave one out")
    if name is None and len(targets) > 1:
        raise fail("type/several-targets", f"kernel '{kernel.name}' has several targets", span, fix=f"choose with --arch: {_listed(targets)}")
    if name is not None and name not in targets:
        raise fail("type/wrong-target", f"'{name}' is no target of kernel '{kernel.name}'", span, fix=f"its targets are {_listed(targets)}")
    return registry.architecture(name or targets[0], span)


def for_target(kernel: Kernel, name: str) -> Kernel:
    """The kernel with its target clauses narrowed to the one that is built."""
    clauses = tuple(replace(c, names=(name,)) if isinstance(c, Target) else c for c in kernel.clauses)
    first = next(i for i, c in enumerate(clauses) if isinstance(c, Target))
    return replace(kernel, clauses=tuple(c for i, c in enumerate(clauses) if i == first or not isinstance(c, Target)))


def _listed(names) -> str:
    return ", ".join(f"'{n}'" for n in names)


# --- the artifact ------------------------------------------------------------------------------------------------


def artifact_files(
    source, registry, arch, schedule, typed, consts, lowered, assembled, derived_text, book, judged: Checked, violated, reading: Reading | None
) -> tuple[Manifest, dict[str, bytes]]:
    """The manifest and the bytes of every file. No dates, no absolute paths: the same input gives the same bytes."""
    name = Path(source.name).name
    files = {"kernel.ptx": lowered.ptx.encode(), "derived.cake": derived_text.encode(), "sourcemap.json": source_map(lowered.lines, lowered.labels)}
    if assembled:
        files["kernel.cubin"] = assembled.cubin
    contracts, checks = assumes(typed), None
    if contracts:
        text, checks = device_check(typed.name, contracts, lowered.params, arch)
        files["assumes.ptx"] = text.encode()
    hashes = {file: artifact.sha256(data) for file, data in files.items()} | {name: artifact.sha256(source.text.encode())}
    manifest = Manifest(
        kernel=typed.name,
        entry=typed.name,
        arch=arch.name,
        target=arch.target,
        compute_capability=arch.compute_capability,
        portable=arch.portable,
        params=_records(ParamInfo, lowered.params),
        entry_params=_records(EntryParamInfo, lowered.entry_params),
        tensor_maps=_records(TensorMapInfo, lowered.tensor_maps),
        launch=launch_info(lowered),
        requires=_records(Check, lowered.requires),
        assumes=contracts,
        device_check=checks,
        plan=plan_info(schedule, typed.params[len(schedule.params) :]),
        constants=consts,
        roles=tuple(role_record(r) for r in lowered.plan.roles),
        shared_map=shared_map(lowered.plan),
        pipelines=pipelines(schedule, lowered.plan),
        unproved=judged.account.unproved,
        allowed_unproved=judged.account.allowed,
        violated=violated,
        reread=reading.record() if reading is not None else None,
        waived=tuple(w.to_dict() for w in book.waivers),
        suppressed=tuple({"rule": s.rule, "line": s.finding.span.line, "reason": s.reason} for s in judged.suppressed if s.at is not None),
        compiler=compiler(registry, book, assembled),
        hashes=hashes,
        assembled=usage(assembled) if assembled else None,
    )
    files["manifest.json"] = manifest.to_json().encode()
    return manifest, files


def assumes(kernel: Kernel) -> tuple[Check, ...]:
    scalars = frozenset(p.name for p in kernel.params if p.mode is None)
    inputs = frozenset(p.name for p in kernel.params if p.mode == "in")
    exprs = (e for clause in kernel.clause(Assume) for e in clause.exprs)
    return tuple(Check(formula(e, {}, scalars, inputs), expr_text(e)) for e in exprs)


def _records(kind: type, items) -> tuple:
    assert all(isinstance(i, kind) for i in items)
    return tuple(items)


def launch_info(lowered) -> LaunchInfo:
    assert isinstance(lowered.launch, LaunchInfo)
    return lowered.launch


def source_map(lines: list[Span | None], labels: tuple[dict, ...] = ()) -> bytes:
    rows = [[Path(s.file).name, s.line, s.column] if s and s.line else None for s in lines]
    return (json.dumps({"lines": rows} | ({"labels": labels} if labels else {}), separators=(",", ":")) + "\n").encode()


def role_record(role) -> dict:
    """One role. `registers` a thread, where a word on its header asks for them."""
    return {
        "name": role.name,
        "instances": role.instances,
        "warps": role.warps,
        "first_warp": role.first,
        "pad_warps": role.pad,
        "words": dict(sorted(role.entry.items())),
    }


def shared_map(plan) -> tuple[dict, ...]:
    """Buffers and barriers by offset from the aligned base, in bytes."""
    rows = [
        {"name": b.name, "kind": "buffer", "offset": b.offset, "bytes": b.bytes, "elem": b.elem.name, "slots": list(b.slots), "shape": list(b.shape), "swizzle": b.swizzle, "alias": b.alias}
        for b in plan.buffers.values()
    ]
    rows += [
        {"name": b.name, "kind": b.kind, "offset": b.offset, "bytes": b.bytes, "elem": None, "slots": [b.slots], "shape": [], "swizzle": 0, "alias": None, "count": b.count}
        for b in plan.barriers.values()
    ]
    return tuple(sorted(rows, key=lambda r: (r["offset"], r["name"])))


def pipelines(schedule: Kernel, plan) -> tuple[dict, ...]:
    """The pipelines of a schedule text with their barriers, which bear its name (a derived text has barriers alone)."""
    found = [s for s in schedule.body if isinstance(s, Pipeline)]
    owner = lambda barrier: max((p.name for p in found if barrier.startswith(f"{p.name}_")), key=len, default=None)
    rows = []
    for p in found:
        barriers = [{"name": b.name, "slots": b.slots, "count": b.count} for b in plan.barriers.values() if owner(b.name) == p.name]
        rows.append(
            {
                "name": p.name,
                "slots": p.slots.value if isinstance(p.slots, Int) else None,
                "buffers": list(p.buffers),
                "producers": [x.name for x in p.producers],
                "consumers": [x.name for x in p.consumers],
                "barriers": barriers,
            }
        )
    return tuple(rows)


def compiler(registry, book: Rulebook, assembled: Assembled | None) -> dict:
    plugins = {p.name: p.version for p in registry.plugins if p.status is Status.ACTIVE}
    of = {"rules": book.versions, "suite": book.suite, "lock": book.lock}
    return {"cake": __version__, "plugins": plugins, **of, "assembler": assembled.assembler.version if assembled else None}


def usage(assembled: Assembled) -> dict:
    u = assembled.usage
    return {
        "registers": u.registers,
        "barriers": u.barriers,
        "stack_bytes": u.stack,
        "spill_store_bytes": u.spill_stores,
        "spill_load_bytes": u.spill_loads,
        "static_shared_bytes": u.shared,
    }
