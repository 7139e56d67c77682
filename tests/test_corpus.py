"""The corpus: failures that were reported of real kernels, as texts that are wrong beside texts that are right.

`docs/evidence.py` reads the cases and lists them. All are judged as `cake build` judges, with the proof. A wrong text is found by the code
and at the line that its case names, and what is told names the role and what it holds there; a right text has nothing to be told of it, in no
policy that it is meant for. tests/test_corpus_rules.py takes the rules away one by one; tests/machine/test_corpus_runs.py executes the texts at their
witnesses.
"""

from __future__ import annotations

import json
import os
import re
import sys
from difflib import SequenceMatcher
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from formats import assert_told

from cake_core.assemble import Assembler, find_assembler
from cake_core.derive import derive
from cake_core.diagnostics import CakeError, Diagnostic, Severity
from cake_core.elaborate import elaborate
from cake_core.lower.kernel import requires
from cake_core.pipeline import build, choose_kernel, choose_target, for_target
from cake_core.plugins import load_registry
from cake_core.rules import rulebook
from cake_core.runtime.formula import compile_formula
from cake_core.source import Source
from cake_core.syntax import format_text, parse

ROOT = Path(__file__).resolve().parents[1]
SPEC = spec_from_file_location("evidence", ROOT / "docs" / "evidence.py")
evidence = module_from_spec(SPEC)
sys.modules["evidence"] = evidence
SPEC.loader.exec_module(evidence)

CASES = evidence.cases()
RULES = {r.id for r in rulebook(preview=True, suite="advice").rules}
GOOD = sorted({p for c in CASES for p in c.good})
BAD = [(c, b) for c in CASES for b in c.bad]
HARD = {c.folder / text for c in CASES for text in c.hard}
UPDATE = os.environ.get("CAKE_UPDATE_GOLDEN") == "1"
RULE = [(c, b) for c, b in BAD if b.expect == "rule"]
DIFFERENT = 16  # lines that a wrong text may differ in from the right one


def name(value) -> str:
    match value:
        case Path():
            return f"{value.parent.name}/{value.stem}"
        case evidence.Case():
            return value.name
        case evidence.Bad():
            return value.text.removesuffix(".cake")
    return str(value)


@pytest.fixture(scope="module")
def registry():
    return load_registry(environ={"CAKE_LOAD_PLUGINS": ""})


@pytest.fixture(scope="module")
def assembler() -> Assembler | None:
    try:
        return find_assembler()
    except CakeError:  # tests/test_installed.py asks for one where it must be there
        return None


def source(path: Path) -> Source:
    return Source(path.name, path.read_text(encoding="utf-8"))


def elaborated(path: Path, registry):
    """(derived form, target), of which nothing has been checked."""
    program = parse(source(path))
    kernel = choose_kernel(program, None)
    target = choose_target(kernel, registry, None)
    kernel = for_target(kernel, target.name)
    if not program.derived:
        kernel = derive(elaborate(kernel, registry, target, derived=False), registry, target)
    return elaborate(kernel, registry, target, derived=True), target


def judged(text: Source, registry, policy: str = "default") -> list[Diagnostic]:
    """What is wrong with a text, as the compiler and the proof see it. `policy` strict or preview: rules in preview too; advice: what the suite `advice`
    notes too."""
    book = rulebook(preview=policy in ("strict", "preview"), suite="advice" if policy == "advice" else None)
    try:
        return [d for d in build(text, registry, book=book, prove=True).diagnostics if policy == "advice" or d.severity is not Severity.NOTE]
    except CakeError as error:
        return [d for d in error.diagnostics if d.severity is not Severity.NOTE]


@pytest.mark.parametrize("path", GOOD, ids=name)
def test_a_right_text_builds_and_assembles(path, registry, assembler):
    try:
        built = build(source(path), registry, assembler=assembler, prove=True)
    except CakeError as error:
        if path in HARD:  # of these a checker may say that it cannot tell
            assert {d.code for d in error.diagnostics} <= {"rules/not-analysed", "rules/undecided"}
            return
        raise
    assert [d for d in built.diagnostics if d.severity is not Severity.NOTE] == []
    assert built.assembled is not None or assembler is None


@pytest.mark.parametrize(("case", "bad"), [(c, b) for c, b in BAD if b.expect != "inexpressible"], ids=name)
def test_a_wrong_text_is_found(case, bad, registry):
    """By the code and at the line that its case names, with advice; role and resource stand in what is told. Where it names no code,
    nothing finds it yet, and it builds."""
    text = source(case.folder / bad.text)
    found = judged(text, registry, bad.policy)
    assert_told(found)
    if UPDATE:
        _write(case, bad, found)
        return
    again = "it is found otherwise now: CAKE_UPDATE_GOLDEN=1 pytest tests/test_corpus.py, and read the difference"
    assert {d.code for d in found} == ({bad.code, *bad.also} if bad.code else set()), again
    if bad.code is None:
        return
    (told, *_) = [d for d in found if d.code == bad.code and set(_lines(d)) & set(_places(bad))] or [None]
    assert told is not None, "it is found at another place"
    assert told.fix or bad.expect == "compiler"  # whose catalogue has advice for each code
    for named in (bad.where.role, bad.where.resource):
        shown = " ".join(text.text.splitlines()[n - 1] for n in _lines(told) if n)
        assert named is None or re.search(rf"\b{re.escape(named)}\b", f"{_text(told)} {shown}"), f"'{named}' is not named"


