"""`cake rules review` on branches of a repository: each dishonest change is refused for its own reason."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from dataclasses import replace

import pytest

from cake_core.rules import load_pack
from cake_core.rules.schema import Level
from cake_core.rules.store import written

from .conftest import BAD, GOOD, NEW, NOTE, SMALL, TWO, WAIVER, reviewed
from .test_honest import tighter


def hidden_in_where(repo):
    repo.change("rules/small-role/rule.yaml", "r.instances >= 1", "r.instances >= 1 and r.instances < 5")
    repo.version("2.0.0")
    return {"review/loosened"}


def require_with_its_bad_text(repo):
    repo.change("rules/small-role/rule.yaml", "r.warps > 1", "r.warps > 1 or r.instances > 1")
    repo.rule("small-role", (repo.pack / "rules/small-role/rule.yaml").read_text(), bad_one=BAD.replace("role a:", "role b:"))
    repo.goldens("small-role")
    repo.version("2.0.0", NOTE, "acme/small-role")
    return {"review/tests-edited"}


def a_bad_text_taken_away(repo):
    """What violated the rule does not any more; the text that showed it is gone."""
    repo.change("rules/small-role/rule.yaml", "match: {r: {role: {}}}", "match: {r: {role: {}}, k: {kernel: {resident: none}}}")
    for name in ("bad_one.cake", "bad_one.diag"):
        (repo.pack / "rules" / "small-role" / name).unlink()
    repo.version("2.0.0", NOTE, "acme/small-role")
    return {"review/tests-edited", "rules/example"}


def renamed_without_a_tombstone(repo):
    (repo.pack / "rules" / "few-warps").rename(repo.pack / "rules" / "one-warp")
    repo.change("rules/one-warp/rule.yaml", "few-warps", "one-warp")
    repo.goldens("one-warp")
    repo.version("2.0.0", "nothing but its name is another one", "acme/few-warps")
    return {"review/tombstone"}


def removed_without_a_note(repo):
    shutil.rmtree(repo.pack / "rules" / "few-warps")
    repo.tombstone("acme/few-warps", "2.0.0")
    repo.version("2.0.0")
    return {"review/loosened"}


def a_tombstone_of_another_version(repo):
    shutil.rmtree(repo.pack / "rules" / "few-warps")
    repo.tombstone("acme/few-warps", "1.0.0")
    repo.version("2.0.0", "small-role finds all that this one found", "acme/few-warps")
    return {"review/tombstone"}


def a_tombstone_taken_away(repo):
    repo.change("pack.yaml", 'removed: [{id: acme/old, since: "1.0.0", reason: it said what small-role says}]\n', "")
    repo.version("1.2.1")
    return {"review/tombstone"}


def an_id_used_again(repo):
    repo.change("pack.yaml", 'removed: [{id: acme/old, since: "1.0.0", reason: it said what small-role says}]\n', "")
    repo.rule("old", NEW.replace("many-instances", "old"), bad_two=TWO, good_one=GOOD)
    repo.goldens("old")
    repo.version("1.3.0")
    return {"review/id-reused"}


def an_old_name_forgotten(repo):
    repo.git("checkout", "-q", "main")
    repo.change("rules/few-warps/rule.yaml", "why: It is.", "why: It is.\nrelated: [{id: acme/earlier, type: renamed}]")
    repo.commit()
    repo.git("checkout", "-q", "-B", "branch")
    repo.change("rules/few-warps/rule.yaml", "\nrelated: [{id: acme/earlier, type: renamed}]", "")
    repo.version("1.2.1")
    return {"review/tombstone"}


def an_agent_without_a_run(repo):
    repo.change("rules/drafted/rule.yaml", ', run: "17"', "")
    repo.version("1.2.1")
    return {"review/provenance"}


def an_agent_called_human(repo):
    repo.change("rules/drafted/rule.yaml", 'kind: agent, run: "17"', "kind: human")
    repo.version("1.2.1")
    return {"review/provenance"}


def an_agents_rule_that_is_no_draft(repo):
    author = 'owner: A. Person\nauthors: [{name: rule-agent, kind: agent, run: "18"}]\n'
    repo.rule("many-instances", NEW.replace("owner: A. Person\n", author), bad_two=TWO, good_one=GOOD)
    repo.goldens("many-instances")
    repo.version("1.3.0")
    return {"review/agent-status"}


def no_owner(repo):
    repo.change("rules/small-role/rule.yaml", "owner: A. Person\n", "")
    repo.version("1.2.1")
    return {"rules/key"}


def owned_by_nobody(repo):
    repo.change("rules/small-role/rule.yaml", "owner: A. Person", "owner: TBD")
    repo.version("1.2.1")
    return {"review/owner"}


def owned_by_its_agent(repo):
    repo.change("rules/drafted/rule.yaml", "owner: A. Person", "owner: Rule-Agent")
    repo.version("1.2.1")
    return {"review/owner"}


def a_lower_level(repo):
    repo.change("rules/small-role/rule.yaml", "level: error", "level: warning")
    repo.goldens("small-role")
    repo.version("2.0.0")
    return {"review/loosened"}


def a_lower_status(repo):
    repo.change("rules/small-role/rule.yaml", "status: stable", "status: preview")
    repo.goldens("small-role")
    repo.version("2.0.0")
    return {"review/loosened"}


def a_kind_that_may_be_let_pass(repo):
    repo.change("rules/small-role/rule.yaml", "kind: safety", "kind: style")
    repo.version("2.0.0")
    return {"review/loosened"}


def a_budget_raised(repo):
    repo.change("rules/small-role/rule.yaml", "why: It is.", "why: It is.\nbudget: {rlimit: 2500000}")
    repo.version("1.3.0")
    return {"review/budget"}


def a_golden_edited(repo):
    path = repo.pack / "rules/small-role/bad_one.diag"
    path.write_text(path.read_text().replace("is small", "is fine"))
    repo.version("1.2.1")
    return {"rules/example"}


def the_version_as_before(repo):
    repo.change("rules/small-role/rule.yaml", "title: A role", "title: Any role")
    return {"review/version"}


def a_patch_for_a_new_rule(repo):
    repo.rule("many-instances", NEW, bad_two=TWO, good_one=GOOD)
    repo.goldens("many-instances")
    repo.version("1.2.1")
    return {"review/version"}


def a_version_that_leads_back(repo):
    repo.change("rules/small-role/rule.yaml", "title: A role", "title: Any role")
    repo.version("1.1.9")
    return {"review/version"}


def the_default_suite_narrowed(repo):
    repo.change("pack.yaml", "[{status: stable}]", "[{status: stable, kind: legality}]")
    repo.version("2.0.0")
    return {"review/loosened"}


def for_fewer_targets(repo):
    repo.change("rules/small-role/rule.yaml", "match: {r", "applies: {capability: [tma]}\nmatch: {r")
    repo.version("2.0.0")
    return {"review/loosened"}


def a_shared_definition(repo):
    """Neither rule file is touched."""
    repo.change("pack.yaml", "as: r.warps >= 2", "as: r.warps >= 2 or r.instances > 3")
    repo.version("1.2.1")
    return {"review/loosened", "review/version"}


def a_note_of_long_ago(repo):
    repo.change("rules/small-role/rule.yaml", "r.instances >= 1", "r.instances >= 1 and r.instances < 5")
    repo.change("pack.yaml", 'soundness: [{version: "1.0.0"', 'soundness: [{version: "1.2.0"')
    repo.version("2.0.0")
    return {"review/loosened"}


def a_note_that_says_nothing(repo):
    repo.change("rules/small-role/rule.yaml", "r.instances >= 1", "r.instances >= 1 and r.instances < 5")
    repo.version("2.0.0", "it is fine", "acme/small-role")
    return {"review/loosened"}


def a_category_claimed(repo):
    repo.change("rules/small-role/rule.yaml", "why: It is.", "why: It is.\ncovers: [deadlock]")
    repo.version("1.3.0")
    return {"review/loosened", "review/version"}


def a_linked_rule(repo):
    folder = repo.pack / "rules" / "small-role"
    folder.rename(repo.root / "elsewhere")
    folder.symlink_to("../../../elsewhere")
    repo.version("1.2.1")
    return {"review/odd-file"}


def a_linked_text(repo):
    path = repo.pack / "rules" / "small-role" / "bad_one.cake"
    path.rename(repo.root / "bad.cake")
    path.symlink_to("../../../../bad.cake")
    repo.version("1.2.1")
    return {"review/odd-file"}


def the_pack_moved_out_of_sight(repo):
    (repo.root / "tests").mkdir()
    repo.pack.rename(repo.root / "tests" / "cake_rules_acme")
    return {"review/tombstone"}


def a_twin_of_the_pack(repo):
    """The rules as they were in another folder, and looser ones in the old place."""
    shutil.copytree(repo.pack, repo.root / "zzz")
    repo.change("rules/small-role/rule.yaml", "r.instances >= 1", "r.instances >= 1 and r.instances < 5")
    return {"review/loosened", "rules/repeated"}


def a_known_kernel_taken_away(repo):
    (repo.root / "kernels" / "right.cake").unlink()
    return a_false_alarm_on_a_known_kernel(repo)


def a_known_kernel_edited(repo):
    path = repo.root / "kernels" / "right.cake"
    path.write_text(path.read_text().replace("2 warps", "4 warps"))
    return a_false_alarm_on_a_known_kernel(repo)


def a_known_kernel_that_cant_be_judged(repo):
    (repo.root / "kernels" / "other.cake").write_text(GOOD.replace("warp.sync", "warp.sink"))
    return tighter(repo) and {"review/zoo"}


def a_known_kernel_for_a_target_that_is_not_here(repo):
    (repo.root / "kernels" / "other.cake").write_text(GOOD.replace("sm90", "sm999"))
    return tighter(repo) and {"review/zoo"}


def a_rule_without_a_near_miss(repo):
    repo.rule("many-instances", NEW, bad_two=TWO, good_one=GOOD.replace("warp.sync", "warp.sync\n" * 4))
    repo.version("1.3.0")
    return {"rules/example"}


def a_false_alarm_on_a_known_kernel(repo):
    rule = NEW.replace("r.instances < 2", "r.warps > 2")
    repo.rule("many-instances", rule, bad_two=GOOD, good_one=GOOD.replace("2 warps", "4 warps"))
    repo.goldens("many-instances")
    repo.version("1.3.0")
    return {"review/zoo"}


def a_kernel_no_longer_reached(repo):
    """What violates the rule is the same, and all texts are as they were: but what was proved of a known kernel is not any more."""
    repo.change("rules/small-role/rule.yaml", "r.instances >= 1", "r.instances >= 1 and r.warps < 2")
    repo.version("2.0.0", NOTE, "acme/small-role")
    return {"review/zoo", "rules/example"}


def a_pack_that_cant_be_read(repo):
    repo.change("rules/small-role/rule.yaml", "require: r.warps > 1", "require: r.wraps > 1")
    repo.version("1.3.0")
    return {"rules/unknown-column"}


@contextmanager
def on_main(repo):
    """What the block does was so before the branch."""
    repo.git("checkout", "-q", "main")
    yield
    repo.commit()
    repo.git("checkout", "-q", "-B", "branch")


def what_failed_let_pass_by_another_order(repo):
    """`or` leaves its right side alone: the old rule had no value for events whose threads can't be counted, and said so; the new one passes them."""
    rule = SMALL.replace("small-role", "few-threads").replace("{r: {role: {}}}\nwhere: r.instances >= 1", "{r: {event: {op: warp.sync}}}")
    rule = rule.replace("r.warps > 1", "r.threads > 32 or r.threads == none")
    with on_main(repo):
        repo.rule("few-threads", rule, bad_one=BAD, good_two=GOOD)
        repo.goldens("few-threads")
    repo.change("rules/few-threads/rule.yaml", "r.threads > 32 or r.threads == none", "r.threads == none or r.threads > 32")
    repo.version("1.2.1")
    return {"review/loosened", "review/version"}


