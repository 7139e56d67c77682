"""YAML read strictly: a small part of the language, every node with its place, nothing executed and nothing guessed.

Duplicate keys, aliases, tags, several documents, values that YAML would turn into something else (`0.10`, `on`, a date) and files
that are too large or nest too deep are errors, `rules/yaml`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from cake_core.diagnostics import fail
from cake_core.frozen import frozen
from cake_core.rules.parser import Passage, passage
from cake_core.source import Span

MAX_BYTES = 64 * 1024
MAX_DEPTH = 16
MAX_NODES = 4000

#: Plain scalars that readers of YAML take for something else than their letters.
GUESSED = re.compile(
    r"[-+]?(\d[\d_]*)?\.\d*([eE][-+]?\d+)?|[-+]?\d+[eE][-+]?\d+|0[xob]\w+|\d{4}-\d\d?-\d\d?.*|\d+:\d+.*|(?i:yes|no|on|off|y|n|null|~|\.inf|\.nan)"
)
INTEGER = re.compile(r"-?\d+")
#: Characters that steer what shows a text: controls, and marks that turn the direction of writing.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@frozen
class Scalar:
    """`value`: a bool or an integer if it is written plainly, else a text."""

    value: bool | int | str
    span: Span
    style: str
    lines: tuple[str, ...]  # of the file

    def passage(self) -> Passage:
        """The text with places in the file, for what is parsed inside it."""
        text, at = str(self.value), self.span
        if self.style == "|":
            first = next((i for i in range(at.line, len(self.lines)) if self.lines[i].strip()), at.line)
            indent = len(self.lines[first]) - len(self.lines[first].lstrip(" "))

            def place(offset: int) -> tuple[int, int]:
                before = text[:offset]
                return at.line + 1 + before.count("\n"), offset - (before.rfind("\n") + 1) + indent + 1

            return Passage(text, at.file, place)
        if at.line == at.end_line:
            return passage(text, at.file, at.line, at.column + (self.style in ("'", '"')))
        return Passage(text, at.file, lambda offset: (at.line, at.column))  # folded: its lines are not those of the file


@frozen
class Mapping:
    entries: tuple[tuple[Scalar, Node], ...]
    span: Span

    def get(self, key: str) -> Node | None:
        return next((v for k, v in self.entries if k.value == key), None)


@frozen
class Sequence:
    items: tuple[Node, ...]
    span: Span


Node = Scalar | Mapping | Sequence


def read(path: Path, name: str | None = None) -> Mapping:
    """The mapping that a file holds; `name`: what findings call it. Raises CakeError `rules/yaml`."""
    shown = name or str(path)
    start = Span(shown, 1, 1, 1, 1)
    try:
        data = _bytes(path)
    except OSError as error:
        raise fail("rules/yaml", f"'{shown}' can't be read: {error.strerror}", start) from None
    if data is None:
        raise fail("rules/yaml", f"'{shown}' is no file", start, why="a pipe or a device may never end")
    if len(data) > MAX_BYTES:
        raise fail("rules/yaml", f"the file has more than {MAX_BYTES} bytes", start, fix="a rule is a page of text")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        at = Span(shown, line, column, line, column + 1)
        raise fail("rules/yaml", f"byte 0x{data[error.start]:02x} is not UTF-8", at, fix="save the file as UTF-8") from None
    return loads(text, shown)


def _bytes(path: Path) -> bytes | None:
    """What a file holds, as far as it is read; None of what is no file. Opening a pipe would wait for who writes it."""
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(number, "rb") as file:
        return file.read(MAX_BYTES + 1) if stat.S_ISREG(os.fstat(number).st_mode) else None


def loads(text: str, file: str) -> Mapping:
    import yaml

    try:
        events = iter(list(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))))
        return _Reader(events, file, tuple(text.split("\n"))).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = Span(file, mark.line + 1, mark.column + 1, mark.line + 1, mark.column + 2) if mark else Span(file, 1, 1, 1, 1)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it can't be read"
        raise fail("rules/yaml", f"this is no YAML: {problem}", at) from None
    except RecursionError:
        raise fail("rules/yaml", f"the file nests more than {MAX_DEPTH} deep", Span(file, 1, 1, 1, 1)) from None


class _Reader:
    def __init__(self, events: Iterator, file: str, lines: tuple[str, ...]):
        import yaml

        self.yaml = yaml
        self.events, self.file, self.lines, self.nodes = events, file, lines, 0

    def document(self) -> Mapping:
        yaml = self.yaml
        root, documents = None, 0
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise fail("rules/yaml", "the file holds several documents", self.span(event), fix="one rule, one file")
            elif not isinstance(event, yaml.DocumentEndEvent | yaml.StreamStartEvent | yaml.StreamEndEvent):
                root = self.node(event, 0)
        if not isinstance(root, Mapping):
            raise fail("rules/yaml", "the file is no mapping of keys to values", root.span if root else Span(self.file, 1, 1, 1, 1))
        return root

    def span(self, event) -> Span:
        a, b = event.start_mark, event.end_mark
        return Span(self.file, a.line + 1, a.column + 1, b.line + 1, max(b.column + 1, a.column + 2 if a.line == b.line else 1))

    def node(self, event, depth: int) -> Node:
        yaml = self.yaml
        self.nodes += 1
        at = self.span(event)
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise fail(
                "rules/yaml",
                "anchors and aliases are not used here",
                at,
                fix="write the value out, or give a condition a name with 'define'",
            )
        if event.tag is not None:
            raise fail("rules/yaml", f"the tag '{event.tag}' is not used here", at, fix="leave it out")
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise fail(
                "rules/yaml",
                f"the file nests more than {MAX_DEPTH} deep" if depth > MAX_DEPTH else f"the file has more than {MAX_NODES} values",
                at,
            )
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event, at)
        if isinstance(event, yaml.MappingStartEvent):
            entries: dict[str, tuple[Scalar, Node]] = {}
            while not isinstance(inner := next(self.events), yaml.MappingEndEvent):
                key = self.node(inner, depth + 1)
                if not isinstance(key, Scalar) or not isinstance(key.value, str):
                    raise fail("rules/yaml", "a key is a word", key.span)
                if key.value in entries:
                    raise fail("rules/yaml", f"the key '{key.value}' stands twice", key.span, fix="leave one out")
                entries[key.value] = (key, self.node(next(self.events), depth + 1))
            return Mapping(tuple(entries.values()), at)
        items = []
        while not isinstance(inner := next(self.events), yaml.SequenceEndEvent):
            items.append(self.node(inner, depth + 1))
        return Sequence(tuple(items), at)

    def scalar(self, event, at: Span) -> Scalar:
        text, style = event.value, event.style or ""
        if (found := CONTROL.search(text)) is not None:
            raise fail("rules/yaml", f"the character U+{ord(found.group()):04X} can't be shown", at, why="what rules say goes to terminals")
        if style:
            return Scalar(text, at, style, self.lines)
        if text == "":
            raise fail("rules/yaml", "a value is missing", at, fix='write "" for an empty text, [] for an empty list')
        if text in ("true", "false"):
            return Scalar(text == "true", at, style, self.lines)
        if GUESSED.fullmatch(text):
            raise fail("rules/yaml", f"'{text}' is not what it looks like in YAML", at, fix=f'write "{text}"')
        if INTEGER.fullmatch(text):
            if len(text) > 18:
                raise fail("rules/yaml", "the number is too large", at)
            return Scalar(int(text), at, style, self.lines)
        return Scalar(text, at, style, self.lines)
