"""The page: one file of HTML with its style and its script inside, which asks for nothing from anywhere and reads without the script."""

from __future__ import annotations

from importlib.resources import files

from cake_core.diagnostics import Severity
from cake_core.show import lanes, maps, text
from cake_core.show.html import el, words
from cake_core.show.picture import Picture

#: What the page may do: nothing but its own style and script.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page(p: Picture) -> str:
    """The whole document. Findings come first; what can't be shown says why in its place."""
    active = {s.span.line for s in p.timeline.trace.slices if s.span is not None and s.span.line} if p.timeline is not None else set()
    wrong = frozenset(d.span.line for d in p.findings if d.severity is Severity.ERROR and d.span is not None and d.span.file == p.source.name)
    sections = [
        ("findings", "Findings", text.findings(p.findings, p.source.name)),
        ("over-time", "Roles over time", lanes.timeline(p.timeline, wrong) if p.timeline is not None else _missing(p, "timeline")),
        ("memory", "Memory", "".join(el("h3", words(s.memory.capitalize())) + maps.memory(s) for s in p.strips)),
        ("barriers", "Pipelines and barriers", maps.pipelines(p) + (maps.barriers(p) if p.barriers else "")),
        ("roles", "Roles", maps.roles(p) if p.roles else ""),
    ]
    sections = [x for x in sections if x[2]]
    title = f"{p.kernel or p.source.name}{f' for {p.arch}' if p.arch else ''}"
    links = [("text", "Text"), *((i, h) for i, h, _ in sections)]
    nav = el("nav", *(el("a", h, href=f"#{i}") for i, h in links), aria_label="parts of this page")
    top = el("header", el("h1", words(title)), el("p", *_summary(p), cls="summary"), nav)
    source = el(
        "section", el("h2", "Text ", el("small", words(p.source.name))), text.text(p.source, p.findings, active), id="text", aria_label="Text"
    )
    rest = "".join(el("section", el("h2", h), body, id=i, aria_label=h) for i, h, body in sections)
    main = el("main", source, el("div", rest, cls="parts"))
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><title>{words(title)}</title><style>{_file("page.css")}</style>'
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{top}{main}<script>{_file("page.js")}</script></body></html>\n'


def _file(name: str) -> str:
    return files("cake_core.show").joinpath(name).read_text(encoding="utf-8")


def _missing(p: Picture, part: str) -> str:
    return el("p", words(p.missing[part]), cls="mute")


def _summary(p: Picture) -> list[str]:
    """Whether it is sound, how large it is, and what is proved for which sizes."""
    wrong = sum(d.severity is Severity.ERROR for d in p.findings)
    state = el("span", f"{wrong} error{'s' if wrong != 1 else ''}", cls="badge error") if wrong else el("span", "no errors", cls="badge ok")
    out = [state]
    if p.threads:
        cluster = f", cluster of {p.cluster}" if p.cluster > 1 else ""
        out.append(el("span", words(f"{p.threads} threads a CTA{cluster}, {p.shared_bytes:,} bytes of shared memory")))
    if p.proof is not None:
        sizes = f"all sizes with {', '.join(p.proof['requires'])}" if p.proof["requires"] else "all sizes"
        out.append(el("span", words(f"Proved for {sizes}: {', '.join(p.proof['proved'])}")) if p.proof["proved"] else "")
        out.append(el("span", words(f"Unproved: {', '.join(p.proof['unproved'])}")) if p.proof["unproved"] else "")
    return out
