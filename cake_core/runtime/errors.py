"""What the runtime raises. All are CakeErrors, so that a face renders their diagnostic; none needs a traceback to be read."""

from __future__ import annotations

from cake_core.diagnostics import CakeError, Diagnostic


class RuntimeFault(CakeError):
    """Base: one diagnostic with a code of the namespace `runtime/`."""

    def __init__(self, code: str, message: str, **details):
        self.diagnostic = Diagnostic(code, message, **details)
        super().__init__(self.diagnostic)

    def __str__(self) -> str:
        d = self.diagnostic
        return "; ".join(x for x in (f"{d.message} [{d.code}]", d.why, d.fix) if x)


class ArtifactError(RuntimeFault, ValueError):
    """A folder that is no artifact of this version, or a damaged one (`runtime/artifact-*`)."""


class LaunchError(RuntimeFault, ValueError):
    """Arguments that break the kernel's launch contract. Raised before anything is launched."""


class DriverError(RuntimeFault, RuntimeError):
    """No driver, no GPU, a GPU that the artifact is not built for, or a call that the driver refused."""
