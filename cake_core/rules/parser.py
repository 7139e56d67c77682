"""Text of an expression to nodes (`ast.py`), by the stored tables of `rules.lark`; lark itself is not needed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

from cake_core.diagnostics import fail
from cake_core.frozen import frozen
from cake_core.rules import ast
from cake_core.source import Span
from cake_core.syntax.tables import Tables, load

GRAMMAR = Path(__file__).parent / "rules.lark"
#: Longest text of one expression, and how deep it may nest: what is evaluated recursively must not choose the depth.
MAX_TEXT = 8000
MAX_NESTING = 60
MAX_DEPTH = 120
MAX_DIGITS = 18
COLUMN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*(?:\.[A-Za-z_][A-Za-z_0-9]*){1,4}")


@frozen
class Passage:
    """A text that stands inside a file. `place`: character offset to (line, column) there."""

    text: str
    file: str
    place: Callable[[int], tuple[int, int]]

    def span(self, start: int, end: int) -> Span:
        line, column = self.place(start)
        end_line, end_column = self.place(max(end - 1, start))
        return Span(self.file, line, column, end_line, end_column + 1)


def passage(text: str, file: str = "<rule>", line: int = 1, column: int = 1) -> Passage:
    """A text that stands at one place, its lines one under the other."""

    def place(at: int) -> tuple[int, int]:
        before = text[:at]
        row = before.count("\n")
        return line + row, (len(before) - before.rfind("\n") - 1) + (column if row == 0 else 1)

    return Passage(text, file, place)


@frozen
class Token:
    kind: str
    text: str
    start: int
    end: int


@cache
def _machine() -> tuple[Tables, re.Pattern, dict[str, str]]:
    tables = load(GRAMMAR)
    words = dict(tables.keywords)
    for name, pattern in tables.terminals.items():
        if re.fullmatch(r"\(\?:[a-z|]+\)", pattern):  # a terminal of several words
            words |= dict.fromkeys(pattern[3:-1].split("|"), name)
    fixed = [n for n in tables.terminals if n not in words.values() and n not in ("NAME", "INT", "STRING")]
    parts = [r"(?P<BLANK>\s+|#[^\n]*)", *(f"(?P<{n}>{tables.terminals[n]})" for n in ("NAME", "INT", "STRING", *sorted(fixed)))]
    return tables, re.compile("|".join(parts)), words


def parse(source: Passage) -> ast.Node:
    """The expression that `source` holds. Raises CakeError `rules/syntax`."""
    if len(source.text) > MAX_TEXT:
        raise fail(
            "rules/syntax",
            f"an expression has {len(source.text)} characters, {MAX_TEXT} are read",
            source.span(0, 1),
            fix="give parts of it names with 'define'",
        )
    return _column(source) or _Run(source).run()


def _column(source: Passage) -> ast.Node | None:
    """A column of a variable's fact, which is what most expressions in messages are, without the machine; None: it is something else."""
    if COLUMN.fullmatch(source.text) is None or source.text.partition(".")[0] in _machine()[2]:
        return None
    name, *columns = source.text.split(".")
    end = len(name)
    node: ast.Node = ast.Name(name, span=source.span(0, end))
    for column in columns:
        end += 1 + len(column)
        node = ast.Field(node, column, span=source.span(0, end))
    return node


def lex(source: Passage) -> list[Token]:
    _, pattern, words = _machine()
    out: list[Token] = []
    at, depth = 0, 0
    while at < len(source.text):
        found = pattern.match(source.text, at)
        if found is None:
            char = source.text[at]
            fix = "a text ends on its line, with the quote that it began with" if char in "'\"" else _MEANT.get(source.text[at : at + 2])
            raise fail("rules/syntax", f"'{char}' has no meaning in an expression", source.span(at, at + 1), fix=fix)
        kind, text, at = found.lastgroup, found.group(), found.end()
        if kind == "BLANK":
            continue
        if kind == "NAME" and not (out and out[-1].kind == "DOT"):
            kind = words.get(text, kind)
        depth += (kind in ("LPAR", "LSQB")) - (kind in ("RPAR", "RSQB"))
        out.append(Token(kind, text, found.start(), at))
        if depth > MAX_NESTING:
            raise fail("rules/syntax", f"brackets nest more than {MAX_NESTING} deep", source.span(found.start(), at))
    out.append(Token("$END", "", len(source.text.rstrip()), len(source.text.rstrip()) + 1))
    return out


_MEANT = {
    "= ": "write '==' to compare",
    "&&": "write 'and'",
    "||": "write 'or'",
    "!": "write 'not'",
    "=>": "write implies(a, b)",
    "->": "write implies(a, b)",
}


