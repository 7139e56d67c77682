"""Long lines: broken behind commas inside brackets, the one place where a line may go on.

The printer and the formatter share it, so that what one writes the other leaves alone.
"""

from __future__ import annotations

WIDTH = 120
#: A bracket that opens behind this column does not set the indent of the lines that follow.
DEEPEST = 60


def wrap(line: str, indent: int) -> list[str]:
    """`line` (no indent, no comment) as lines of at most `WIDTH` columns where its commas allow it.

    Only commas inside `( )` break a line: an index stays whole. The shallowest comma in reach is taken, of those the
    last; the next line begins below the first thing in that bracket.
    """
    if indent + len(line) <= WIDTH:
        return [" " * indent + line]
    out: list[str] = []
    brackets: list[tuple[str, int]] = []  # each open bracket and the column behind it, as printed
    start, column = 0, indent
    best: tuple[int, list[tuple[str, int]]] | None = None  # position behind the comma, brackets open there
    i = 0
    while i < len(line):
        char = line[i]
        if column + i - start >= WIDTH and best is not None:
            out.append(" " * column + line[start : best[0]])
            start, brackets = best[0] + 1, best[1]
            column, i, best = brackets[-1][1], start, None
            continue
        if char in "([{":
            at = column + i - start + 1
            brackets.append((char, at if at <= DEEPEST else indent + 4))
        elif char in ")]}" and brackets:
            brackets.pop()
        elif char == "," and line[i + 1 : i + 2] == " " and brackets and all(b == "(" for b, _ in brackets):
            if best is None or len(brackets) <= len(best[1]):
                best = i + 1, list(brackets)
        i += 1
    out.append(" " * column + line[start:])
    return out
