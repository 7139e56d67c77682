"""Golden findings: each `cases/<code>/<case>.cake` beside a `.diag` with what the parser says about it.

`CAKE_UPDATE_GOLDEN=1 pytest tests/syntax` writes the `.diag` files anew; read the difference before keeping it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import cake_core.syntax
from cake_core.diagnostics.model import CakeError, Diagnostic
from cake_core.source import Source
from cake_core.syntax import decode, parse
from cake_core.syntax.intake import MAX_SIZE

HERE = Path(__file__).parent
CASES = sorted((HERE / "cases").glob("*/*.cake"))
UPDATE = os.environ.get("CAKE_UPDATE_GOLDEN") == "1"


def findings(data: bytes) -> tuple[Diagnostic, ...]:
    with pytest.raises(CakeError) as caught:
        parse(decode("case.cake", data))
    return caught.value.diagnostics


def text_of(d: Diagnostic) -> str:
    s = d.span
    lines = [f"{s.line}:{s.column}-{s.end_line}:{s.end_column} {d.code}: {d.message}"]
    lines += [f"  why: {d.why}"] if d.why else []
    lines += [f"  fix: {d.fix}"] if d.fix else []
    lines += [f"  see {r.span.line}:{r.span.column}: {r.message}" for r in d.related]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", CASES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_case(path):
    found = findings(path.read_bytes())
    text = "".join(map(text_of, found))
    golden = path.with_suffix(".diag")
    if UPDATE:
        golden.write_text(text)
    assert text == golden.read_text()
    assert f"syntax/{path.parent.name}" in {d.code for d in found}


def test_every_code_has_three_cases():
    sources = "".join(p.read_text() for p in Path(cake_core.syntax.__file__).parent.glob("*.py"))
    codes = set(re.findall(r'"syntax/([a-z-]+)"', sources)) | set(re.findall(r'self\.error\("([a-z-]+)"', sources))
    codes |= set(re.findall(r'c\.say\([^"]*(?:f?"[^"]*")?,\s*"([a-z-]+)"', sources))
    covered = {p.parent.name for p in CASES if len(list(p.parent.glob("*.cake"))) >= 3}
    assert codes - covered == {"too-large"}  # tested below: no file of that size is kept
    assert covered <= codes


@pytest.mark.parametrize("text", ["#" * (MAX_SIZE + 1), "cake 1\n" + "x\n" * MAX_SIZE, "\0" * (MAX_SIZE + 1)])
def test_a_text_too_large_is_refused_at_once(text):
    (finding,) = findings(text.encode())
    assert finding.code == "syntax/too-large"


@pytest.mark.parametrize("path", CASES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_findings_are_well_formed(path):
    """Lower-case start, no final period, a span inside the text, in the order of the text, at most twenty."""
    data = path.read_bytes()
    found = findings(data)
    lines = data.decode(errors="replace").split("\n")
    assert 1 <= len(found) <= 20
    assert [(d.span.line, d.span.column) for d in found] == sorted((d.span.line, d.span.column) for d in found)
    for d in found:
        assert d.span.file == "case.cake"
        assert 1 <= d.span.line <= d.span.end_line <= len(lines)
        assert (d.span.line, d.span.column) <= (d.span.end_line, d.span.end_column)
        assert d.span.column <= len(lines[d.span.line - 1]) + 1
        for words in filter(None, (d.message, d.fix, d.why)):
            assert not words.endswith(".") or words.endswith("...")
            assert not re.match(r"[A-Z]", words)
            assert not re.search(r"\b(LBRACE|RPAR|_SEP|NAME|\$END|_CALL)\b", words)


def test_surrogates_of_a_lossy_decoding_are_refused():
    text = b"cake 1\nkernel k()\n{\n  # \xff\n}\n".decode("utf-8", "surrogateescape")
    with pytest.raises(CakeError) as caught:
        parse(Source("t", text))
    assert caught.value.diagnostics[0].code == "syntax/encoding"
    assert (caught.value.diagnostics[0].span.line, caught.value.diagnostics[0].span.column) == (4, 5)
