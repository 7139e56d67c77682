"""Packs as products: what a manifest asks for, what became of rules, and that a pack that does not fit is refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from cake_core import __version__
from cake_core.cli.app import app
from cake_core.diagnostics import CakeError
from cake_core.rules import find_packs, load_pack, packs, selected
from cake_core.rules.names import named
from cake_core.rules.schema import Need
from cake_core.rules.versions import admits, numbers, wrong_bound

RULE = """schema: 1
id: acme/warps
title: A role of one warp
kind: performance
level: warning
status: stable
precision: high
since: "0.1"
owner: someone
match: {r: {role: {}}}
require: r.warps > 1
message: "role '{r.id}' has one warp"
why: It is small.
"""
PACK = """schema: 1
name: acme
namespace: acme
version: "0.3.0"
suites: {default: [{status: stable}]}
"""
DEPRECATED = RULE.replace("status: stable", 'status: deprecated\nuntil: "0.4"\nreplaced_by: acme/other')
OTHER = RULE.replace("acme/warps", "acme/other")


@pytest.fixture
def pack(tmp_path):
    """`pack(PACK, warps=RULE, ..)`: a folder with a pack."""

    def write(text: str = PACK, folder: str = "cake_rules_acme", **rules: str) -> Path:
        root = tmp_path / folder
        for slug, rule in rules.items():
            (root / "rules" / slug).mkdir(parents=True, exist_ok=True)
            (root / "rules" / slug / "rule.yaml").write_text(rule)
        root.mkdir(exist_ok=True)
        (root / "__init__.py").write_text("raise SystemExit('this package was imported')\n")
        (root / "pack.yaml").write_text(text)
        return root

    return write


def refused(run, *args, **kwargs):
    with pytest.raises(CakeError) as caught:
        run(*args, **kwargs)
    return caught.value.diagnostics


def cake(*args) -> object:
    return CliRunner().invoke(app, list(map(str, args)))


# --- versions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "range, version, admitted",
    [
        (">=0.1,<0.2", "0.1.9", True),
        (">=0.1,<0.2", "0.2.0", False),
        (">=0.1,<0.2", "0.2.0.dev1", False),
        ("==0.1", "0.1.7", True),
        ("==0.1.6", "0.1.7", False),
        ("<=0.1", "0.1.0", True),
        ("<=0.1", "0.1.1", False),
        ("> 0.1", "0.10.0", True),
        ("<1", "0.99.99", True),
    ],
)
def test_a_range_admits_versions(range, version, admitted):
    assert admits(range, version) is admitted


def test_what_is_no_range():
    assert [wrong_bound(t) for t in (">=0.1", "~=1.0", "1.0", ">=1,", ">=1.0.0.0")] == [None, "~=1.0", "1.0", "", ">=1.0.0.0"]
    assert numbers("1.2") == (1, 2, 0)


# --- what a manifest says ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change, code, said",
    [
        (('version: "0.3.0"', 'version: "0.3"'), "rules/value", "a version such as"),
        (('version: "0.3.0"', 'version: "0.3.0rc1"'), "rules/value", "a version such as"),
        (("name: acme", "name: Acme"), "rules/value", "no name of a pack"),
        (("namespace: acme", "namespace: rules"), "rules/pack", "the compiler's own"),
        (("namespace: acme", "namespace: config"), "rules/pack", "the compiler's own"),
        (("suites:", "requires: {schema: 2}\nsuites:"), "rules/pack", "schema 2 of rules, this Cake reads 1"),
        (("suites:", "requires: {packs: core}\nsuites:"), "rules/value", "list of names"),
        (("suites:", "requires: {packs: [{name: core, versoin: '1'}]}\nsuites:"), "rules/key", "no key 'versoin'"),
        (("suites:", "requires: {packs: [{name: core, version: '~1'}]}\nsuites:"), "rules/value", "no bound"),
        (("suites:", "requires: {cake: '>=99'}\nsuites:"), "rules/pack", f"asks for Cake >=99, this is {__version__}"),
        (("suites:", "removed: [{id: acme/old, since: soon, reason: it was wrong}]\nsuites:"), "rules/value", "'since'"),
        (("suites:", 'removed: [{id: core/old, since: "0.2", reason: it was wrong}]\nsuites:'), "rules/id", "not in the pack's namespace"),
        (("suites:", 'removed: [{id: acme/old, since: "0.2"}]\nsuites:'), "rules/key", "lacks the key 'reason'"),
        (
            ("suites:", 'removed: [{id: acme/old, since: "0.2", reason: a, replaced_by: acme/nothing}]\nsuites:'),
            "rules/id",
            "replaced by 'acme/nothing'",
        ),
        (
            ("suites:", 'removed: [{id: acme/old, since: "0.2", reason: a}, {id: acme/old, since: "0.3", reason: b}]\nsuites:'),
            "rules/repeated",
            "removed twice",
        ),
        (("suites:", 'removed: [{id: acme/warps, since: "0.2", reason: it was wrong}]\nsuites:'), "rules/repeated", "removed and there"),
    ],
)
def test_what_is_wrong_with_a_manifest(pack, change, code, said):
    assert change[0] in PACK
    found = refused(load_pack, pack(PACK.replace(*change, 1), warps=RULE))
    assert any(d.code == code and said in d.message for d in found), found


def test_all_that_is_wrong_is_told_at_once(pack):
    text = PACK.replace("suites:", "requires: {cake: '>=99', colour: red}\nremoved: [{id: Acme, since: '0.1', reason: x}]\nsuites:")
    found = refused(load_pack, pack(text, warps=RULE.replace("owner", "ownr"), other=OTHER.replace("r.warps", "r.wraps")))
    assert {d.code for d in found} == {"rules/pack", "rules/key", "rules/id", "rules/unknown-column"}


def test_a_pack_of_another_version_is_not_the_one_that_is_needed(pack):
    needs = pack(PACK.replace("suites:", 'requires: {packs: [core, {name: dep, version: ">=0.2"}]}\nsuites:'), warps=RULE)
    dep = pack(PACK.replace("acme", "dep").replace("0.3.0", "0.1.5"), "dep", warps=RULE.replace("acme/", "dep/"))
    (found,) = refused(find_packs, (needs, dep), None)
    assert found.code == "rules/pack" and "'dep' >=0.2, there is 0.1.5 of" in found.message and str(needs) in found.message
    pack(PACK.replace("acme", "dep"), "dep", warps=RULE.replace("acme/", "dep/"))
    (one,) = [p for p in find_packs((needs, dep), None) if p.name == "acme"]
    assert one.needs == (Need("core"), Need("dep", ">=0.2"))


@pytest.mark.parametrize("what", ["rules", "rules/warps", "rules/warps/rule.yaml", "rules/warps/bad_one.cake", "pack.yaml"])
def test_a_link_in_a_pack_is_refused(pack, tmp_path, what):
    root = pack(warps=RULE)
    (root / "rules/warps/bad_one.cake").write_text("")
    load_pack(root)
    away = tmp_path / "away"
    (root / what).rename(away)
    (root / what).symlink_to(away)
    (found,) = refused(load_pack, root)
    assert found.code == "rules/pack" and found.message == f"'{root}/{what}' is a link"


# --- the distribution is named -----------------------------------------------------------------------------------


@pytest.fixture
def offered(pack, monkeypatch, tmp_path):
    """`offered(text, **rules)`: the pack as a distribution on the path brings it."""

    def write(text: str = PACK, value: str = "cake_rules_acme", point: str = "acme", **rules: str) -> None:
        pack(text, **rules)
        info = tmp_path / "acme_rules-1.2.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-rules\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[{packs.GROUP}]\n{point} = {value}\n")
        monkeypatch.syspath_prepend(str(tmp_path))

    return write


def test_a_pack_of_a_distribution_is_found_and_not_run(offered):
    offered(warps=RULE)
    (found,) = [p for p in find_packs(local=None) if p.name == "acme"]
    assert (found.source, found.version) == ("acme-rules 1.2", "0.3.0")


@pytest.mark.parametrize(
    "text, how, code, said",
    [
        (PACK.replace("suites:", "suites: {"), {}, "rules/yaml", "no YAML"),
        (PACK.replace("schema: 1", "schema: 2"), {}, "rules/schema", "schema 1"),
        (PACK.replace("suites:", "requires: {cake: '<0.1'}\nsuites:"), {}, "rules/pack", "asks for Cake <0.1"),
        (PACK.replace("suites:", "requires: {predicates: [sorcery]}\nsuites:"), {}, "rules/pack", "no predicate 'sorcery'"),
        (PACK.replace("suites:", "requires: {packs: [zlib]}\nsuites:"), {}, "rules/pack", "asks for the pack 'zlib', which is not there"),
        (PACK.replace("name: acme", "name: core", 1), {"point": "core"}, "rules/repeated", "the name 'core'"),
        (PACK.replace("namespace: acme", "namespace: core"), {"rule": RULE.replace("acme/", "core/")}, "rules/repeated", "the namespace 'core'"),
        (PACK, {"rule": RULE.replace("r.warps", "sorcery(r)")}, "rules/unknown-name", "'sorcery'"),
        (PACK, {"rule": RULE.replace("acme/", "core/")}, "rules/id", "not in the pack's namespace"),
        (PACK, {"value": "cake_rules_nowhere"}, "rules/pack", "package 'cake_rules_nowhere' has no 'pack.yaml'"),
        (PACK, {"value": "cake_rules_acme.inner"}, "rules/pack", "'cake_rules_acme.inner' is no package at the top"),
        (PACK, {"value": "cake_rules_acme:rules"}, "rules/pack", "is no package at the top"),
        (PACK, {"point": "other"}, "rules/pack", "offers a pack 'other', and what is there is called 'acme'"),
    ],
)
def test_a_pack_that_does_not_fit_is_refused_by_its_distribution(offered, text, how, code, said):
    rule = how.pop("rule", RULE)
    offered(text, **how, warps=rule)
    found = refused(find_packs, (), None)
    assert any(d.code == code and said in d.message and "acme-rules 1.2" in d.message for d in found), found
    result = cake("rules", "list")
    assert result.exit_code == 3 and "acme-rules 1.2" in result.output


def test_a_built_in_pack_that_an_old_install_lacks_is_missed(monkeypatch):
    installed = tuple(replace(o, distribution="cake-compiler 0.1.0") for o in packs.offers())
    monkeypatch.setattr(packs, "_checkout", lambda: installed)  # there is none where the wheel is tested
    monkeypatch.setattr(packs, "offers", lambda: installed)
    assert "core" in {p.name for p in find_packs(local=None)}
    monkeypatch.setattr(packs, "offers", lambda: installed[1:])
    (found,) = refused(find_packs, (), None)
    assert found.code == "rules/pack" and f"the pack '{installed[0].name}' of 'cake-compiler' is not installed" in found.message
    assert cake("doctor").exit_code == 3


# --- what became of rules ----------------------------------------------------------------------------------------

GONE = 'removed: [{id: acme/old, since: "0.2", reason: it told of tiles that are right, replaced_by: acme/warps}]\nsuites:'


def test_who_names_a_removed_rule_is_told_what_became_of_it(pack):
    root = pack(PACK.replace("suites:", GONE), warps=RULE)
    of = named(find_packs((root,), None), "acme/old")
    assert of.rule is None and of.removed.since == "0.2" and of.why == "it told of tiles that are right" and of.fix == "use 'acme/warps' instead"
    result = cake("rules", "test", "acme/old", "--pack", root)
    assert result.exit_code == 2
    for said in ("rule 'acme/old' is gone since version 0.2 of the pack 'acme'", "it told of tiles", "use 'acme/warps' instead"):
        assert said in " ".join(result.output.split())
    explained = cake("explain", "acme/old", "--pack", root)
    assert explained.exit_code == 0 and "gone since version 0.2" in explained.output and "Fix: use 'acme/warps' instead" in explained.output


def test_a_name_that_never_was_gets_the_nearest(pack):
    root = pack(warps=RULE)
    assert named(find_packs((root,), None), "acme/warp").fix == "did you mean 'acme/warps'?"
    assert "did you mean 'acme/warps'?" in cake("rules", "test", "acme/warp", "--pack", root).output
    assert "did you mean 'acme'?" in cake("rules", "test", "acmee", "--pack", root).output


def test_a_renamed_rule_is_found_by_its_old_name(pack):
    root = pack(warps=RULE + "related: [{id: acme/old, type: renamed}]\n")
    of = named(find_packs((root,), None), "acme/old")
    assert of.rule.id == "acme/warps" and of.said == "rule 'acme/old' is called 'acme/warps' now"
    explained = cake("explain", "acme/old", "--pack", root)
    assert explained.exit_code == 0 and "acme/warps: A role of one warp" in explained.output


def test_a_rule_of_another_pack_is_taken_over_where_that_pack_says_so(pack):
    """Else a pack could take up, unasked, what a project said of a rule that was another's."""
    taker = pack(warps=RULE + "related: [{id: dep/old, type: renamed}]\n")
    dep = PACK.replace("acme", "dep").replace("suites:", 'removed: [{id: dep/old, since: "0.2", reason: it moved}]\nsuites:')
    giver = pack(dep, "dep", warps=RULE.replace("acme/", "dep/"))
    assert named(find_packs((taker, giver), None), "dep/old").rule is None
    pack(dep.replace("it moved", "it moved, replaced_by: acme/warps"), "dep")
    assert named(find_packs((taker, giver), None), "dep/old").rule.id == "acme/warps"


