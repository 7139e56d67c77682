"""What the lexer hands on: tokens, comments, findings."""

from __future__ import annotations

from dataclasses import field

from cake_core.diagnostics.model import Diagnostic, Sink
from cake_core.frozen import frozen, thawed
from cake_core.source import Span


class Token:
    """A terminal with its place. `rule`: the production that took it (set by the parser, read by the formatter)."""

    __slots__ = ("column", "end", "index", "line", "rule", "text", "type")

    def __init__(self, type: str, text: str, line: int, column: int, index: int = 0):
        self.type = type
        self.text = text
        self.line = line
        self.column = column
        self.end = column + len(text)
        self.index = index
        self.rule = ""

    def span(self, file: str) -> Span:
        return Span(file, self.line, self.column, self.line, self.end)

    def __repr__(self) -> str:
        return f"{self.type} {self.text!r} at {self.line}:{self.column}"


@frozen
class Comment:
    """`# ...`. `before`: number of tokens before it. `own_line`: nothing but blanks stands before it on its line."""

    text: str
    line: int
    column: int
    before: int
    own_line: bool


@thawed
class Lexed:
    """`unmatched`: the findings about closing braces without an opener, which the parser may overrule.
    `given_up`: the text was not read to its end."""

    tokens: list[Token]
    comments: list[Comment]
    sink: Sink
    unmatched: list[Diagnostic] = field(default_factory=list)
    given_up: bool = False
