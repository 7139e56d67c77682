"""Maps of memory as HTML: a strip in proportion, what lies in the bytes of something else below it, and the same as a table."""

from __future__ import annotations

from cake_core.show.html import el, line, table, used, words
from cake_core.show.picture import BarrierInfo, Picture, Place, Strip

#: A plan that takes less than this part of a memory is drawn without what is free.
SMALL = 16


def memory(strip: Strip) -> str:
    """One memory: the strip, then every place with who writes and reads it."""
    rows = max((p.row for p in strip.places), default=0) + 1
    parts = [_part(p, strip, n) for n, p in enumerate(strip.places)]
    if strip.slack:
        parts.append(_gap("aligns the base", strip.planned, strip.slack, strip))
    free = strip.limit - strip.planned - strip.slack
    if 0 < free and _scale(strip) == strip.limit:
        parts.append(_gap("free", strip.planned + strip.slack, free, strip))
    marks = el("span", "0") + el("span", words(f"{_scale(strip):,} {strip.unit}"))
    drawn = el("div", *parts, cls="strip", style=f"--rows:{rows}", role="img", aria_label=_said(strip))
    over = f"{-free:,} {strip.unit} over the limit" if free < 0 else f"{free:,} of {strip.limit:,} {strip.unit} free"
    slack = f", {strip.slack} to align the base" if strip.slack else ""
    note = el("p", words(f"{strip.planned:,} {strip.unit} planned{slack}, {over}"), cls="mute" if free >= 0 else "bad")
    cells = [
        (
            el("b", words(p.name)),
            f"{p.start:,}",
            f"{p.size:,}",
            words(p.holds + (f", in {strip.unit} of {p.alias}" if p.alias else "")),
            str(p.swizzle or ""),
        )
        + (used(p.uses, "writes", "sends bytes", "arrives"), used(p.uses, "reads", "waits"))
        for p in strip.places
    ]
    columns = ("name", "from", strip.unit, "holds", "swizzle", "written by, at line", "read by, at line")
    if strip.unit == "columns":
        columns, cells = columns[:4] + columns[5:], [c[:4] + c[5:] for c in cells]
    return (
        drawn
        + el("div", marks, cls="ends", aria_hidden="true")
        + note
        + table(strip.memory.capitalize(), columns, cells, (1, 2, 4) if len(columns) == 7 else (1, 2))
    )


def _said(strip: Strip) -> str:
    return f"{strip.memory}: " + ", ".join(f"{p.name} from {p.start} to {p.end}" for p in strip.places)


def _scale(strip: Strip) -> int:
    """What the strip is as wide as: all that there is, or where little of that is planned, what is planned."""
    taken = strip.planned + strip.slack
    return max(strip.limit if SMALL * taken >= strip.limit else taken, taken, 1)


def _share(n: int, strip: Strip) -> str:
    return f"{100 * n / _scale(strip):.4f}%"


def _part(p: Place, strip: Strip, n: int) -> str:
    title = f"{p.name}: {p.holds}, {strip.unit} {p.start} to {p.end}" + (f", in those of {p.alias}" if p.alias else "")
    style = f"--x:{_share(p.start, strip)};--w:{_share(p.size, strip)};--row:{p.row};--n:{p.slots}"
    kind = "barrier" if p.kind == "barrier" else f"c{n % 6}"
    name = el("span", words(p.name), f" <small>{words(p.holds)}</small>")
    return el("div", name, cls=f"part {kind}{' alias' if p.alias else ''}", style=style, title=title)


def _gap(what: str, start: int, size: int, strip: Strip) -> str:
    style = f"--x:{_share(start, strip)};--w:{_share(size, strip)};--row:0"
    return el("div", el("span", what), cls="part gap", style=style, title=f"{what}: {size} {strip.unit}")


def barriers(p: Picture) -> str:
    rows = [_barrier(b) for b in p.barriers]
    columns = ("barrier", "arrivals a phase", "pipeline", "who waits, at line", "who arrives", "whose bytes")
    return table("Barriers", columns, rows, (1,))


def _barrier(b: BarrierInfo) -> tuple[str, ...]:
    name = b.name + (f"[{b.slots}]" if b.slots > 1 else "")
    of = words(b.pipeline) if b.pipeline else ""
    return el("b", words(name)), str(b.count), of, used(b.uses, "waits"), used(b.uses, "arrives"), used(b.uses, "sends bytes") if _sent(b) else ""


def _sent(b: BarrierInfo) -> bool:
    return any(u.what == "sends bytes" for u in b.uses)


def pipelines(p: Picture) -> str:
    """Each pipeline as a sentence: who fills it, its slots, who reads them."""
    out = []
    for x in p.pipelines:
        slots = el("span", *("<i></i>" for _ in range(min(x["slots"] or 0, 32))), cls="ring", aria_hidden="true")
        ends = [el("b", words(", ".join(x[k]))) for k in ("producers", "consumers")]
        of = f"{x['slots']} slot{'s' if x['slots'] != 1 else ''}" + (f" of {', '.join(x['buffers'])}" if x["buffers"] else "")
        out.append(el("li", el("code", words(x["name"])), f" {ends[0]} → ", slots, f" {words(of)} → {ends[1]}"))
    return el("ul", *out, cls="pipelines") if out else ""


def roles(p: Picture) -> str:
    rows = []
    for r in p.roles:
        last = (r.first or 0) + r.instances * r.warps - 1
        more = ", ".join(f"{k} {v}" for k, v in r.words.items())
        more += f"{', ' if more else ''}on rank {r.on} alone" if r.on is not None else ""
        warps = "" if r.first is None else str(r.first) if last == r.first else f"{r.first}-{last}"
        rows.append((el("b", words(r.name)), warps, str(r.instances), str(r.warps), str(r.pads or ""), words(more), line(r.line)))
    return table("Roles", ("role", "warps of the CTA", "instances", "warps each", "pads", "words", "line"), rows, (1, 2, 3, 4))
