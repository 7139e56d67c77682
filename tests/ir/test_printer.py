"""The printer: what it writes parses back to the nodes that it was given, with no bracket too many."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from cake_core.ir import nodes as n
from cake_core.ir.printer import expr_text, program_text, stmt_text
from cake_core.ir.wrap import WIDTH
from cake_core.source import Source
from cake_core.syntax import parse

KERNELS = sorted((Path(__file__).parents[1] / "syntax" / "kernels").glob("*.cake"))

HEAD = "cake 1\nkernel k()\n{\n"


def statement(text: str) -> n.Stmt:
    (stmt,) = parse(Source("t.cake", f"{HEAD}{text}\n}}\n")).kernels[0].body
    return stmt


def expression(text: str) -> n.Expr:
    return statement(f"x = {text}").value


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
def test_kernels_survive_the_round_trip(path):
    program = parse(Source(path.name, path.read_text()))
    text = program_text(program)
    assert parse(Source("printed", text)) == program
    assert program_text(parse(Source("printed", text))) == text


@pytest.mark.parametrize(
    "text",
    [
        "a + b * c",
        "(a + b) * c",
        "a - (b - c)",
        "a - b - c",
        "a / (b * c)",
        "(a < b) == c",
        "not a and b",
        "not (a and b)",
        "(not a) + b",
        "-a * b",
        "-(a * b)",
        "a ? b : c ? d : e",
        "(a ? b : c) ? d : e",
        "a ? b ? c : d : e",
        "-(1)",
        "-1",
        "--1",
        "-(1.5)",
        "(-1)[i]",
        "(1)[i]",
        "(a, b)",
        "(a,)",
        "(a + b).T",
        "f(a)(b)[c, :, d +: e].T",
        "f(x, n = 1, m: 2)",
        "-inf",
        "+inf",
        "1e-05",
        "1e+16",
        "a[s].T.U",
        "g()",
        "(a or b) and c",
        "a @ b.T",
    ],
)
def test_expressions_in_canonical_form_print_as_they_stand(text):
    assert expr_text(expression(text)) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("((a))", "a"),
        ("(a * b) + c", "a * b + c"),
        ("(a.b).c", "a.b.c"),
        ("(f)(x)", "f(x)"),
        ("a ? (b ? c : d) : (e)", "a ? b ? c : d : e"),
        ("(a, b,)", "(a, b)"),
        ("f(a,)", "f(a)"),
    ],
)
def test_needless_brackets_go(text, canonical):
    assert expr_text(expression(text)) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "@here x = 1",
        "let a = 1, b = 2",
        "tiles t = grid(m: 2) order o {\n  let q = 1\n}",
        "tiles t = grid(m: 2)",
        "pipeline p: 2 { a, b } from load on pair to math all, epi",
        "turn order over math",
        "role r[2]: 1 warpgroup at 4 regs 232 {\n}",
        "inline f(a, b) {\n  x = a\n}",
        "for (a, b) in t {\n}",
        "for k in 0 .. n - 1 step 2 unroll {\n}",
        "while go max 3 {\n}",
        "group {\n}",
        "if a {\n  x = 1\n} else if b {\n  x = 2\n} else {\n  x = 3\n}",
        "if a {\n} else {\n  @l if b {\n  }\n}",
        "shared a: topk(KK, f32)[1][2, 3] at 0, b: i32",
        "(a, b) = f(x)",
        "a[i] = x",
        "f(x)",
        "foo.bar",
        "foo -1",
        "foo (a, b) <- c with -1 all",
        "wgmma d += a @ b.T",
        "wgmma d = a @ b.T",
    ],
)
def test_statements_in_canonical_form_print_as_they_stand(text):
    assert stmt_text(statement(text)) == text


def test_an_infinity_is_one_literal():
    assert expression("-inf") == n.Float(-math.inf)
    assert expression("-(inf)") == n.Unary("-", n.Float(math.inf))


def test_nan_has_no_text():
    with pytest.raises(ValueError):
        expr_text(n.Float(math.nan))


def test_long_lines_break_behind_commas_in_round_brackets():
    params = ", ".join(f"tensor_{i}: in bf16[ROWS, COLUMNS]" for i in range(12))
    call = f"x = f({', '.join(f'g(argument_{i}, {i})' for i in range(40))})"
    program = parse(Source("t", f"cake 1\nkernel k({params})\n{{\n  {call}\n}}\n"))
    text = program_text(program)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert parse(Source("t", text)) == program
    assert all(not line.rstrip().endswith("[ROWS,") for line in text.splitlines())
