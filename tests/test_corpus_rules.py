"""The rules behind the corpus: without the one that finds a failure nothing else does, and what is told of the nine planted faults fits on a page."""

from __future__ import annotations

import json
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from click.testing import CliRunner

from cake_core.cli.app import app
from cake_core.diagnostics import CakeError, Severity
from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.rules import Rulebook, rulebook
from cake_core.source import Source

ROOT = Path(__file__).resolve().parents[1]
SPEC = spec_from_file_location("evidence", ROOT / "docs" / "evidence.py")
evidence = module_from_spec(SPEC)
sys.modules["evidence"] = evidence
SPEC.loader.exec_module(evidence)

REGISTRY = load_registry(environ={"CAKE_LOAD_PLUGINS": ""})
BAD = {f"{c.case}/{b.text.removesuffix('.cake')}": (c, b) for c in evidence.cases() for b in c.bad}

#: Wrong texts that one rule finds alone, and which.
ALONE = {
    "C-11/bad": "core/wait-phase",
    "C-13/bad": "core/missing-proxy-fence",
    "C-16/bad_fence_after": "core/tensor-fence-after",
    "C-16/bad_fence_before": "core/tensor-fence-before",
    "C-17/bad": "core/missing-proxy-fence",
    "C-18/bad": "core/barrier-init-cluster",
    "C-18/bad_no_fence": "core/barrier-init-fence",
    "C-22/bad": "core/slot-refill",
    "C-25/bad_wait_two": "core/async-completion",
    "C-27/bad": "core/slot-refill",
    "C-28/bad": "core/slot-race",
    "C-30/bad": "core/slot-refill",
    "C-32/bad": "core/signal-in-flight",
    "C-33/bad": "core/tensor-free",
    "C-41/bad": "core/meeting-phase",
    "C-46/bad": "core/register-budget",
    "C-48/bad_arrivals": "core/cluster-exit",
    "C-51/bad": "core/grid-order",
    "C-54/bad": "core/index-bounds",
    "C-56/bad": "core/tensor-map-stride",
    "C-62/bad": "core/cta-handoff",
    "C-66/bad": "core/index-bounds",
    "C-68/bad": "core/index-overflow",
    "C-65/bad": "core/cta-handoff",
    "C-77/bad": "core/shared-capacity",
    "C-78/bad": "core/register-budget",
    "F2/bad_sm100": "core/slot-refill",
    "F3/bad_sm100": "core/missing-proxy-fence",
    "F6/bad_sm100": "core/shared-capacity",
    "F8/bad_sm100": "core/index-bounds",
    "M1/bad_passed_early": "core/slot-race",
    "M4/bad_exit": "core/cluster-exit",
    "M4/bad_start": "core/barrier-init-cluster",
    "M5/bad_plain_arrival": "core/slot-race",
    "M7/bad": "core/register-fence",
    "M8/bad_no_wait": "core/slot-race",
}

#: The nine faults that are planted into the derived forms of two products: the code of each, what is told of what was expected and what was
#: found, and whether it is one of a moment, which has a stage and an iteration.
PLANTED = {
    "F1": ("core/arrival-count", r"counts 2 arrivals a phase, its roles bring 1", False),
    "F2": ("core/slot-refill", r"can begin while the read by .* may still run", True),
    "F3": ("core/missing-proxy-fence", r"no fence between the proxies stands behind the write", False),
    "F4": ("core/wait-phase", r"the stage of 'ab_empty' here is not the number of times so far, modulo 4", True),
    "F5": ("core/unserved-wait", r"needs number \d+ of load.*, which does it \d+ times in all", True),
    "F6": ("core/shared-capacity", r"needs \d+ bytes of shared memory, \d+ over the limit", False),
    "F7": ("ptx/tma-box", r"\d+ bytes", False),
    "F8": ("core/index-bounds", r"index \d+ is outside of dimension 0 of 'L', which has \d+", False),
    "F9": ("core/deadlock", r"needs number \d+ of", True),
}
PAGE = 10_000  # bytes


def errors(name: str, book: Rulebook, allow: tuple[str, ...] = ()) -> list[str]:
    case, bad = BAD[name]
    text = Source(bad.text, (case.folder / bad.text).read_text(encoding="utf-8"))
    try:
        build(text, REGISTRY, book=book, prove=True, allow_unproved=allow)
    except CakeError as error:
        return [d.code for d in error.diagnostics if d.severity is Severity.ERROR]
    return []


@pytest.mark.parametrize("name", ALONE)
def test_without_its_rule_a_wrong_text_passes(name):
    """So nothing else knows of the failure: rules are not there for show. What the rule covers is let pass, for no one speaks of it then."""
    book, own = rulebook(), ALONE[name]
    assert BAD[name][1].code == own
    without = Rulebook(book.packs, tuple(r for r in book.rules if r.id != own))
    (covers,) = (r.covers for r in book.rules if r.id == own)
    assert errors(name, without, covers) == []


def test_thirty_cases_hang_on_one_rule_each():
    assert len({n.partition("/")[0] for n in ALONE}) >= 30


def test_each_planted_fault_has_a_code_of_its_own():
    codes = [code for code, _, _ in PLANTED.values()]
    assert len(set(codes)) == len(codes) == 9
    for name, (case, bad) in BAD.items():
        if case.case in PLANTED and bad.text in ("bad_sm90.cake", "bad_sm100.cake"):
            assert bad.code == PLANTED[case.case][0], name


@pytest.mark.parametrize("arch", ["sm90", "sm100"])
@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_told_on_a_page(fault, arch):
    """For all sizes that the products admit: where, whose, of what, in which stage and iteration, what was expected and found, and what to do."""
    code, told, timed = PLANTED[fault]
    case, bad = BAD[f"{fault}/bad_{arch}"]
    result = CliRunner().invoke(app, ["check", str(case.folder / bad.text), "--json"], prog_name="cake")
    assert result.exit_code == 1 and len(result.output.encode()) <= PAGE
    found = [d for d in json.loads(result.output)["diagnostics"] if d["code"] == code]
    (one, *_) = [d for d in found if re.search(told, " ".join((d["message"], d["why"], *(d["witness"] or {"story": ()})["story"])))] or [None]
    assert one is not None, [(d["message"], d["why"]) for d in found]
    assert one["fix"] and one["span"]["line"]
    assert not timed or one["iteration"] and (one["stage"] or fault == "F9")
