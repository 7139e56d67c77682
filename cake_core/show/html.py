"""Small pieces of HTML: text escaped, attributes in order, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from cake_core.diagnostics.text import visible
from cake_core.show.picture import Use


def words(text: object) -> str:
    """Text as it may stand in an element or an attribute: escaped, without characters that would reorder or hide others."""
    return escape(visible(str(text)), quote=True)


def el(tag: str, *children: str, **attributes: object) -> str:
    """An element around children that are HTML already. Attributes that are None or False are left out; `cls` is `class`, a `_` in a name is a `-`."""
    said = ""
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        name = {"cls": "class"}.get(name, name.replace("_", "-"))
        said += f" {name}" if value is True else f' {name}="{words(value)}"'
    return f"<{tag}{said}>{''.join(children)}</{tag}>"


def table(caption: str, columns: Iterable[str], rows: Iterable[Iterable[str]], numbers: Iterable[int] = ()) -> str:
    """A table of cells that are HTML already; columns with these numbers hold numbers. It scrolls where it is too wide."""
    numbers = set(numbers)
    cells = lambda tag, row: "".join(el(tag, c, cls="n" if i in numbers else None, scope="col" if tag == "th" else None) for i, c in enumerate(row))
    head = el("thead", el("tr", cells("th", map(words, columns))))
    body = el("tbody", *(el("tr", cells("td", row)) for row in rows))
    return el("div", el("table", el("caption", words(caption)), head, body), cls="wide", tabindex="0", role="region", aria_label=caption)


def line(number: int, text: str | None = None) -> str:
    """A link to a line of the text; of a statement that no line has, a word."""
    return el("a", words(text or number), href=f"#L{number}", cls="to") if number else el("span", "derived", cls="mute")


def used(uses: Iterable[Use], *what: str) -> str:
    """Who does one of these things, and at which lines."""
    said = [f"{el('b', words(u.who))} {', '.join(line(n) for n in u.lines) or el('span', 'derived', cls='mute')}" for u in uses if u.what in what]
    return "; ".join(said) or el("span", "nobody", cls="mute")