def _project(repo, text: str) -> None:
    (repo.root / "cake.toml").write_text(text)


def a_pack_that_is_no_longer_asked_for(repo):
    with on_main(repo):
        _project(repo, '[rules]\npacks = ["core", "acme"]\n')
    _project(repo, '[rules]\npacks = ["core"]\n')
    return {"review/settings"}


def a_project_without_its_settings(repo):
    a_pack_that_is_no_longer_asked_for(repo)
    (repo.root / "cake.toml").unlink()
    return {"review/settings"}


def a_waiver_without_a_reason(repo):
    _project(repo, WAIVER.format(level="warning", reason="ok", owner="A. Person"))
    return {"review/settings"}


def a_waiver_of_nobody(repo):
    (repo.root / "kernels" / "cake.toml").write_text(WAIVER.format(level="warning", reason=NOTE, owner="me"))
    return {"review/settings"}


def a_waiver_made_wider(repo):
    with on_main(repo):
        _project(repo, WAIVER.format(level="warning", reason="ok", owner="A. Person"))
    _project(repo, WAIVER.format(level="off", reason="ok", owner="A. Person"))
    return {"review/settings"}


def settings_that_cant_be_read(repo):
    _project(repo, "[rules]\nsuit = 'strict'\n")
    return {"review/settings"}


