"""Prints a PTX module and, beside it, the source span of every line."""

from __future__ import annotations

from dataclasses import field

from cake_core.frozen import frozen, thawed
from cake_core.ptx.builder import PREFIX, Builder, Comment, Label
from cake_core.source import Span


@frozen
class EntryParam:
    """`declaration` is the text behind `.param`, such as `.b32 M` or `.align 64 .b8 map_A[128]`."""

    name: str
    declaration: str
    span: Span | None = None


@thawed
class Module:
    """One module with one entry. `shared_align` is the alignment of the dynamic shared memory symbol (0: none)."""

    version: str
    target: str
    entry: str
    params: list[EntryParam] = field(default_factory=list)
    directives: tuple[str, ...] = ()
    shared_symbol: str | None = None
    shared_align: int = 16
    builder: Builder = field(default_factory=Builder)
    span: Span | None = None

    def print(self) -> tuple[str, list[Span | None]]:
        """The text and one span (or None) a line."""
        lines: list[tuple[str, Span | None]] = [
            (f".version {self.version}", None),
            (f".target {self.target}", None),
            (".address_size 64", None),
        ]
        if self.shared_symbol:
            lines.append((f".extern .shared .align {self.shared_align} .b8 {self.shared_symbol}[];", self.span))
        lines.append((f".visible .entry {self.entry}(", self.span))
        for i, p in enumerate(self.params):
            lines.append((f"  .param {p.declaration}{',' if i + 1 < len(self.params) else ''}", p.span or self.span))
        lines.append((")", self.span))
        lines += [(d, self.span) for d in self.directives]
        lines.append(("{", self.span))
        for kind in PREFIX:
            if n := self.builder.counts.get(kind, 0):
                lines.append((f"  .reg .{kind} {PREFIX[kind]}<{n}>;", self.span))
        for item in self.builder.body:
            if isinstance(item, Label):
                lines.append((f"{item.name}:", item.span or self.span))
            elif isinstance(item, Comment):
                lines.append((f"  // {item.text}", item.span or self.span))
            else:
                lines.append((f"  {item}", item.span or self.span))
        lines.append(("}", self.span))
        return "".join(f"{text}\n" for text, _ in lines), [span for _, span in lines]
