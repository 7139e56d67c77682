"""What `cake rules review` compares: which versions, which packs, which rules a change follows into."""

from __future__ import annotations

import shutil
from pathlib import Path

from cake_core.cli.versions import proved
from cake_core.rules import load_pack
from cake_core.rules.packs import checkout
from cake_core.rules.store import written

from .conftest import DEFINED, ENVIRON, GOOD, NEW, NOTE, TWO, WAIVER, Repo, fates, reviewed
from .test_dishonest import a_lower_level, a_shared_definition
from .test_honest import a_new_rule, words


def test_a_definition_that_is_shared_is_followed_into_each_rule(repo, cake):
    a_shared_definition(repo)
    repo.commit()
    found, _ = reviewed(cake)
    assert fates(found) == {"acme/few-warps": "loosened", "acme/drafted": "loosened"}


def test_a_text_that_was_found_and_is_not_says_so(repo, cake):
    repo.change("rules/small-role/rule.yaml", "require: r.warps > 1", "require: r.warps > 0")
    repo.commit()
    (rule,) = reviewed(cake)[0]["review"]["packs"][0]["rules"]
    assert {"part": "texts", "direction": "looser", "say": "'bad_one.cake' was violated and is proved"} in rule["changes"]


def test_texts_edited_alone_are_a_warning(repo, cake):
    path = repo.pack / "rules/small-role/good_two.cake"
    path.write_text(path.read_text().replace("role a", "role b"))
    bad = repo.pack / "rules/small-role/bad_one.cake"
    bad.write_text(bad.read_text().replace("role a", "role b"))
    repo.goldens("small-role")
    repo.version("1.2.1")
    repo.commit()
    _, codes = reviewed(cake)
    assert codes == {"error": set(), "warning": {"review/tests-edited"}}


def test_below_1_0_a_major_step_is_a_minor_one(repo, cake):
    repo.git("checkout", "-q", "main")
    repo.change("pack.yaml", '"1.2.0"', '"0.2.0"')
    repo.commit()
    repo.git("checkout", "-q", "-B", "branch")
    repo.change("rules/small-role/rule.yaml", "r.instances >= 1", "r.instances >= 1 and r.instances < 5")
    repo.change("pack.yaml", '"0.2.0"', '"0.2.1"')
    assert reviewed(cake)[1]["error"] == {"review/loosened", "review/version"}
    repo.change("pack.yaml", 'version: "0.2.1"', 'version: "0.3.0"')
    repo.change("pack.yaml", "soundness: [", f'soundness: [{{version: "0.3.0", rules: [acme/small-role], note: "{NOTE}"}}, ')
    assert reviewed(cake)[1]["error"] == set()


def test_what_happened_on_the_base_meanwhile_is_no_change_of_the_branch(repo, cake):
    words(repo)
    repo.commit()
    repo.git("checkout", "-q", "main")
    a_new_rule(repo)
    repo.commit()
    repo.git("checkout", "-q", "branch")
    found, codes = reviewed(cake)
    assert codes["error"] == set() and fates(found) == {"acme/small-role": "only words"}


def test_the_working_tree_is_reviewed_with_what_is_not_committed(repo, cake):
    a_lower_level(repo)
    (repo.root / ".gitignore").write_text("*.left\n")
    (repo.pack / "rules" / "small-role" / "x.left").write_text("ignored")
    found, codes = reviewed(cake)
    assert "review/loosened" in codes["error"] and found["review"]["head"] is None
    assert reviewed(cake, "--head", "HEAD")[1]["error"] == set()


