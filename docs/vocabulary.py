"""Prints docs/vocabulary.md: what the built-in plugins add to the language, with signatures, words and capabilities.

    python docs/vocabulary.py > docs/vocabulary.md

A test compares the two, so the page names every operation, function, space, layout, thread group and role word.
"""

from __future__ import annotations

from cake_core.plugins import load_registry
from cake_core.primitive import Form

FORMS = {Form.SCHEDULE: "schedule", Form.DERIVED: "derived", Form.BOTH: "both"}
#: Words of a kind in a table: how their values are written.
VALUES = {"constant": "n", "integer": "n", "barrier": "b", "axis": "AXIS", "name": "NAME", "numbers": "(n, ..)", "condition": "c"}


HEAD = """# Vocabulary

What the built-in plugins add to [the language](language.md). This page is written by docs/vocabulary.py from their signatures; what a
name means stands in its plugin's README, the last column. `needs` are capabilities of the target. A word or a name belongs to both
forms unless its form is named.
"""


def page(registry) -> str:
    """Markdown: a table for statements, one for functions, one for the rest."""
    lines = [HEAD, "## Operations", "", "| statement | form | words | needs | from |", "| --- | --- | --- | --- | --- |"]
    for _, p in sorted(registry.operations.items()):
        lines.append(f"| `{_statement(p)}` | {FORMS[p.form]} | {_words(p.words, p.form)}{_flags(p)} | {_needs(p)} | {_origin(p)} |")
    lines += ["", "## Functions", "", "| call | options | needs | from |", "| --- | --- | --- | --- |"]
    for name, p in sorted(registry.functions.items()):
        shown = f"{name}(..)" if _is_call(name) else f"x {name} y" if name != "not" else "not x"
        lines.append(f"| `{shown}` | {_words(p.options, Form.BOTH, ' = ')} | {_needs(p)} | {_origin(p)} |")
    lines += ["", "## Spaces, layouts, groups, protocols, role words", "", "| kind | name | words | needs | from |", "| --- | --- | --- | --- | --- |"]
    for kind, table in _rest(registry):
        for name, p in sorted(table.items()):
            lines.append(f"| {kind} | `{name}` | {_words(getattr(p, 'words', ()), Form.BOTH)} | {_needs(p)} | {_origin(p)} |")
    return "\n".join(lines) + "\n"


def _is_call(name: str) -> bool:
    return name[0].isalpha() and name not in ("and", "or", "not")


def _rest(registry):
    return (
        ("space", registry.spaces),
        ("layout", registry.layouts),
        ("type and reduction", registry.reductions),
        ("thread group", registry.groups),
        ("pipeline protocol", registry.protocols),
        ("turn protocol", registry.turns),
        ("counter", registry.counters),
        ("role word", registry.role_words),
    )


def _statement(p) -> str:
    value = f" {' / '.join(p.arrows)} {p.value.name}" if p.arrows else ""
    return f"{p.name}{' ' if p.operands else ''}{', '.join(o.name for o in p.operands)}{value}"


def _words(words, form: Form, between: str = " ") -> str:
    """`word n`; one that stands in one form only says so."""
    parts = []
    for w in words:
        only = f" ({FORMS[w.form]})" if w.form is not Form.BOTH and form is Form.BOTH else ""
        parts.append(f"`{w.name}{between}{VALUES.get(w.kind, w.kind)}`{only}")
    return ", ".join(parts)


def _flags(p) -> str:
    return "".join(f"{', ' if p.words else ''}`{f}`" for f in p.flags)


def _needs(p) -> str:
    return ", ".join(f"`{c}`" for c in sorted(p.capabilities))


def _origin(p) -> str:
    return f"[{p.source.plugin}](../plugins/{p.source.plugin}/README.md)"


if __name__ == "__main__":
    print(page(load_registry(environ={"CAKE_LOAD_PLUGINS": ""})), end="")
