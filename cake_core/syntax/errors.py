"""What the parser says: expectations in words, and a fix where one can be guessed.

Tables stand before code: how a set of acceptable terminals is put into words, what a pair of an expected and a
found token betrays.
"""

from __future__ import annotations

from cake_core.diagnostics.model import Diagnostic
from cake_core.diagnostics.near import get_close_matches
from cake_core.frozen import frozen
from cake_core.source import Span
from cake_core.syntax.tokens import Token

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
    (frozenset("NAME IN".split()), "a type"),
)


#: What each phrase stands for.
HELD = {"a statement": STATEMENT, "a clause": CLAUSE | {"NAME"}, "an expression": EXPRESSION, "a type": frozenset({"NAME", "IN"})}

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
    if {"INT", "_SEP"} <= left and "RBRACE" not in left:  # behind the name of an operation, or of a word
        return "an operand or the end of the line"
    if "INT" not in left and left & {"LBRACE", "_SEP"}:  # a name here would be a word or a flag, which need not come
        left -= {"NAME", "ARROW", "ADD_TO"}
    for members, phrase in PHRASES:
        if members <= left:
            words.append(phrase)
            left -= HELD[phrase]
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

STATEMENT_WORDS = ("let", "var", "tiles", "pipeline", "turn", "role", "inline", "for", "while", "group", "if", "else")
CLAUSE_WORDS = ("const", "require", "assume", "target", "cluster")

#: Words of other languages at the start of a statement, and Cake's.
OTHER_WORDS = {
    "def": "kernel", "fn": "kernel", "func": "kernel", "function": "kernel", "elif": "else if", "elseif": "else if", "loop": "while",
    "foreach": "for", "requires": "require", "int": "var", "float": "var", "auto": "let", "constexpr": "const", "mut": "var",
}  # fmt: skip


def misspelt(text: str, words: tuple[str, ...]) -> str | None:
    """The word that `text` may be meant for."""
    other = OTHER_WORDS.get(text)
    if other is not None and other.split()[0] in words:
        return other
    if text in words or len(text) > 20:
        return None
    turned = next((w for w in words if sorted(w) == sorted(text)), None)
    return turned or next(iter(get_close_matches(text, words, 1, 0.7)), None)


def statement_start(tokens: list[Token], at: int) -> int:
    """The first token of the statement that token `at` stands in."""
    while at > 0 and tokens[at - 1].type not in ("_SEP", "LBRACE", "RBRACE"):
        at -= 1
    return at


def explain(tokens: list[Token], at: int, acceptable: set[str], file: str) -> Diagnostic:
    """The finding for token `at`, where only `acceptable` terminals may stand."""
    token = tokens[at]
    start = statement_start(tokens, at)
    if tokens[start].type == "LABEL" and start < at:
        start += 1
    case = Case(tokens, at, start, acceptable, token.span(file), file)
    for guess in GUESSES:
        finding = guess(case)
        if finding is not None:
            return finding
    return Diagnostic("syntax/unexpected-token", case.message, case.span)


@frozen
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
    def words(self) -> tuple[str, ...]:
        """The words that a line may begin with where the statement stands."""
        for token in reversed(self.tokens[: self.start]):
            if token.type == "KERNEL":
                return CLAUSE_WORDS
            if token.type == "LBRACE":
                return STATEMENT_WORDS
        return ("kernel",)

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
    if c.token.type != "ARROW" or "INT" in c.acceptable or c.tokens[c.at + 1].type not in ("INT", "FLOAT", "NAME", "INF"):
        return None
    if c.tokens[c.at + 1].column != c.token.end:
        return None
    return c.say("to compare with a negative number, write a blank: '< -'", "arrow", "'<-' moves data and is no comparison")


def _word_fix(c: Case) -> Diagnostic | None:
    """The statement begins with a word that is nearly a keyword."""
    if c.head.type != "NAME":
        return None
    meant = misspelt(c.head.text, c.words)
    if meant is None or c.tokens[c.start + 1].type in ("EQUAL", "DOT", "ADD_TO"):
        return None
    return c.say(f"did you mean '{meant}'", "unknown-keyword", f"'{c.head.text}' is no keyword", c.head.span(c.file))


def _else(c: Case) -> Diagnostic | None:
    if c.token.type != "ELSE":
        return None
    previous = c.tokens[c.at - 2].type if c.at > 1 else ""
    fix = "write '} else {' on one line" if previous == "RBRACE" else None
    return c.say(fix, "else", "'else' follows no 'if'")


def _reserved(c: Case) -> Diagnostic | None:
    if "NAME" not in c.acceptable or not c.token.text.isalpha() or c.token.type in ("NAME", "_SEP"):
        return None
    if c.at == c.start or (c.before.type == "_SEP"):
        return None
    if c.token.type == "NOT":
        return c.say("put it in brackets: '(not ...)'")
    if c.token.type == "IF" and "INT" in c.acceptable:
        return c.say("a choice is 'test ? this : that'")
    if c.token.type in ("AND", "OR") and "INT" in c.acceptable:
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
    if c.token.type == "_SEP" or (c.before is not None and c.token.type in ("NAME", *STATEMENT)):
        return c.say("add '{'")
    if c.at == c.start and c.token.type in STATEMENT:  # of a kernel's body
        return c.say("add '{'")
    return None


def _operand(c: Case) -> Diagnostic | None:
    """`i++`, `x += 1`."""
    if c.token.type == "ADD_TO" and c.head.type == "NAME" and "INT" in c.acceptable:
        name = "".join(t.text for t in c.tokens[c.start : c.at])
        return c.say(f"write '{name} = {name} + ...'", "unknown-operator", "'+=' adds to an operand of an operation, not to a name")
    if c.at > 0 and c.tokens[c.at - 1].type == "LABEL" and c.token.type == "_SEP":
        return c.say("a label stands on the line of its statement")
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
    if c.head.type == "FOR" and c.token.type in ("TO", "COMMA", "COLON") and "RANGE" in c.acceptable:
        return c.say("a range is 'from .. to'")
    return None


def _call(c: Case) -> Diagnostic | None:
    if c.token.type == "LPAR" and "_CALL" in c.acceptable and c.before is not None and c.before.type == "NAME":
        return c.say(f"a call touches its bracket: '{c.before.text}('")
    return None


def _new_line(c: Case) -> Diagnostic | None:
    if c.token.type != "_SEP" and "INT" not in c.acceptable and expectation(c.acceptable) == "the end of the line":
        return c.say("begin a new line")
    return None


def _declaration(c: Case) -> Diagnostic | None:
    """`shared a f32[2]`."""
    words = [t.type for t in c.tokens[c.start : c.at]]
    if c.token.type == "LSQB" and words == ["NAME"] * 3:
        space, name, declared = (t.text for t in c.tokens[c.start : c.at])
        return c.say(f"a declaration is '{space} {name}: {declared}[...]'")
    return None


def _role(c: Case) -> Diagnostic | None:
    """A role or declaration outside a kernel's body, most often behind a `}` too many."""
    if "KERNEL" not in c.acceptable or c.token.type == "NAME":
        return None
    return c.say(None, message=f"expected 'kernel', found {found(c.token)}")


GUESSES = (_chained, _word_fix, _arrow, _else, _condition, _range, _brace, _operand, _reserved, _call, _declaration, _role, _new_line)