def test_an_old_name_stands_for_one_rule(pack):
    renamed = "related: [{id: acme/other, type: renamed}]\n"
    (found,) = refused(find_packs, (pack(warps=RULE + renamed, other=OTHER),), None)
    assert found.code == "rules/repeated" and "'acme/warps' of" in found.message and "is to be 'acme/other' renamed" in found.message
    twice = renamed.replace("other", "old")
    (found,) = refused(find_packs, (pack(warps=RULE + twice, other=OTHER + twice),), None)
    assert found.code == "rules/repeated" and "is to be as well" in found.message


@pytest.mark.parametrize(
    "rule, code, said",
    [
        (RULE.replace("status: stable", "status: removed"), "rules/value", "a rule that is removed has no file"),
        (RULE.replace("status: stable", "status: deprecated"), "rules/key", "lacks the key 'until'"),
        (RULE + 'until: "0.4"\n', "rules/key", "said of a deprecated rule"),
        (RULE + "replaced_by: acme/other\n", "rules/key", "said of a deprecated rule"),
        (DEPRECATED.replace('"0.4"', '"0.3"'), "rules/pack", "was to be gone with version 0.3 of the pack, this is 0.3.0"),
        (DEPRECATED, "rules/id", "replaced by 'acme/other', which the pack does not have"),
        (RULE + "related: [{id: Old, type: renamed}]\n", "rules/id", "'Old' is no id"),
        (RULE + "related: [{id: acme/old, type: reborn}]\n", "rules/value", "'type' is"),
    ],
)
def test_what_is_wrong_with_a_status(pack, rule, code, said):
    found = refused(load_pack, pack(warps=rule))
    assert any(d.code == code and said in d.message for d in found), found


def test_a_deprecated_rule_is_judged_until_it_is_gone(pack):
    root = pack(warps=DEPRECATED, other=OTHER)
    found = find_packs((root,), None)
    assert {"acme/warps", "acme/other"} <= {r.id for r in selected(found)}
    of = named(found, "acme/warps")
    assert of.rule.id == "acme/warps" and "version 0.4 of the pack 'acme' is without it" in of.said and of.fix == "use 'acme/other' instead"
    shown = cake("rules", "show", "acme/warps", "--pack", root)
    assert "deprecated rule 'acme/warps' is deprecated: version 0.4" in " ".join(shown.output.split())
    assert "use 'acme/other' instead" in " ".join(cake("explain", "acme/warps", "--pack", root).output.split())
    record = json.loads(cake("rules", "show", "acme/warps", "--pack", root, "--json").stdout)["rule"]
    assert (record["until"], record["replaced_by"]) == ("0.4", "acme/other")