def linked_settings(repo):
    (repo.root / "else.toml").write_text("")
    (repo.root / "cake.toml").symlink_to("else.toml")
    return {"review/odd-file"}


def a_project_pack_called_as_what_is_left_out(repo):
    """`.cake/rules/tests` is loaded as any other folder there."""
    with on_main(repo):
        (repo.root / ".cake" / "rules").mkdir(parents=True)
        repo.pack = repo.pack.rename(repo.root / ".cake" / "rules" / "tests")
    repo.change("rules/small-role/rule.yaml", "r.instances >= 1", "r.instances >= 1 and r.instances < 5")
    return {"review/loosened"}


def a_stored_form_of_another_pack(repo):
    """It is of the files that are there, and whole."""
    repo.version("1.2.1")
    pack = load_pack(repo.pack, "cake_rules_acme")
    rules = tuple(replace(r, level=Level.INFO) for r in pack.rules)
    (repo.pack / "pack.json").write_text(written(replace(pack, rules=rules), "cake_rules_acme"))
    return {"review/stored"}


DISHONEST = [
    a_stored_form_of_another_pack,
    a_pack_that_is_no_longer_asked_for,
    a_project_without_its_settings,
    a_waiver_without_a_reason,
    a_waiver_of_nobody,
    a_waiver_made_wider,
    settings_that_cant_be_read,
    linked_settings,
    a_project_pack_called_as_what_is_left_out,
    what_failed_let_pass_by_another_order,
    hidden_in_where,
    require_with_its_bad_text,
    a_bad_text_taken_away,
    renamed_without_a_tombstone,
    removed_without_a_note,
    a_tombstone_of_another_version,
    a_tombstone_taken_away,
    an_id_used_again,
    an_old_name_forgotten,
    an_agent_without_a_run,
    an_agent_called_human,
    an_agents_rule_that_is_no_draft,
    no_owner,
    owned_by_nobody,
    owned_by_its_agent,
    a_lower_level,
    a_lower_status,
    a_kind_that_may_be_let_pass,
    a_budget_raised,
    a_golden_edited,
    the_version_as_before,
    a_patch_for_a_new_rule,
    a_version_that_leads_back,
    the_default_suite_narrowed,
    for_fewer_targets,
    a_shared_definition,
    a_note_of_long_ago,
    a_note_that_says_nothing,
    a_category_claimed,
    a_linked_rule,
    a_linked_text,
    the_pack_moved_out_of_sight,
    a_twin_of_the_pack,
    a_known_kernel_taken_away,
    a_known_kernel_edited,
    a_known_kernel_that_cant_be_judged,
    a_known_kernel_for_a_target_that_is_not_here,
    a_rule_without_a_near_miss,
    a_false_alarm_on_a_known_kernel,
    a_kernel_no_longer_reached,
    a_pack_that_cant_be_read,
]


@pytest.mark.parametrize("change", DISHONEST)
def test_a_dishonest_change_is_refused(change, repo, cake):
    wanted = change(repo)
    repo.commit()
    found, codes = reviewed(cake)
    assert wanted <= codes["error"], found["diagnostics"]
    for d in found["diagnostics"]:
        assert str(repo.root) not in json.dumps(d) and "/tmp" not in json.dumps(d)
        assert d["fix"] or not d["code"].startswith("review/"), d
