"""`cake fmt`: comments and blank lines are kept, everything else has one form."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_core.diagnostics.model import CakeError
from cake_core.ir.printer import program_text
from cake_core.source import Source
from cake_core.syntax import format_text, parse

ROOT = Path(__file__).parents[2]
TEXTS = sorted((Path(__file__).parent / "kernels").glob("*.cake"))
ZOO = sorted((ROOT / "kernels").rglob("*.cake"))


def fmt(text: str) -> str:
    once = format_text(Source("t", text))
    assert format_text(Source("t", once)) == once
    assert parse(Source("t", once)) == parse(Source("t", text))
    return once


def body(text: str) -> str:
    """The formatted lines of a kernel's body."""
    lines = fmt(f"cake 1\nkernel k()\n{{\n{text}\n}}\n").splitlines()
    return "\n".join(line[2:] for line in lines[3:-1])


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.stem)
def test_kernels_keep_their_comments(path):
    text = path.read_text()
    once = fmt(text)
    assert [c.split("#", 1)[1].rstrip() for c in once.splitlines() if "#" in c] == [
        c.split("#", 1)[1].rstrip() for c in text.splitlines() if "#" in c
    ]


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.stem)
def test_what_the_printer_writes_is_formatted(path):
    text = program_text(parse(Source("t", path.read_text())))
    assert fmt(text) == text


@pytest.mark.parametrize("path", ZOO, ids=lambda p: p.stem)
def test_the_kernels_of_this_repository_are_formatted(path):
    assert fmt(path.read_text()) == path.read_text()


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("a;  b  # c", "a\nb  # c"),
        ("a  # c\n;b", "a  # c\nb"),
        ("x=a*b+-c", "x = a * b + -c"),
        ("x = a[ m*4+:4 , : ] . T", "x = a[m * 4 +: 4, :].T"),
        ("x = a?b:c", "x = a ? b : c"),
        ("foo  -1 with  -2", "foo -1 with -2"),
        ("x = f( a , n=1 , m :2 )", "x = f(a, n = 1, m: 2)"),
        ("foo  (a,b)", "foo (a, b)"),
        ("x = (a,b,)", "x = (a, b)"),
        ("x = (a , )", "x = (a,)"),
        ("x = (a / b) % c", "x = (a / b) % c"),
        ("if a { b }", "if a {\n  b\n}"),
        ("if a {b} else if c {d} else {e}", "if a {\n  b\n} else if c {\n  d\n} else {\n  e\n}"),
        ("pipeline p:2{a,b}from x to y", "pipeline p: 2 { a, b } from x to y"),
        ("shared a:f32 [2] [3,4]at 0,b:i32", "shared a: f32[2][3, 4] at 0, b: i32"),
        ("group{}", "group {\n}"),
        ("group{ # c\n}", "group {  # c\n}"),
        ("group{\n\n# c\n\n}", "group {\n  # c\n}"),
        ("\n\na\n\n\n\nb\n\n", "a\n\nb"),
        ("a\n\n# c\n\n\nb", "a\n\n# c\n\nb"),
        ("@l   a", "@l a"),
        ("x = f(a,\n  b)", "x = f(a, b)"),
        ("x = f(a, # one\n  b # two\n )", "x = f(a,  # one\n      b  # two\n      )"),
        ("x = f(a # one\n , b)", "x = f(a,  # one\n      b)"),
        ("x = f(\n# own\na)", "x = f(\n      # own\n      a)"),
        ("x = f(a # one\n ,)", "x = f(a  # one\n      )"),
        ("\tx = 1\t# tab", "x = 1  # tab"),
        ("role r [2] : 1 warp{}", "role r[2]: 1 warp {\n}"),
        ("inline f (a,b) {}", "inline f(a, b) {\n}"),
        ("for(m,n)in t{}", "for (m, n) in t {\n}"),
        ("for k in 0..n{}", "for k in 0 .. n {\n}"),
        ("x = not(a)", "x = not (a)"),
        ("x = - (1)", "x = -(1)"),
    ],
)
def test_one_form(text, canonical):
    assert body(text) == canonical


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("cake 1 # v\nkernel k(){}\n", "cake 1  # v\nkernel k()\n{\n}\n"),
        (
            "\n# top\n\n\ncake 1\n\nkernel k() # p\n # c\n const X=1 # x\n{ # b\n} # e\n# end",
            "# top\n\ncake 1\n\nkernel k()  # p\n  # c\n  const X = 1  # x\n{  # b\n}  # e\n# end\n",
        ),
        ("\ufeffcake 1\r\nkernel k()\r\n{\r\n  x = 1  # c\r\n}\r\n", "cake 1\nkernel k()\n{\n  x = 1  # c\n}\n"),
        ("cake 1 derived\nkernel a(){}\n\nkernel b(){}", "cake 1 derived\nkernel a()\n{\n}\n\nkernel b()\n{\n}\n"),
        ("cake 1\nkernel k(A: i32, # a\n B: i32)\n{\n}", "cake 1\nkernel k(A: i32,  # a\n         B: i32)\n{\n}\n"),
    ],
)  # fmt: skip
def test_whole_texts(text, canonical):
    assert fmt(text) == canonical


def test_long_lines_with_comments_inside_brackets():
    arguments = ", ".join(f"argument_{i}" for i in range(30))
    once = fmt(f"cake 1\nkernel k()\n{{\n  x = f({arguments},  # here\n {arguments})\n}}\n")
    assert max(map(len, once.splitlines())) <= 120
    assert once.count("# here") == 1


def test_a_text_with_errors_is_not_formatted():
    with pytest.raises(CakeError):
        format_text(Source("t", "cake 1\nkernel k()\n{\n  x =\n}\n"))
