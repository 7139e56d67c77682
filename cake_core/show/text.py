"""The kernel's text and what is found of it, as HTML: lines with their numbers, findings below the lines that they are about."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cake_core.diagnostics import Diagnostic
from cake_core.diagnostics.text import shown, summary
from cake_core.show.html import el, line, words
from cake_core.source import Source, Span

#: Most characters of a line that are shown.
LONG = 400
#: What begins a comment, and words that say what a statement is: colours are a help, not a parser.
COMMENT = re.compile(r"#.*$")
WORDS = re.compile(
    r"\b(kernel|const|require|assume|target|cluster|tiles|shared|tensor|pipeline|barrier|role|turn|frag|var|let|for|in|while|if|else|acquire|commit|wait|"
    r"release|drain|take|pass|unroll|inline|group|from|to|launch)\b"
)


def text(source: Source, findings: Iterable[Diagnostic], active: set[int]) -> str:
    """All lines. `active`: those that something in the timeline stands at; their numbers are links."""
    at: dict[int, list[tuple[int, Diagnostic]]] = {}
    for n, d in enumerate(findings):
        if d.span is not None and d.span.line and d.span.file == source.name:
            at.setdefault(d.span.line, []).append((n, d))
    out = []
    for number, row in enumerate(source.text.removesuffix("\n").split("\n"), 1):
        here = at.get(number, [])
        label = (
            el("a", str(number), href=f"#L{number}", cls="no on", data_l=number, title="show what happens at this line")
            if number in active
            else el("span", str(number), cls="no")
        )
        worst = str(here[0][1].severity) if here else None
        code = el("code", _line(row.removesuffix("\r"), [d.span for _, d in here]) or " ")
        out.append(el("li", label, code, *(finding(d, n, source.name, True) for n, d in here), id=f"L{number}", cls=worst))
    return el("ol", *out, cls="text", aria_label=f"text of {source.name}")


def _line(row: str, spans: list[Span]) -> str:
    """One line: its comment muted, its words marked, what a finding is about underlined."""
    row, more = (row[:LONG], " ..") if len(row) > LONG else (row, "")
    if spans:
        first = min(s.column for s in spans) - 1
        last = max(s.end_column if s.end_line == s.line else len(row) + 1 for s in spans) - 1
        parts = (row[:first], row[first:last], row[last:])
        return _coloured(parts[0]) + el("mark", words(parts[1]) or " ") + _coloured(parts[2]) + more
    return _coloured(row) + more


def _coloured(row: str) -> str:
    comment = COMMENT.search(row)
    code, rest = (row[: comment.start()], row[comment.start() :]) if comment else (row, "")
    marked, last = "", 0
    for m in WORDS.finditer(code):
        marked += words(code[last : m.start()]) + el("b", words(m.group()))
        last = m.end()
    return marked + words(code[last:]) + (el("i", words(rest)) if rest else "")


def finding(d: Diagnostic, number: int, name: str, inline: bool = False) -> str:
    """One finding: in the list with its places, below its line without its own."""
    place = line(d.span.line, f"line {d.span.line}") if d.span is not None and d.span.line and d.span.file == name else ""
    head = el("p", el("strong", words(f"{d.severity}[{d.code}]")), " ", words(d.message), *([" ", place] if place and not inline else []), cls="head")
    rows = []
    about = [(k, getattr(d, k)) for k in ("resource", "role", "stage", "iteration")]
    if any(v for _, v in about):
        rows.append(("of", words(", ".join(f"{k} {v}" for k, v in about if v))))
    rows += [("see", f"{line(r.span.line, f'line {r.span.line}')}: {words(r.message)}") for r in d.related if r.span.line and r.span.file == name]
    if d.witness is not None:
        rows.append(("example", words(shown(d.witness)) + el("ul", *(el("li", words(s)) for s in d.witness.story))))
    rows += [(k, el("span", words(v), cls="keep")) for k, v in (("why", d.why), ("fix", d.fix)) if v]
    table = lambda of: el("dl", *(el("dt", k) + el("dd", v) for k, v in of)) if of else ""
    if inline:  # the text stays together: what to do at once, the rest where it is asked for
        more = table([r for r in rows if r[0] != "fix"])
        body = table([r for r in rows if r[0] == "fix"]) + (el("details", el("summary", "why"), more) if more else "")
    else:
        body = table(rows)
    return el("div", head, body, cls=f"finding {d.severity}", id=None if inline else f"F{number + 1}", role="note" if inline else None)


def findings(found: tuple[Diagnostic, ...], name: str) -> str:
    if not found:
        return el("p", "Nothing is found.", cls="mute")
    items = (el("li", finding(d, n, name)) for n, d in enumerate(found))
    return el("p", words(summary(found))) + el("ol", *items, cls="findings")
