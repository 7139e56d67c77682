"""Edits that make a text smaller: taken out, unwrapped, shortened lists and words, smaller numbers, parameters made constants.

Each is a guess about text alone. Whether what comes out is still a kernel, and still goes wrong, the oracle says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cake_core.reduce.pair import BOTH, GOOD, Pair

NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
#: A definition of a number: what it is made of may be forgotten.
LET = re.compile(r"(\s*(?:let|var) .*?= )(\w+\(.*\)|[^,]+ [-+*/%] [^,]+)$")
NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
FOR = re.compile(r"\s*for (\w+) in (.+?) \.\. ")
SCALAR = re.compile(r"(\w+): [iu]\d+")
#: What may stand last on a line and be left out: one word, or a word and its value.
LAST = re.compile(r" \w+(?: (?:= )?[^\s{]+)?(?= \{$|$)")
MOST_LAST = 3
#: Constants that a parameter becomes.
CONSTANTS = (1, 2, 4, 64)


def forgotten(pair: Pair) -> Iterator[Pair]:
    """Each name, with all that mentions it."""
    names = dict.fromkeys(n for line in pair.lines if line.side == BOTH for n in NAME.findall(line.text))
    units = [unit for _, unit in pair.units()]
    for name in names:
        word = re.compile(rf"(?<![\w.]){name}(?!\w)")
        told = [i for i, line in enumerate(pair.lines) if word.search(line.text)]
        if any(pair.lines[i].side != BOTH for i in told):
            continue
        gone = {i for unit in units if min(unit) in told for i in unit}
        if len(told) > 1 and gone >= set(told):
            yield pair.without(gone)


def unwrapped(pair: Pair) -> Iterator[Pair]:
    """Each block without what stands around its body: a loop's index becomes its first value; of a branch either arm is left."""
    for i, line in enumerate(pair.lines):
        text = line.text.strip()
        if line.side != BOTH or not text.endswith("{") or text == "{" or text.startswith("}"):
            continue
        end = pair.end(i)
        middle = [j for j in range(i + 1, end) if _depth(pair, i, j) == 1 and pair.lines[j].text.strip() == "} else {"]
        if middle:
            yield pair.without({i, *range(middle[0], end + 1)})
            yield pair.without({*range(i, middle[0] + 1), end})
        elif found := FOR.match(line.text):
            yield pair.instead({i: f"let {found.group(1)} = {found.group(2)}"}).without({end})
            yield pair.without({i, end})
        else:
            yield pair.without({i, end})


def _depth(pair: Pair, start: int, end: int) -> int:
    depth = 0
    for j in range(start, end):
        if pair.lines[j].side != GOOD:
            depth += pair.lines[j].text.strip().endswith("{") - pair.lines[j].text.strip().startswith("}")
    return depth


def shortened(pair: Pair) -> Iterator[Pair]:
    """Each line without one element of a list, without the index behind a name, or without its last words."""
    for i, line in enumerate(pair.lines):
        if line.side == BOTH:
            for text in _shorter(line.text):
                yield pair.instead({i: text})


def _shorter(text: str) -> Iterator[str]:
    for start, end in _elements(text):
        yield text[:start] + text[end:]
    for found in re.finditer(r"\[\d+\](?=[:\[ ])", text):
        yield text[: found.start()] + text[found.end() :]
    if (found := LET.match(text)) is not None:
        yield from (f"{found.group(1)}{value}" for value in (0, 1))
    rest = text
    for _ in range(MOST_LAST):
        if (found := LAST.search(rest)) is None or found.start() <= len(text) - len(text.lstrip()):
            break
        rest = rest[: found.start()] + rest[found.end() :]
        yield rest


def _elements(text: str) -> Iterator[tuple[int, int]]:
    """Where the elements of comma-separated lists stand, each with one comma; last ones first, of all brackets and outside of them."""
    commas: dict[int, list[list[int]]] = {}
    open_: list[int] = []
    groups: list[list[int]] = [[]]
    for at, c in enumerate(text):
        if c in "([":
            open_.append(at)
            groups.append([at])
        elif c in ")]" and len(groups) > 1:
            commas.setdefault(len(groups), []).append([*groups.pop(), at])
            open_.pop()
        elif c == ",":
            groups[-1].append(at)
    if groups[0]:
        first = text.find(" ", len(text) - len(text.lstrip()))  # behind the word that the line begins with
        commas.setdefault(1, []).append([first, *groups[0], len(text)])
    for cuts in (c for level in sorted(commas) for c in commas[level]):
        if len(cuts) < 3:
            continue
        for n in range(len(cuts) - 2, -1, -1):
            yield (cuts[n], cuts[n + 1]) if n else (cuts[0] + 1, cuts[1] + 1 + text[cuts[1] :].startswith(", "))


def smaller(pair: Pair) -> Iterator[Pair]:
    """Numbers, the largest first: all of one value together, then each by itself."""
    values = {int(n) for line in pair.lines for n in NUMBER.findall(line.text)}
    for value in sorted((v for v in values if v > 2), reverse=True):
        for less in _less(value):
            yield _all(pair, lambda n, value=value, less=less: less if n == value else n)
    for i, line in enumerate(pair.lines):
        if line.side == BOTH and not line.text.startswith("cake "):
            for found in NUMBER.finditer(line.text):
                for less in _less(int(found.group())):
                    yield pair.instead({i: f"{line.text[: found.start()]}{less}{line.text[found.end() :]}"})


def _less(value: int) -> list[int]:
    """1 and 2 are left: most are parities and steps, and a text in which they change is another one."""
    return sorted({1, 2, value // 2}) if value > 2 else []


def _all(pair: Pair, number) -> Pair:
    """The version of the language in the first line stays."""
    new = {i: NUMBER.sub(lambda m: str(number(int(m.group()))), line.text) for i, line in enumerate(pair.lines) if i}
    return pair.instead(new)


def fixed(pair: Pair) -> Iterator[Pair]:
    """Each integer parameter made a constant."""
    for i, line in enumerate(pair.lines):
        if line.side == BOTH and line.text.startswith("kernel "):
            for found in SCALAR.finditer(line.text):
                name = found.group(1)
                head = re.sub(rf"\b{name}: [iu]\d+(, )?", "", line.text, count=1).replace(", )", ")")
                for value in CONSTANTS:
                    new = {j: re.sub(rf"(?<![\w.]){name}\b(?!:)", str(value), head if j == i else other.text) for j, other in enumerate(pair.lines)}
                    yield pair.instead(new)