def test_only_the_pack_that_is_named(repo, cake):
    a_lower_level(repo)
    other = repo.root / "other"
    other.mkdir()
    shutil.copytree(repo.pack / "rules" / "few-warps", other / "rules" / "few-warps")
    (other / "pack.yaml").write_text('schema: 1\nname: two\nnamespace: two\nversion: "1.0.0"\nsuites: {default: []}\n')
    (other / "rules" / "few-warps" / "rule.yaml").write_text(DEFINED.replace("enough(r)", "r.warps >= 2").replace("acme/", "two/"))
    repo.pack = other
    result = cake("test", "two", "--pack", "other", "--update", "-j1")
    assert result.exit_code == 0, result.output
    found, codes = reviewed(cake, "--pack", "other")
    assert codes["error"] == set() and [p["pack"] for p in found["review"]["packs"]] == ["two"]


def test_the_built_in_packs_reviewed_against_themselves_are_accepted(tmp_path, monkeypatch, cake):
    """With all of the repository that looks like a pack."""
    ours = Path(__file__).resolve().parents[2]
    for folder in ("rules", "cake_core/rules/templates", "tests/packs"):
        shutil.copytree(ours / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    repo = Repo(tmp_path)
    repo.git("init", "-q", "-b", "main")
    repo.commit()
    monkeypatch.chdir(tmp_path)
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    found, codes = reviewed(cake)
    assert found["review"]["verdict"] == "accepted" and not codes["error"]


def test_rules_of_safety_leave_the_kernels_of_cake_as_they_are(repo, cake, monkeypatch):
    """Whoever's they are: those kernels are proved, so what such a rule finds there is a false alarm."""
    monkeypatch.setattr("cake_core.cli.versions.proved", lambda root: (("Cake's kernels/own.cake", TWO.encode()),))
    repo.rule("many-instances", NEW, bad_two=TWO, good_one=GOOD)
    repo.goldens("many-instances")
    repo.version("1.3.0")
    found, codes = reviewed(cake)
    assert codes["error"] == {"review/zoo"}
    assert [d["message"] for d in found["diagnostics"]] == [
        "'acme/many-instances' on Cake's kernels/own.cake (k, sm90) was not judged and is violated"
    ]
    repo.change("rules/many-instances/rule.yaml", "kind: safety", "kind: style")
    assert reviewed(cake)[1]["error"] == set(), "advice may speak of them"


def test_the_kernels_of_cake_are_those_of_a_checkout_that_is_not_what_is_compared(tmp_path):
    home = checkout()
    assert proved(home or tmp_path) == ()
    assert len(proved(tmp_path)) == (0 if home is None else len(list((home / "kernels").rglob("*.cake"))))


def test_what_is_new_in_the_settings_of_a_project_is_to_be_looked_at(repo, cake):
    """A waiver with a reason and an owner, another suite, lower levels: the project may say so, and who merges sees it. Stricter ones are not told."""
    path = repo.root / "cake.toml"
    path.write_text(
        '[rules]\nsuite = "strict"\npacks = [{name = "core", version = ">=0.1"}]\n[rules.levels]\nperformance = "off"\n' + _waiver("warning")
    )
    found, codes = reviewed(cake)
    assert codes == {"error": set(), "warning": {"review/settings"}}
    said = " ".join(d["message"] for d in found["diagnostics"])
    assert len(found["diagnostics"]) == 3 and "the suite 'strict'" in said and "'performance' at off" in said and "waives 'acme/small-role'" in said
    repo.commit()
    repo.git("branch", "-f", "main", "HEAD")
    path.write_text('[rules]\nsuite = "strict"\npacks = [{name = "core", version = ">=0.1"}, "acme"]\n[rules.levels]\nperformance = "error"\n')
    assert reviewed(cake)[1] == {"error": set(), "warning": set()}


def _waiver(level: str) -> str:
    return WAIVER.format(level=level, reason=NOTE, owner="A. Person")


def test_a_stored_form_that_is_what_is_read_is_no_matter(repo, cake):
    (repo.pack / "pack.json").write_text(written(load_pack(repo.pack, "cake_rules_acme"), "cake_rules_acme"))
    assert reviewed(cake)[1]["error"] == set()
