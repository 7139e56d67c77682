"""What makes a pack find less with almost nothing of it written otherwise: another variable, a word of the language, a folder that nothing loads;
and what lies beside packs and is none of their business."""

from __future__ import annotations

import os

import pytest

from cake_core.diagnostics import CakeError
from cake_core.review.compare import Direction, changes, judged
from cake_core.rules import load_rule

from .conftest import BAD, GOOD, NOTE, PLACE, SMALL, reviewed

RELATION = SMALL.replace("r: {role: {}}", "r: {role: {}}, s: {role: {}}").replace("{r.id}", "{r.id}/{s.id}")
PATH = SMALL.partition("match:")[0] + (
    "shape: path\nfrom: {access: {space: shared}}\nto: {access: {space: shared}}\nwhere: from.guarded\nmust_pass: {fence: {}}\n"
    'of: anyone\nmessage: "{from.op}"\nhelp: none\nfix: none\nwhy: It is.\n'
)
DEFINED = RELATION.replace("match:", "define:\n  one: {of: {v: role, w: role}, as: v.warps > 1}\nmatch:").replace("r.warps > 1", "one(r, s)")


@pytest.fixture
def rule(tmp_path):
    def read(text: str):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.yaml"
        path.write_text(text)
        return load_rule(path)

    return read


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (RELATION, "require: r.warps", "require: s.warps"),
        (RELATION, "where: r.instances", "where: s.instances"),
        (RELATION, "require: r.warps > 1", "assume: s.warps > 1\nrequire: r.warps > 1"),
        (DEFINED, "one(r, s)", "one(s, r)"),
        (DEFINED, "as: v.warps", "as: w.warps"),
        (PATH, "where: from.guarded", "where: to.guarded"),
    ],
)
def test_another_variable_is_another_rule(rule, text, old, new):
    assert old in text
    a, b = rule(text), rule(text.replace(old, new))
    assert judged(a, b) in (Direction.UNKNOWN, Direction.LOOSER), changes(a, b)
    assert changes(a, b)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("message: \"role '{r.id}/{s.id}'", "message: \"role '{s.id}/{r.id}'"),
        ("say: '{t.id}'", "say: '{r.id}'"),
        ("t.warps > r.warps", "r.warps > t.warps"),
    ],
)
def test_another_variable_in_what_is_told_is_other_words(rule, old, new):
    text = RELATION + "also: [{over: t in role where t.warps > r.warps, say: '{t.id}'}]\n"
    assert old in text
    (change,) = changes(rule(text), rule(text.replace(old, new)))
    assert change.direction is Direction.WORDS


@pytest.mark.parametrize("name", ["implies", "text"])
def test_a_definition_has_no_name_of_the_language(rule, name):
    """The judge would not look at it, and the comparison would."""
    text = SMALL.replace("match:", f"define:\n  {name}: {{of: {{a: bool, b: bool}}, as: b}}\nmatch:")
    with pytest.raises(CakeError) as raised:
        rule(text)
    assert [d.code for d in raised.value.diagnostics] == ["rules/value"] and name in raised.value.diagnostics[0].message


def _on_main(repo, prepare):
    repo.git("checkout", "-q", "main")
    prepare()
    repo.commit()
    repo.git("branch", "-f", "branch", "main")
    repo.git("checkout", "-q", "branch")


def _in_a_project(repo):
    def move():
        (repo.root / ".cake" / "rules").mkdir(parents=True)
        repo.git("mv", PLACE, ".cake/rules/acme")

    _on_main(repo, move)
    repo.pack = repo.root / ".cake" / "rules" / "acme"


@pytest.mark.parametrize("to", ["rules_of_acme", ".cake/rules/.acme", ".cake/acme"])
def test_a_pack_that_a_project_loads_no_more_is_refused(repo, cake, to):
    _in_a_project(repo)
    repo.git("mv", ".cake/rules/acme", to)
    repo.commit()
    _, codes = reviewed(cake)
    assert codes["error"] == {"review/loosened", "review/version"}


def test_a_pack_has_another_folder_in_the_same_project(repo, cake):
    _in_a_project(repo)
    repo.git("mv", ".cake/rules/acme", ".cake/rules/of-acme")
    repo.commit()
    assert not reviewed(cake)[1]["error"]


