"""Findings for a person: message, place, excerpt with a caret line, the second places, why and fix.

    error[type/unknown-name]: 'foo' is not declared
      --> gemm.cake:12:13
       |
    12 |     let x = foo + 1
       |             ^^^
       = role: math
       = fix: declare it, or did you mean 'for'?

Lines are built as styled pieces, so that the plain text is exactly the coloured one without its colours.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from cake_core.diagnostics.model import Diagnostic, Severity, Witness
from cake_core.source import Source, Span

TAB = 4
WIDTH = 150  # of an excerpt, in terminal cells; longer lines are cut around the span
#: Characters of a line that are looked at: of a longer one those around the span.
LONG = 4096

STYLES = {
    "error": "bold red",
    "warning": "bold yellow",
    "note": "bold cyan",
    "message": "bold",
    "rule": "blue",
    "related": "cyan",
    "fix": "green",
}

Piece = tuple[str, str]  # style name ("" is none) and text
Line = list[Piece]


def render(diagnostics: Sequence[Diagnostic], sources: Mapping[str, Source], color: bool) -> str:
    blocks = [_text(finding(d, sources), color) for d in diagnostics]
    if diagnostics:
        blocks.append(_text([[("message", summary(diagnostics))]], color))
    return "\n".join(blocks)


def summary(diagnostics: Sequence[Diagnostic]) -> str:
    """`2 errors, 1 warning`."""
    counts = ((s, sum(d.severity is s for d in diagnostics)) for s in Severity)
    return ", ".join(f"{n} {s}{'s' if n > 1 else ''}" for s, n in counts if n)


def finding(d: Diagnostic, sources: Mapping[str, Source]) -> list[Line]:
    spans = [s for s in (d.span, *(r.span for r in d.related)) if s and s.line]
    gutter = max((len(str(s.end_line)) for s in spans), default=1)
    head: Line = [(str(d.severity), f"{d.severity}[{d.code}]"), ("message", ": " + visible(d.message))]
    lines = [head, *_place(d.span, "-->", "", sources, gutter, "^", str(d.severity))]
    for r in d.related:
        lines += _place(r.span, ":::", visible(r.message), sources, gutter, "-", "related")
    where = [(name, getattr(d, name)) for name in ("resource", "role", "stage", "iteration")]
    if any(value for _, value in where):
        lines.append(_note(gutter, ", ".join(f"{name}: {visible(str(value))}" for name, value in where if value), ""))
    lines += _shown(d.witness, gutter) if d.witness is not None else []
    for name, value in (("why", d.why), ("fix", d.fix)):
        if value:
            first, *more = visible(value, keep_lines=True).split("\n")
            lines.append(_note(gutter, f"{name}: {first}", "fix" if name == "fix" else ""))
            lines += [[("", " " * (gutter + 8) + m)] for m in more]
    return lines


def _shown(w: Witness, gutter: int) -> Iterator[Line]:
    """The witness: sizes and whether it was executed, then who stands where."""
    yield _note(gutter, f"for example: {visible(shown(w))}", "")
    for line in w.story:
        yield [("", " " * (gutter + 8) + visible(line))]


def shown(w: Witness) -> str:
    """The sizes of a witness, and whether it was executed."""
    how = {True: "the event machine goes wrong there too", False: "not confirmed by the event machine", None: "not executed"}[w.confirmed]
    if w.fault:
        how += f" ({w.fault})" if w.confirmed else f", which finds another fault ({w.fault})"
    return "; ".join(p for p in (", ".join(f"{n} = {v}" for n, v in w.params), how) if p)


def _note(gutter: int, text: str, style: str) -> Line:
    return [("rule", " " * (gutter + 1) + "= "), (style, text)]


def _place(span: Span | None, arrow: str, message: str, sources: Mapping[str, Source], gutter: int, mark: str, style: str) -> Iterator[Line]:
    if not span or not span.line:
        if message:
            yield [("rule", " " * gutter + arrow + " "), ("", message)]
        return
    yield [("rule", " " * gutter + arrow + " "), ("", visible(str(span)) + (f": {message}" if message else ""))]
    source = sources.get(span.file)
    if source is None:
        return
    edge: Line = [("rule", " " * (gutter + 1) + "|")]
    yield edge
    yield from _excerpt(source, span, gutter, mark, style)


def _excerpt(source: Source, span: Span, gutter: int, mark: str, style: str) -> Iterator[Line]:
    text = source.line(span.line)
    several = span.end_line > span.line
    end = len(text) + 1 if several else span.end_column
    shown, start, width = excerpt(text, span.column, max(end, span.column + 1))
    yield [("rule", f"{span.line:>{gutter}} | "), ("", shown)]
    tail = f" (to line {span.end_line})" if several else ""
    yield [("rule", " " * (gutter + 1) + "| "), (style, " " * start + mark * width + tail)]


def excerpt(text: str, column: int, end_column: int) -> tuple[str, int, int]:
    """A source line for a terminal, and where its columns [column, end_column) start and how wide they are, in cells.

    Tabs go to the next multiple of TAB, wide characters take two cells, characters that a terminal would obey are
    replaced, and a long line is cut around the span.
    """
    column = max(column, 1)
    end_column = max(end_column, column + 1)
    if len(text) > LONG:
        cut = max(0, column - 1 - LONG // 2)
        text, column, end_column = text[cut : cut + LONG], column - cut, end_column - cut
    cells, position, shown = [], 0, []  # cells[i]: where character i starts
    for c in text:
        cells.append(position)
        piece = " " * (TAB - position % TAB) if c == "\t" else visible(c)
        shown.append(piece)
        position += sum(map(cell_width, piece))
    cells.append(position)
    place = lambda i: cells[min(i, len(text))] + max(i - len(text), 0)  # noqa: E731  (a caret may stand behind the end)
    start = place(column - 1)
    width = max(place(end_column - 1) - start, 1)
    if end_column - 1 > len(text):
        width = max(min(width, position - start), 1)
    line = "".join(shown)
    if position <= WIDTH:
        return line.rstrip(), start, width
    # Cut whole characters: from the one that leaves a third of the window before the span.
    first = next(i for i, x in enumerate(cells) if x >= max(0, min(start - WIDTH // 3, position - WIDTH)))
    last = max(i for i, x in enumerate(cells) if x <= cells[first] + WIDTH)
    left, right = ("..." if first else ""), ("..." if last < len(text) else "")
    start = start - cells[first] + len(left)
    return left + "".join(shown[first:last]) + right, start, max(1, min(width, len(left) + cells[last] - cells[first] - start))


def cell_width(c: str) -> int:
    """Cells that a character takes in a terminal (Unicode Standard Annex 11; combining marks take none)."""
    if unicodedata.combining(c) or unicodedata.category(c) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


def visible(text: str, keep_lines: bool = False) -> str:
    """`text` without characters that move the cursor, change colours or reorder what is read."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or (keep_lines and c == "\n") else " " if c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _text(lines: list[Line], color: bool) -> str:
    return "".join("".join(_painted(s, t) if color else t for s, t in line).rstrip() + "\n" for line in lines)


def _painted(style: str, text: str) -> str:
    return _style(style).render(text) if style and text else text


@cache
def _style(name: str):
    from rich.style import Style

    return Style.parse(STYLES[name])