def _places(bad) -> tuple[int, ...]:
    return bad.where.line, *bad.where.also


def _lines(d: Diagnostic) -> list[int]:
    """Where a finding stands, and the other places that it names."""
    return [s.line for s in (d.span, *(r.span for r in d.related)) if s is not None]


def _text(d: Diagnostic) -> str:
    said = (d.role, d.resource, d.message, d.why, *(d.witness.story if d.witness else ()), *(r.message for r in d.related))
    return " ".join(x for x in said if x)


def _write(case, bad, found: list[Diagnostic]) -> None:
    """The codes of what is found into the case, one of its own line first."""
    at = [d.code for d in found if d.span and d.span.line in _places(bad)]
    there = at or [d.code for d in found if set(_lines(d)) & set(_places(bad))] or [d.code for d in found]
    said = sorted(there, key="core/deadlock".__eq__)  # what says more than that it hangs comes first
    own = bad.code if bad.code in there else next(iter(said), None)
    also = sorted({d.code for d in found} - {own})
    path = case.folder / "case.toml"
    head, *blocks = path.read_text(encoding="utf-8").split("[[bad]]\n")
    for i, block in enumerate(blocks):
        if f'text = "{bad.text}"\n' in block:
            rows = [row for row in block.splitlines() if not row.startswith(("code =", "also ="))]
            rows[2:2] = [f'code = "{own}"'] * bool(own) + [f"also = {json.dumps(also)}"] * bool(also)
            blocks[i] = "\n".join(rows) + "\n"
    path.write_text("[[bad]]\n".join([head, *blocks]), encoding="utf-8")


@pytest.mark.parametrize(("case", "bad"), [(c, b) for c, b in BAD if b.expect == "inexpressible"], ids=name)
def test_what_comes_nearest(case, bad, registry):
    found = judged(source(case.folder / bad.text), registry)
    assert bad.reason, "say why no text has this failure"
    assert {d.code for d in found} == ({bad.code, *bad.also} if bad.code else set())


@pytest.mark.parametrize(("case", "bad"), RULE, ids=name)
def test_a_witness_is_a_legal_launch(case, bad, registry):
    """Scalars satisfy every `require`, and each name is one of the text."""
    kernel, _ = elaborated(case.folder / bad.text, registry)
    scalars = {p.name for p in kernel.params if p.mode is None}
    tensors = {p.name for p in kernel.params if p.mode is not None}
    lists = {n for n, v in bad.witness.items() if isinstance(v, list)}
    values = {n: v for n, v in bad.witness.items() if n in scalars}
    assert lists <= tensors and set(bad.witness) - lists - {"cluster.count"} <= scalars
    assert scalars == set(values), "a scalar has no value"
    assert [r.text for r in requires(kernel) if not compile_formula(r.formula, scalars)(values)] == []


@pytest.mark.parametrize(("case", "bad"), BAD, ids=name)
def test_a_wrong_text_is_next_to_a_right_one(case, bad):
    """It parses, lies as `cake fmt` lays it, has the place that its case names, and differs from a right text in few lines."""
    text = source(case.folder / bad.text)
    assert format_text(text) == text.text
    lines = text.text.splitlines()
    assert lines[bad.where.line - 1].strip(" {}")
    kernel = parse(text).kernels[0]
    assert bad.where.role in {None, *(r.name for r in kernel.roles)}
    assert (bad.where.resource or "").removeprefix("barrier ") in text.text
    assert min(_different(lines, source(p).text.splitlines()) for p in case.good) <= DIFFERENT


def _different(a: list[str], b: list[str]) -> int:
    changes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for what, i1, i2, j1, j2 in changes if what != "equal")


@pytest.mark.parametrize("case", CASES, ids=name)
def test_a_case_is_whole(case):
    assert case.category in evidence.CATEGORIES
    assert case.good, "no right text"
    assert set(case.hard) <= {p.name for p in case.folder.glob("good*.cake")}
    assert {b.text for b in case.bad} == {p.name for p in case.folder.glob("bad*.cake")}
    assert {p.suffix for p in case.folder.iterdir()} <= {".cake", ".toml"}
    for path in [*case.folder.glob("*.cake")]:
        program = parse(source(path))
        assert ("derived" if program.derived else "schedule") in case.form.split(", ")
        assert path.name.startswith("bad") or set(program.kernels[0].targets) <= set(case.target.split(", "))
        assert format_text(source(path)) == source(path).text
    for b in case.bad:
        assert (
            b.expect in ("rule", "compiler", "inexpressible")
            and b.level in ("error", "warning", "advice")
            and b.policy in ("default", "strict", "preview", "advice")
        )
        assert b.code in (None, "rules/not-analysed", *RULES) if b.expect == "rule" else (b.code is not None or b.expect == "inexpressible")


def test_the_page_is_written_from_the_cases():
    written = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    assert written == evidence.page(CASES), "write it anew: python docs/evidence.py > docs/evidence.md"
