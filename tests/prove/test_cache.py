"""Proofs are kept by what they depend on, and by nothing that could make one stand for another."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest

import cake_core
from cake_core.check import checked
from cake_core.facts import facts_of, rows_of
from cake_core.pipeline import build, frontend, prover
from cake_core.plugins import load_registry
from cake_core.prove import cache
from cake_core.prove.cache import BESIDE, Proofs, content
from cake_core.prove.prover import Prover
from cake_core.rules import engine, judge, rulebook
from cake_core.rules.predicates import Standing
from cake_core.rules.schema import Level
from cake_core.source import Source

ROOT = Path(__file__).resolve().parents[2]
CORE = Path(cake_core.__file__).parent
REGISTRY = load_registry()
TEXT = """cake 1 derived
kernel k(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R persistent
  shared s: f32[2][256] at 0
  role work: 2 warps at 0 {
    var n = 0
    frag x: f32[256] vec 4 layout vector
    for r in cluster.id .. R step cluster.count {
      x = load(X[r, 0 +: 256], by = 16)
      store s[n % 2] <- x by 16
      bar.sync 1 threads 64
      x = load(s[n % 2], by = 16)
      store Y[r, 0 +: 256] <- x by 16
      n = n + 1
    }
  }
}
"""
PACK = 'schema: 1\nname: acme\nnamespace: acme\nversion: "0.1.0"\nsuites: {default: [{status: stable}]}\n'
RULE = """schema: 1
id: acme/wide
title: A narrow access
kind: legality
level: error
status: stable
precision: proof
since: "0.1"
owner: someone
match: {a: {access: {space: shared}}}
require: aligned(a, BYTES)
message: "'{a.op}' is narrow"
why: It is.
"""


@pytest.fixture
def kept(tmp_path, monkeypatch) -> Path:
    """The folder where proofs are kept, empty."""
    monkeypatch.setenv("CAKE_CACHE", str(tmp_path / "kept"))
    cache.method.cache_clear()
    yield tmp_path / "kept" / "proofs"
    cache.method.cache_clear()


def front(text: str = TEXT, name: str = "k.cake"):
    return frontend(Source(name, text), REGISTRY)


def rows(text: str = TEXT):
    f = front(text)
    return rows_of(facts_of(f.typed, REGISTRY, f.arch), f.arch, REGISTRY)


def path(text: str) -> Path:
    return Proofs(content(rows(text))).path


def proved(text: str = TEXT) -> None:
    assert build(Source("k.cake", text), REGISTRY, prove=True).diagnostics == ()


class Counting(Prover):
    """How often it had to ask."""

    asked = 0

    @property
    def _asked(self):
        type(self).asked += 1
        return Prover._asked.fget(self)

    @property
    def _places(self):
        type(self).asked += 1
        return Prover._places.fget(self)


def asked(text: str = TEXT, book=None) -> int:
    Counting.asked = 0
    f = front(text)
    checked(f.typed, REGISTRY, f.arch, book, Counting)
    return Counting.asked


def test_what_was_proved_is_not_asked_again(kept):
    first = asked()
    assert first > 0 and len(list(kept.glob("*.json"))) == 1
    assert asked() == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("R <= 65536", "R <= 65535"),  # a contract
        ("var n = 0", "var n = u32(0)"),  # a type
        ("X: in f32[R, 256]", "X: in f32[R, 260]"),  # a shape
        ("bar.sync 1 threads 64", "bar.sync 2 threads 64"),  # a statement
        ("f32[2][256] at 0", "f32[2][256] at 1024"),  # a place
        ("target sm90", "target sm100"),
    ],
    ids=lambda x: x,
)
def test_another_kernel_is_another_file(kept, old, new):
    assert TEXT.count(old) == 1
    assert path(TEXT) == path(TEXT) != path(TEXT.replace(old, new))


def test_another_solver_or_another_prover_proves_anew(kept, monkeypatch, tmp_path):
    first = path(TEXT)
    monkeypatch.setattr(cache, "_solver", lambda: b"another version")
    cache.method.cache_clear()
    second = path(TEXT)
    changed = tmp_path / "states.py"
    changed.write_text("another prover")
    monkeypatch.setattr(cache, "files", lambda: [changed])
    cache.method.cache_clear()
    assert len({first, second, path(TEXT)}) == 3


def test_every_file_that_decides_what_is_proved_counts():
    """What the prover imports, and what that imports, is among the files by whose content proofs are kept. Left out are the manifest, words for findings,
    the event machine, which decides no proof, and the reading of texts and primitives, whose result is the content itself."""
    apart = {"artifact", "diagnostics", "machine", "source", "frozen", "architecture", "elaborate", "primitive", "rules", "plugins", "syntax"}
    files = set(cache.files())
    assert {p for p in (CORE / "prove").glob("*.py")} <= files and all(p.is_file() for p in files)
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cake_core."):
                room = node.module.split(".")[1]
                if room not in apart:
                    assert CORE / room / "__init__.py" in files or CORE / f"{room}.py" in files, f"{file.name} imports {node.module}"


def test_a_rule_that_asks_otherwise_is_asked(kept, tmp_path):
    """Another pack, or another version of a rule, is judged by what it says and asks, whatever held before under its name."""
    proved()
    folder = tmp_path / "acme"
    rule = folder / "rules" / "wide" / "rule.yaml"
    rule.parent.mkdir(parents=True)
    (folder / "pack.yaml").write_text(PACK)

    def told(bytes: int) -> set[str]:
        rule.write_text(RULE.replace("BYTES", str(bytes)))
        f = front()
        return {d.code for d in checked(f.typed, REGISTRY, f.arch, rulebook((folder,)), prover()).findings}

    assert told(16) == set()
    assert told(4096) == {"acme/wide"}, "a proof of another alignment does not stand for it"
    assert told(16) == set() and told(4096) == {"acme/wide"}


def test_a_rule_that_holds_is_not_judged_again(kept, monkeypatch):
    proved()

    def judged(*_):
        raise AssertionError("a rule is judged again")

    f = front()
    monkeypatch.setattr(engine, "_Run", judged)
    assert checked(f.typed, REGISTRY, f.arch, None, prover()).findings == []


def test_what_was_held_before_counts_as_looked_at(kept, monkeypatch):
    """A pack that is over its budget is over it whether some of its rules held before or not."""
    found = rows()
    rules = [r for r in rulebook().rules if r.pack == "core"]

    def budget(most: int) -> list[tuple[str, str]]:
        monkeypatch.setattr(engine, "MAX_OF_PACK", most)
        p = Prover(found)
        told = judge(rules, found, p, kept=p.kept)
        p.close()
        return [(v.rule.id, str(v.outcome)) for v in told]

    anew = [budget(n) for n in (100, 600, 10**9)]
    assert len({tuple(b) for b in anew}) == 3
    assert [budget(n) for n in (100, 600, 10**9)] == anew


@pytest.mark.parametrize("change", ["shape", "definitions", "capabilities", "rlimit", "id", "pack"])
def test_all_of_a_rule_that_decides_counts(kept, change):
    rule = next(r for r in rulebook().rules if r.definitions)
    proofs = Proofs(content(rows()))
    proofs.judged(rule, 7, 11)
    other = {"shape": rulebook().rules[0].shape, "definitions": {}, "capabilities": ("another",), "rlimit": 1, "id": "acme/x", "pack": "acme"}
    assert proofs.of(rule) == (7, 11) and proofs.of(replace(rule, level=Level.INFO)) == (7, 11)
    assert proofs.of(replace(rule, **{change: other[change]})) is None


def test_what_the_target_admits_counts(kept):
    """Rules read limits and capabilities, which are no part of the facts."""
    f, found = front(), rows()
    less = replace(f.arch, capabilities=frozenset(list(f.arch.capabilities)[1:]))
    assert content(rows_of(found.facts, less, REGISTRY)) != content(found) == content(rows_of(found.facts, f.arch, REGISTRY))
    made = {name: [(r.id, dict(r.values)) for r in found[name]] for name in found.tables}
    again = rows_of(found.facts, less, REGISTRY)
    differ = {name for name in made if made[name] != [(r.id, dict(r.values)) for r in again[name]]}
    assert differ == {"capability"} <= set(BESIDE)


def test_what_is_violated_is_not_kept(kept):
    wrong = (
        TEXT.replace("      bar.sync 1 threads 64\n", "")
        .replace("frag x: f32[256] vec 4 layout vector", "frag x: f32[256] vec 4 layout vector, y: f32[256] vec 1 layout vector")
        .replace("x = load(s[n % 2], by = 16)", "y = load(s[n % 2], by = 4)")
        .replace("<- x by 16\n      n =", "<- y by 4\n      n =")
    )
    f = front(wrong)
    first = checked(f.typed, REGISTRY, f.arch, None, prover()).findings
    assert {d.code for d in first} == {"core/slot-race"}
    assert checked(f.typed, REGISTRY, f.arch, None, prover()).findings == first


FORGED = '{"questions": ["deadlock_free"], "sum": "0"}'


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{",
        "[]",
        "null",
        "7",
        '["deadlock_free"]',
        "{}",
        FORGED,
        '{"questions": 3, "sum": 4}',
        '{"questions": [[1]], "sum": ""}',
        "[" * 100_000,
        "\udcff",
    ],
    ids=lambda d: d[:14],
)
def test_a_damaged_file_is_no_proof_and_no_error(kept, damage):
    proved()
    (file,) = kept.glob("*.json")
    whole = file.read_bytes()
    file.write_bytes(damage.encode("utf-8", "surrogateescape"))
    assert not Proofs(content(rows())).has("deadlock_free")
    assert asked() > 0
    assert file.read_bytes() == whole, "it is written anew"


def test_one_bit_is_damage_enough(kept):
    proved()
    (file,) = kept.glob("*.json")
    data = json.loads(file.read_text())
    question = next(q for q in data["questions"] if q.startswith(("phase_safe", "ordered")))
    file.write_text(file.read_text().replace(question, question.swapcase()))
    assert not Proofs(content(rows())).has("deadlock_free")


def test_a_folder_in_place_of_a_file_and_a_folder_that_takes_nothing(kept, tmp_path, monkeypatch):
    file = path(TEXT)
    file.mkdir(parents=True)
    proved()
    (tmp_path / "closed").write_text("no folder")
    monkeypatch.setenv("CAKE_CACHE", str(tmp_path / "closed"))
    proved()


def test_no_folder_keeps_nothing(kept, monkeypatch):
    monkeypatch.setenv("CAKE_CACHE", "")
    assert path(TEXT) is None
    assert asked() > 0 and asked() > 0


def test_an_answer_that_is_kept_is_the_answer(kept):
    """Asked of a fresh prover, each question that is kept is proved."""
    proved()
    (file,) = kept.glob("*.json")
    questions = json.loads(file.read_text())["questions"]
    file.unlink()
    found = rows()
    p = Prover(found)
    by_name = {q.split()[0] for q in questions}
    assert {"deadlock_free", "drained", "in_bounds", "fits"} <= by_name
    assert p.deadlock_free(found["kernel"][0]).standing is Standing.PROVED
    assert p.drained(found["kernel"][0]).standing is Standing.PROVED
