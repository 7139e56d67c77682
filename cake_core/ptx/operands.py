"""Operands of PTX, read from their text (PTX ISA, Instruction Operands; Constants; Addresses as Operands)."""

from __future__ import annotations

import re
import struct
from functools import lru_cache

from cake_core.frozen import frozen
from cake_core.ptx.declared import whole


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


@frozen
class Sum:
    """`name+8` outside of brackets: the address of a variable and a number."""

    base: str
    offset: int


#: A register or another name is a text, `_` the sink among them; `!p` is a text too.
Operand = str | int | float | At | Group | Pair | Sum

_TOKEN = re.compile(
    r"\s*(?:(?P<float>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16})|(?P<decimal>[-+]?\s*\d+\.\d*(?:[eE][-+]?\d+)?)"
    r"|(?P<int>[-+]?\s*(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+))U?|(?P<name>!?\s*%?[A-Za-z_$][\w$]*(?:\.[xyzw])?)|(?P<mark>[][{},+|]))"
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
        elif at < len(tokens) and tokens[at][1] not in ("]", "}"):
            raise ValueError(f"there is no comma in front of '{tokens[at][1]}'")
    return tuple(out), at


def _operand(tokens: list, at: int) -> tuple[Operand, int]:
    kind, word = tokens[at]
    match kind:
        case "float":
            return struct.unpack(">d" if len(word) > 10 else ">f", bytes.fromhex(word[2:]))[0], at + 1
        case "decimal":
            return float(word), at + 1
        case "int":
            return whole(word), at + 1
        case "name":
            return _name(tokens, at, word)
    if word == "{":
        items, at = _list(tokens, at + 1)
        if at >= len(tokens) or tokens[at][1] != "}":
            raise ValueError("a vector does not end")
        return Group(items), at + 1
    if word == "[" and at + 1 < len(tokens):
        base, at = _operand(tokens, at + 1)
        offset, coordinates = 0, ()
        if isinstance(base, Sum):
            base, offset = base.base, base.offset
        elif isinstance(base, int):
            offset, at = _added(tokens, at)
        if at < len(tokens) and tokens[at][1] == ",":
            inner, at = _operand(tokens, at + 1)
            coordinates = inner.items if isinstance(inner, Group) else (inner,)
        if at >= len(tokens) or tokens[at][1] != "]" or not isinstance(base, str | int):
            raise ValueError("an address does not end")
        return At(base, offset, coordinates), at + 1
    raise ValueError(f"'{word}' starts no operand")


def _name(tokens: list, at: int, word: str) -> tuple[Operand, int]:
    """A name, and what is added to it or stands behind a bar."""
    at += 1
    if at < len(tokens) and tokens[at][1] == "|":
        if at + 1 == len(tokens):
            raise ValueError("there is nothing behind '|'")
        second, end = _operand(tokens, at + 1)
        return Pair(word, second), end
    offset, end = _added(tokens, at)
    return (Sum(word, offset), end) if end > at else (word, at)


def _added(tokens: list, at: int) -> tuple[int, int]:
    """`+8`, `-8` or `+-8`, and where it ends; `at` itself where nothing is added."""
    after = at + (at < len(tokens) and tokens[at][1] == "+")
    if after < len(tokens) and tokens[after][0] == "int" and (after > at or tokens[after][1][0] in "+-"):
        return whole(tokens[after][1]), after + 1
    return 0, at
