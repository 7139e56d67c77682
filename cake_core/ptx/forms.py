"""An opcode taken apart, for those who execute instructions: every word is asked for by name, and what is left over is a form that is not covered."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cake_core.ptx.emulated import Coder
    from cake_core.ptx.reader import Statement

_TYPE = re.compile(r"(?:[busf]|bf|tf)(?:8|16|32|64|128)(?:x2)?|pred")


class Words:
    """The words of an opcode behind its first `skip`; each is taken once, in any order.

    w = Words(s, c)          # mul.wide.s32
    part = w.one("lo", "hi", "wide")
    kind = w.type("s16", "u16", "s32", "u32")
    w.end()
    """

    def __init__(self, statement: Statement, coder: Coder, skip: int = 1) -> None:
        self._statement, self._coder = statement, coder
        self._left = list(statement.words[skip:])

    def one(self, *words: str) -> str:
        """The one of `words` that is there; '' where none is."""
        for word in self._left:
            if word in words:
                self._left.remove(word)
                return word
        return ""

    def need(self, *words: str) -> str:
        """The one of `words` that has to be there."""
        if found := self.one(*words):
            return found
        raise self._coder.unsupported(f"'{self._statement.opcode}' without {', '.join(f'.{w}' for w in words)}")

    def flag(self, word: str) -> bool:
        return bool(self.one(word))

    def starting(self, *prefixes: str) -> str:
        """A word that starts so, such as 'L1::evict_last'; '' where there is none."""
        for word in self._left:
            if word.startswith(prefixes):
                self._left.remove(word)
                return word
        return ""

    def type(self, *allowed: str) -> str:
        """The next type; of `allowed`, where that is given."""
        for word in self._left:
            if _TYPE.fullmatch(word):
                self._left.remove(word)
                if allowed and word not in allowed:
                    raise self._coder.unsupported(f"'{self._statement.opcode}': type .{word}")
                return word
        raise self._coder.unsupported(f"'{self._statement.opcode}' without a type")

    def next(self) -> str:
        """The first word that is left; '' where none is."""
        return self._left.pop(0) if self._left else ""

    def end(self) -> None:
        """Raises `Coder.unsupported` for a word that nobody has asked for."""
        if self._left:
            raise self._coder.unsupported(f"'.{self._left[0]}' of '{self._statement.opcode}'")
