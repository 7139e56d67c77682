"""The parser: nodes and spans, the tables, speed, texts made to hurt."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cake_core.diagnostics.model import CakeError
from cake_core.ir import nodes as n
from cake_core.source import Source
from cake_core.syntax import parse, reserved_words, tables

HERE = Path(__file__).parent
KERNELS = sorted((HERE / "kernels").glob("*.cake"))
HEAD = "cake 1\nkernel k(M: i32)\n{\n"


def statement(text: str) -> n.Stmt:
    (stmt,) = parse(Source("t", f"{HEAD}  {text}\n}}\n")).kernels[0].body
    return stmt


# --- the tables ----------------------------------------------------------------------------------------------------


def test_the_stored_tables_are_those_of_the_grammar():
    import hashlib

    stored = json.loads(tables.STORED.read_text())
    assert stored["grammar"] == hashlib.sha256(tables.GRAMMAR.read_bytes()).hexdigest()
    assert stored["tables"] == json.loads(json.dumps(tables.compute()))


def test_the_grammar_has_no_conflict(caplog):
    import lark

    level = lark.logger.level
    try:
        with caplog.at_level(logging.DEBUG, logger=lark.logger.name):
            lark.Lark(tables.GRAMMAR.read_text(), parser="lalr", lexer="basic", debug=True)
    finally:
        lark.logger.setLevel(level)
    assert "conflict" not in caplog.text.lower()


def test_a_stale_or_broken_file_of_tables_is_passed_over(tmp_path, monkeypatch):
    for content in ("", "[]", '{"grammar": "other", "tables": {}}', "\0"):
        (tmp_path / "t.json").write_text(content)
        monkeypatch.setattr(tables, "STORED", tmp_path / "t.json")
        assert tables.load().rules
    monkeypatch.setattr(tables, "STORED", tmp_path / "missing.json")
    assert tables.load().rules


def test_a_cold_parse_is_quick():
    """Import, tables and the GEMM in a fresh interpreter; lark is not even imported."""
    code = (
        "import sys, time; start = time.process_time()\n"
        "from cake_core.source import Source\nfrom cake_core.syntax import parse\n"
        f"parse(Source('g', open({str(HERE / 'kernels' / 'gemm_sm90.cake')!r}).read()))\n"
        "assert 'lark' not in sys.modules\nprint(time.process_time() - start)"
    )
    root = str(HERE.parents[1])
    times = [float(subprocess.run([sys.executable, "-c", code], cwd=root, check=True, capture_output=True).stdout) for _ in range(3)]
    assert min(times) < 0.25


# --- nodes and spans -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
def test_every_node_has_the_span_of_its_text(path):
    """Spans nest, and a name's span is its text."""
    text = path.read_text()
    lines = text.splitlines()

    def walk(node: object, outer: n.Node) -> None:
        if isinstance(node, tuple):
            for item in node:
                walk(item, outer)
        elif isinstance(node, n.Node):
            if node is n.NO_WORDS:
                return
            s, o = node.span, outer.span
            assert s.file == path.name
            assert (o.line, o.column) <= (s.line, s.column) <= (s.end_line, s.end_column) <= (o.end_line, o.end_column), node
            if isinstance(node, n.Name):
                assert lines[s.line - 1][s.column - 1 : s.end_column - 1].replace(" ", "") == node.id
            for field in node.__dataclass_fields__:
                if field not in ("span", "type"):
                    walk(getattr(node, field), node)

    program = parse(Source(path.name, text))
    walk(program, program)


def test_types_keep_their_bracket_groups():
    declared = statement("shared a: bf16[ST][BM, BK]").declarations[0].declared
    assert declared == n.TypeExpr("bf16", ((n.Name("ST"),), (n.Name("BM"), n.Name("BK"))))
    declared = statement("frag t: topk(KK, f32)[128] over row").declarations[0].declared
    assert declared == n.TypeExpr("topk", ((n.Int(128),),), (n.Name("KK"), n.Name("f32")))


def test_a_call_touches_its_bracket():
    assert statement("f(x)") == n.CallStmt(n.Call(n.Name("f"), (n.Name("x"),)))
    assert statement("f (x)") == n.Op("f", (n.Name("x"),))
    assert statement("f (x, y)") == n.Op("f", (n.Tuple((n.Name("x"), n.Name("y"))),))


def test_words_and_flag():
    op = statement("x.y a <- b signal s mask 3 all")
    assert op == n.Op("x.y", (n.Name("a"),), "<-", n.Name("b"), n.Words((n.Word("signal", n.Name("s")), n.Word("mask", n.Int(3))), "all"))


def test_labels_stand_on_any_statement():
    assert statement("@here if a {\n}").label == "here"
    assert statement("@here x = 1") == n.Assign(n.Name("x"), n.Int(1), label="here")


