"""Reads PTX text into records, from the text alone: what this compiler or any other has printed.

It knows how statements are written (PTX ISA, Syntax: Statements, Identifiers, Constants; Instruction Operands) and no instruction: an opcode is a
word with dots. One statement stands on a line. Operands are read when they are asked for, since most of a kernel moves floats about.
"""

from __future__ import annotations

import re
import struct
from dataclasses import field
from functools import lru_cache

from cake_core.frozen import frozen


class PtxSyntaxError(Exception):
    """A line that is no statement of PTX as far as it is read here: `line` counts from 1."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line, self.why = line, why


@frozen
class At:
    """`[base + offset]`, and `[base, {x, y}]` of a tensor map: `base` a register, a symbol or a number (PTX ISA, Addresses as Operands)."""

    base: str | int
    offset: int = 0
    coordinates: tuple[Operand, ...] = ()


@frozen
class Group:
    """`{a, b}`: the parts of a vector."""

    items: tuple[Operand, ...]


@frozen
class Pair:
    """`a|b`: two results."""

    first: Operand
    second: Operand


#: A register or another name is a text, `_` the sink among them; `!p` is a text too.
Operand = str | int | float | At | Group | Pair


@frozen
class Statement:
    """One instruction. `line` counts from 1; `guard` the register of `@p` or `@!p` in front (`negated`); `text`: its operands as written."""

    line: int
    opcode: str
    text: str
    guard: str | None = None
    negated: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.opcode.split("."))

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Raises PtxSyntaxError."""
        try:
            return operands_of(self.text)
        except ValueError as error:
            raise PtxSyntaxError(self.line, str(error)) from None

    @property
    def registers(self) -> tuple[str, ...]:
        """The registers that its operands name, in order."""
        return tuple(_REGISTER.findall(self.text))

    @property
    def outside(self) -> tuple[str, ...]:
        """The registers that stand outside of braces."""
        return tuple(_REGISTER.findall(_BRACES.sub("", self.text) if "{" in self.text else self.text))

    @property
    def results(self) -> tuple[str, ...]:
        """The registers of its first operand."""
        end = 0
        if self.text.startswith("{"):
            end = self.text.find("}")
        end = self.text.find(",", end)
        return tuple(_REGISTER.findall(self.text if end < 0 else self.text[:end]))


@frozen
class Mark:
    """A label."""

    line: int
    name: str


@frozen
class Entry:
    """One `.entry`. `params`: names and types in order; `symbols`: names outside of it, with their alignment; `threads`: of a CTA, where
    `.reqntid` says so; `directives` in front of its body, as written. `registers`: (type, name, count) as declared, count None of a single
    one; `shared`: (name, alignment, bytes) of variables, bytes None where the launch gives them; `sizes`: (alignment, bytes) of each parameter."""

    name: str
    params: tuple[tuple[str, str], ...]
    symbols: dict[str, int]
    directives: tuple[str, ...]
    body: tuple[Statement | Mark, ...] = field(repr=False)
    registers: tuple[tuple[str, str, int | None], ...] = ()
    shared: tuple[tuple[str, int, int | None], ...] = ()
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def threads(self) -> int | None:
        for d in self.directives:
            if d.startswith(".reqntid"):
                size = 1
                for n in d.removeprefix(".reqntid").split(","):
                    size *= int(n)
                return size
        return None


_REGISTER = re.compile(r"%[\w$]+(?:\.[xyzw])?")
_BRACES = re.compile(r"\{[^}]*\}")
_STATEMENT = re.compile(r"(?:@(!?)(%[\w$]+)\s+)?([a-z][\w.:]*)(?=[\s;])")
_MARK = re.compile(r"([A-Za-z_$%][\w$]*):$")
_SYMBOL = re.compile(r"(?:\.(?:extern|visible|weak))?\s*\.(shared|global|const)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)(?:\[(\d*)\])?")
_PARAM = re.compile(r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)(?:\[(\d+)\])?")
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.+);$")
_NAMED = re.compile(r"(%?[\w$]+)(?:<(\d+)>)?$")
_ENTRY = re.compile(r"(?:\.visible\s+)?\.entry\s+([\w$]+)")


