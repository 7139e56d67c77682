"""What a text must be before it is parsed: UTF-8, of a bearable size, and of a version that this compiler reads."""

from __future__ import annotations

import re

from cake_core.diagnostics.model import Sink, fail
from cake_core.source import Source, Span
from cake_core.syntax.tokens import Token

VERSION = 1
#: Largest text, in characters.
MAX_SIZE = 4 * 1024 * 1024


def decode(name: str, data: bytes) -> Source:
    """A file's bytes as a source. Raises CakeError (`syntax/encoding`) where they are not UTF-8."""
    try:
        return Source(name, data.decode("utf-8"))
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
        raise fail(
            "syntax/encoding",
            f"byte 0x{data[error.start]:02x} is not UTF-8",
            Span(name, line, column, line, column + 1),
            fix="save the file as UTF-8",
        ) from None


def check_text(source: Source) -> None:
    """Refuse what is too large to read, and a text that was decoded with losses."""
    if len(source.text) > MAX_SIZE:
        raise fail(
            "syntax/too-large",
            f"the text has {len(source.text)} characters; the limit is {MAX_SIZE}",
            Span(source.name, 1, 1, 1, 1),
            fix="split it into several files",
        )
    lone = re.search("[\ud800-\udfff]|\r(?!\n)", source.text)
    if lone:
        before = source.text[: lone.start()]
        line, column = before.count("\n") + 1, lone.start() - before.rfind("\n")
        at = Span(source.name, line, column, line, column + 1)
        if lone.group() == "\r":
            message = "a carriage return without a line feed ends no line"
            raise fail("syntax/unknown-character", message, at, fix="end lines with a line feed")
        code = ord(lone.group())
        what = f"byte 0x{code - 0xDC00:02x} is not UTF-8" if 0xDC80 <= code <= 0xDCFF else "a lone surrogate is no character"
        raise fail("syntax/encoding", what, at, fix="save the file as UTF-8")


def check_version(tokens: list[Token], file: str, sink: Sink) -> None:
    """The first line is `cake 1` or `cake 1 derived`. Another version ends the run: nothing behind it can be trusted.

    A missing line is reported and put in, so that the rest is still read.
    """
    first = tokens[0]
    end = next(i for i, t in enumerate(tokens) if t.type in ("_SEP", "$END"))
    line = tokens[:end]
    words = [t.text for t in line]
    fix = f"begin with the line 'cake {VERSION}', or 'cake {VERSION} derived' for the derived form"
    span = Span(file, first.line, first.column, first.line, line[-1].end if line else first.end)
    is_version = len(words) > 1 and words[0].lower() == "cake" and line[1].type in ("INT", "FLOAT", "NAME")
    if not is_version:
        if words[:1] == ["cake"]:
            del tokens[: end + (tokens[end].type == "_SEP")]
            sink.error("syntax/version", "the version line names no version", span, fix=f"write 'cake {VERSION}'")
        elif first.type != "ERROR":  # otherwise the lexer has said something about it
            sink.error("syntax/version", "the text does not begin with a version line", first.span(file), fix=fix)
    elif words[:2] != ["cake", str(VERSION)] and (words[0] == "cake" and line[1].type != "NAME"):
        raise fail(
            "syntax/version",
            f"version {words[1]} of the language is not known to this compiler",
            line[1].span(file),
            why=f"it reads version {VERSION}; a text of another version may mean something else",
            fix="use a compiler of that version, or rewrite the text and its first line",
        )
    elif words in (["cake", str(VERSION)], ["cake", str(VERSION), "derived"]):
        return
    else:
        del tokens[: end + (tokens[end].type == "_SEP")]
        extra = line[2:] if words[:2] == ["cake", str(VERSION)] else line
        at = extra[0].span(file).to(extra[-1].span(file))
        sink.error("syntax/version", f"'{' '.join(t.text for t in extra)}' is no part of a version line", at, fix=fix)
    put_in = [Token("NAME", "cake", 1, 1), Token("INT", str(VERSION), 1, 1), Token("_SEP", "\n", 1, 1)]
    for token in put_in:
        token.end = token.column
    tokens[:0] = put_in
    for i, token in enumerate(tokens):
        token.index = i
