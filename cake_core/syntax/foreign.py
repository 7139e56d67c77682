"""What is written in other languages and not in this one: characters, operators, comments, numbers.

The lexer reports each where it stands and reads on with what was meant, so that one slip is one finding.
"""

from __future__ import annotations

import re
import unicodedata

from cake_core.diagnostics.model import Diagnostic
from cake_core.frozen import frozen
from cake_core.source import Span


@frozen
class Foreign:
    """Something of another language: the finding, the characters it takes, and the token it is read as (if any)."""

    diagnostic: Diagnostic
    length: int
    becomes: tuple[str, str] | None = None
    comment: bool = False
    block_comment: bool = False


#: text: (message, fix, token that it is read as)
FOREIGN = {
    "&&": ("'&&' is no operator", "write 'and'", ("AND", "and")),
    "||": ("'||' is no operator", "write 'or'", ("OR", "or")),
    "!": ("'!' is no operator", "write 'not'", ("NOT", "not")),
    ":=": ("':=' is no operator", "write '='", ("EQUAL", "=")),
    "=<": ("'=<' is no operator", "write '<='", ("COMPARE", "<=")),
    "<>": ("'<>' is no operator", "write '!='", ("COMPARE", "!=")),
    "=>": ("'=>' is no operator", "write '>=' to compare", ("COMPARE", ">=")),
    "**": ("'**' is no operator", "write the product out", ("MUL", "*")),
    "<<": ("'<<' is no operator", "multiply by a power of two: the compiler shifts", ("MUL", "*")),
    ">>": ("'>>' is no operator", "divide by a power of two: the compiler shifts", ("MUL", "/")),
    "->": ("'->' is no operator", "data flows to the left: 'destination <- source'", ("ARROW", "<-")),
    "-=": ("'-=' is no operator", "write 'x = x - ...'", ("EQUAL", "=")),
    "*=": ("'*=' is no operator", "write 'x = x * ...'", ("EQUAL", "=")),
    "/=": ("'/=' is no operator", "write 'x = x / ...'", ("EQUAL", "=")),
    "%=": ("'%=' is no operator", "write 'x = x % ...'", ("EQUAL", "=")),
    "@=": ("'@=' is no operator", "write '= a @ b'", ("EQUAL", "=")),
}


def foreign(text: str, rest: str, span: Span) -> Foreign:
    """`text` was found, `rest` is the line from there on."""
    if text in ("//", "/*"):
        length = len(rest) if text == "//" else 2
        finding = Diagnostic(
            "syntax/comment",
            f"'{text}' begins no comment",
            span,
            fix="write '#'; for floor division write '/'" if text == "//" else "write '#' on each line",
        )
        return Foreign(finding, length, comment=True, block_comment=text == "/*")
    if text in ("'", '"'):
        close = rest.find(text, 1)
        length = close + 1 if close > 0 else len(rest)
        where = Span(span.file, span.line, span.column, span.line, span.column + length)
        return Foreign(Diagnostic("syntax/unknown-character", "the language has no strings", where, fix="remove it"), length)
    if text[0] == ".":
        finding = Diagnostic("syntax/number", f"'{text}' is no number", span, fix=f"write '0{text}'")
        return Foreign(finding, len(text), ("FLOAT", "0" + text))
    message, fix, becomes = FOREIGN[text]
    return Foreign(Diagnostic("syntax/unknown-operator", message, span, fix=fix), len(text), becomes)


#: Characters that look like Cake's.
LOOKALIKES = {
    "≤": "'<='", "≥": "'>='", "≠": "'!='", "×": "'*'", "÷": "'/'", "−": "'-'", "–": "'-'", "—": "'-'", "←": "'<-'", "…": "'..'",
    "“": None, "”": None, "‘": None, "’": None, "\u00a0": "a space", "\u200b": None, "\ufeff": None, "\u3000": "a space",
    "$": None, "\\": "no '\\': a line goes on inside ( ) and [ ]", "&": "'and'", "|": "'or'", "~": "'not'", "∞": "'inf'",
}  # fmt: skip


def unknown_characters(text: str, span: Span) -> Diagnostic:
    """A run of characters that no token begins with, or a name with letters beyond ASCII."""
    odd = next(c for c in text if not c.isascii() or not c.isalnum())
    fix = None
    if re.fullmatch(r"[^\W\d]\w*", text):
        fix = "names consist of the letters a to z, A to Z, digits and '_'"
    elif LOOKALIKES.get(odd):
        fix = f"write {LOOKALIKES[odd]}"
    return Diagnostic("syntax/unknown-character", f"{describe_character(odd)} has no meaning in the language", span, fix=fix)


def describe_character(char: str) -> str:
    name = unicodedata.name(char, "")
    shown = f"'{char}'" if char.isprintable() and not char.isspace() else f"character U+{ord(char):04X}"
    return shown if char.isascii() or not name else f"{shown} ({name.lower()})"


def malformed_number(text: str, span: Span) -> Diagnostic:
    """Digits that run into letters, or end in a point."""
    shown = text if len(text) <= 40 else text[:37] + "..."
    fix = None
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}|0[bB][01]{1,64}|0[oO][0-7]{1,21}", text):
        fix = f"write '{int(text, 0)}': integers are decimal"
    elif re.fullmatch(r"[0-9_]{1,40}", text):
        fix = f"write '{text.replace('_', '')}'"
    elif text.endswith("."):
        fix = f"write '{shown}0'"
    elif re.fullmatch(r"[0-9.]{1,40}[fFuUlL]+", text):
        fix = f"write '{text.rstrip('fFuUlL')}': a literal takes its type from its place"
    return Diagnostic("syntax/number", f"'{shown}' is no number", span, fix=fix)
