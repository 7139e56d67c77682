"""The corpus of real failures, executed: at its witness a wrong text shows a fault at the place that its case names, a right one none."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from machine_texts import read

from cake_core.diagnostics import CakeError
from cake_core.machine import Kind, Policy, Scenario, explore

SPEC = spec_from_file_location("evidence", Path(__file__).resolve().parents[2] / "docs" / "evidence.py")
evidence = module_from_spec(SPEC)
sys.modules["evidence"] = evidence
SPEC.loader.exec_module(evidence)

#: What the machine executes; other categories are about values, addresses, limits or other grids.
CATEGORIES = {
    *("deadlock", "race", "phase", "overrun", "transaction-bytes", "arrival-count", "async-completion", "proxy-fence"),
    *("barrier-init", "tensor-memory", "named-barrier", "cluster-exit"),
}

#: Wrong texts of these categories in which the machine sees nothing, and why.
NOT_EXECUTED = {
    "C-15/bad_redundant": "advice: a fence too many",
    "C-32/bad": "accesses of global memory are not followed",
    "C-32/bad_behind_the_loop": "accesses of global memory are not followed",
    "C-35/bad_offset": "how columns are encoded in an address",
    "C-49/bad": "grids that depend on each other are not executed",
    "C-65/bad": "accesses of global memory are not followed",
    "C-65/bad_one_not_waited_for": "accesses of global memory are not followed",
    "M7/bad": "the order of registers is the assembler's to keep",
}

CASES = [c for c in evidence.cases() if c.category in CATEGORIES]
BAD = [(c, b) for c in CASES for b in c.bad if b.expect != "inexpressible"]
GOOD = [(c, p) for c in evidence.cases() for p in sorted(c.folder.glob("good*.cake")) if any(b.witness for b in c.bad)]


def name(value) -> str:
    match value:
        case Path():
            return value.stem
        case evidence.Case():
            return value.case
        case evidence.Bad():
            return value.text.removesuffix(".cake")
    return str(value)


def facts_of(path: Path):
    try:
        return read(path.read_text(encoding="utf-8"))
    except CakeError:
        return None


def scenario(facts, bad) -> Scenario | None:
    """The witness, None where it is one of other parameters."""
    sizes = {n: v for n, v in bad.witness.items() if n in facts.scalars}
    heads = {n: v for n, v in bad.witness.items() if isinstance(v, list)}
    if len(sizes) < len(facts.scalars):
        return None

    def load(tensor: str, index: tuple[int, ...]) -> int | None:
        head = heads.get(tensor, ())
        return int(head[index[0]]) if len(index) == 1 and index[0] < len(head) else None

    return Scenario(sizes, 0, bad.witness.get("cluster.count", 1), load if heads else None, Policy(strict=bad.policy == "strict"))


def places(fault) -> set[str]:
    roles = {s.role for s in (fault.first, fault.second, *(s for s, _ in fault.blocked)) if s is not None}
    return roles | {fault.resource}


@pytest.mark.parametrize(("case", "bad"), BAD, ids=name)
def test_a_wrong_text_shows_its_fault(case, bad):
    facts = facts_of(case.folder / bad.text)
    if facts is None:
        assert bad.expect == "compiler", "no facts, and no code that says why"
        return
    outcome = explore(facts, scenario(facts, bad), seconds=5, limit_states=20_000)
    if f"{case.case}/{name(bad)}" in NOT_EXECUTED:
        assert outcome.faults == (), "it is found now: take it out of the list"
        return
    assert outcome.faults != ()
    wanted = {bad.where.role, bad.where.resource} - {None}
    assert any(places(f) & wanted or f"'{bad.where.resource}'" in f.message for f in outcome.faults), [str(f) for f in outcome.faults]


@pytest.mark.parametrize(("case", "path"), GOOD, ids=name)
def test_a_right_text_shows_none(case, path):
    """At the sizes at which its wrong neighbours show theirs. A text that is `hard` may be held for a race."""
    facts = facts_of(path)
    sizes = [s for b in case.bad if b.witness and (s := scenario(facts, b)) is not None]
    for s in dict.fromkeys(str(s) for s in sizes):
        at = next(x for x in sizes if str(x) == s)
        outcome = explore(facts, at, seconds=5, limit_states=5000)
        allowed = {Kind.RACE} if path.name in case.hard else set()
        assert outcome.found <= allowed, [str(f) for f in outcome.faults]
