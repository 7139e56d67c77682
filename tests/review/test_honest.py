"""`cake rules review` on branches of a repository: honest changes are accepted, with the version that they ask for."""

from __future__ import annotations

import shutil

import pytest

from .conftest import GOOD, NEW, NOTE, PACK, TWO, fates, reviewed


def nothing(repo):
    (repo.root / "README.md").write_text("Rules, many.\n")
    return {}


def a_form_of_packs(repo):
    form = repo.root / "engine" / "templates" / "pack" / "pack.yaml"
    form.parent.mkdir(parents=True)
    form.write_text(PACK.replace("acme", "$name"))
    return {}


def words(repo):
    repo.change("rules/small-role/rule.yaml", "why: It is.", "why: One warp is not enough.")
    repo.goldens("small-role")
    repo.version("1.2.1")
    return {"acme/small-role": "only words"}


def the_same_otherwise(repo):
    repo.change("rules/small-role/rule.yaml", "require: r.warps > 1", "require: not (r.warps <= 1)")
    repo.version("1.2.1")
    return {"acme/small-role": "rewritten"}


def a_definition_of_its_own(repo):
    repo.change("rules/few-warps/rule.yaml", "enough(r)", "r.warps > 1")
    repo.version("1.2.1")
    return {"acme/few-warps": "rewritten"}


def tighter(repo):
    repo.change("rules/small-role/rule.yaml", "require: r.warps > 1", "require: r.warps > 1 and r.instances < 9")
    repo.version("1.3.0")
    return {"acme/small-role": "tightened"}


def looser_with_a_note(repo):
    repo.change("rules/small-role/rule.yaml", "r.instances >= 1", "r.instances >= 1 and r.instances < 5")
    repo.version("2.0.0", NOTE, "acme/small-role")
    return {"acme/small-role": "loosened"}


def a_new_rule(repo):
    repo.rule("many-instances", NEW, bad_two=TWO, good_one=GOOD)
    repo.goldens("many-instances")
    repo.version("1.3.0")
    return {"acme/many-instances": "added"}


def one_removed(repo):
    shutil.rmtree(repo.pack / "rules" / "few-warps")
    repo.tombstone("acme/few-warps", "2.0.0")
    repo.version("2.0.0", "small-role finds all that this one found", "acme/few-warps")
    return {"acme/few-warps": "removed"}


def one_renamed(repo):
    (repo.pack / "rules" / "few-warps").rename(repo.pack / "rules" / "one-warp")
    repo.change("rules/one-warp/rule.yaml", "few-warps", "one-warp")
    repo.goldens("one-warp")
    repo.tombstone("acme/few-warps", "2.0.0", ", replaced_by: acme/one-warp")
    repo.version("2.0.0", "nothing but its name is another one", "acme/few-warps")
    return {"acme/few-warps": "renamed"}


def one_that_says_what_it_was_called(repo):
    (repo.pack / "rules" / "few-warps").rename(repo.pack / "rules" / "one-warp")
    repo.change("rules/one-warp/rule.yaml", "few-warps", "one-warp")
    repo.change("rules/one-warp/rule.yaml", "why: It is.", "why: It is.\nrelated: [{id: acme/few-warps, type: renamed}]")
    repo.goldens("one-warp")
    repo.version("2.0.0", "nothing but its name is another one", "acme/few-warps")
    return {"acme/few-warps": "renamed"}


def a_draft_promoted(repo):
    repo.change("rules/drafted/rule.yaml", "status: draft", "status: stable")
    repo.goldens("drafted")
    repo.version("1.3.0")
    return {"acme/drafted": "tightened"}


def a_draft_loosened(repo):
    """It binds nobody yet, so it is no danger: a minor step."""
    repo.change("rules/drafted/rule.yaml", "r.instances >= 1", "r.instances >= 1 and r.instances < 5")
    repo.version("1.3.0")
    return {"acme/drafted": "loosened"}


@pytest.mark.parametrize(
    "change",
    [
        nothing,
        a_form_of_packs,
        words,
        the_same_otherwise,
        a_definition_of_its_own,
        tighter,
        looser_with_a_note,
        a_new_rule,
        one_removed,
        one_renamed,
        one_that_says_what_it_was_called,
        a_draft_promoted,
        a_draft_loosened,
    ],
)
def test_an_honest_change_is_accepted(change, repo, cake):
    wanted = change(repo)
    repo.commit()
    found, codes = reviewed(cake)
    assert codes["error"] == set(), found["diagnostics"]
    assert fates(found) == wanted or set(wanted.items()) <= set(fates(found).items()) and change is a_draft_promoted
