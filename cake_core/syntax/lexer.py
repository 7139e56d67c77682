"""Text to tokens: line ends become separators, brackets are matched, comments are set aside.

The patterns come from the grammar (through its tables). What no pattern matches, and brackets that do not match,
are reported here; the token stream is then mended (a missing closer put in, a foreign operator replaced by Cake's own) or
given an `ERROR` token, which tells the parser to pass over a statement in silence.
"""

from __future__ import annotations

import re

from cake_core.diagnostics.model import Diagnostic, Related, Sink
from cake_core.source import Source, Span
from cake_core.syntax.foreign import Foreign, foreign, malformed_number, unknown_characters
from cake_core.syntax.tables import Tables
from cake_core.syntax.tokens import Comment, Lexed, Token

#: Deepest nesting of brackets and braces. Walks over the tree are recursive, so text may not choose their depth.
MAX_NESTING = 64
#: Findings after which a run stops looking.
MAX_ERRORS = 20

#: Characters that begin no token, a run of which is one finding.
SYMBOLS = re.compile(r"[^\w\s!-~]+|[$&|~^`\\\\]+")

OPENERS = {"LPAR": ")", "_CALL": ")", "LSQB": "]", "LBRACE": "}"}
CLOSERS = {"RPAR": ")", "RSQB": "]", "RBRACE": "}"}
CLOSER_TYPES = {text: name for name, text in CLOSERS.items()}

#: Words that begin a statement or a clause: at the start of a line they end a bracket that was left open.
LINE_WORDS = frozenset("ASSUME CONST FOR GROUP INLINE KERNEL LET PIPELINE REQUIRE ROLE TARGET TILES TURN VAR WHILE".split())


class Lexer:
    """Built once from the tables; `lex` reads one source."""

    def __init__(self, tables: Tables):
        self._keywords = tables.keywords
        fixed = {n: p for n, p in tables.terminals.items() if n not in tables.keywords.values()}
        words = ["FLOAT", "INT", "NAME", "LABEL"]
        # Operators of two characters first: COMPARE before ARROW would read `<-` as `<`.
        first, last = ("ARROW", "ADD_TO", "SPAN", "RANGE"), ("EQUAL",)
        operators = sorted((n for n in fixed if n not in words), key=lambda n: (n not in first, n in last, n))
        parts = [r"(?P<BLANK>[ \t]+|\r(?=\n)|\ufeff)", r"(?P<NEWLINE>\n)", r"(?P<COMMENT>\#[^\n]*)", r"(?P<SEMICOLON>;)"]
        parts += [r"(?P<FOREIGN>//|/\*|&&|\|\||:=|\*\*|->|=>|=<|<>|<<|>>|[-*/%@]=|\"|'|!(?!=)|\.[0-9]+)"]
        parts += [f"(?P<{n}>{fixed[n]})" for n in words[:2]]
        parts += [r"(?P<NAME>[^\W\d]\w*)", f"(?P<LABEL>{fixed['LABEL']})"]
        parts += [f"(?P<{n}>{fixed[n]})" for n in operators]
        self._match = re.compile("|".join(parts)).match

    def lex(self, source: Source) -> Lexed:
        return _Run(self._match, self._keywords, source).run()


class _Stop(Exception):
    """Enough findings, or one that makes the rest pointless."""


