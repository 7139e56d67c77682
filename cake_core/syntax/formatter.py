"""`cake fmt`: the canonical layout of a text, with its comments.

It works on tokens, each of which knows the production that took it, so it can lose neither a comment nor a token: two
spaces of indent, one statement a line, one blank between tokens but where `TIGHT` says none, at most one blank line
between statements and none at a block's ends. `a; b` becomes two lines. Brackets that the writer put for clarity stay.
Only a comma before a closing bracket goes. Formatting what the printer wrote changes nothing.
"""

from __future__ import annotations

from cake_core.ir.wrap import Note, wrap
from cake_core.source import Source
from cake_core.syntax.parser import parse_tokens
from cake_core.syntax.tokens import Comment, Token

#: No blank before these, whatever stands before.
TIGHT_BEFORE = frozenset("COMMA RPAR RSQB LSQB _CALL DOT".split())
#: No blank behind these.
TIGHT_AFTER = frozenset("LPAR _CALL LSQB DOT".split())
#: Productions whose `:` touches what stands before it (`name: type`); a choice's and a lone `:` do not.
TIGHT_COLON = frozenset("param decl pipeline role dim".split())


def format_text(source: Source) -> str:
    """The canonical text of `source`. Raises CakeError if it does not parse."""
    _, lexed = parse_tokens(source)
    return _Layout(lexed.tokens, lexed.comments).run()


def blank_between(before: Token, token: Token) -> bool:
    """Whether a blank stands between two neighbours of one line."""
    if token.type in TIGHT_BEFORE or before.type in TIGHT_AFTER:
        return False
    if token.type == "COLON" and token.rule in TIGHT_COLON:
        return False
    if token.type == "LPAR" and token.rule == "_list":  # the parameters of a kernel or an inline
        return False
    return not (before.type == "SUM" and before.rule == "unary")


class _Layout:
    def __init__(self, tokens: list[Token], comments: list[Comment]):
        self.tokens = tokens
        self.comments = comments
        self.out: list[str] = []
        self.indent = 0
        self.braces = 0
        self.brackets = 0
        self.parts: list[str] = []  # of the line at hand
        self.length = 0  # of the parts together
        self.notes: dict[int, list[Note]] = {}  # its comments inside brackets, by position
        self.behind = ""  # its trailing comment
        self.bare = False  # whether the last line written has no comment behind it
        self.fresh = True  # at the top of the text or of a block, where no blank line may stand
        self.last_line = 0  # the source line of what was written last

    def run(self) -> str:
        comments = iter(self.comments)
        comment = next(comments, None)
        before = None
        for i, token in enumerate(self.tokens):
            while comment is not None and comment.before == i:
                self.comment(comment, token)
                comment = next(comments, None)
            self.token(token, before)
            before = token
        return "\n".join(self.out) + "\n"

    def token(self, token: Token, before: Token | None) -> None:
        kind = token.type
        if kind in ("_SEP", "$END"):
            self.finish()
            return
        if token.rule == "block":
            self.brace(token)
        elif kind == "COMMA" and self.dropped(token):
            pass
        else:
            if not self.parts:
                self.blank_line(token.line)
            elif not (before.type == "COMMA" and self.parts[-1] != ",") and blank_between(before, token):
                self.add(" ")  # but not behind a comma that was dropped
            self.add(token.text)
            self.brackets += (kind in ("LPAR", "_CALL", "LSQB")) - (kind in ("RPAR", "RSQB"))
        self.last_line = token.line

    def add(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)

    def dropped(self, comma: Token) -> bool:
        """Whether a comma stands before a closing bracket for nothing."""
        return comma.rule != "single" and self.tokens[comma.index + 1].type in ("RPAR", "RSQB")

    def brace(self, token: Token) -> None:
        if token.type == "RBRACE":
            self.braces -= 1
            self.indent = 2 * self.braces
            self.add("}")
            self.fresh = False
            return
        if self.braces == 0:  # a kernel's brace has a line of its own
            self.finish()
            self.indent = 0
            self.add("{")
        else:
            self.add(" {")
        self.finish()
        self.braces += 1
        self.indent = 2 * self.braces
        self.fresh = True

    def blank_line(self, line: int) -> None:
        if line - self.last_line > 1 and not self.fresh:
            self.out.append("")
        self.fresh = False

    def finish(self) -> None:
        """Write the line at hand."""
        if not self.parts:
            return
        text = "".join(self.parts)
        self.out += wrap(text, self.indent, self.notes)
        if self.behind:
            self.out[-1] += f"  {self.behind}"
        if text.startswith("kernel ") and self.braces == 0:
            self.indent = 2  # of its clauses
        self.bare = not self.behind
        self.parts, self.length, self.notes, self.behind = [], 0, {}, ""

    def comment(self, comment: Comment, following: Token) -> None:
        if self.parts and self.brackets:
            at = self.length
            if following.type == "COMMA" and not self.dropped(following):
                at += 1  # the comma is pulled before the comment
            self.notes.setdefault(at, []).append(Note(comment.text, comment.own_line))
        elif self.parts:
            self.behind = comment.text
        elif not comment.own_line and self.bare:
            self.out[-1] += f"  {comment.text}"
            self.bare = False
        else:
            self.blank_line(comment.line)
            self.out.append(" " * self.indent + comment.text)
            self.bare = False
        self.last_line = comment.line
