"""`cake run --break LABEL`: what is where, in front of a labelled statement, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from cake_core.simulate import Stop
    from cake_core.simulate.stops import Held

#: Stops that are printed in a run, and elements of an array that are.
MOST, ELEMENTS = 8, 6


class Printer:
    """Prints stops at some labels, the first of them."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.labels, self.count, self.said = labels, 0, False

    def __call__(self, label: str, site: Any, env: list) -> None:
        from cake_core.simulate import stop_at

        if label not in self.labels:
            return
        if self.room():
            self.show(stop_at(label, site, env))
        else:
            self.left_out(1)

    def room(self, beside: int = 0) -> bool:
        """Whether a stop more is printed, with so many that are still to be."""
        return self.count + beside < MOST

    def show(self, stop: Stop) -> None:
        self.count += 1
        click.echo("\n".join(lines(stop)) + "\n")

    def left_out(self, stops: int) -> None:
        if stops and not self.said:
            self.said = True
            click.echo(f"Further stops are not printed: {MOST} have been\n")


def checked_labels(breaks: tuple[str, ...], known: Iterable[str]) -> None:
    """Raises click.BadParameter for the first of `breaks` that is no label."""
    known = tuple(dict.fromkeys(known))
    for label in breaks:
        if label in known:
            continue
        there = f"its labels are {', '.join(known)}" if known else "it has no labels: write `@name` in front of a statement"
        near = get_close_matches(label.removeprefix("@"), known, n=1)
        meant = f"; did you mean '{near[0]}'?" if near else ""
        raise click.BadParameter(f"the derived form has no label '{label}'; {there}{meant}", param_hint="--break")


def lines(stop: Stop) -> Iterator[str]:
    at = "".join(f" {n}={v}" for n, v in stop.where.iteration)
    yield f"@{stop.label}: {stop.where.role}[{stop.where.instance}] of CTA {stop.where.cta}{at}"
    yield from _part("names", [(n, str(v)) for n, v in stop.names])
    yield from _part("registers", [row for h in stop.fragments for row in _held(h)])
    yield from _part("memory", [row for h in stop.buffers for row in _held(h)])
    yield from _part(
        "barriers",
        [
            (b.name, f"in phase {b.phase}, short of {b.arrivals} arrival{'s' * (b.arrivals != 1)}{f' and {b.bytes} bytes' if b.bytes else ''}")
            for b in stop.barriers
        ],
    )


def _part(title: str, rows: list[tuple[str, str]]) -> Iterator[str]:
    wide = max((len(n) for n, _ in rows), default=0)
    for n, (name, text) in enumerate(rows):
        yield f"  {title if n == 0 else '':<10} {name:<{wide}}  {text}"


def _held(h: Held) -> Iterator[tuple[str, str]]:
    if isinstance(h.values, dict):
        if not h.values:
            yield h.name, h.type
        for field, x in h.values.items():
            yield f"{h.name}.{field}", f"{h.type} {_array(x)}"
    elif h.values is None:
        yield h.name, f"{h.type}, nothing written"
    else:
        share = "" if h.written == 1 else f", {h.written:.0%} {h.word}"
        yield h.name, f"{h.type}{share} {_array(h.values)}"


def _array(x: Any) -> str:
    """The first elements, and between which numbers all of them lie."""
    import numpy as np

    flat = np.asarray(x).reshape(-1)
    if flat.dtype.kind not in "iub":
        flat = flat.astype(np.float32)
    first = ", ".join(f"{v:.5g}" for v in flat[:ELEMENTS].tolist())
    known = flat[np.isfinite(flat)] if flat.dtype.kind == "f" else flat
    if flat.size <= ELEMENTS:
        return f"[{first}]"
    odd = flat.size - known.size
    between = f"{known.min():.5g} to {known.max():.5g}" if known.size else "no finite number"
    return f"[{first}, ..] {between}" + (f", {odd} not finite" if odd and known.size else "")