class _Run:
    def __init__(self, match, keywords: dict[str, str], source: Source):
        self.match = match
        self.keywords = keywords
        self.file = source.name
        self.text = source.text
        self.tokens: list[Token] = []
        self.comments: list[Comment] = []
        self.sink = Sink()
        self.unmatched: list[Diagnostic] = []
        self.open: list[Token] = []
        self.line = 1
        self.line_start = 0  # position of the line's first character
        self.pipeline = False  # the statement at hand is a pipeline, whose next `{` opens a list of names
        self.line_indent: dict[int, int] = {}  # column of the first token of each line
        self.suspect: Token | None = None  # an opener whose `}` stands at another indent
        self.suspect_closer: Token | None = None
        self.work = 4 * len(self.text) + 1000  # characters that may be read again after an unclosed bracket

    def run(self) -> Lexed:
        given_up = False
        try:
            self.scan(0)
            self.finish()
        except _Stop:
            given_up = True
        for i, token in enumerate(self.tokens):
            token.index = i
        return Lexed(self.tokens, self.comments, self.sink, self.unmatched, given_up)

    # --- the loop --------------------------------------------------------------------------------------------

    def scan(self, at: int) -> None:
        text, match, size = self.text, self.match, len(self.text)
        while True:
            while at < size:
                found = match(text, at)
                if found is None:
                    at = self.unknown(at)
                    continue
                kind = found.lastgroup
                end = found.end()
                if kind == "BLANK":
                    at = end
                elif kind == "NEWLINE":
                    at = end
                    self.newline(at)
                elif kind == "COMMENT":
                    self.comment(found.group().rstrip(), at)
                    at = end
                else:
                    at = self.token(kind, found.group(), at, end)
            if self.brackets_open():
                at = self.unclosed(None)
            else:
                return

    def newline(self, at: int) -> None:
        if not self.brackets_open():
            self.separate("\n", at - 1)
        self.line += 1
        self.line_start = at

    def separate(self, text: str, at: int) -> None:
        self.pipeline = False
        if self.tokens and self.tokens[-1].type not in ("_SEP", "LBRACE"):
            self.tokens.append(Token("_SEP", text, self.line, at - self.line_start + 1))

    def comment(self, text: str, at: int) -> None:
        own = self.line not in self.line_indent
        self.comments.append(Comment(text, self.line, at - self.line_start + 1, len(self.tokens), own))

    def brackets_open(self) -> bool:
        return bool(self.open) and self.open[-1].type != "LBRACE"

    def token(self, kind: str, text: str, at: int, end: int) -> int:
        """Take one token that stands at `at`; the position to go on from."""
        column = at - self.line_start + 1
        if kind == "NAME":
            kind = self.word(text, at)
        elif kind == "FOREIGN":
            taken = self.foreign(text, at)
            if taken is not None:
                return taken
            kind, text, end = "DOT", ".", at + 1
        elif kind == "SEMICOLON" and not self.brackets_open():
            self.separate(";", at)
            return end
        elif kind in ("INT", "FLOAT"):
            return self.number(kind, at, end)
        elif kind == "LABEL" and self.tokens and self.tokens[-1].type not in ("_SEP", "LBRACE"):
            kind, text, end = "MUL", "@", at + 1
        elif kind == "LPAR" and self.touches(at):
            kind = "_CALL"
        token = Token(kind, text, self.line, column)
        first = self.line not in self.line_indent
        if first:
            self.line_indent[self.line] = column
        if self.brackets_open() and (kind in ("LBRACE", "RBRACE", "SEMICOLON") or (first and kind in LINE_WORDS)):
            return self.unclosed(token)
        if kind in OPENERS:
            self.opener(token)
        elif kind in CLOSERS:
            return self.closer(token, end, first)
        elif kind == "KERNEL" and first and self.open:
            self.close_all(token)
        elif kind == "PIPELINE":
            self.pipeline = True
        self.tokens.append(token)
        return end

    def word(self, text: str, at: int) -> str:
        if not text.isascii():
            self.report(unknown_characters(text, self.span(at, at + len(text))))
            return "NAME"
        last = self.tokens[-1] if self.tokens else None
        if last is not None and last.type == "DOT":
            return "NAME"
        return self.keywords.get(text, "NAME")

    def touches(self, at: int) -> bool:
        last = self.tokens[-1] if self.tokens else None
        return (
            last is not None and last.type in ("NAME", "RSQB", "RPAR") and last.line == self.line and last.end == at - self.line_start + 1
        )

    def number(self, kind: str, at: int, end: int) -> int:
        text = self.text
        stop = end
        while stop < len(text) and (text[stop].isalnum() or text[stop] == "_"):
            stop += 1
        lone_point = text[stop : stop + 1] == "." and not re.match(r"[.\w]", text[stop + 1 : stop + 2])
        if stop > end or (lone_point and kind == "INT"):
            stop += lone_point
            self.report(malformed_number(text[at:stop], self.span(at, stop)))
        column = at - self.line_start + 1
        self.line_indent.setdefault(self.line, column)
        token = Token(kind, text[at:end], self.line, column)
        token.end = column + stop - at
        self.tokens.append(token)
        return stop

    # --- what is not Cake --------------------------------------------------------------------------------------

    def foreign(self, text: str, at: int) -> int | None:
        """Something of another language; None if it is Cake after all (`a[s].5` is left to the parser)."""
        line_end = self.text.find("\n", at)
        rest = self.text[at : len(self.text) if line_end < 0 else line_end]
        if text[0] == "." and self.touches(at):
            return None
        known: Foreign = foreign(text, rest, self.span(at, at + len(text)))
        self.report(known.diagnostic)
        if known.block_comment:
            close = self.text.find("*/", at)
            stop = at + len(rest) if close < 0 else close + 2
            for found in re.finditer("\n", self.text[at:stop]):
                self.newline(at + found.end())
            return stop
        self.line_indent.setdefault(self.line, at - self.line_start + 1)
        if known.becomes is not None:
            kind, replacement = known.becomes
            token = Token(kind, replacement, self.line, at - self.line_start + 1)
            token.end = token.column + known.length
            self.tokens.append(token)
        elif not known.comment:
            self.tokens.append(Token("ERROR", text, self.line, at - self.line_start + 1))
        return at + known.length

    def unknown(self, at: int) -> int:
        """A run of characters that mean nothing here."""
        if self.text.startswith("\\\n", at):  # the line was meant to go on
            self.report(unknown_characters("\\", self.span(at, at + 1)))
            self.line += 1
            self.line_start = at + 2
            return at + 2
        run = SYMBOLS.match(self.text, at)
        end = run.end() if run else at + 1
        self.report(unknown_characters(self.text[at:end], self.span(at, end)))
        self.tokens.append(Token("ERROR", self.text[at:end], self.line, at - self.line_start + 1))
        self.line_indent.setdefault(self.line, at - self.line_start + 1)
        return end

    def span(self, at: int, end: int) -> Span:
        return Span(self.file, self.line, at - self.line_start + 1, self.line, end - self.line_start + 1)

    def report(self, finding: Diagnostic) -> None:
        self.sink.add(finding)
        if len(self.sink.items) >= MAX_ERRORS:
            raise _Stop

    # --- brackets ------------------------------------------------------------------------------------------------

    def opener(self, token: Token) -> None:
        if len(self.open) >= MAX_NESTING:
            self.sink.error(
                "syntax/nesting",
                f"brackets nest more than {MAX_NESTING} deep",
                token.span(self.file),
                fix="give a part of it a name with 'let'" if token.type != "LBRACE" else None,
            )
            raise _Stop
        if token.type == "LBRACE" and self.pipeline:
            self.pipeline, token.rule = False, "pipeline"
        self.open.append(token)

    def closer(self, token: Token, end: int, first: bool) -> int:
        text = CLOSERS[token.type]
        if token.type == "RBRACE":
            self.brace(token, first)
        elif self.open and OPENERS[self.open[-1].type] == text:
            self.open.pop()
            self.tokens.append(token)
        else:
            depth = next((i for i in range(len(self.open) - 1, -1, -1) if OPENERS[self.open[i].type] in (text, "}")), -1)
            if depth >= 0 and OPENERS[self.open[depth].type] == text:
                while OPENERS[self.open[-1].type] != text:  # `f(a[i)`: the inner one was forgotten
                    self.missing(self.open.pop(), token)
                self.open.pop()
                self.tokens.append(token)
            elif self.brackets_open():  # `f(a]`: the wrong closer
                inner = self.open.pop()
                self.report(
                    Diagnostic(
                        "syntax/unmatched-bracket",
                        f"'{text}' closes no bracket: '{inner.text}' is open here",
                        token.span(self.file),
                        fix=f"write '{OPENERS[inner.type]}'",
                        related=(Related(f"'{inner.text}' opens here", inner.span(self.file)),),
                    )
                )
                mended = Token(CLOSER_TYPES[OPENERS[inner.type]], token.text, token.line, token.column)
                self.tokens.append(mended)
            else:
                self.report(Diagnostic("syntax/unmatched-bracket", f"'{text}' closes no bracket", token.span(self.file), fix="remove it"))
                self.tokens.append(Token("ERROR", text, token.line, token.column))
        return end

    def missing(self, opener: Token, at: Token) -> None:
        closer = OPENERS[opener.type]
        self.report(
            Diagnostic(
                "syntax/unclosed-bracket",
                f"'{opener.text}' is never closed",
                opener.span(self.file),
                fix=f"add '{closer}' before '{at.text}'",
            )
        )
        self.tokens.append(self.zero(CLOSER_TYPES[closer], closer, at))

    def zero(self, kind: str, text: str, at: Token) -> Token:
        """A token that the text does not hold, standing at `at`."""
        token = Token(kind, text, at.line, at.column)
        token.end = token.column
        return token

    def unclosed(self, found: Token | None) -> int:
        """A `(` or `[` is open where a statement begins or the text ends: the line that it stands on is ended instead.

        The position to read on from, which may be one that was read before."""
        outer = next(i for i, t in enumerate(self.open) if t.type != "LBRACE" and all(u.type != "LBRACE" for u in self.open[i:]))
        opener, inner = self.open[outer], self.open[outer:]
        del self.open[outer:]
        self.report(
            Diagnostic(
                "syntax/unclosed-bracket",
                f"'{opener.text}' is never closed",
                opener.span(self.file),
                fix=f"add '{OPENERS[opener.type]}'",
                related=() if found is None else (Related(f"'{found.text}' can not stand inside brackets", found.span(self.file)),),
            )
        )
        if found is not None and found.line == opener.line:  # `for (m, n in t {`: the line is read on
            self.tokens += [self.zero(CLOSER_TYPES[OPENERS[t.type]], OPENERS[t.type], found) for t in reversed(inner)]
            return self.line_start + found.column - 1
        while self.tokens and self.tokens[-1].line > opener.line:
            self.tokens.pop()
        self.tokens.append(Token("ERROR", "", opener.line, self.tokens[-1].end))
        while self.comments and self.comments[-1].line > opener.line:
            self.comments.pop()
        self.line_indent = {n: c for n, c in self.line_indent.items() if n <= opener.line}
        here = self.line_start
        for _ in range(self.line - opener.line):
            self.line_start = self.text.rfind("\n", 0, self.line_start - 1) + 1
        self.line = opener.line
        self.work -= here - self.line_start
        if self.work < 0:
            raise _Stop
        end = self.text.find("\n", self.line_start)
        return len(self.text) if end < 0 else end

    # --- braces --------------------------------------------------------------------------------------------------

    def brace(self, token: Token, first: bool) -> None:
        indent = self.line_indent[token.line]
        opener = self.open.pop() if self.open else None
        if opener is None:
            at = self.suspect_closer or token
            finding = Diagnostic("syntax/unmatched-bracket", "'}' closes no block", at.span(self.file), fix="remove it")
            self.report(finding)
            self.unmatched.append(finding)
            self.suspect_closer = None
        elif first and opener.line != token.line and self.line_indent.get(opener.line) != indent:
            if self.line_indent.get(opener.line, 0) > indent:
                self.suspect = self.suspect or opener
            else:
                self.suspect_closer = self.suspect_closer or token
        self.before_brace(opener, token)
        self.tokens.append(token)

    def before_brace(self, opener: Token | None, at: Token) -> None:
        """The separator that ends the last statement of a block, unless this `}` ends a list of names (`{ a, b }`)."""
        is_list = opener is not None and opener.rule == "pipeline"
        if self.tokens and self.tokens[-1].type not in ("_SEP", "LBRACE") and not is_list:
            self.tokens.append(self.zero("_SEP", "}", at))

    def close_all(self, at: Token) -> None:
        """`kernel` begins a line inside a block: the braces that are open were forgotten."""
        self.report(self.unclosed_brace(at))
        while self.open:
            self.before_brace(self.open.pop(), at)
            self.tokens.append(self.zero("RBRACE", "}", at))
        self.tokens.append(self.zero("_SEP", "\n", at))

    def unclosed_brace(self, at: Token | None) -> Diagnostic:
        opener = self.suspect or next(t for t in reversed(self.open) if t.type == "LBRACE")
        self.suspect = None
        related = () if at is None else (Related("a new kernel begins here", at.span(self.file)),)
        return Diagnostic("syntax/unclosed-bracket", "'{' is never closed", opener.span(self.file), fix="add '}'", related=related)

    def finish(self) -> None:
        end = Token("_END", "", self.line, max(len(self.text) - self.line_start + 1, 1))
        if self.open:
            self.report(self.unclosed_brace(None))
        self.separate("", self.line_start + end.column - 1)
        while self.open:
            opener = self.open.pop()
            if opener.type == "LBRACE":
                self.before_brace(opener, end)
            self.tokens.append(self.zero(CLOSER_TYPES[OPENERS[opener.type]], OPENERS[opener.type], end))
        self.separate("", self.line_start + end.column - 1)
        self.tokens.append(Token("$END", "", end.line, end.column))
