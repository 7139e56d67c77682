"""Findings and their renderers."""

from cake_core.diagnostics.model import CakeError, Diagnostic, Related, Severity, Sink, Suppressed, Witness, fail
from cake_core.diagnostics.render import FORMATS, render

__all__ = ["FORMATS", "CakeError", "Diagnostic", "Related", "Severity", "Sink", "Suppressed", "Witness", "fail", "render"]
