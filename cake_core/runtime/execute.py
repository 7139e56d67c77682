"""Run and time an artifact on a GPU with nothing but the driver: what `cake run` and `cake bench` call."""

from __future__ import annotations

from pathlib import Path

from cake_core.runtime.errors import DriverError
from cake_core.runtime.report import BenchReport, RunReport


def run_artifact(folder: Path, companion: Path | None, shapes: list[dict[str, int]] | None, seed: int, device: int = 0) -> RunReport:
    """Run the kernel on each shape and compare with the companion's reference. Raises CakeError (runtime/...)."""
    raise DriverError("runtime/not-landed", "running an artifact is not in this build yet")


def bench_artifact(folder: Path, companion: Path | None, shapes: list[dict[str, int]] | None, seed: int, device: int = 0) -> BenchReport:
    """Time the kernel on each shape. Raises CakeError (runtime/...)."""
    raise DriverError("runtime/not-landed", "timing an artifact is not in this build yet")
