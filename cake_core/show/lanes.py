"""Roles over time as HTML: a lane a track, in a box that scrolls, places in it as numbers of units that the style sheet multiplies by the width of one.

Within a CTA a hand-off is a curve from who let go to who went on; to another CTA it is told where the slice is.
"""

from __future__ import annotations

import json

from cake_core.machine.outcome import Fault
from cake_core.machine.timeline import Timeline
from cake_core.show.html import el, line, words
from cake_core.trace import Kind, Mark, Slice, Trace, Track

#: Heights of lanes in pixels, as the style sheet has them.
HEIGHT = {Kind.ROLE: 26, Kind.ENGINE: 20, Kind.BARRIER: 16, Kind.MEMORY: 16}
#: Pixels that a unit is wide at first: so that all is about as wide as WIDE, within these bounds.
NARROW, BROAD, WIDE = 5.0, 64.0, 900
#: Units between two numbers on the axis: the least of these that leaves them APART pixels.
STEPS, APART = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000), 48
#: Faults of a run that are told, and lanes of memory up to which they are shown at once.
FAULTS, LANES = 5, 24
KEY = (
    ("wait", "waits, hatched for as long as it had to"),
    ("issue", "gives work to an engine"),
    ("engine", "an engine at work"),
    ("arrive", "arrives, commits"),
    ("access", "reads and writes memory"),
    ("other", "another statement"),
    ("stuck", "waits for ever"),
    ("write", "a slot is written"),
    ("read", "a slot is read"),
    ("held", "its bytes are spoken for"),
    ("mark", "an arrival at a barrier, or bytes"),
    ("wrong", "at a line with an error"),
)


def timeline(t: Timeline, wrong: frozenset[int] = frozenset()) -> str:
    """The whole section's content: what is seen, the key, the box with its lanes, and what connects them for the script. `wrong`: lines with errors."""
    trace = t.trace
    unit = min(max(WIDE / max(trace.end, 1), NARROW), BROAD)
    step = next((s for s in STEPS if s * unit >= APART), STEPS[-1])
    groups = dict.fromkeys(k.group for k in trace.tracks)
    by_track: list[list[tuple[int, Slice]]] = [[] for _ in trace.tracks]
    for n, s in enumerate(trace.slices):
        by_track[s.track].append((n, s))
    boxes = [_group(g, n < 1 or len(groups) <= 1, trace, by_track, wrong) for n, g in enumerate(groups)]
    ticks = "".join(el("span", str(n), style=f"--a:{n}") for n in range(0, int(trace.end) + 1, step))
    axis = el("div", el("span", "units", cls="label"), el("div", ticks, cls="ticks"), cls="lane axis", aria_hidden="true")
    style = f"--u:{unit:.2f}px;--end:{trace.end};--step:{step}"
    box = el("div", axis, *boxes, cls="time", style=style, id="time", tabindex="0", role="region", aria_label="Roles over time, scrolls sideways")
    arrows = [[a.source, a.target, a.name] for a in trace.arrows]
    data = f'<script type="application/json" id="arrows">{json.dumps(arrows, separators=(",", ":")).replace("<", chr(92) + "u003c")}</script>'
    return (
        _about(t)
        + _tools(trace, wrong)
        + box
        + el("p", "Point at something, or go through it with the arrow keys.", cls="panel", id="panel", aria_live="polite")
        + data
    )


def _about(t: Timeline) -> str:
    sizes = ", ".join(f"{n} = {v}" for n, v in t.trace.about) or "no sizes"
    said = [el("p", "One cluster's run at ", el("b", words(sizes)), ", in which everything starts as soon as it can. ", words(_axis(t.trace.unit)))]
    if t.faults:
        said.append(el("p", "This run goes wrong:", cls="bad") + el("ul", *(el("li", _fault(f)) for f in t.faults[:FAULTS]), cls="faults"))
    if t.cut:
        said.append(el("p", "It is longer than what is shown; smaller sizes show all of it.", cls="bad"))
    return "".join(said)


def _fault(f: Fault) -> str:
    """What went wrong, at which line, and of a deadlock who waits for what."""
    site = f.second or f.first
    at = site.event.span.line if site is not None and site.event is not None else 0
    where = f", at {line(at, f'line {at}')}" if at else ""
    told = dict.fromkeys(f"{who.role}: {who.op or 'end'} waits for {what}" for who, what in f.blocked if who.role != "idle")
    return el("strong", words(f.kind)) + f": {words(f.message)}{where}" + (el("ul", *(el("li", words(x)) for x in told)) if told else "")


def _axis(unit: str) -> str:
    _, _, what = unit.partition(": ")
    return f"Widths are no measurement: {what}. Order, overlap and waiting are the text's own."


def _tools(trace: Trace, wrong: frozenset[int]) -> str:
    there = {_kind(s) for s in trace.slices}
    there |= {"mark"} if trace.marks else set()
    there |= {"held"} if {"read", "write"} <= there else set()
    there |= {"wrong"} if any(s.span is not None and s.span.line in wrong for s in trace.slices) else set()
    key = el("ul", *(el("li", el("span", cls=f"swatch {k}"), words(v)) for k, v in KEY if k in there), cls="key")
    zoom = "".join(
        el("button", t, type="button", id=i, title=w, aria_label=w)
        for t, i, w in (("−", "out", "narrower"), ("+", "in", "wider"), ("fit", "fit", "all of it"))
    )
    check = '<input type="checkbox" id="links" checked> <label for="links">hand-offs</label>'
    return check + el("span", zoom, cls="zoom", hidden=True) + key


