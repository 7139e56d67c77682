"""`cake show`: in words, as a page, as a trace, as JSON; of texts with errors what is known of them; and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from cake_core.cli.app import app
from cake_core.cli.show import _timeline
from cake_core.diagnostics import Diagnostic, Witness
from cake_core.diagnostics.json import SCHEMA_FILE
from cake_core.facts import facts_of
from cake_core.pipeline import frontend
from cake_core.trace.chrome import SCHEMA_FILE as TRACES

ROOT = Path(__file__).resolve().parents[2]
GEMM = ROOT / "kernels/gemm/gemm_sm90.cake"


def cake(*arguments, stdin=None):
    return CliRunner().invoke(app, ["show", *map(str, arguments)], input=stdin)


def schema(file: Path) -> dict:
    return json.loads(file.read_text(encoding="utf-8"))


def test_in_words():
    result = cake(GEMM, "--shape", "M=4,N=16,K=576")
    assert result.exit_code == 0, result.output
    assert "ab_full[4]          1  math 51             load 37      load 38, 39\n" in result.output
    assert "Roles over time, M = 4, N = 16, K = 576: " in result.output
    rows = [line.split() for line in result.output.splitlines() if line.startswith(("  0    ", "  1    "))]
    assert [r[:2] for r in rows] == [["0", "load"], ["0", "math,"], ["1", "load"], ["1", "math,"]]
    assert "  proved    deadlock, data races" in result.output


def test_page_trace_and_json_at_once(tmp_path):
    html, trace = tmp_path / "k.html", tmp_path / "k.json"
    result = cake(GEMM, "--html", html, "--trace", trace, "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.output)
    jsonschema.validate(document, schema(SCHEMA_FILE))
    shown = document["show"]
    assert shown["kernel"] == "gemm_sm90" and [r["name"] for r in shown["roles"]] == ["load", "math"] and shown["missing"] == {}
    assert [(p["name"], p["start"]) for p in shown["memory"][0]["places"]][:2] == [("a", 0), ("b", 65536)]
    events = json.loads(trace.read_text(encoding="utf-8"))
    jsonschema.validate(events, schema(TRACES))
    assert len(shown["timeline"]["slices"]) == sum(e["ph"] == "X" for e in events["traceEvents"]) > 300
    page = html.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "Proved for all sizes with" in page
    assert all(f'id="e{n}"' in page for n in (0, len(shown["timeline"]["slices"]) - 1))


@pytest.mark.parametrize(
    "old, new, code, known",
    [
        ("for k in", "fro k in", "syntax/unknown-keyword", ()),
        ("tma.load a[s] <- A", "tma.load aa[s] <- A", "type/unknown-name", ()),
        ("      drain ab", "      # drain ab", "derive/held-too-many", ("Pipelines and barriers", ">math<")),
        (
            "const BM = 128, BN = 256, BK = 64, ST = 4",
            "const BM = 128, BN = 256, BK = 64, ST = 5",
            "core/shared-capacity",
            ("over the limit", "mbarrier.wait"),
        ),
    ],
)
def test_a_text_with_errors_has_a_page_too(tmp_path, old, new, code, known):
    """From the parser's errors to those of rules: findings at their lines, and as much as there is."""
    text = GEMM.read_text(encoding="utf-8")
    assert old in text
    result = cake("-", "--html", tmp_path / "k.html", stdin=text.replace(old, new, 1))
    assert result.exit_code == 1 and code in result.output and "Traceback" not in result.output
    page = (tmp_path / "k.html").read_text(encoding="utf-8")
    assert f"[{code}]" in page and 'class="finding error"' in page
    assert all(k in page for k in known) and ("Nothing runs" in page) == ("mbarrier.wait" not in known)
    if "Nothing runs" in page:
        words = cake("-", stdin=text.replace(old, new, 1))
        assert words.exit_code == 1 and code in words.output and "Nothing runs" in words.output


def test_sizes_of_a_findings_example_are_those_of_the_run(stuck, offered):
    """Where the event machine goes wrong at them; not where it found nothing, or where the example says nothing of a size."""
    facts = facts_of(frontend(stuck.source, offered).typed, offered, offered.architecture("sm90"))
    sizes = (("M", 1), ("N", 8), ("K", 264))
    shown = lambda *w: dict(_timeline(facts, {}, (Diagnostic("core/deadlock", "x", witness=Witness(*w)),))[0].scenario.params)
    assert shown(sizes, ("",), True) == dict(sizes)
    assert shown(sizes, ("",), False) != dict(sizes) != shown(sizes[:2], ("",), True)


@pytest.mark.parametrize(
    "shape, why",
    [
        ("M=4,N=16", "'K' has no value"),
        ("M=4,N=16,K=64,L=1", "the kernel has no size 'L'; it has M, N, K"),
        ("M=4,N=16,K=7", "break a 'require'"),
        ("M=4,N=16,K=1.5", "sizes are integers"),
        ("M", "is not NAME=VALUE"),
    ],
)
def test_sizes_that_are_none(shape, why):
    result = cake(GEMM, "--shape", shape)
    assert result.exit_code == 2 and why in result.output


def test_a_file_that_can_not_be_written_and_a_run_that_there_is_not(tmp_path):
    result = cake(GEMM, "--html", tmp_path / "none" / "k.html")
    assert result.exit_code == 2 and "k.html" in result.output
    result = cake("-", "--trace", tmp_path / "k.json", stdin="cake 1\nkernel k(\n")
    assert result.exit_code == 2 and "--trace: nothing to write" in result.output and not (tmp_path / "k.json").exists()
