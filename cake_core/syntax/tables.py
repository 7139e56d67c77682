"""LALR(1) tables of a grammar such as `cake.lark`: computed by lark, kept beside it as `cake.tables.json`.

Reading the tables takes a few milliseconds, computing them a few hundred; so the file is part of the package and
carries the hash of the grammar that it belongs to. Where the hash differs (someone is editing the grammar) the tables are
computed in memory. `python -m cake_core.syntax.tables [GRAMMAR]` writes the file anew; a test compares the two.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from cake_core.frozen import frozen
from cake_core.sha256 import sha256

HERE = Path(__file__).parent
GRAMMAR = HERE / "cake.lark"
STORED = HERE / "cake.tables.json"


@frozen
class Rule:
    """A production: `length` symbols become one `origin`, built by the callback `build`.

    `plan` says which children the callback gets: i the i-th value, -1 - i the i-th value's items spliced in (helper
    rules of lists), None an optional part that is absent.
    """

    origin: str
    build: str
    length: int
    plan: tuple[int | None, ...]


@frozen
class Tables:
    """`actions[state][symbol]`: for a terminal >= 0 the state to shift to, < 0 the rule -1 - r to reduce; for a
    nonterminal the state to go to. `terminals`: name to pattern, `keywords`: text to terminal."""

    start: int
    accept: int
    actions: tuple[dict[str, int], ...]
    rules: tuple[Rule, ...]
    terminals: dict[str, str]
    keywords: dict[str, str]


def load(grammar: Path = GRAMMAR) -> Tables:
    """The tables of a grammar as it stands on disk."""
    digest = sha256(grammar.read_bytes()).hexdigest()
    try:
        stored = json.loads((STORED if grammar == GRAMMAR else stored_beside(grammar)).read_text())
        if stored["grammar"] == digest:
            return unpack(stored["tables"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return unpack(compute(grammar))


def stored_beside(grammar: Path) -> Path:
    return grammar.with_suffix(".tables.json")


def unpack(data: dict) -> Tables:
    rules = tuple(Rule(origin, build, length, tuple(plan)) for origin, build, length, plan in data["rules"])
    return Tables(data["start"], data["accept"], tuple(data["actions"]), rules, data["terminals"], data["keywords"])


def compute(grammar: Path = GRAMMAR) -> dict:
    """The tables as plain data, computed by lark. Raises lark's GrammarError for a faulty grammar."""
    import lark
    from lark.lexer import Lexer, PatternStr
    from lark.parsers.lalr_analysis import Shift

    class NoLexer(Lexer):
        def __init__(self, conf):
            pass

        def lex(self, state, parser_state):
            raise NotImplementedError

    parser = lark.Lark(grammar.read_text(), parser="lalr", lexer=NoLexer, maybe_placeholders=True)
    table = parser.parser.parser._parse_table
    numbers = {rule: i for i, rule in enumerate(parser.rules)}
    used = sorted({rule for row in table.states.values() for action, rule in row.values() if action is not Shift}, key=numbers.get)
    numbers = {rule: i for i, rule in enumerate(used)}
    start, accept = table.start_states["start"], table.end_states["start"]
    states = [start]  # numbered as they are reached: lark's own numbers differ from run to run
    for state in states:
        row = sorted(table.states[state].items())
        states += dict.fromkeys(arg for _, (action, arg) in row if action is Shift and arg not in states)
    at = {state: i for i, state in enumerate(states)}
    actions = [
        {name: at[arg] if action is Shift else -1 - numbers[arg] for name, (action, arg) in sorted(table.states[state].items())}
        for state in states
    ]
    terminals = {t.name: t.pattern.to_regexp() for t in parser.terminals}
    keywords = {t.pattern.value: t.name for t in parser.terminals if isinstance(t.pattern, PatternStr) and t.pattern.value.isalpha()}
    return {
        "start": at[start],
        "accept": at[accept],
        "actions": actions,
        "rules": [_rule(r) for r in used],
        "terminals": dict(sorted(terminals.items())),
        "keywords": dict(sorted(keywords.items())),
    }


def _rule(rule) -> list:
    """A lark rule as data: lark's own filtering of punctuation, splicing of `_` rules and placeholders of `[ ]`."""
    absent = _absent(rule)
    plan: list[int | None] = []
    for i, symbol in enumerate(rule.expansion):
        plan += [None] * absent[i]
        if symbol.is_term and symbol.filter_out and not rule.options.keep_all_tokens:
            continue
        plan.append(-1 - i if not symbol.is_term and symbol.name.startswith("_") else i)
    plan += [None] * absent[-1]
    build = rule.alias or rule.origin.name
    if rule.origin.name.startswith("_"):
        build = "_list"
    elif rule.options.expand1 and not rule.alias and len(plan) == 1:
        build = "_pass"
    return [str(rule.origin.name), str(build), len(rule.expansion), plan]


def _absent(rule) -> list[int]:
    """How many placeholders stand before each symbol, and behind the last."""
    empty = rule.options.empty_indices
    if not empty:
        return [0] * (len(rule.expansion) + 1)
    return [len(ones) for ones in "".join(str(int(e)) for e in empty).split("0")]


def main(grammar: Path = GRAMMAR) -> None:
    data = {"grammar": sha256(grammar.read_bytes()).hexdigest(), "tables": compute(grammar)}
    stored_beside(grammar).write_text(json.dumps(data, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
