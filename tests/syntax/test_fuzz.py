"""Random nodes survive the printer and the parser; random damage ends in findings or in a program, quickly."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cake_core.diagnostics.model import CakeError
from cake_core.ir import nodes as n
from cake_core.ir.printer import expr_text, program_text
from cake_core.source import Source
from cake_core.syntax import decode, format_text, parse

from .strategies import expr, program

KERNELS = sorted((Path(__file__).parent / "kernels").glob("*.cake"))
GEMM = (Path(__file__).parent / "kernels" / "gemm_sm90.cake").read_text()
#: Seconds that one text of this size may take, on a busy machine.
DEADLINE = 2.0

quick = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=80)


@quick
@given(expr)
def test_an_expression_survives(e):
    text = f"cake 1\nkernel k()\n{{\n  x = {expr_text(e)}\n}}\n"
    (stmt,) = parse(Source("t", text)).kernels[0].body
    assert stmt.value == e, text


@settings(quick, max_examples=40)
@given(program)
def test_a_program_survives_and_the_printed_text_is_formatted(p):
    text = program_text(p)
    assert parse(Source("t", text)) == p
    assert program_text(parse(Source("t", text))) == text
    assert format_text(Source("t", text)) == text


TOKEN = re.compile(r"[ \t]+|\n|#[^\n]*|\w+|[^\w\s]")
ODD = [
    *"( ) [ ] { } , : ; <- = == += .. +: @ ? not let for else kernel if in pipeline role - < % // ' 0x 1e999 .5".split(),
    *("\n", "# c\n", "\\", "\0", "é", "\ufeff", "\r", "9" * 30),
]


def damaged(seed: int) -> str:
    """The GEMM with one to four slips: tokens deleted, doubled, swapped, put in; the end cut off; bytes overwritten."""
    r = random.Random(seed)
    tokens = TOKEN.findall(GEMM)
    for _ in range(r.randint(1, 4)):
        i, j = r.randrange(len(tokens)), r.randrange(len(tokens))
        match r.randrange(7):
            case 0:
                del tokens[i]
            case 1:
                tokens.insert(i, tokens[i])
            case 2:
                tokens[i], tokens[j] = tokens[j], tokens[i]
            case 3:
                tokens.insert(i, r.choice(ODD))
            case 4:
                tokens[i] = r.choice(ODD)
            case 5 if r.random() < 0.3:
                tokens = tokens[: max(i, 1)]
            case 6:
                word = tokens[i]
                if len(word) > 2:
                    at = r.randrange(len(word) - 1)
                    tokens[i] = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return "".join(tokens)


def outcome(source: Source) -> n.Program | None:
    """The program, or None where there were findings; anything else fails the test."""
    start = time.perf_counter()
    try:
        result = parse(source)
        assert isinstance(result, n.Program)
    except CakeError as error:
        assert 1 <= len(error.diagnostics) <= 20
        lines = source.text.split("\n")
        for d in error.diagnostics:
            assert d.code.startswith("syntax/")
            assert 1 <= d.span.line <= len(lines)
            assert 1 <= d.span.column <= len(lines[d.span.line - 1]) + 1
        result = None
    assert time.perf_counter() - start < DEADLINE
    return result


def check_formatter(text: str, parsed: n.Program) -> None:
    once = format_text(Source("t", text))
    assert parse(Source("t", once)) == parsed
    assert format_text(Source("t", once)) == once
    comments = [c.rstrip() for c in re.findall(r"#[^\n]*", text)]
    assert [c.rstrip() for c in re.findall(r"#[^\n]*", once)] == comments


@pytest.mark.parametrize("chunk", range(8))
def test_damage_ends_in_findings_or_a_program(chunk):
    parsed = 0
    for seed in range(chunk * 40, chunk * 40 + 40):
        text = damaged(seed)
        result = outcome(Source("t", text))
        if result is not None:
            parsed += 1
            check_formatter(text, result)
    assert 0 < parsed < 40  # the damage is neither always fatal nor always harmless


def test_one_slip_is_one_finding():
    """A token deleted or doubled: hardly ever more than one finding (a brace too many may take two)."""
    tokens = TOKEN.findall(GEMM)
    places = [i for i, t in enumerate(tokens) if t.strip() and t[0] != "#"]
    counts = []
    for i in random.Random(1).sample(places, 100):
        for put in ([], [tokens[i], " ", tokens[i]]):
            try:
                parse(Source("t", "".join(tokens[:i] + put + tokens[i + 1 :])))
            except CakeError as error:
                counts.append(len(error.diagnostics))
    assert len(counts) > 120
    assert max(counts) <= 3
    assert sum(c > 1 for c in counts) <= 0.05 * len(counts)


@quick
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda t: t.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_read_or_refused(data):
    try:
        source = decode("t", data)
    except CakeError:
        return
    outcome(source)
    outcome(Source("t", "cake 1\nkernel k()\n{\n" + source.text))


@pytest.mark.parametrize("seed", range(30))
def test_bytes_overwritten(seed):
    r = random.Random(seed)
    data = bytearray(GEMM.encode())
    for _ in range(r.randint(1, 30)):
        data[r.randrange(len(data))] = r.randrange(256)
    try:
        source = decode("t", bytes(data))
    except CakeError as error:
        assert error.diagnostics[0].code == "syntax/encoding"
        return
    outcome(source)


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
def test_every_prefix_of_lines(path):
    lines = path.read_text().splitlines(keepends=True)
    for i in range(0, len(lines), 3):
        outcome(Source("t", "".join(lines[:i])))
