"""Conditions that are made of messages: expressions of any size, and loops that say the same in other names (S10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_core.derive import derive
from cake_core.diagnostics import CakeError
from cake_core.elaborate import elaborate
from cake_core.pipeline import choose_kernel, for_target
from cake_core.source import Source
from cake_core.syntax import parse

ROWS = (Path(__file__).parent / "texts" / "rows_on_demand.cake").read_text()


@pytest.fixture(scope="module")
def derived(offered):
    def run(text: str):
        kernel = for_target(choose_kernel(parse(Source("case.cake", text)), None), "sm90")
        target = offered.architecture("sm90")
        return derive(elaborate(kernel, offered, target, derived=False), offered, target)

    return run


def changed(*pairs: tuple[str, str]) -> str:
    text = ROWS
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def codes(derived, text: str) -> set[str]:
    try:
        derived(text)
    except CakeError as error:
        return {d.code for d in error.diagnostics}
    return set()


LOOP = "      while at >= 0 {\n        wait next as s\n        at = load(item[s][0])\n"


@pytest.mark.parametrize(
    "pairs",
    [
        pytest.param([("      var at = 0\n" + LOOP, "      var row = 0\n" + LOOP.replace("at ", "row ")), ("        if at >= 0 {\n          x = load(X[at,", "        if row >= 0 {\n          x = load(X[row,"), ("store Y[at,", "store Y[row,")], id="other names"),
        pytest.param([(LOOP, LOOP.replace("at = load(item[s][0])", "let now = load(item[s][0])\n        at = now"))], id="by way of a let"),
        pytest.param([(LOOP, "      var rounds = 0\n" + LOOP + "        rounds = rounds + 1\n")], id="a variable that decides nothing"),
        pytest.param([("        at = w < R ? w : -1\n", "        if w < R { at = w } else { at = -1 }\n")], id="a choice in two branches"),
        pytest.param([("        if at >= 0 {\n          x", "        let some = at >= 0\n        if some {\n          x")], id="a named guard"),
    ],
)  # fmt: skip
def test_the_same_in_other_words(pairs, derived):
    assert codes(derived, changed(*pairs)) == set()


@pytest.mark.parametrize(
    ("pairs", "code"),
    [
        (
            [("        store item[s][0] <- at\n", "        at = w < R ? w : -2\n        store item[s][0] <- at - 1\n")],
            "derive/not-received",
        ),
        ([(LOOP, LOOP.replace("at = load(item[s][0])", "at = load(item[s][0]) + 1"))], "derive/received-differs"),
        ([(LOOP, LOOP + "        if at > 3 { at = -1 }\n")], "derive/received-differs"),
        ([(LOOP, LOOP.replace("wait next as s", "wait next as s\n        let other = s"))], ""),
    ],
    ids=["another value is sent", "one more", "an end of its own", "a slot is a number"],
)
def test_what_is_not_the_same(pairs, code, derived):
    assert codes(derived, changed(*pairs)) == ({code} if code else set())


@pytest.mark.parametrize("decides", [False, True], ids=["beside the loop", "in its condition"])
def test_values_that_stand_for_any_number_of_others(decides, derived):
    """Names of names double with each: an expression is followed up to a size, then it is a name of its role's."""
    chain = "".join(f"        let a{n + 1} = a{n} + a{n} * a{n}\n" for n in range(60))
    loop = LOOP + "        let a0 = at\n" + chain + ("        at = a60\n" if decides else "")
    assert codes(derived, changed((LOOP, loop))) == ({"derive/received-differs"} if decides else set())