def test_words_behind_a_point_are_not_reserved():
    assert statement("bulk.commit.group") == n.Op("bulk.commit.group")
    assert "group" in reserved_words()


def test_comments_and_separators():
    text = "# c\n\ncake 1 ; # v\n\nkernel k(M: i32, # m\n N: i32,\n)\n\n# d\n  const X = 1;;\n\n{ ; x = 1;; y = 2 # e\n}\n\n# f"
    program = parse(Source("t", text))
    assert [type(s) for s in program.kernels[0].body] == [n.Assign, n.Assign]
    assert len(program.kernels[0].params) == 2


@pytest.mark.parametrize("text", ["cake 1\nkernel k() {\n}\n", "cake 1\nkernel k()\n  const X = 1 {\n}", "cake 1;kernel k();{}"])
def test_a_kernel_s_brace_may_stand_on_the_line_before(text):
    assert parse(Source("t", text)).kernels[0].body == ()


def test_line_ends_of_other_systems_and_a_byte_order_mark():
    text = (HERE / "kernels" / "gemm_sm90.cake").read_text()
    plain = parse(Source("t", text))
    assert parse(Source("t", text.replace("\n", "\r\n"))) == plain
    assert parse(Source("t", "\ufeff" + text)) == plain
    assert parse(Source("t", text.replace("  ", "\t"))) == plain


# --- several errors in one run -------------------------------------------------------------------------------------


def test_one_run_finds_errors_in_every_statement():
    text = HEAD + "".join(f"  x{i} = *\n  y{i} = {i}\n" for i in range(15)) + "}\nkernel l(\n{\n  z = )\n}\n"
    with pytest.raises(CakeError) as caught:
        parse(Source("t", text))
    assert [d.span.line for d in caught.value.diagnostics] == [4 + 2 * i for i in range(15)] + [35, 37]


def test_a_run_stops_at_twenty():
    with pytest.raises(CakeError) as caught:
        parse(Source("t", HEAD + "  x = *\n" * 100 + "}\n"))
    assert len(caught.value.diagnostics) == 20


# --- texts made to hurt --------------------------------------------------------------------------------------------

HURTFUL = {
    "round": HEAD + "x = " + "(" * 100_000 + "1" + ")" * 100_000 + "\n}\n",
    "minus": HEAD + "x = " + "-" * 100_000 + "1\n}\n",
    "not": HEAD + "x = " + "not " * 100_000 + "1\n}\n",
    "sum": HEAD + "x = " + "a+" * 100_000 + "1\n}\n",
    "index": HEAD + "x = a" + "[0]" * 50_000 + "\n}\n",
    "attribute": HEAD + "x = a[0]" + ".b" * 50_000 + "\n}\n",
    "choice": HEAD + "x = " + "a ? b : " * 20_000 + "c\n}\n",
    "else if": HEAD + "if a {\n}" + " else if b {\n}" * 10_000 + "\n}\n",
    "braces": HEAD + "group {" * 100_000,
    "closers": HEAD + "}" * 100_000,
    "round closers": HEAD + ")" * 100_000,
    "open lines": HEAD + "f(\n" * 100_000,
    "unclosed, often": HEAD + "x = (\n" * 30 + "let a = 1\n" + "a\n" * 20_000,
    "kernels": "cake 1\n" + "kernel a()\n{\n" * 20_000,
    "NULs": "\0" * 1_000_000,
    "quotes": HEAD + '"' * 100_000,
    "digits": HEAD + "x = " + "9" * 1_000_000 + "\n}\n",
    "labels": HEAD + "@a " * 20_000,
}


@pytest.mark.parametrize("name", HURTFUL)
def test_hurtful_texts_end_in_findings(name):
    start = time.perf_counter()
    with pytest.raises(CakeError):
        parse(Source("t", HURTFUL[name]))
    assert time.perf_counter() - start < 10


HARMLESS = {
    "long name": HEAD + "x = " + "a" * 1_000_000 + "\n}\n",
    "leading zeros": HEAD + "x = " + "0" * 1_000_000 + "1\n}\n",
    "long fraction": HEAD + "x = 1." + "9" * 1_000_000 + "\n}\n",
    "long list": HEAD + "x = f(" + "a, " * 20_000 + "b)\n}\n",
    "many statements": HEAD + "x = a\n" * 20_000 + "}\n",
    "comments": "# c\n" * 100_000 + HEAD + "}\n",
    "as deep as allowed": HEAD + "group {\n" * 60 + "x = " + "(" * 3 + "-" * 90 + "a" + ")" * 3 + "\n" + "}\n" * 60 + "}\n",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_long_texts_parse_in_linear_time(name):
    start = time.perf_counter()
    parse(Source("t", HARMLESS[name]))
    assert time.perf_counter() - start < 10
