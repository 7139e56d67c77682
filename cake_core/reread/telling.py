"""Findings that are of no one thread."""

from __future__ import annotations

from collections.abc import Mapping

from cake_core.diagnostics import Diagnostic
from cake_core.facts.schema import Facts
from cake_core.lower import Lowered
from cake_core.ptx.reader import Statement

REPORT = "this is a fault of the compiler or of a plugin, not of the text: report it"


def of_launch(said: str, facts: Facts, params: Mapping[str, int] | None) -> Diagnostic:
    sizes = ", ".join(f"{n} = {v}" for n, v in (params or {}).items())
    return Diagnostic("reread/differs", f"of '{facts.kernel}' {said}", facts.launch.span, why=f"for {sizes or 'every launch'}", fix=REPORT)


def unwritten(lowered: Lowered, s: Statement, register: str) -> Diagnostic:
    role, text = lowered.roles_of_lines[s.line - 1], lowered.ptx.splitlines()[s.line - 1].strip()
    return Diagnostic(
        "reread/unwritten",
        f"the machine code of '{role or 'kernel'}' reads '{register}', which nothing may have written",
        lowered.lines[s.line - 1],
        role=role,
        why=f"at line {s.line} of the PTX: `{text}`",
        fix=REPORT,
    )
