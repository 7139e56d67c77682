"""Declarations of PTX: registers, parameters, variables of state spaces and their initial values (PTX ISA, State Spaces, Types and Variables).

Texts are those between the directive's name and its end; a ValueError says what is not read.
"""

from __future__ import annotations

import re
import struct

from cake_core.frozen import frozen

_NAMED = re.compile(r"(%?[A-Za-z_$][\w$]*|%[\w$]+)\s*(?:<\s*(\d+)\s*>)?$")
_VARIABLE = re.compile(r"([A-Za-z_$%][\w$]*)\s*((?:\[\s*\w*\s*\]\s*)*)(?:=\s*(.*))?$", re.DOTALL)
_ATTRIBUTE = re.compile(r"\.attribute\s*\([^)]*\)")
_NUMBER = re.compile(r"0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?)")


def whole(text: str) -> int:
    """An integer constant: decimal, hexadecimal, octal or binary, with or without U (PTX ISA, Integer Constants)."""
    text = text.replace(" ", "").rstrip("U")
    digits = text.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return int(text, 8)
    return int(text, 0)


def size_of(type: str) -> int:
    """Bytes of a type, without its dot: its name ends in its width, that of a packed type in front of x."""
    found = re.fullmatch(r"[a-z]+?(\d+)(?:x(\d))?", type)
    if found is None or type == "pred":
        return 1
    return max(int(found[1]) * int(found[2] or 1) // 8, 1)


@frozen
class Variable:
    """A variable of the module or of an entry. `space`: `global`, `const`, `local`, `shared`; `type` without its dot; `align` and `size` in bytes, `size` None
    where the launch gives it; `initial`: its initial value as written, '' of none."""

    space: str
    name: str
    type: str
    align: int
    size: int | None
    initial: str = ""

    @property
    def bytes(self) -> bytes:
        """What it holds at the start: zeros behind what is written (PTX ISA, Initializers). Raises ValueError for addresses of other variables."""
        parts, rest = [], self.initial
        for found in _NUMBER.finditer(rest):
            parts.append(self._packed(found[0]))
        if re.search(r"[^\s{},]", _NUMBER.sub("", rest)):
            raise ValueError(f"the initial value of '{self.name}' holds more than numbers")
        data = b"".join(parts)
        if self.size is None or len(data) > self.size:
            raise ValueError(f"'{self.name}' has more initial values than elements")
        return data + bytes(self.size - len(data))

    def _packed(self, text: str) -> bytes:
        if text[:2] in ("0f", "0F", "0d", "0D"):
            return bytes.fromhex(text[2:])[::-1]
        if self.type in ("f32", "f64"):
            return struct.pack("<f" if self.type == "f32" else "<d", float(text))
        width = size_of(self.type)
        return (whole(text) & (1 << 8 * width) - 1).to_bytes(width, "little")


def registers(text: str) -> list[tuple[str, str, int | None, int]]:
    """(type, name, count, elements) of `.reg`: `.b32 %r<4>, %x`, `.v4 .f32 %v`; the count of a single one is None, and a scalar has one element."""
    type, names = (text.split(None, 1) + ["", ""])[:2]
    elements = 1
    if type in (".v2", ".v4"):
        elements = int(type[2:])
        type, names = (names.split(None, 1) + ["", ""])[:2]
    if not type.startswith(".") or type[1:2] == "v" and type[2:].isdigit() or elements > 1 and type == ".pred":
        raise ValueError(f"registers '{text.strip()}' are not read")
    found = []
    for item in names.split(","):
        named = _NAMED.match(item.strip())
        if named is None:
            raise ValueError(f"'{item.strip()}' names no register")
        found.append((type[1:], named[1], int(named[2]) if named[2] else None, elements))
    return found


def variable(space: str, text: str) -> Variable:
    """`.align 8 .b8 name[16] = {1, 2}`, and `.u64 .ptr .global .align 16 name` of a parameter, whose last alignment is that of what it points to."""
    text = _ATTRIBUTE.sub(" ", text)
    align = type = None
    rest = text.strip()
    while rest.startswith("."):
        word, rest = (rest.split(None, 1) + [""])[:2]
        if word == ".align":
            number, rest = (rest.split(None, 1) + ["", ""])[:2]
            align = whole(number) if type is None else align
        elif word[1:2] == "v" and word[2:].isdigit():
            raise ValueError(f"vectors as variables, '{text.strip()}', are not read")
        elif type is None and word not in (".ptr", ".const", ".global", ".local", ".shared"):
            type = word[1:]
    found = _VARIABLE.match(rest)
    if found is None or type is None:
        raise ValueError(f"'{text.strip()}' declares no variable")
    width = size_of(type)
    size: int | None = width
    for count in re.findall(r"\[\s*(\w*)\s*\]", found[2]):
        size = None if count == "" else None if size is None else size * whole(count)
    made = Variable(space, found[1], type, align or width, size, (found[3] or "").strip())
    if size is None and made.initial:  # as many as are written
        elements = len(_NUMBER.findall(made.initial))
        return Variable(space, made.name, type, made.align, elements * width, made.initial)
    return made
