"""Tables and colours: aligned text in a pipe, rich on a terminal."""

from __future__ import annotations

import io

import pytest

from cake_core.cli import output
from cake_core.cli.output import chosen_format, colored, progress, table


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_numbers_stand_to_the_right_and_empty_cells_are_empty(capsys):
    table("Things", ("name", "bytes", "note"), [("a", 5, None), ("longer", 12345, "x"), ("b", None, "")], "that is all")
    assert capsys.readouterr().out == "Things\n  name    bytes  note\n  a           5\n  longer  12345  x\n  b\n  that is all\n\n"


def test_an_empty_table_has_its_head(capsys):
    table("Things", ("name", "bytes"), [])
    assert capsys.readouterr().out == "Things\n  name  bytes\n\n"


@pytest.mark.parametrize(
    "environ, terminal, expected",
    [({}, True, True), ({}, False, False), ({"NO_COLOR": "1"}, True, False), ({"NO_COLOR": ""}, True, True), ({"TERM": "dumb"}, True, False)],
)
def test_colour_is_for_terminals_and_can_be_refused(monkeypatch, environ, terminal, expected):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for k, v in environ.items():
        monkeypatch.setenv(k, v)
    assert colored(Terminal() if terminal else io.StringIO()) is expected


def test_a_table_on_a_terminal_is_drawn_and_its_text_is_no_markup(monkeypatch):
    out = Terminal()
    monkeypatch.setattr(output.sys, "stdout", out)
    monkeypatch.setenv("NO_COLOR", "1")
    table("Things", ("name", "type"), [("a", "bf16[4][bold]")])
    assert "bf16[4][bold]" in out.getvalue() and "\u2500" in out.getvalue()


def test_progress_says_nothing_in_a_pipe(capsys):
    with progress("building") as step:
        step("parse")
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_json_is_an_alias():
    assert chosen_format("text", True) == "json" and chosen_format("sarif", False) == "sarif"
