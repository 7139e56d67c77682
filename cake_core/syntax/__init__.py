"""Text to nodes and back: the grammar, the parser, the formatter."""

from __future__ import annotations

from cake_core.syntax.intake import decode
from cake_core.syntax.parser import parse, reserved_words

__all__ = ["decode", "format_text", "parse", "reserved_words"]


def format_text(source) -> str:
    """The canonical layout of a text (`cake fmt`). Raises CakeError if it does not parse."""
    from cake_core.syntax.formatter import format_text

    return format_text(source)
