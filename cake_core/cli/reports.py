"""Reports of `cake run` and `cake bench` for a person."""

from __future__ import annotations

import click

from cake_core.cli.output import table


def _shape(shape: dict) -> str:
    return " ".join(f"{k}={v}" for k, v in shape.items())


#: What stands in a device's place, by its name.
HOSTED = {"CPU": "its PTX executed on the CPU", "simulator": "its derived form simulated"}


def _head(report) -> None:
    d = report.device
    major, minor = d.compute_capability
    if d.name in HOSTED:
        click.echo(f"{report.kernel} for {report.arch}, {HOSTED[d.name]}, seed {report.seed}\n")
        return
    click.echo(f"{report.kernel} for {report.arch} on {d.name} (compute capability {major}.{minor}, driver {d.driver}), seed {report.seed}\n")


def _tail(report) -> None:
    for note in report.notes:
        click.echo(f"note: {note}")
    if report.unproved:
        click.echo("Not proved: " + ", ".join(report.unproved))


def show_run(report) -> None:
    """One row an output of each shape; `worst` is the largest error over what the tolerance admits."""
    _head(report)
    rows = []
    for r in report.results:
        if r.fault:
            rows.append((_shape(r.shape), None, "fault", None, None, None, r.fault))
        for o in r.outputs:
            what = "ok" if o.ok and o.compared else "not compared" if o.ok else "WRONG"
            rows.append((_shape(r.shape), o.name, what, _short(o.worst), _short(o.error_rms), o.wrong or None, _detail(o)))
    table("Outputs", ("shape", "output", "outcome", "worst", "error rms", "wrong", "detail"), rows)
    _tail(report)


def _short(x: float | None) -> str | None:
    return None if x is None else f"{x:.3g}"


def _detail(o) -> str:
    parts = []
    if o.first_wrong is not None:
        parts.append(f"first at {list(o.first_wrong)}")
    if o.unwritten:
        parts.append(f"{o.unwritten} unwritten")
    if o.guard_bytes:
        parts.append(f"{o.guard_bytes} bytes written outside")
    return ", ".join(parts)


def show_bench(report) -> None:
    _head(report)
    rows = []
    for r in report.results:
        t = r.timing
        times = (round(t.median_us, 2), round(t.p10_us, 2), round(t.p90_us, 2)) if t else (None, None, None)
        rows.append((_shape(r.shape), *times, _round(r.gb_per_s), _round(r.tflop_per_s), r.fault))
    table("Timing", ("shape", "median us", "p10", "p90", "GB/s", "TFLOP/s", "fault"), rows, report.method)
    _tail(report)


def _round(x: float | None) -> float | None:
    return None if x is None else round(x, 1)
