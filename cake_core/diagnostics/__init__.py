"""Findings and their renderers."""

from cake_core.diagnostics.model import CakeError, Diagnostic, Related, Severity, Sink, fail

__all__ = ["CakeError", "Diagnostic", "Related", "Severity", "Sink", "fail"]
