"""Source text and spans: where in which file a node or a finding stands."""

from __future__ import annotations

from cake_core.frozen import frozen


@frozen(order=True)
class Span:
    """A stretch of one file. Lines and columns count from 1; the end is exclusive in its column."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of `other`."""
        return Span(self.file, self.line, self.column, other.end_line, other.end_column)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


#: The span of a node that no text wrote (built by a test or a plugin without one at hand).
NOWHERE = Span("<none>", 0, 0, 0, 0)


@frozen
class Source:
    """One file's text, for excerpts in diagnostics."""

    name: str
    text: str

    def line(self, number: int) -> str:
        """The text of line `number` (from 1), without its line break; empty where there is none."""
        lines = self.text.split("\n")  # as the parser counts: form feeds and the like end no line
        return lines[number - 1].removesuffix("\r") if 0 < number <= len(lines) else ""
