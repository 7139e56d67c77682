"""A text as lines, alone or beside its repaired twin: one list, in which each line says of which of the two it is.

What is deleted or changed is so in both; the lines in which they differ, the repair, are left alone. A text is taken in canonical form, one
statement a line, so that a line or a block of lines is what can be taken out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from difflib import SequenceMatcher

from cake_core.frozen import frozen

BOTH, BAD, GOOD = "both", "bad", "good"


@frozen
class Line:
    text: str
    side: str = BOTH


@frozen
class Pair:
    """`lines` of the bad text and of the good one; `twin`: whether there is a good one."""

    lines: tuple[Line, ...]
    twin: bool = False

    @staticmethod
    def of(bad: str, good: str | None = None) -> Pair:
        """Of two texts in canonical form. Lines that both have are those of a longest common subsequence, as difflib finds it."""
        left = bad.splitlines()
        if good is None:
            return Pair(tuple(map(Line, left)))
        right, out = good.splitlines(), []
        for tag, i, j, k, m in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
            if tag == "equal":
                out += map(Line, left[i:j])
            else:
                out += [Line(t, BAD) for t in left[i:j]] + [Line(t, GOOD) for t in right[k:m]]
        return Pair(tuple(out), True)

    @property
    def bad(self) -> str:
        return self._text(BAD)

    @property
    def good(self) -> str | None:
        return self._text(GOOD) if self.twin else None

    def _text(self, side: str) -> str:
        return "".join(f"{line.text}\n" for line in self.lines if line.side in (BOTH, side))

    def without(self, gone: set[int]) -> Pair:
        return replace(self, lines=tuple(line for i, line in enumerate(self.lines) if i not in gone))

    def instead(self, new: dict[int, str]) -> Pair:
        """With other texts of some lines."""
        return replace(self, lines=tuple(replace(line, text=new[i]) if i in new else line for i, line in enumerate(self.lines)))

    # --- blocks ----------------------------------------------------------------------------------------------------

    def end(self, start: int) -> int:
        """The line that closes the block that line `start` opens, or `start` where it opens none. Counted on the bad text."""
        depth = 0
        for i in range(start, len(self.lines)):
            line = self.lines[i]
            if line.side == GOOD and i != start:
                continue
            text = line.text.strip()
            depth += text.endswith("{") - (text.startswith("}") and i != start)
            if depth <= 0:
                return i
        return start

    def units(self) -> Iterator[tuple[int, set[int]]]:
        """What can be taken out: how deep it lies, and which lines it is. A line of the repair is not one; a block around it is."""
        depth = 0
        for i, line in enumerate(self.lines):
            text = line.text.strip()
            if line.side != GOOD:
                depth -= text.startswith("}")
            if line.side == BOTH and text not in ("{", "}", ""):
                last = self.end(i)
                whole = range(i, last if text.startswith("}") else last + 1)  # `} else {` goes without the brace that closes it
                if len(whole) > 1 or not text.startswith("}"):
                    yield depth, set(whole)
            if line.side != GOOD:
                depth += text.endswith("{")
