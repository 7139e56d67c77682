"""Long lines: broken behind commas inside round brackets, the one place where a line may go on.

The printer and the formatter share it, so that what one writes the other leaves alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cake_core.frozen import frozen

WIDTH = 120
#: A bracket that opens behind this column does not set the indent of the lines that follow.
DEEPEST = 60

Brackets = tuple[tuple[str, int], ...]  # each open bracket, and the column behind it as printed


@frozen
class Note:
    """A comment inside brackets; `own_line`: nothing stands before it on its line."""

    text: str
    own_line: bool


def wrap(line: str, indent: int, notes: Mapping[int, Sequence[Note]] | None = None) -> list[str]:
    """`line` (no indent, no comment) as lines of at most `WIDTH` columns where its commas allow it.

    Only commas inside `( )` break a line: an index stays whole. The shallowest comma in reach is taken, of those the
    last; the next line begins below the first thing in that bracket. `notes` are comments by the position that they
    stand at; the line breaks behind each.
    """
    notes = notes or {}
    if not notes and indent + len(line) <= WIDTH:
        return [" " * indent + line]
    out: list[str] = []
    brackets: Brackets = ()
    start, column = 0, indent
    best: tuple[int, Brackets] | None = None  # position behind a comma, brackets open there
    i = 0

    def goes_on(end: int, open_there: Brackets) -> tuple[int, int]:
        """End the printed line at `end`; where and at which column the next one begins."""
        if start < end:
            out.append(" " * column + line[start:end])
        return end + (line[end : end + 1] == " "), open_there[-1][1] if open_there else indent + 4

    while i < len(line):
        if column + i - start >= WIDTH and best is not None:
            end, brackets = best
            start, column = goes_on(end, brackets)
            i, best = start, None
        if i in notes:
            bare = start < i
            start, column = goes_on(i, brackets)
            for note in notes[i]:
                if bare and not note.own_line:
                    out[-1] += f"  {note.text}"
                else:
                    out.append(" " * column + note.text)
                bare = False
            i, best = start, None
        char = line[i]
        if char in "([{":
            at = column + i - start + 1
            brackets += ((char, at if at <= DEEPEST else indent + 4),)
        elif char in ")]}":
            brackets = brackets[:-1]
        elif char == "," and line[i + 1 : i + 2] == " " and brackets and all(b == "(" for b, _ in brackets):
            if best is None or len(brackets) <= len(best[1]):
                best = i + 1, brackets
        i += 1
    out.append(" " * column + line[start:])
    return out
