"""The parser: lark's LALR(1) tables, driven here so that one run finds several errors and spans cost nothing.

On an error the parser reports what it expected, drops the statement at hand, and goes on with the next one: the
stack is cut back to the innermost list of statements, clauses or kernels, and tokens are passed over up to a
separator. A block whose header was wrong is still read, as if it were a `group`.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cache

from cake_core.diagnostics.model import CakeError, Diagnostic
from cake_core.ir.nodes import Program
from cake_core.source import Source, Span
from cake_core.syntax import errors
from cake_core.syntax.intake import check_text, check_version
from cake_core.syntax.lexer import LINE_WORDS, MAX_ERRORS, Lexer
from cake_core.syntax.tables import Rule, Tables, load
from cake_core.syntax.tokens import Lexed, Token
from cake_core.syntax.tree import TooDeep, Tree

#: Statements with a block.
BLOCK_WORDS = frozenset("FOR GROUP IF INLINE ROLE WHILE".split())
#: Highest stack: what brackets, blocks and chains within their own limits need at most.
MAX_STACK = 2000


def parse(source: Source) -> Program:
    """The program that `source` holds. Raises CakeError with up to 20 findings, in the order of the text."""
    return parse_tokens(source)[0]


def parse_tokens(source: Source) -> tuple[Program, Lexed]:
    """`parse`, and the tokens with the production of each: what the formatter works on."""
    check_text(source)
    tables, lexer = _machine()
    lexed = lexer.lex(source)
    if not lexed.given_up:
        check_version(lexed.tokens, source.name, lexed.sink)
    if lexed.given_up or len(lexed.sink.items) >= MAX_ERRORS:
        raise CakeError(*_in_order(lexed))
    program = _Parser(tables, source, lexed).run()
    if lexed.sink.items:
        raise CakeError(*_in_order(lexed))
    return program, lexed


def lexed(source: Source) -> Lexed:
    """The tokens and comments of a text that was parsed before."""
    return _machine()[1].lex(source)


def reserved_words() -> frozenset[str]:
    """The words that can not be names."""
    return frozenset(_machine()[0].keywords)


@cache
def _machine() -> tuple[Tables, Lexer]:
    tables = load()
    return tables, Lexer(tables)


#: Findings that one slip can cause several of: a statement keeps the first.
SLIPS = frozenset("unexpected-token unclosed-bracket unmatched-bracket arrow else chained-comparison unknown-keyword reserved-word".split())


def _in_order(lexed: Lexed) -> list[Diagnostic]:
    """The findings as they stand in the text, without those that follow from another in the same statement."""
    ends = [(t.line, t.column) for t in lexed.tokens if t.type in ("_SEP", "LBRACE", "RBRACE")]
    kept: list[Diagnostic] = []
    slipped: set[int] = set()
    for finding in sorted(lexed.sink.items, key=lambda d: (d.span.line, d.span.column)):
        if finding.code.removeprefix("syntax/") in SLIPS:
            statement = bisect_left(ends, (finding.span.line, finding.span.column))
            if statement in slipped:
                continue
            slipped.add(statement)
        kept.append(finding)
    return kept[:MAX_ERRORS]


class _Parser:
    """One run. Three stacks in step: states, values, and the first and last places of each value."""

    def __init__(self, tables: Tables, source: Source, lexed: Lexed):
        self.tables = tables
        self.actions = tables.actions
        self.file = source.name
        self.lexed = lexed
        self.sink = lexed.sink
        self.tokens = lexed.tokens
        self.tree = Tree(source.name, self.tokens, self.sink)
        self.states = [tables.start]
        self.values: list = []
        self.spans: list[tuple[int, int, int, int]] = []
        self.unreduced: list[int] = []
        self.failed = False

    def run(self) -> Program | None:
        """The program; None after an error."""
        try:
            return self.loop()
        except TooDeep:
            return None

    def loop(self) -> Program | None:
        at = 0
        while True:
            token = self.tokens[at]
            if self.feed(token):
                if token.type == "$END":
                    return self.values[-1]
                at += 1
                continue
            at = self.recover(at)
            if at < 0 or len(self.sink.items) >= MAX_ERRORS:
                return None

    def feed(self, token: Token) -> bool:
        """Reduce and shift `token`; False if it can not stand here."""
        actions, states, kind, rules = self.actions, self.states, token.type, self.tables.rules
        reduced = False
        while True:
            action = actions[states[-1]].get(kind)
            if action is None:
                if not reduced:
                    self.unreduced = list(states)
                return kind == "$END" and states[-1] == self.tables.accept
            if action >= 0:
                states.append(action)
                if len(states) > MAX_STACK:
                    self.sink.error("syntax/nesting", "expressions or blocks nest too deep", token.span(self.file))
                    raise TooDeep
                self.values.append(token)
                self.spans.append((token.line, token.column, token.line, token.end))
                return True
            if not reduced:
                # What could stand here is asked of the stack as it was: a table reduces before it sees an error.
                self.unreduced, reduced = list(states), True
            rule = rules[-1 - action]
            if rule.build == "_pass" and rule.length == 1:  # of an expression's many levels most do nothing
                states[-1] = actions[states[-2]][rule.origin]
            else:
                self.reduce(rule)

    def reduce(self, rule: Rule) -> None:
        length = rule.length
        values, spans = self.values, self.spans
        if length:
            kids = values[-length:]
            place = spans[-length][:2] + spans[-1][2:]
            del values[-length:], spans[-length:], self.states[-length:]
        else:
            kids = []
            place = spans[-1][2:] * 2
        build = rule.build
        if build == "_pass":
            value = kids[rule.plan[0]]
        else:
            for kid in kids:
                if type(kid) is Token:
                    kid.rule = build
            plan = rule.plan
            # A list grows in place: copying it for each item would take quadratic time.
            grows = build == "_list" and plan[:1] == (-1,)
            picked = kids[0] if grows else []
            for i in plan[1:] if grows else plan:
                if i is None:
                    picked.append(None)
                elif i >= 0:
                    picked.append(kids[i])
                else:
                    picked += kids[-1 - i]
            value = picked if build == "_list" else self.tree.build[build](picked, Span(self.file, *place))
        values.append(value)
        spans.append(place)
        self.states.append(self.actions[self.states[-1]][rule.origin])

    # --- errors --------------------------------------------------------------------------------------------------

    def acceptable(self) -> set[str]:
        """Terminals that could stand where the token that `feed` refused stands."""
        row = self.actions[self.unreduced[-1]]
        return {kind for kind in row if (kind.isupper() or kind in ("_SEP", "_CALL", "$END")) and self.shifts(kind)}

    def shifts(self, kind: str) -> bool:
        states = list(self.unreduced)
        while True:
            action = self.actions[states[-1]].get(kind)
            if action is None or action >= 0:
                return action is not None
            rule = self.tables.rules[-1 - action]
            if rule.length:
                del states[-rule.length :]
            states.append(self.actions[states[-1]][rule.origin])

    def recover(self, at: int) -> int:
        """Report the error at token `at` and cut back; the position to go on from, -1 to stop."""
        token = self.tokens[at]
        acceptable = self.acceptable()
        level = self.cut_back()
        if token.type != "ERROR" and not self.excused(token, level):
            self.sink.add(errors.explain(self.tokens, at, acceptable, self.file))
        self.failed = True
        if "LBRACE" in acceptable and self.lexed.unmatched and self.open_block(at, level):
            return at + (token.type == "_SEP")
        if level == "stmt":
            return self.next_statement(at)
        if level == "clause":
            return self.next_clause(at)
        return self.next_kernel(at)

    def excused(self, token: Token, level: str) -> bool:
        """Whether an earlier finding explains this error already."""
        if token.type == "ELSE" and self.failed:  # most often the `if` was at fault
            return True
        return bool(self.sink.items) and (token.type == "$END" or (level == "kernel" and bool(self.lexed.unmatched)))

    def cut_back(self) -> str:
        """Drop what was begun: back to a state in which a statement, a clause or a kernel may begin."""
        while (action := self.actions[self.states[-1]].get("KERNEL", 0)) < 0:  # a kernel that is whole is kept
            self.reduce(self.tables.rules[-1 - action])
        while True:
            row = self.actions[self.states[-1]]
            if "stmt" in row and "RBRACE" in row:
                return "stmt"
            if "block" in row and row.get("_SEP", -1) >= 0:
                return "clause"
            if len(self.states) == 1 or ("kernel" in row and "KERNEL" in row):
                return "kernel"
            self.states.pop()
            self.values.pop()
            self.spans.pop()

    def open_block(self, at: int, level: str) -> bool:
        """A block's `{` is missing, and a `}` is left over: they belong together, so one finding is enough."""
        token = self.tokens[at]
        head = self.tokens[errors.statement_start(self.tokens, at)]
        if level == "kernel" or (level == "stmt" and head.type not in BLOCK_WORDS):
            return False
        if level == "clause" and token.type not in LINE_WORDS:
            return False
        self.sink.items.remove(self.lexed.unmatched.pop())
        for kind in ("GROUP", "LBRACE") if level == "stmt" else ("LBRACE",):
            self.feed(Token(kind, "", token.line, token.column))
        return True

    def next_statement(self, at: int) -> int:
        tokens = self.tokens
        while tokens[at].type not in ("_SEP", "$END"):
            token = tokens[at]
            if token.type == "LBRACE" and token.rule != "pipeline":
                close = self.matching(at)
                if tokens[close + 1].type == "FROM":  # the buffers of a misspelt pipeline
                    at = close + 1
                    continue
                self.feed(Token("GROUP", "", token.line, token.column))
                return at
            at += 1
        return at + 1 if tokens[at].type == "_SEP" else -1

    def matching(self, at: int) -> int:
        """The `}` that closes the `{` at `at`: the lexer has made sure that there is one."""
        depth = 0
        while True:
            kind = self.tokens[at].type
            depth += (kind == "LBRACE") - (kind == "RBRACE")
            if depth == 0 or kind == "$END":
                return min(at, len(self.tokens) - 2)
            at += 1

    def next_clause(self, at: int) -> int:
        tokens = self.tokens
        while tokens[at].type not in ("_SEP", "LBRACE", "$END"):
            at += 1
        return -1 if tokens[at].type == "$END" else at

    def next_kernel(self, at: int) -> int:
        """A kernel with a faulty header is read on, as if it had no parameters; otherwise the next one is sought."""
        tokens = self.tokens
        first = errors.statement_start(tokens, at)
        if tokens[first].type == "KERNEL" or (at == first and errors.misspelt(tokens[at].text, ("kernel",))):
            line, column = tokens[first].line, tokens[first].column
            if all(self.feed(Token(kind, kind.lower(), line, column)) for kind in ("KERNEL", "NAME", "LPAR", "RPAR")):
                return self.next_clause(at)
        at = max(at, min(first + 1, len(tokens) - 1))
        while tokens[at].type not in ("KERNEL", "$END"):
            at += 1
        return -1 if tokens[at].type == "$END" else at