class _Run:
    """One run: three stacks in step."""

    def __init__(self, source: Passage):
        self.source = source
        self.tables = _machine()[0]
        self.states = [self.tables.start]
        self.values: list = []
        self.places: list[tuple[int, int]] = []
        self.depths: list[int] = []  # of the nodes, one under the other: what reads them is recursive

    def run(self) -> ast.Node:
        for token in lex(self.source):
            before = list(self.states)
            while (action := self.tables.actions[self.states[-1]].get(token.kind)) is not None and action < 0:
                self.reduce(self.tables.rules[-1 - action])
            if action is not None:
                self.states.append(action)
                self.values.append(token)
                self.places.append((token.start, token.end))
                self.depths.append(0)
            elif not (token.kind == "$END" and self.states[-1] == self.tables.accept):
                raise self.unexpected(token, before)
        return self.values[-1]

    def reduce(self, rule) -> None:
        n = rule.length
        if n == 1 and rule.build == "_pass":  # most of them: a part that stands for itself
            self.states[-1] = self.tables.actions[self.states[-2]][rule.origin]
            return
        kids = self.values[-n:]
        place = (self.places[-n][0], self.places[-1][1])
        depth = max(self.depths[-n:]) + (rule.build != "_pass")
        if depth > MAX_DEPTH:
            raise fail(
                "rules/syntax",
                f"the expression nests more than {MAX_DEPTH} deep",
                self.source.span(*place),
                fix="give parts of it names with 'define'",
            )
        del self.values[-n:], self.places[-n:], self.states[-n:], self.depths[-n:]
        if rule.build == "_pass":
            value = kids[rule.plan[0]]
        else:
            picked: list = []
            for i in rule.plan:
                if i is None:
                    picked.append(None)
                elif i >= 0:
                    picked.append(kids[i])
                else:
                    picked += kids[-1 - i]
            value = picked if rule.build in ("_list", "items") else _BUILD[rule.build](picked, self.source.span(*place))
        self.values.append(value)
        self.places.append(place)
        self.depths.append(depth)
        self.states.append(self.tables.actions[self.states[-1]][rule.origin])

    def unexpected(self, token: Token, states: list[int]):
        at = self.source.span(token.start, token.end)
        if token.kind == "$END":
            return fail("rules/syntax", "the expression ends too early", at)
        fix = None
        if token.text == "=" or token.kind == "COMPARE":
            fix = "comparisons do not chain: join two with 'and'"
        elif token.kind == "NAME" and (hint := _MEANT.get(token.text)):
            fix = hint
        return fail("rules/syntax", f"'{token.text}' can not stand here", at, fix=fix)


def _text(t: Token) -> str:
    return t.text


def _number(text: str, span: Span) -> int:
    if len(text) > MAX_DIGITS:
        raise fail("rules/syntax", f"a number has {len(text)} digits, {MAX_DIGITS} are read", span)
    return int(text)


_BUILD: dict[str, Callable] = {
    "start": lambda k, s: k[0],
    "name": lambda k, s: ast.Name(k[0].text, span=s),
    "int": lambda k, s: ast.Literal(_number(k[0].text, s), span=s),
    "string": lambda k, s: ast.Literal(k[0].text[1:-1], span=s),
    "true": lambda k, s: ast.Literal(True, span=s),
    "false": lambda k, s: ast.Literal(False, span=s),
    "none": lambda k, s: ast.Literal(None, span=s),
    "paren": lambda k, s: replace(k[0], span=s),
    "listed": lambda k, s: ast.Listed(tuple(k[0] or ()), span=s),
    "field": lambda k, s: ast.Field(k[0], k[1].text, span=s),
    "call": lambda k, s: ast.Call(k[0].text, tuple(k[1] or ()), span=s),
    "count": lambda k, s: ast.Count(k[0], span=s),
    "over": lambda k, s: ast.Over(k[0].text, k[1].text, k[2], s),
    "fold": lambda k, s: ast.Fold(k[0].text, k[1], k[2], span=s),
    "fold_call": lambda k, s: ast.Call(k[0].text, tuple(k[1]), span=s),
    "quantified": lambda k, s: ast.Quantified(k[0].text, k[1], k[2], span=s),
    "choice": lambda k, s: ast.Choice(*k, span=s),
    "binary": lambda k, s: ast.Binary(k[1].text, k[0], k[2], span=s),
    "unary": lambda k, s: ast.Unary(k[0].text, k[1], span=s),
    "member": lambda k, s: ast.Member(*k, span=s),
}
