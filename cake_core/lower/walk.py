"""Every node below a node, in the order of the text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from cake_core.ir.nodes import Node


def walk(node: Node) -> Iterator[Node]:
    """`node` and all nodes that it holds. Types are not entered: they are no part of the text."""
    yield node
    for f in fields(node):
        if f.name not in ("span", "type"):
            yield from _inside(getattr(node, f.name))


def _inside(item) -> Iterator[Node]:
    if isinstance(item, Node):
        yield from walk(item)
    elif isinstance(item, tuple):
        for part in item:
            yield from _inside(part)