def test_a_note_says_who_loads_it_now(repo, cake):
    _in_a_project(repo)
    repo.version("2.0.0", NOTE, "acme/small-role", "acme/few-warps")
    for slug in ("small-role", "few-warps", "drafted"):
        repo.goldens(slug)
    repo.git("mv", ".cake/rules/acme", "rules_of_acme")
    repo.commit()
    assert not reviewed(cake)[1]["error"]


def test_a_link_among_the_packs_of_a_project_is_refused(repo, cake):
    """What it leads to would be loaded, and is not reviewed."""
    (repo.root / ".cake" / "rules").mkdir(parents=True)
    (repo.root / ".cake" / "rules" / "more").symlink_to(repo.root.parent)
    repo.commit()
    assert reviewed(cake)[1]["error"] == {"review/odd-file"}


OFFERED = '[project]\nname = "acme"\n[project.entry-points."cake.rule_packs"]\nacme = "cake_rules_acme"\n'


@pytest.mark.parametrize("now", ['[project]\nname = "acme"\n', OFFERED.replace("rule_packs", "rules"), "[", None])
@pytest.mark.parametrize("where", ["", "packs/"])
def test_a_pack_that_no_distribution_offers_any_more_is_refused(repo, cake, where, now):
    place = repo.root / f"{where}pyproject.toml"
    _on_main(repo, lambda: place.write_text(OFFERED))
    place.unlink() if now is None else place.write_text(now)
    repo.commit()
    _, codes = reviewed(cake)
    assert codes["error"] == {"review/loosened", "review/version"}


def test_who_else_is_offered_matters_to_no_pack(repo, cake):
    place = repo.root / "pyproject.toml"
    _on_main(repo, lambda: place.write_text(OFFERED))
    place.write_text(OFFERED + 'more = "cake_rules_more"\n[tool.x]\ny = 1\n')
    repo.commit()
    assert not reviewed(cake)[1]["error"]


@pytest.mark.parametrize("commit", [False, True])
def test_odd_names_beside_packs_are_nobodys_business(repo, cake, commit):
    for name in (b"a\\b.txt", b"caf\xe9.txt"):
        with open(os.fsencode(repo.root) + b"/" + name, "wb") as f:
            f.write(b"x")
    repo.commit()
    _, codes = reviewed(cake, *(("--head", "HEAD") if commit else ()))
    assert not codes["error"]


@pytest.mark.parametrize("name", [b"packs/cake_rules_acme/rules/small-role/bad_\\.cake", b"packs/cake_rules_acme/caf\xe9.md", b"packs/a\\b/pack.yaml"])
def test_odd_names_in_packs_are_refused(repo, cake, name):
    place = os.fsencode(repo.root) + b"/" + name
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(place, "wb") as f:
        f.write(b"x")
    repo.commit()
    _, codes = reviewed(cake)
    assert codes["error"] == {"review/odd-file"}


CLAIM = SMALL.replace("small-role", "claim").replace("is small", "is claimed") + "covers: [deadlock]\n"


@pytest.mark.parametrize("status", ["new", "promoted"])
def test_the_first_rule_that_covers_a_category_says_why(repo, cake, status):
    if status == "promoted":
        _on_main(repo, lambda: (repo.rule("claim", CLAIM.replace("stable", "draft"), bad_one=BAD, good_two=GOOD), repo.goldens("claim")))
    repo.rule("claim", CLAIM, bad_one=BAD, good_two=GOOD)
    repo.version("1.3.0")
    repo.goldens("claim")
    assert reviewed(cake)[1]["error"] == {"review/loosened"}
    repo.change("pack.yaml", "soundness: [", 'soundness: [{version: "1.3.0", rules: [acme/claim], note: a role of two warps never waits for itself}, ')
    assert not reviewed(cake)[1]["error"]


def test_one_more_rule_that_covers_a_category_is_only_new(repo, cake):
    _on_main(repo, lambda: (repo.rule("claim", CLAIM, bad_one=BAD, good_two=GOOD), repo.goldens("claim")))
    repo.rule("more", CLAIM.replace("/claim", "/more").replace("is claimed", "is more"), bad_one=BAD, good_two=GOOD)
    repo.version("1.3.0")
    repo.goldens("more")
    assert not reviewed(cake)[1]["error"]
