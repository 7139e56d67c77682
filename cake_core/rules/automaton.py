"""Regular expressions over names of events, as automata: `alloc (read | write)* dealloc`."""

from __future__ import annotations

import re
from functools import lru_cache

from cake_core.diagnostics import fail
from cake_core.frozen import frozen
from cake_core.rules.parser import Passage, passage
from cake_core.source import Span

TOKEN = re.compile(r"\s*(?:(?P<name>[A-Za-z_]\w*)|(?P<mark>[()|*+?]))")
MAX_STATES = 64
#: Of an expression: its names and marks, and its parts when every `a+` is written as `a a*`. Of making the automaton: derivatives that are taken.
MAX_TOKENS = 200
MAX_PARTS = 400
MAX_STEPS = 20_000


@frozen
class Automaton:
    """Deterministic. State 0 is the first; `steps[state]` by name of an event; `accepting`: states in which a way may end."""

    steps: tuple[dict[str, int], ...]
    accepting: frozenset[int]

    def expected(self, state: int) -> str:
        """What may come in a state, for a person."""
        words = sorted(self.steps[state]) + (["the end"] if state in self.accepting else [])
        return ", ".join(words) if len(words) < 2 else f"{', '.join(words[:-1])} or {words[-1]}"


@lru_cache(maxsize=256)
def automaton(text: str) -> Automaton:
    return compiled(passage(text), None)


def compiled(source: Passage, names: tuple[str, ...] | None) -> Automaton:
    """The automaton of an expression. `names`: the events there are. Raises CakeError `rules/automaton`."""
    tokens: list[tuple[str, int, int]] = []
    at, text = 0, source.text.rstrip()
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            raise fail(
                "rules/automaton",
                f"'{text[at:].strip()[0]}' has no meaning in an automaton",
                source.span(at, at + 1),
                fix="names, blanks, | * + ? and brackets",
            )
        word = found.group("name") or found.group("mark")
        if found.group("name") and names is not None and word not in names:
            raise fail(
                "rules/automaton",
                f"no event is called '{word}'",
                source.span(found.end() - len(word), found.end()),
                fix=f"there are {', '.join(names)}" if names else "name it under 'events'",
            )
        tokens.append((word, found.end() - len(word), found.end()))
        if len(tokens) > MAX_TOKENS:
            raise fail("rules/automaton", f"an automaton has more than {MAX_TOKENS} names and marks", source.span(0, at), fix="make several rules of it")
        at = found.end()
    reader = _Reader(source, tokens)
    tree = reader.alternatives()
    if reader.at < len(tokens):
        raise reader.wrong("can not stand here")
    return _determined(tree, source.span(0, len(text)))


class _Reader:
    """Trees: a name; ("then", a, b), ("or", a, b), ("many", a), ("nothing",)."""

    def __init__(self, source: Passage, tokens):
        self.source, self.tokens, self.at = source, tokens, 0
        self.parts = 0  # that were read so far, those of what `+` repeats twice

    def peek(self) -> str | None:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else None

    def wrong(self, what: str):
        word, start, end = self.tokens[self.at] if self.at < len(self.tokens) else ("the end", len(self.source.text) - 1, len(self.source.text))
        return fail("rules/automaton", f"'{word}' {what}", self.source.span(max(start, 0), end))

    def alternatives(self, depth: int = 0):
        if depth > 30:
            raise self.wrong("nests too deep")
        tree = self.chain(depth)
        while self.peek() == "|":
            self.at += 1
            tree = ("or", tree, self.chain(depth))
        return tree

    def chain(self, depth: int):
        parts = []
        while self.peek() is not None and self.peek() not in ("|", ")"):
            parts.append(self.repeated(depth))
        if not parts:
            raise self.wrong("can not stand here: an event is missing")
        tree = parts[-1]
        for p in reversed(parts[:-1]):
            tree = ("then", p, tree)
        return tree

    def repeated(self, depth: int):
        word, before = self.peek(), self.parts
        self.parts += 1
        if word == "(":
            self.at += 1
            tree = self.alternatives(depth + 1)
            if self.peek() != ")":
                raise self.wrong("stands where ')' is missing")
            self.at += 1
        elif word in ("*", "+", "?"):
            raise self.wrong("repeats nothing")
        else:
            self.at += 1
            tree = word
        while self.peek() in ("*", "+", "?"):
            mark = self.tokens[self.at][0]
            self.parts += self.parts - before + 1 if mark == "+" else 1
            if self.parts > MAX_PARTS:
                raise self.wrong(f"makes more than {MAX_PARTS} parts of it: `a+` is `a a*`")
            self.at += 1
            tree = ("many", tree) if mark == "*" else ("then", tree, ("many", tree)) if mark == "+" else ("or", tree, ("nothing",))
        return tree


def _determined(tree, at: Span) -> Automaton:
    """By derivatives: a state is what may still come."""
    alphabet = sorted(_names(tree))
    numbers = {tree: 0}
    order = [tree]
    steps: list[dict[str, int]] = []
    derive = _Derivatives(at)
    for t in order:
        row = {}
        for name in alphabet:
            after = derive.after(t, name)
            if after is not None:
                if after not in numbers:
                    if len(order) >= MAX_STATES:
                        raise fail(
                            "rules/automaton",
                            f"the automaton has more than {MAX_STATES} states",
                            at,
                            fix="repeat with '*' instead of writing it out, or make two rules of it",
                        )
                    numbers[after] = len(order)
                    order.append(after)
                row[name] = numbers[after]
        steps.append(row)
    return Automaton(tuple(steps), frozenset(n for t, n in numbers.items() if _may_end(t)))


def _names(t) -> set[str]:
    return {t} if isinstance(t, str) else {n for part in t[1:] for n in _names(part)}


def _may_end(t) -> bool:
    match t:
        case ("nothing",) | ("many", _):
            return True
        case ("then", a, b):
            return _may_end(a) and _may_end(b)
        case ("or", a, b):
            return _may_end(a) or _may_end(b)
    return False


class _Derivatives:
    """Takes them, and counts."""

    def __init__(self, at: Span):
        self.at, self.steps = at, 0

    def after(self, t, name: str):
        """What may come behind `name`; None: it may not come. Raises CakeError where it takes too much."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise fail("rules/automaton", f"the automaton takes more than {MAX_STEPS} steps to make", self.at, fix="make several rules of it")
        match t:
            case str():
                return ("nothing",) if t == name else None
            case ("nothing",):
                return None
            case ("many", a):
                return _then(self.after(a, name), t)
            case ("or", a, b):
                return _or(self.after(a, name), self.after(b, name))
            case ("then", a, b):
                first = _then(self.after(a, name), b)
                return _or(first, self.after(b, name)) if _may_end(a) else first


def _then(a, b):
    return None if a is None else b if a == ("nothing",) else ("then", a, b)


def _or(a, b):
    if a is None or b is None or a == b:
        return a if b is None else b
    alternatives = sorted({*_flat(a), *_flat(b)}, key=repr)
    tree = alternatives[-1]
    for t in reversed(alternatives[:-1]):
        tree = ("or", t, tree)
    return tree


def _flat(t):
    return (*_flat(t[1]), *_flat(t[2])) if isinstance(t, tuple) and t[0] == "or" else (t,)
