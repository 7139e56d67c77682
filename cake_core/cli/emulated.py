"""`cake run --on cpu`: the PTX of an artifact, executed by the emulator in the place of a GPU's driver."""

from __future__ import annotations

import json
import os
from pathlib import Path

from cake_core.artifact import Manifest
from cake_core.cli.host import registry
from cake_core.diagnostics.model import CakeError, Diagnostic, Severity
from cake_core.source import Span

#: What a row of the source map's labels holds (`lower.stops`).
LABEL = {"label", "line", "role", "warps", "base", "loops", "names", "tiles", "tensors"}


def run_emulated(
    folder: Path,
    companion: Path | None,
    shapes: list[dict[str, int]] | None,
    seed: int,
    schedule: str,
    found: list[Diagnostic],
    file: str | None,
    trace: str | None = None,
    breaks: tuple[str, ...] = (),
):
    """The report of `run_artifact`, with the emulator for a device; findings of the emulator go to `found`. `file`: what the text is called in
    findings, where the artifact was built from one. `trace`: file for a trace of the first launch;
    `breaks`: labels at which to print what is where. Raises CakeError."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: its threads cost more than products of a warp take
    from cake_core.emulate.device import Api
    from cake_core.emulate.outcome import Unsupported
    from cake_core.emulate.turns import turns_of
    from cake_core.ptx.reader import PtxSyntaxError
    from cake_core.runtime import driver
    from cake_core.runtime.execute import run_artifact
    from cake_core.runtime.loader import read_manifest

    manifest = read_manifest(folder)
    lines = _Lines(folder, file)
    fresh: list = []
    beyond: set = set()
    recording = None
    if trace is not None:
        from cake_core.cli.tracing import Recording, write_trace

        recording = Recording(manifest.kernel, lines.span, lambda warp: _role(f"warp {warp}", manifest))
    stopped = None
    if breaks:
        from cake_core.cli.stopped import Stopped
        from cake_core.cli.stops import Printer, checked_labels

        checked_labels(breaks, (row["label"] for row in lines.labels))
        stopped = Stopped(lines.labels, breaks, manifest, Printer(breaks))
    api = Api(
        registry().emulates,
        tuple(manifest.compute_capability),
        lambda grid: (fresh.extend(grid.findings), beyond.update(grid.findings.beyond)),
        lambda: turns_of(schedule),
        watch=lambda: recording,
        stops=stopped.stops if stopped is not None else (),
    )

    def trouble(shape: dict) -> str | None:
        at = ", ".join(f"{k} = {v}" for k, v in shape.items())
        made = [lines.diagnostic(f, at, manifest) for f in fresh]
        fresh.clear()
        known = {(d.code, d.span) for d in found}
        found.extend(d for d in made if (d.code, d.span) not in known)
        return made[0].code + f": {made[0].message}" if made else None

    try:
        with driver.use(api):
            report = run_artifact(folder, companion, shapes, seed, text=True, trouble=trouble)
        if beyond:
            found.append(_more(len(beyond)))
        if recording is not None:
            write_trace(recording.file(("schedule", schedule), *((k, v) for r in report.results[:1] for k, v in r.shape.items())), trace)
        return report
    except Unsupported as error:
        span = lines.span(error.line)
        raise CakeError(
            Diagnostic("emulate/unsupported", f"'{error.opcode}' is not executed here: {error.why}", span, why=lines.where(error.line))
        ) from None
    except PtxSyntaxError as error:
        raise CakeError(
            Diagnostic("emulate/unsupported", f"kernel.ptx can't be read: {error.why}", lines.span(error.line), why=lines.where(error.line))
        ) from None
    finally:
        if stopped is not None:
            stopped.flush()


def _more(count: int) -> Diagnostic:
    message = f"{count} more finding{'s' if count > 1 else ''} at lines of the PTX {'are' if count > 1 else 'is'} not shown"
    return Diagnostic("emulate/more", message, severity=Severity.NOTE)


class _Lines:
    """Lines of kernel.ptx to places in the text."""

    def __init__(self, folder: Path, file: str | None) -> None:
        self.file = file
        try:
            whole = json.loads((folder / "sourcemap.json").read_text(encoding="utf-8"))
            lines, labels = whole["lines"], whole.get("labels", [])
            self.places = lines if isinstance(lines, list) else []
            self.labels = [r for r in labels if isinstance(r, dict) and r.keys() >= LABEL] if isinstance(labels, list) else []
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self.places, self.labels = [], []
        try:
            self.text = (folder / "kernel.ptx").read_text(encoding="utf-8", errors="replace").splitlines()
        except (OSError, ValueError):
            self.text = []

    def span(self, line: int) -> Span | None:
        match self.places[line - 1] if 0 < line <= len(self.places) else None:
            case [str(file), int(row), int(column)]:
                return Span(self.file or file, row, column, row, column + 1)
        return None

    def where(self, line: int) -> str | None:
        return f"line {line} of kernel.ptx: {self.text[line - 1].strip()}" if 0 < line <= len(self.text) else None

    def diagnostic(self, f, at: str, manifest: Manifest) -> Diagnostic:
        reasons = "; ".join(x for x in (f.why, f"at {at}" if at else None, self.where(f.line)) if x)
        return Diagnostic(f.code, f.message, self.span(f.line), why=reasons or None, fix=f.fix, role=_role(f.who, manifest))


def _role(who: str, manifest: Manifest) -> str | None:
    """The role of the warp that a finding names."""
    words = who.split()
    if len(words) < 2 or words[0] != "warp" or not words[1].isdigit():
        return None
    warp = int(words[1])
    return next((r["name"] for r in manifest.roles if r["first_warp"] <= warp < r["first_warp"] + r["instances"] * r["warps"]), None)