def _group(name: str, opened: bool, trace: Trace, by_track: list, wrong: frozenset[int]) -> str:
    """One CTA: its roles with what they do, then barriers and memory, each to be folded away."""
    tracks = [(n, k) for n, k in enumerate(trace.tracks) if k.group == name]
    working = [(n, k) for n, k in tracks if k.kind in (Kind.ROLE, Kind.ENGINE)]
    inner = el("div", *(_lane(k, by_track[n], (), wrong) for n, k in working), _curves(working, trace, by_track), cls="roles")
    for kind, title in ((Kind.BARRIER, "barriers, phase by phase"), (Kind.MEMORY, "memory, slot by slot")):
        of = [(n, k) for n, k in tracks if k.kind is kind]
        if of:
            marks = {n: tuple(m for m in trace.marks if m.track == n) for n, _ in of}
            lanes = "".join(_lane(k, by_track[n], marks[n], wrong) for n, k in of)
            inner += el("details", el("summary", el("span", title)), lanes, open=len(of) <= LANES)
    return el("details", el("summary", el("span", words(name))), inner, open=opened, cls="cta")


def _kind(s: Slice) -> str:
    return s.what or "other"


def _lane(k: Track, slices: list[tuple[int, Slice]], marks: tuple[Mark, ...], wrong: frozenset[int]) -> str:
    short = k.name.rpartition(": ")[2] if k.kind is Kind.ENGINE else k.name  # whose it is stands above it
    label = el("span", words(short), cls="label", title=f"{k.name}: {k.detail}" if k.detail else k.name)
    body = _held(slices) if k.kind is Kind.MEMORY else ""
    body += "".join(_slice(n, s, k, wrong) for n, s in slices)
    body += "".join(el("i", style=f"--a:{m.at:g}", title=f"{m.name}, at {m.at:g}") for m in marks)
    said = f"{k.name}{', ' + k.detail if k.detail else ''}"
    return el("div", label, el("div", body, cls="track", role="list", aria_label=said), cls=f"lane {k.kind}")


def _held(slices: list[tuple[int, Slice]]) -> str:
    """From each first write of a slot to the last read before the next one: how long its bytes are spoken for."""
    out, start, end, reading = "", None, None, False
    for _, s in slices:
        if s.what == "write" and (start is None or reading):
            out += _life(start, end)
            start, reading = s.start, False
        reading |= s.what == "read"
        end = s.end
    return out + _life(start, end)


def _life(start: float | None, end: float | None) -> str:
    return "" if start is None else f'<s style="--a:{start:g};--d:{end - start:g}"></s>'


def _slice(n: int, s: Slice, k: Track, wrong: frozenset[int]) -> str:
    at = s.span.line if s.span is not None and s.span.line else None
    said = [f"{k.name}: {s.name}", f"{s.start:g} to {s.end:g}"]
    said += [f"waited {s.waited:g}"] if s.waited else []
    said += [f"line {at}"] if at else []
    said += [", ".join(f"{a} = {b}" for a, b in s.details)] if s.details else []
    parity = " odd" if k.kind is Kind.BARRIER and s.name.rpartition(" ")[2].isdigit() and int(s.name.rpartition(" ")[2]) % 2 else ""
    marked = " wrong" if at in wrong else ""
    style = f"--a:{s.start:g};--d:{s.end - s.start:g}" + (f";--w:{s.waited:g}" if s.waited else "")
    text = s.name.rpartition(" ")[2] if k.kind is Kind.BARRIER else s.name
    inner = el("span", words(text))
    return el(
        "b", inner, cls=f"s {_kind(s)}{parity}{marked}", id=f"e{n}", style=style, data_l=at, title=" · ".join(said), role="listitem", tabindex="-1"
    )


def _curves(working: list[tuple[int, Track]], trace: Trace, by_track: list) -> str:
    """Hand-offs between lanes of one CTA: those without which who waits would not have gone on. Units across, pixels down."""
    middle, y = {}, 0
    for n, k in working:
        middle[n] = y + HEIGHT[k.kind] / 2
        y += HEIGHT[k.kind]
    paths = []
    for a in trace.arrows:
        source, target = trace.slices[a.source], trace.slices[a.target]
        if a.last and source.track in middle and target.track in middle and source.track != target.track:
            x1, y1, y2 = source.end, middle[source.track], middle[target.track]
            x2 = max(target.start + target.waited, x1)
            bend = max((x2 - x1) / 2, 1)
            d = f"M{x1:g} {y1:g}C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2:g} {y2:g}"
            paths.append(f'<path d="{d}" data-a="{a.source} {a.target}"/><path class="dot" d="M{x2:g} {y2:g}h0"/>')
    if not paths:
        return ""
    return (
        f'<svg class="curves" viewBox="0 0 {trace.end:g} {y}" preserveAspectRatio="none" style="--h:{y}px" aria-hidden="true">{"".join(paths)}</svg>'
    )
