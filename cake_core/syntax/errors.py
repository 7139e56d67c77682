"""What the parser says: expectations in words, and a fix where one can be guessed.

Tables stand before code: what other languages write and what Cake writes for it, how a set of acceptable terminals is
put into words, what a pair of an expected and a found token betrays.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from cake_core.diagnostics.model import CakeError, Diagnostic, Sink, fail
from cake_core.source import Source, Span

if TYPE_CHECKING:
    from cake_core.syntax.lexer import Token

VERSION = 1

# --- whole texts ---------------------------------------------------------------------------------------------------


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


def check_text(source: Source, max_size: int) -> None:
    """Refuse what is too large to read, and a text that was decoded with losses."""
    if len(source.text) > max_size:
        raise fail(
            "syntax/too-large",
            f"the text has {len(source.text)} characters; the limit is {max_size}",
            Span(source.name, 1, 1, 1, 1),
            fix="split it into several files",
        )
    lone = re.search("[\ud800-\udfff]", source.text)
    if lone:
        before = source.text[: lone.start()]
        line, column = before.count("\n") + 1, lone.start() - before.rfind("\n")
        code = ord(lone.group())
        what = f"byte 0x{code - 0xDC00:02x} is not UTF-8" if 0xDC80 <= code <= 0xDCFF else "a lone surrogate is no character"
        raise fail("syntax/encoding", what, Span(source.name, line, column, line, column + 1), fix="save the file as UTF-8")


def check_version(tokens: list[Token], file: str, sink: Sink) -> None:
    """The first line is `cake 1` or `cake 1 derived`. Another version ends the run: nothing behind it can be trusted.

    A missing line is reported and put in, so that the rest is still read.
    """
    from cake_core.syntax.lexer import Token

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
        else:
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


# --- characters ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
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
    "$": None, "\\": "nothing: a line goes on inside ( ) and [ ]", "&": "'and'", "|": "'or'", "~": "'not'", "∞": "'inf'",
}  # fmt: skip


def unknown_characters(text: str, span: Span) -> Diagnostic:
    """A run of characters that no token begins with, or a name with letters beyond ASCII."""
    odd = next(c for c in text if not c.isascii() or not c.isalnum())
    fix = None
    if re.fullmatch(r"[^\W\d]\w*", text):
        fix = "names consist of the letters a to z, A to Z, digits and '_'"
    elif LOOKALIKES.get(odd):
        fix = f"write {LOOKALIKES[odd]}"
    elif odd == "\r":
        fix = "end lines with a line feed"
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


# --- expectations --------------------------------------------------------------------------------------------------

EXPRESSION = frozenset("NAME INT FLOAT INF TRUE FALSE LPAR SUM NOT".split())
OPERATORS = frozenset("SUM MUL COMPARE AND OR QMARK LSQB _CALL DOT".split())
STATEMENT = frozenset("LET VAR TILES PIPELINE TURN ROLE INLINE FOR WHILE GROUP IF LABEL".split()) | EXPRESSION
CLAUSE = frozenset("CONST REQUIRE ASSUME TARGET".split())

#: A set of terminals, wholly acceptable, and its words. First match first; what it holds is then left out.
PHRASES: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset("LET ROLE FOR IF NAME".split()), "a statement"),
    (CLAUSE, "a clause"),
    (frozenset("NAME INT LPAR".split()), "an expression"),
)

TERMINAL_WORDS = {
    "NAME": "a name", "INT": "an integer", "FLOAT": "a number", "_SEP": "the end of the line", "$END": "the end of the text",
    "COLON": "':'", "COMMA": "','", "LBRACE": "'{'", "RBRACE": "'}'", "LPAR": "'('", "_CALL": "'('", "RPAR": "')'", "LSQB": "'['",
    "RSQB": "']'", "EQUAL": "'='", "ARROW": "'<-'", "ADD_TO": "'+='", "RANGE": "'..'", "SPAN": "'+:'", "DOT": "'.'", "QMARK": "'?'",
}  # fmt: skip

#: How an optional continuation is dropped from a list of expectations: a name that would begin a word, an operator.
AFTER_EXPRESSION = frozenset("SUM MUL".split())


def expectation(acceptable: set[str]) -> str:
    """`acceptable` terminals in words, at most three of them."""
    left = set(acceptable)
    words: list[str] = []
    if AFTER_EXPRESSION <= left and "INT" not in left:  # behind a whole operand: it could go on, but need not
        left -= OPERATORS | {"EQUAL"} if len(left - OPERATORS - {"EQUAL"}) else set()
        if len(left) > 1:
            left -= {"NAME", "ARROW", "ADD_TO"}
    for members, phrase in PHRASES:
        if members <= left:
            words.append(phrase)
            left -= (STATEMENT if phrase == "a statement" else CLAUSE | {"NAME"} if phrase == "a clause" else EXPRESSION)
    order = {k: i for i, k in enumerate(TERMINAL_WORDS)}
    for kind in sorted(left, key=lambda k: (order.get(k, 99), k)):
        phrase = TERMINAL_WORDS.get(kind, f"'{kind.lower()}'")
        if phrase not in words:
            words.append(phrase)
    if len(words) > 4:
        words = [*words[:3], "..."]
        return ", ".join(words)
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def found(token: Token) -> str:
    if token.type == "$END":
        return "the end of the text"
    if token.type == "_SEP":
        return "'}'" if token.text == "}" else "';'" if token.text == ";" else "the end of the line"
    text = token.text if len(token.text) <= 40 else token.text[:37] + "..."
    return f"'{text}'"


# --- one error -----------------------------------------------------------------------------------------------------

KEYWORD_HINTS = (
    "let", "var", "tiles", "pipeline", "turn", "role", "inline", "for", "while", "group", "if", "else", "kernel", "const",
    "require", "assume", "target", "cluster",
)  # fmt: skip

#: Words of other languages at the start of a statement, and Cake's.
OTHER_WORDS = {
    "def": "kernel", "fn": "kernel", "func": "kernel", "function": "kernel", "elif": "else if", "elseif": "else if", "loop": "while",
    "foreach": "for", "requires": "require", "int": "var", "float": "var", "auto": "let", "constexpr": "const", "mut": "var",
}  # fmt: skip


def misspelt(text: str, words: tuple[str, ...] = KEYWORD_HINTS) -> str | None:
    """The word that `text` may be meant for."""
    if text in OTHER_WORDS and (OTHER_WORDS[text] in words or words is KEYWORD_HINTS):
        return OTHER_WORDS[text]
    if text in words or len(text) > 20:
        return None
    return next(iter(get_close_matches(text, words, 1, 0.7)), None)


def explain(tokens: list[Token], at: int, acceptable: set[str], file: str) -> Diagnostic:
    """The finding for token `at`, where only `acceptable` terminals may stand."""
    token = tokens[at]
    start = at
    while start > 0 and tokens[start - 1].type not in ("_SEP", "LBRACE", "RBRACE"):
        start -= 1
    if tokens[start].type == "LABEL" and start < at:
        start += 1
    case = Case(tokens, at, start, acceptable, token.span(file), file)
    for guess in GUESSES:
        finding = guess(case)
        if finding is not None:
            return finding
    return Diagnostic("syntax/unexpected-token", case.message, case.span)


@dataclass(frozen=True, slots=True)
class Case:
    """An error with its surroundings: `start` is the first token of its statement."""

    tokens: list[Token]
    at: int
    start: int
    acceptable: set[str]
    span: Span
    file: str

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    @property
    def before(self) -> Token | None:
        return self.tokens[self.at - 1] if self.at > self.start else None

    @property
    def head(self) -> Token:
        return self.tokens[self.start]

    @property
    def message(self) -> str:
        return f"expected {expectation(self.acceptable)}, found {found(self.token)}"

    def say(self, fix: str | None, code: str = "unexpected-token", message: str | None = None, span: Span | None = None) -> Diagnostic:
        return Diagnostic(f"syntax/{code}", message or self.message, span or self.span, fix=fix)


def _chained(c: Case) -> Diagnostic | None:
    """`1 <= M <= 5`: comparisons do not chain."""
    if c.token.type != "COMPARE" or "COMPARE" in c.acceptable:
        return None
    depth = 0
    i = c.at - 1
    while i > c.start and not (depth == 0 and c.tokens[i].type == "COMPARE"):
        depth += {"RPAR": 1, "RSQB": 1, "LPAR": -1, "_CALL": -1, "LSQB": -1}.get(c.tokens[i].type, 0)
        i -= 1
    if c.tokens[i].type != "COMPARE":
        return None
    middle = "".join(t.text for t in c.tokens[i + 1 : c.at])[:40]
    return c.say(
        f"repeat the middle: '{middle} {c.token.text} ...', joined by 'and'",
        "chained-comparison",
        f"comparisons do not chain: '{c.tokens[i].text}' and '{c.token.text}' share '{middle}'",
    )


def _arrow(c: Case) -> Diagnostic | None:
    """`a <-1` in an expression."""
    if c.token.type != "ARROW":
        return None
    return c.say("to compare with a negative number, write a blank: '< -'", "arrow", "'<-' moves data and is no comparison")


def _word_fix(c: Case) -> Diagnostic | None:
    """The statement begins with a word that is nearly a keyword."""
    if c.head.type != "NAME":
        return None
    meant = misspelt(c.head.text)
    if meant is None or (c.start + 1 < len(c.tokens) and c.tokens[c.start + 1].type in ("EQUAL", "DOT")):
        return None
    return c.say(f"did you mean '{meant}'", "unknown-keyword", f"'{c.head.text}' begins no such statement", c.head.span(c.file))


def _else(c: Case) -> Diagnostic | None:
    if c.token.type != "ELSE":
        return None
    previous = c.tokens[c.at - 2].type if c.at > 1 else ""
    fix = "write '} else {' on one line" if previous == "RBRACE" else None
    return c.say(fix, "else", "'else' follows no 'if'")


def _reserved(c: Case) -> Diagnostic | None:
    if "NAME" not in c.acceptable or not c.token.text.isalpha() or c.token.type in ("NAME", "_SEP"):
        return None
    if c.at == c.start:
        return None
    return c.say("choose another name", "reserved-word", f"'{c.token.text}' is a reserved word")


def _condition(c: Case) -> Diagnostic | None:
    """`=` where a comparison must be, `==` where a value is given."""
    if c.token.text == "==" and "EQUAL" in c.acceptable:
        return c.say("write '='")
    if c.token.type != "EQUAL":
        return None
    if c.head.type == "FOR" and "IN" in c.acceptable:
        return c.say("write 'in'")
    if "COMPARE" in c.acceptable:
        return c.say("write '==' to compare")
    return None


def _brace(c: Case) -> Diagnostic | None:
    if "LBRACE" not in c.acceptable:
        return None
    if c.token.type == "COLON":
        return c.say("a block stands in braces: '{ ... }'")
    if c.token.type == "_SEP":
        return c.say("add '{'")
    if c.head.type == "FOR" and c.token.type in ("TO", "COMMA", "COLON") and "RANGE" in c.acceptable:
        return c.say("write '..'")
    return None


def _operand(c: Case) -> Diagnostic | None:
    """`i++`, `x += 1`."""
    if c.token.type == "ADD_TO" and c.at == c.start + 1:
        return c.say(f"write '{c.head.text} = {c.head.text} + ...'")
    if c.before is None or c.token.type != "_SEP":
        return None
    if c.before.type == "SUM" and c.at - 2 > c.start and c.tokens[c.at - 2].text == c.before.text:
        return c.say(f"write '{c.head.text} = {c.head.text} {c.before.text} 1'")
    if c.before.type == "COMMA":
        return c.say("remove the ','; a line goes on only inside ( ) and [ ]")
    if c.before.type in ("SUM", "MUL", "AND", "OR", "COMPARE", "QMARK", "NOT"):
        return c.say("a line goes on only inside ( ) and [ ]")
    return None


def _range(c: Case) -> Diagnostic | None:
    if c.token.type == "COLON" and "SPAN" in c.acceptable:
        return c.say("a slice is 'start +: size'")
    if c.token.type == "RANGE" and "SPAN" in c.acceptable:
        return c.say("a slice is 'start +: size'")
    if c.token.type in ("TO",) and "RANGE" in c.acceptable:
        return c.say("write '..'")
    return None


def _call(c: Case) -> Diagnostic | None:
    if c.token.type == "LPAR" and "_CALL" in c.acceptable and c.before is not None and c.before.type == "NAME":
        return c.say(f"a call touches its bracket: '{c.before.text}('")
    return None


def _after_block(c: Case) -> Diagnostic | None:
    if c.acceptable == {"_SEP"} or (c.before is not None and c.before.type == "RBRACE" and "_SEP" in c.acceptable):
        return c.say("begin a new line")
    return None


def _role(c: Case) -> Diagnostic | None:
    """A role or declaration outside a kernel's body, most often behind a `}` too many."""
    if "KERNEL" not in c.acceptable or c.token.type == "NAME":
        return None
    return c.say(None, message=f"expected 'kernel', found {found(c.token)}")


GUESSES = (_chained, _word_fix, _arrow, _else, _condition, _range, _brace, _operand, _reserved, _call, _role, _after_block)


