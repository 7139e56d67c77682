"""Exit codes (docs/cli.md and `cake --help` have them too)."""

from __future__ import annotations

from collections.abc import Iterable

from cake_core.diagnostics.model import Diagnostic, Severity

CLEAN, FINDINGS, USAGE, ENGINE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 130, 141

#: Findings that are no fault of the text: whole namespaces, and codes.
ENGINE_NAMESPACES = {"plugin", "rules"}
ENGINE_CODES = {
    "assemble/no-assembler",
    "assemble/ptxas-error",
    "assemble/ptxas-failed",
    "assemble/timeout",
    "review/no-git",
    "runtime/driver",
    "runtime/no-gpu",
}
#: What a project says in `cake.toml`, as wrong as a wrong option.
USAGE_NAMESPACES = {"config"}
#: Findings of an engine's namespace that are of a text nevertheless.
OF_A_TEXT = {"rules/example", "rules/not-analysed", "rules/probe", "rules/undecided", "rules/unfinished"} | {"rules/baseline-stale", "rules/suppression", "rules/suppression-refused"}


def code_of(diagnostics: Iterable[Diagnostic]) -> int:
    """0 without errors, 3 if one of them is the engine's, 2 if one is of the project's settings, else 1."""
    errors = [d.code for d in diagnostics if d.severity is Severity.ERROR]
    if any(c in ENGINE_CODES or c.partition("/")[0] in ENGINE_NAMESPACES and c not in OF_A_TEXT for c in errors):
        return ENGINE
    if any(c.partition("/")[0] in USAGE_NAMESPACES for c in errors):
        return USAGE
    return FINDINGS if errors else CLEAN
