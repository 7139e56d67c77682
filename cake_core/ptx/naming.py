"""Names of a body that are one for the whole entry: of registers, vectors and labels that its blocks declare."""

from __future__ import annotations

import re

#: The words behind a vector's dot, by element (PTX ISA, Vectors; Vectors as Operands).
ELEMENTS = ("xyzw", "rgba")


class Scope:
    """A block of a body; number 0 is the body itself. `first`: the number of its first statement. `names`: its registers' names in the text, and what stands for
    them here; `labels` of labels; `pattern`: finds those names, None where there are none."""

    __slots__ = ("first", "labels", "names", "number", "pattern")

    def __init__(self, number: int, first: int, outer: Scope | None = None) -> None:
        self.number, self.first, self.names = number, first, {} if outer is None else dict(outer.names)
        self.labels: dict[str, str] = {}
        self.pattern: re.Pattern | None = None if outer is None else outer.pattern

    def register(self, name: str, count: int | None) -> str:
        """The name that a register has here, or the start of those of `count` registers."""
        made = self._made(name)
        if made == name:
            return name
        if count is None:
            self.names[name] = made
        else:
            self.names |= {f"{name}{n}": f"{made}{n}" for n in range(count)}
        self._find()
        return made

    def vector(self, name: str, size: int) -> list[str]:
        """The registers that its elements are; its name alone stands for all of them."""
        made = self._made(name)
        elements = [f"{made}.{word}" for word in ELEMENTS[0][:size]]
        self.names[name] = f"{{{', '.join(elements)}}}"
        for words in ELEMENTS:
            self.names |= {f"{name}.{word}": element for word, element in zip(words, elements, strict=False)}
        self._find()
        return elements

    def _made(self, name: str) -> str:
        if self.number == 0 and name[0] == "%":
            return name
        return f"{'' if name[0] == '%' else '%'}{name}${self.number}"

    def _find(self) -> None:
        listed = "|".join(re.escape(n) for n in sorted(self.names, key=len, reverse=True))
        self.pattern = re.compile(rf"(?<![\w$%.:])(?:{listed})(?![\w$])")
