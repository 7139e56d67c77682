"""docs/language.md: every example is a text that does what the page says, and the page leaves no word of the language out.

Blocks `cake` are whole kernels, built for each of their targets. `cake-role` are statements of a role, put into the block `cake frame`
in place of its last statement. `cake-error CODE` must give that code and no other; it is a whole kernel if it begins with `cake 1`.
"""

from __future__ import annotations

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from cake_core.assemble import assemble, find_assembler
from cake_core.diagnostics import CakeError
from cake_core.elaborate import constants
from cake_core.elaborate.roles import ROLE_WORDS, VERBS
from cake_core.elaborate.turns import TURN_VERBS
from cake_core.ir.build import INTEGER_CALLS
from cake_core.ir.schedule import SCAN_ORDERS, SCHEDULES, TABLE_ORDERS
from cake_core.ir.types import ELEMENTS
from cake_core.check.safety import SAFETY
from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.source import Source
from cake_core.syntax import parse
from cake_core.syntax.formatter import format_text
from cake_core.syntax.tables import load

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "language.md"
TEXT = PAGE.read_text(encoding="utf-8")
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
PLACE = re.compile(r"^ *x = 0  # fragments of this page stand here\n", re.M)


def examples() -> list[tuple[str, str, int]]:
    """(info string, text, line on the page)."""
    return [(m[1], m[2], TEXT[: m.start()].count("\n") + 1) for m in FENCE.finditer(TEXT) if m[1].startswith("cake")]


(FRAME,) = (text for info, text, _ in examples() if info == "cake frame")


def whole(text: str) -> str:
    """A kernel, or statements put into the frame with its indent."""
    if text.startswith("cake 1"):
        return text
    indent = re.search(PLACE, FRAME)[0]
    lines = "".join(f"{indent[: len(indent) - len(indent.lstrip())]}{line}\n" for line in text.splitlines())
    return PLACE.sub(lambda _: lines, FRAME)


GOOD = [pytest.param(whole(text), id=f"line {line}") for info, text, line in examples() if not info.startswith("cake-error")]
BAD = [pytest.param(whole(text), info.split()[1], id=f"line {line} {info.split()[1]}") for info, text, line in examples() if info.startswith("cake-error")]


@pytest.fixture(scope="module")
def registry():
    return load_registry(environ={"CAKE_LOAD_PLUGINS": ""})


def built(text: str, registry, arch: str):
    return build(Source("example.cake", text), registry, arch)


@pytest.mark.parametrize("text", GOOD)
def test_a_kernel_is_canonical_and_builds_and_so_does_what_is_derived(text, registry):
    source = Source("example.cake", text)
    assert format_text(source) == text
    (kernel,) = parse(source).kernels
    for arch in kernel.targets:
        b = built(text, registry, arch)
        assert b.diagnostics == ()
        again = built(b.derived_text, registry, arch)
        assert (again.lowered.ptx, again.derived_text) == (b.lowered.ptx, b.derived_text)
        try:
            assembler = find_assembler()
        except CakeError:
            continue  # the machine's; .ci/run asks for one
        assert assemble(b.lowered.ptx, b.arch.assembler_target, kernel.name, lines=b.lowered.lines, assembler=assembler).cubin


@pytest.mark.parametrize("text, code", BAD)
def test_an_error_is_the_one_that_the_page_names(text, code, registry):
    (target,) = parse(Source("example.cake", text)).kernels[0].targets if not code.startswith("syntax/") else ("sm90",)
    with pytest.raises(CakeError) as caught:
        built(text, registry, target)
    assert {d.code for d in caught.value.diagnostics} == {code}
    assert all(d.span and d.span.line for d in caught.value.diagnostics)


def test_there_are_examples_of_both_kinds():
    assert len(GOOD) >= 8 and len(BAD) >= 10


@pytest.mark.parametrize("expression, value", re.findall(r"`([^`]+)` is (-?\d+)\b", TEXT))
def test_a_value_is_what_the_page_says(expression, value, registry):
    text = f"cake 1\nkernel k(N: i32)\n  const VALUE = {expression}\n  target sm90\n{{\n  role r: 1 warp {{\n  }}\n}}\n"
    (kernel,) = parse(Source("example.cake", text)).kernels
    assert constants(kernel, registry, registry.architecture("sm90"), derived=False) == {"VALUE": int(value)}


# --- the page is complete


def named(*words: str) -> list[str]:
    """Those that the page names nowhere in backticks or in an example."""
    code = " ".join(re.findall(r"`([^`\n]+)`", FENCE.sub("", TEXT)) + [t for _, t in FENCE.findall(TEXT)])
    present = set(re.findall(r"[A-Za-z_][\w]*(?:\.[A-Za-z_]\w*)*", code))
    return [w for w in words if w not in present]


def test_reserved_words_are_those_of_the_grammar():
    listed = re.search(r"Reserved: (.*?)\.\s+Words\s+of\s+operations", TEXT, re.S)[1]
    assert set(re.findall(r"`(\w+)`", listed)) == set(load().keywords)


def test_the_summary_of_the_grammar_has_every_terminal():
    (grammar,) = (t for info, t in FENCE.findall(TEXT) if info == "text")
    quoted = set(re.findall(r'"([^"\s]+)"', grammar))
    operators = {"==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "@", "<-", "+=", "..", "+:", "=", "?", ":", "{", "}", "[", "]", "(", ")"}
    assert (set(load().keywords) | operators) - {"from", "to"} <= quoted | {"inf", "true", "false"}


@pytest.mark.parametrize(
    "words",
    [
        pytest.param((*VERBS, *TURN_VERBS), id="verbs"),
        pytest.param(tuple(SCHEDULES), id="schedules"),
        pytest.param((*SCAN_ORDERS, *TABLE_ORDERS), id="orders"),
        pytest.param(tuple(INTEGER_CALLS), id="functions on integers"),
        pytest.param(tuple(ELEMENTS), id="element types"),
        pytest.param(tuple(w.name for w in ROLE_WORDS if w.name not in ("at", "pad")), id="role words"),
    ],
)
def test_the_core_s_words_are_named(words):
    assert named(*words) == []


def test_spaces_groups_and_role_words_are_named(registry):
    here = [n for table in (registry.spaces, registry.groups, registry.role_words) for n, p in table.items() if not getattr(p, "memory", "") == "barriers"]
    assert named(*here) == []


def test_every_rule_that_code_cites_is_in_the_table():
    listed = set(re.findall(r"^\| (S\d+) \|", TEXT, re.M))
    cited = set()
    for folder in ("cake_core", "plugins", "arch"):
        for path in (ROOT / folder).rglob("*.py"):
            cited |= set(re.findall(r"\((S\d+)\)", path.read_text(encoding="utf-8")))
    assert cited - listed == set()


def test_what_may_be_left_unproved_is_listed():
    listed = re.search(r"is\s+listed\s+in\s+each\s+manifest:\s+(.*?)\.", TEXT, re.S)[1]
    assert re.sub(r"\s+", " ", listed) == ", ".join(SAFETY)


def test_the_vocabulary_is_written_from_the_plugins(registry):
    spec = spec_from_file_location("vocabulary", ROOT / "docs" / "vocabulary.py")
    module = module_from_spec(spec)
    sys.modules["vocabulary"] = module
    spec.loader.exec_module(module)
    written = (ROOT / "docs" / "vocabulary.md").read_text(encoding="utf-8")
    assert written == module.page(registry), "write it anew: python docs/vocabulary.py > docs/vocabulary.md"