def read(text: str) -> Entry:
    """The only entry of a module. Raises PtxSyntaxError."""
    name, params, symbols, directives, body, inside = "", [], {}, [], [], False
    registers, shared, sizes = [], [], {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("//")[0].strip() if "//" in raw else raw.strip()
        if not line:
            continue
        if inside and line[0] not in ".{}":
            if line[-1] == ";" and line.find(";") == len(line) - 1 and (s := _STATEMENT.match(line)) is not None:
                body.append(Statement(number, s[3], line[s.end() : -1].strip(), s[2], s[1] == "!"))
            elif (m := _MARK.match(line)) is not None:
                body.append(Mark(number, m[1]))
            else:
                raise PtxSyntaxError(number, f"'{line}' is no statement")
        elif line == "{":
            if inside:
                raise PtxSyntaxError(number, "a block inside of the body is not read")
            inside = True
        elif line == "}":
            inside = False
        elif (e := _ENTRY.match(line)) is not None:
            if name:
                raise PtxSyntaxError(number, "a second entry")
            name = e[1]
        elif (p := _PARAM.match(line)) is not None:
            width = _bytes(p[2])
            params.append((p[3], p[2]))
            sizes[p[3]] = (int(p[1] or width), width * int(p[4] or 1))
        elif (s := _SYMBOL.match(line)) is not None:
            symbols[s[4]] = int(s[2] or 1)
            if s[1] == "shared":
                width = _bytes(s[3])
                shared.append((s[4], int(s[2] or width), None if s[5] == "" else width * int(s[5] or 1)))
        elif (r := _REGISTERS.match(line)) is not None:
            for item in r[2].split(","):
                if (n := _NAMED.match(item.strip())) is None:
                    raise PtxSyntaxError(number, f"'{item.strip()}' names no register")
                registers.append((r[1], n[1], int(n[2]) if n[2] else None))
        elif line[0] == "." and name and not inside:
            directives.append(line)
    if not name:
        raise PtxSyntaxError(1, "there is no entry")
    return Entry(name, tuple(params), symbols, tuple(directives), tuple(body), tuple(registers), tuple(shared), sizes)


def _bytes(type: str) -> int:
    """The size of a type: its name ends in its width."""
    return max(int(re.search(r"\d+$", type)[0]) // 8, 1) if type[-1].isdigit() else 1


# --- operands ------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"\s*(?:(?P<float>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16})|(?P<int>[-+]?\s*(?:0[xX][0-9a-fA-F]+|\d+))U?"
    r"|(?P<name>!?%?[A-Za-z_$][\w$]*(?:\.[xyzw])?)|(?P<mark>[][{},+|]))"
)


@lru_cache(maxsize=1 << 14)
def operands_of(text: str) -> tuple[Operand, ...]:
    """The operands behind an opcode. Raises ValueError."""
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        m = _TOKEN.match(text, at)
        if m is None:
            raise ValueError(f"operands '{text}' are not read from '{text[at:]}' on")
        tokens.append((m.lastgroup or "", m[m.lastgroup or 0].replace(" ", "")))
        at = m.end()
    found, at = _list(tokens, 0)
    if at != len(tokens):
        raise ValueError(f"operands '{text}' do not end")
    return found


def _list(tokens: list, at: int) -> tuple[tuple[Operand, ...], int]:
    out: list[Operand] = []
    while at < len(tokens) and tokens[at][1] not in ("]", "}"):
        item, at = _operand(tokens, at)
        out.append(item)
        if at < len(tokens) and tokens[at][1] == ",":
            at += 1
    return tuple(out), at


def _operand(tokens: list, at: int) -> tuple[Operand, int]:
    kind, word = tokens[at]
    match kind:
        case "float":
            return struct.unpack(">d" if len(word) > 10 else ">f", bytes.fromhex(word[2:]))[0], at + 1
        case "int":
            return int(word, 0), at + 1
        case "name":
            if at + 1 < len(tokens) and tokens[at + 1][1] == "|":
                second, end = _operand(tokens, at + 2)
                return Pair(word, second), end
            return word, at + 1
    if word == "{":
        items, at = _list(tokens, at + 1)
        return Group(items), at + 1
    if word == "[":
        base, at = _operand(tokens, at + 1)
        offset, coordinates = 0, ()
        if at < len(tokens) and tokens[at][1] == "+":
            at += 1
        if at < len(tokens) and tokens[at][0] == "int":
            offset, at = int(tokens[at][1], 0), at + 1
        if at < len(tokens) and tokens[at][1] == ",":
            inner, at = _operand(tokens, at + 1)
            coordinates = inner.items if isinstance(inner, Group) else (inner,)
        if at >= len(tokens) or tokens[at][1] != "]" or not isinstance(base, str | int):
            raise ValueError("an address does not end")
        return At(base, offset, coordinates), at + 1
    raise ValueError(f"'{word}' starts no operand")
