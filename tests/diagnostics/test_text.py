"""Text and concise renderings: golden blocks, and what must hold for any line of any text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_core.diagnostics import FORMATS, Diagnostic, Related, Severity, render
from cake_core.diagnostics.text import WIDTH, cell_width, excerpt
from cake_core.source import Source, Span

TEXT = """cake 1
kernel k(M: i32, A: in bf16[M, 64])
\ttarget t
{
  role load: 1 warp {
    acquire ab as s
    let \u6f22\u5b57 = foo + 1
  }
}
"""
SOURCE = Source("k.cake", TEXT)


def span(line: int, column: int, end: int, end_line: int | None = None) -> Span:
    return Span("k.cake", line, column, end_line or line, end)


def test_everything_a_finding_can_say():
    d = Diagnostic(
        "type/unknown-name",
        "'foo' is not declared",
        span(7, 14, 17),
        resource="ab",
        role="load",
        stage="fill",
        iteration="k = 3",
        why="a name must be bound before it is used",
        fix="declare it,\nor take 's'",
        related=(Related("'s' is bound here", span(6, 19, 20)),),
    )
    assert render([d], [SOURCE]) == (
        "error[type/unknown-name]: 'foo' is not declared\n"
        " --> k.cake:7:14\n"
        "  |\n"
        "7 |     let \u6f22\u5b57 = foo + 1\n"
        "  |                ^^^\n"
        " ::: k.cake:6:19: 's' is bound here\n"
        "  |\n"
        "6 |     acquire ab as s\n"
        "  |                   -\n"
        "  = resource: ab, role: load, stage: fill, iteration: k = 3\n"
        "  = why: a name must be bound before it is used\n"
        "  = fix: declare it,\n"
        "         or take 's'\n"
        "\n"
        "1 error\n"
    )


def test_a_span_over_lines_is_underlined_to_the_end_of_its_first():
    d = Diagnostic("type/x", "a role", span(5, 3, 4, end_line=8), Severity.WARNING)
    assert render([d], [SOURCE]) == (
        "warning[type/x]: a role\n --> k.cake:5:3\n  |\n5 |   role load: 1 warp {\n  |   ^^^^^^^^^^^^^^^^^^^ (to line 8)\n\n1 warning\n"
    )


def test_tabs_move_to_the_next_stop():
    d = Diagnostic("type/x", "a target", span(3, 9, 10))
    assert "3 |     target t\n  |            ^\n" in render([d], [SOURCE])


def test_a_caret_may_stand_behind_the_end():
    d = Diagnostic("syntax/x", "the line ends here", span(1, 7, 8))
    assert "1 | cake 1\n  |       ^\n" in render([d], [SOURCE])


@pytest.mark.parametrize("file, line", [("other.cake", 1), ("k.cake", 99)])
def test_a_place_without_a_text_is_still_named(file, line):
    d = Diagnostic("type/x", "somewhere", Span(file, line, 1, line, 2))
    assert f" --> {file}:{line}:1\n" in render([d], [SOURCE])


def test_findings_without_a_place_come_last_and_the_order_of_the_input_does_not_matter():
    found = [
        Diagnostic("plugin/x", "no place"),
        Diagnostic("type/b", "second", span(2, 1, 2)),
        Diagnostic("type/a", "first", span(1, 1, 2)),
        Diagnostic("type/a", "a warning beside it", span(1, 1, 2), Severity.WARNING),
    ]
    expected = (
        "k.cake:1:1: error[type/a]: first\n"
        "k.cake:1:1: warning[type/a]: a warning beside it\n"
        "k.cake:2:1: error[type/b]: second\n"
        "error[plugin/x]: no place\n"
    )
    assert render(found, [SOURCE], "concise") == expected
    for format in FORMATS:
        assert render(found, [SOURCE], format) == render(found[::-1], {"k.cake": SOURCE}, format)


def test_nothing_found_is_an_empty_text():
    assert render([], [], "text") == render([], [], "concise") == render([], [], "github") == ""


def test_an_unknown_format_is_refused():
    with pytest.raises(ValueError, match="format 'xml', expected one of text"):
        render([], [], "xml")


def test_colours_change_no_character():
    found = [Diagnostic("type/x", "here", span(2, 8, 9), s, why="so", fix="do", related=(Related("there", span(1, 1, 5)),)) for s in Severity]
    coloured = render(found, [SOURCE], "text", color=True)
    assert "\x1b[1;31m" in coloured and "\x1b[1;33m" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == render(found, [SOURCE], "text")


def test_a_text_can_not_command_the_terminal():
    hostile = Source("h.cake", "let a = '\x1b[31m\x07\u202e\x9b'\n")
    d = Diagnostic("type/x", "bad \x1b]0;title\x07 name", Span("h.cake", 1, 9, 1, 12), fix="\x1b[2J")
    for format in ("text", "concise"):
        out = render([d], [hostile], format)
        assert all(c.isprintable() or c == "\n" for c in out)


line_text = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=400)


@settings(max_examples=300, deadline=None)
@given(line_text, st.integers(-2, 450), st.integers(-2, 450))
def test_an_excerpt_fits_and_its_caret_stands_under_the_column(text, column, end):
    shown, start, width = excerpt(text, column, end)
    cells = sum(map(cell_width, shown))
    assert cells <= WIDTH + 8
    assert all(c.isprintable() for c in shown)
    assert start >= 0 and width >= 1
    if column <= len(text) and len(text) < 60:
        before = "".join(text[: max(column, 1) - 1])
        if before.isprintable():
            assert start == sum(map(cell_width, before))


def test_a_long_line_is_cut_around_the_span():
    text = "a" * 400 + "XYZ" + "b" * 400
    shown, start, width = excerpt(text, 401, 404)
    assert shown[start : start + width] == "XYZ"
    assert shown.startswith("...") and shown.endswith("...")
    assert len(shown) <= WIDTH + 6


@pytest.mark.parametrize("column", [1, 2_000_000, 4_000_000])
def test_of_a_very_long_line_only_what_is_around_the_span_is_looked_at(column, monkeypatch):
    seen = []
    monkeypatch.setattr("cake_core.diagnostics.text.visible", lambda c: seen.append(c) or c)
    text = "." * (column - 1) + "^^^" + "." * (4_000_000 - column)
    shown, start, width = excerpt(text, column, column + 3)
    assert (shown[start : start + width], len(shown) <= WIDTH + 6) == ("^^^", True) and len(seen) < 10_000
