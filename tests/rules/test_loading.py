"""Files of rules and packs: what is read, and that whatever is wrong with one is a finding with a place, never a traceback."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_core.diagnostics import CakeError
from cake_core.rules import find_packs, load_pack, load_rule, packs, selected
from cake_core.rules.schema import Status
from cake_core.rules.strict import MAX_BYTES, loads

#: Packs of this distribution, which are always there: a folder each.
BUILT_IN = {p.name for p in find_packs(local=None) if p.distribution.startswith("cake-compiler ")}

RULE = """schema: 1
id: acme/once
title: A barrier that is not initialised once
kind: safety
level: error
status: stable
precision: proof
since: "0.1"
owner: someone
match: {bar: {barrier: {}}}
where: bar.count > 0
require: count(i in init where i.barrier == bar) == 1
message: "barrier '{bar.id}' is initialised {count(i in init where i.barrier == bar)} times"
why: It is.
"""
PATH = RULE.replace(
    RULE[RULE.index("match:") : RULE.index("message:")], "from: {init: {}}\nto: {wait: {}}\nmust_pass: {meet: {scope: cta}}\n"
).replace(RULE[RULE.index("message:") : RULE.index("why:")], "message: \"'{to.op}' comes too early\"\n")
PACK = 'schema: 1\nname: acme\nnamespace: acme\nversion: "0.1.0"\nsuites: {default: [{status: stable}]}\n'


@pytest.fixture
def load(tmp_path):
    def run(text: str):
        path = tmp_path / "rule.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_rule(path, name="rule.yaml")

    return run


@pytest.fixture
def pack(tmp_path):
    """`pack(PACK, once=RULE, ..)`: a folder with a pack."""

    def write(text: str, folder: str = "cake_rules_acme", **rules: str) -> Path:
        root = tmp_path / folder
        root.mkdir(exist_ok=True)
        (root / "__init__.py").write_text("raise SystemExit('this package was imported')\n")
        (root / "pack.yaml").write_text(text)
        for slug, rule in rules.items():
            (root / "rules" / slug).mkdir(parents=True, exist_ok=True)
            (root / "rules" / slug / "rule.yaml").write_text(rule)
        return root

    return write


def refused(run, *args, **kwargs):
    with pytest.raises(CakeError) as caught:
        run(*args, **kwargs)
    return caught.value.diagnostics


def test_a_rule_is_read(load):
    rule = load(RULE)
    assert (rule.id, rule.status, rule.at, rule.since) == ("acme/once", Status.STABLE, "bar", "0.1")
    assert load(PATH).at == "to"


@pytest.mark.parametrize(
    "change, code, line, said",
    [
        (("owner: someone", "ownr: someone"), "rules/key", 9, "no key 'ownr'"),
        (("title: A barrier that is not initialised once\n", ""), "rules/key", 1, "lacks the key 'title'"),
        (("title: A barrier that is not initialised once", 'title: " "'), "rules/value", 3, "'title' is empty"),
        (("why: It is.", "why: It is.\nshape: [relation]"), "rules/value", 15, "'shape'"),
        (("schema: 1", "schema: 2"), "rules/schema", 1, "schema 1"),
        (("id: acme/once", "id: acme/Once"), "rules/id", 2, "no id"),
        (("id: acme/once", "id: acme/once\nid: acme/once"), "rules/yaml", 3, "stands twice"),
        (('since: "0.1"', "since: 0.1"), "rules/yaml", 8, "0.1"),
        (("owner: someone", "owner: on"), "rules/yaml", 9, "'on'"),
        (("owner: someone", "owner: 12"), "rules/value", 9, "a text"),
        (("owner: someone", "owner:"), "rules/yaml", 9, "missing"),
        (("owner: someone", "owner: &a someone"), "rules/yaml", 9, "anchors"),
        (("owner: someone", "owner: !!str someone"), "rules/yaml", 9, "tag"),
        (("kind: safety", "kind: safty"), "rules/value", 4, "one of"),
        (("{barrier: {}}", "{barier: {}}"), "rules/unknown-name", 10, "'barier'"),
        (("{barrier: {}}", "{barrier: {kimd: x}}"), "rules/unknown-column", 10, "'kimd'"),
        (("{barrier: {}}", "{access: {mode: wrote}}"), "rules/unknown-word", 10, "'wrote'"),
        (("{barrier: {}}", "{barrier: {count: one}}"), "rules/value", 10, "an integer"),
        (("{barrier: {}}", "{wait: {index: 1}}"), "rules/value", 10, "an expression"),
        (("{barrier: {}}", "[barrier]"), "rules/value", 10, "a pattern"),
        (("bar.count > 0", "bar.cuont > 0"), "rules/unknown-column", 11, "'cuont'"),
        (("bar.count > 0", "phase_safe(bar)"), "rules/arguments", 11, "phase_safe"),
        (("where: bar.count > 0", "where: |\n  bar.count > 0\n    and bar.cuont > 1"), "rules/unknown-column", 13, "'cuont'"),
        (("where: bar.count > 0", "where: >\n  bar.count > 0"), "rules/value", 11, "folded"),
        (("{bar.id}", "{bar.ix}"), "rules/unknown-column", 13, "'ix'"),
        (("{bar.id}", "{bar.id"), "rules/value", 13, "brace"),
        (("why: It is.", "help: init {bar.id}\nwhy: It is."), "rules/key", 14, "'fix'"),
        (("why: It is.", "why: It is.\nat: foo"), "rules/value", 15, "'at'"),
        (("why: It is.", "why: It is.\nbudget: {rlimit: 0}"), "rules/value", 15, "rlimit"),
        (("why: It is.", "why: It is.\nbudget: {time: 3}"), "rules/key", 15, "'time'"),
        (
            ("why: It is.", "why: It is.\ndefine: {count2: {of: {b: barrier}, as: b.count}, count2x: {of: {b: berrier}, as: b}}"),
            "rules/unknown-name",
            15,
            "berrier",
        ),
        (("why: It is.", "why: It is.\nshape: circle"), "rules/value", 15, "'shape'"),
        (("match: {bar: {barrier: {}}}", "match: {}"), "rules/value", 10, "no fact"),
        (("require: count(i in init where i.barrier == bar) == 1", "require: bar.count"), "rules/sort", 12, "condition"),
        (("bar.count > 0", f"bar.count > {'9' * 6000}"), "rules/syntax", 11, "6000 digits"),
        (
            ("why: It is.", "why: It is.\ndefine:\n  a: {of: {x: barrier}, as: b(x)}\n  b: {of: {x: barrier}, as: a(x)}"),
            "rules/unknown-name",
            16,
            "above",
        ),
        (("why: It is.", "why: It is.\ndefine: {a: {of: {x: barrier}, as: a(x)}}"), "rules/unknown-name", 15, "above"),
    ],
)
def test_what_is_wrong_is_told_at_its_line(load, change, code, line, said):
    assert change[0] in RULE
    found = refused(load, RULE.replace(*change, 1))
    assert (code, line) in [(d.code, d.span.line) for d in found], found
    assert any(said in d.message for d in found)


@pytest.mark.parametrize(
    "change, code, said",
    [
        (("from: {init: {}}", "from: {barrier: {}}"), "rules/value", "a path leads over"),
        (("from: {init: {}}", "from: end"), "rules/unknown-name", "'end'"),
        (("must_pass:", "of: writers\nmust_pass:"), "rules/value", "'of'"),
        (("must_pass:", "within: role\nmust_pass:"), "rules/value", "'within'"),
        (("to: {wait: {}}", "to: end"), "rules/unknown-name", "'to'"),
    ],
)
def test_what_is_wrong_with_a_path(load, change, code, said):
    found = refused(load, PATH.replace(*change, 1))
    assert any(d.code == code and said in d.message for d in found), found


PROTOCOL = RULE.replace(
    RULE[RULE.index("match:") : RULE.index("message:")],
    "shape: protocol\nresource: {barrier: {}}\nevents: {start: {init: {barrier: resource}}, use: {wait: {barrier: resource}}}\nautomaton: start use*\n",
).replace(RULE[RULE.index("message:") : RULE.index("why:")], 'message: "{came} instead of {expected}"\n')


@pytest.mark.parametrize(
    "automaton, said",
    [
        ("start used", "'used'"),
        ("start (use", "')'"),
        ("* use", "repeats nothing"),
        ("start ||", "missing"),
        ("start $", "'$'"),
        ("(" * 40, "deep"),
        ("(start | use)* start" + " (start | use)" * 8, "64 states"),
    ],
)
def test_what_is_wrong_with_an_automaton(load, automaton, said):
    assert load(PROTOCOL).shape.automaton == "start use*"
    found = refused(load, PROTOCOL.replace("automaton: start use*", f'automaton: "{automaton}"'))
    assert [d.code for d in found] == ["rules/automaton"] and said in found[0].message and found[0].span.line == 13


def test_a_resource_stands_for_a_column_of_its_own_sort_alone(load):
    (found,) = refused(load, PROTOCOL.replace("{wait: {barrier: resource}}", "{wait: {role: resource}}"))
    assert (found.code, found.span.line, found.message) == ("rules/sort", 12, "'role' is a fact of 'role', the resource is one of 'barrier'")


def test_a_byte_that_is_no_text_is_told_at_its_place(load):
    (found,) = refused(load, RULE.replace("someone", "some\u00e9 x").encode().replace(b" x\n", b" \xff\n"))
    assert (found.message, found.span.line, found.span.column) == ("byte 0xff is not UTF-8", 9, 14)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe",
        b"\x00",
        b"",
        b"[]",
        b"a: [",
        b"a: {b: [c}",
        b"- - -",
        b"? x",
        b"a: b: c",
        b"x" * (MAX_BYTES + 1),
        b"[" * 3000,
        b"{" * 3000,
        b"a: " + b"[" * 500 + b"]" * 500,
        b"--- 1\n--- 2",
        b"%YAML 9.9\n--- a",
    ],
    ids=range(15),
)
def test_hostile_files_end_in_findings(load, data):
    found = refused(load, data)
    assert found and all(d.code.startswith("rules/") and d.span is not None for d in found)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(RULE) - 1), st.sampled_from(string.printable)), min_size=1, max_size=4))
def test_a_damaged_rule_is_read_or_refused(tmp_path_factory, damage):
    text = list(RULE)
    for at, char in damage:
        text[at] = char
    path = tmp_path_factory.mktemp("r") / "rule.yaml"
    path.write_text("".join(text))
    try:
        load_rule(path)
    except CakeError as error:
        assert all(d.code.startswith("rules/") for d in error.diagnostics)


def test_strict_scalars():
    node = loads('a: "0.10"\nb: true\nc: -3\nd: yes-man\n', "f")
    assert [v.value for _, v in node.entries] == ["0.10", True, -3, "yes-man"]


# --- packs -------------------------------------------------------------------------------------------------------


def test_a_pack_is_read_and_never_imported(pack, monkeypatch):
    root = pack(PACK, once=RULE)
    monkeypatch.syspath_prepend(str(root.parent))
    found = packs.Offer("acme", "cake_rules_acme", "acme 1").folder
    assert found == root
    (rule,) = load_pack(found).rules
    assert (rule.pack, rule.version) == ("acme", "0.1.0")


def test_packs_of_the_project_and_the_command_are_found(pack, tmp_path):
    local = tmp_path / ".cake" / "rules"
    local.mkdir(parents=True)
    pack(PACK, str(Path(".cake") / "rules" / "acme"), once=RULE)
    assert [p.name for p in find_packs(local=local)] == sorted(["acme", *BUILT_IN])
    other = pack(PACK.replace("acme", "other"), "other", once=RULE.replace("acme/", "other/"))
    assert [p.name for p in find_packs((other,), local)] == sorted(["acme", "other", *BUILT_IN])
    assert "acme/once" in {r.id for r in selected(find_packs(local=local))}


def test_two_packs_of_one_name_are_refused(pack):
    found = refused(find_packs, (pack(PACK, "one", once=RULE), pack(PACK, "two", once=RULE)), None)
    assert {d.code for d in found} == {"rules/repeated"} and all("one" in d.message and "two" in d.message for d in found)


@pytest.mark.parametrize(
    "text, rules, code",
    [
        (PACK, {"twice": RULE}, "rules/id"),
        (PACK.replace("namespace: acme", "namespace: other"), {"once": RULE}, "rules/id"),
        (PACK + 'requires: {cake: ">=99"}\n', {}, "rules/pack"),
        (PACK + 'requires: {cake: "newest"}\n', {}, "rules/value"),
        (PACK + "requires: {predicates: [sorcery]}\n", {}, "rules/pack"),
        (PACK.replace("status: stable", "status: sure"), {}, "rules/value"),
        (PACK.replace("default:", "default2:").replace("[{", "{").replace("}]", "}"), {}, "rules/value"),
        (PACK + 'removed: [{id: acme/once, since: "0.2", reason: gone}]\n', {"once": RULE}, "rules/repeated"),
        (PACK + "extra: 1\n", {}, "rules/key"),
        (PACK.replace("default", "defaut"), {"once": RULE}, "rules/pack"),
        (PACK[: PACK.index("suites")], {"once": RULE}, "rules/pack"),
        (PACK, {}, "rules/pack"),
    ],
)
def test_what_is_wrong_with_a_pack(pack, text, rules, code):
    assert code in {d.code for d in refused(load_pack, pack(text, **rules))}


def test_no_rule_of_a_pack_is_passed_over(pack):
    root = pack(PACK, once=RULE)
    rule = root / "rules" / "once" / "rule.yaml"
    rule.rename(rule.with_suffix(".yml"))
    assert "'rules/once' has no 'rule.yaml'" in refused(load_pack, root)[0].message.replace(f"{root}/", "")
    rule.with_suffix(".yml").rename(root / "rules" / "once.yaml")
    rule.parent.rmdir()
    (found,) = refused(load_pack, root)
    assert found.code == "rules/pack" and found.fix == "a rule stands in 'rules/once/rule.yaml'"


def test_a_pack_that_another_one_needs_must_be_there(pack):
    root = pack(PACK + "requires: {packs: [core, other]}\n", once=RULE)
    (found,) = refused(find_packs, (root,), None)
    assert found.code == "rules/pack" and "asks for the pack 'other'" in found.message


def test_a_folder_of_the_project_that_is_no_pack_is_refused(tmp_path):
    (tmp_path / "rules" / "acme").mkdir(parents=True)
    assert refused(find_packs, (), tmp_path / "rules")[0].code == "rules/pack"


def test_a_folder_without_a_pack_is_refused(tmp_path):
    assert refused(load_pack, tmp_path)[0].code == "rules/pack"


def test_an_edited_rule_is_read_anew(pack):
    root = pack(PACK, once=RULE)
    before = {r.id: r.title for p in find_packs((root,), None) for r in p.rules}
    pack(PACK, once=RULE.replace("A barrier", "Some barrier"))
    after = {r.id: r.title for p in find_packs((root,), None) for r in p.rules}
    assert before["acme/once"] != after["acme/once"]


def test_a_broken_pack_stops_a_check_with_exit_code_3(pack, tmp_path, monkeypatch):
    from click.testing import CliRunner

    from cake_core.cli.app import app

    folder = tmp_path / ".cake" / "rules"
    folder.mkdir(parents=True)
    pack(PACK, str(Path(".cake") / "rules" / "acme"), once=RULE.replace("bar.count > 0", "bar.cuont > 0"))
    (tmp_path / "k.cake").write_text(
        "cake 1 derived\nkernel k(N: i32)\n  target sm90\n{\n  launch 1\n  role a: 1 warp at 0 {\n    warp.sync\n  }\n}\n"
    )
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["check", "k.cake"])
    assert result.exit_code == 3 and "rules/unknown-column" in result.output and "Traceback" not in result.output


def test_a_pack_of_the_command_line_is_judged_and_stands_in_the_manifest(pack, tmp_path):
    import json

    from click.testing import CliRunner

    from cake_core.cli.app import app

    rule = RULE.replace("{barrier: {}}", "{role: {}}").replace("bar.count > 0", "bar.warps > 0")
    rule = rule.replace("require: count(i in init where i.barrier == bar) == 1", "require: bar.warps > 1").replace(
        RULE[RULE.index("message:") : RULE.index("why:")], "message: \"role '{bar.id}' is small\"\n"
    )
    root = pack(PACK, once=rule)
    text = tmp_path / "k.cake"
    text.write_text("cake 1 derived\nkernel k(N: i32)\n  target sm90\n{\n  launch 1\n  role a: 1 warp at 0 {\n    warp.sync\n  }\n}\n")
    run = lambda *args: CliRunner().invoke(app, args)
    assert run("check", str(text)).exit_code == 0
    found = run("check", str(text), "--pack", str(root))
    assert found.exit_code == 1 and "error[acme/once]: role 'a' is small" in found.output
    text.write_text(text.read_text().replace("1 warp", "2 warps"))
    built = run("build", str(text), "-o", str(tmp_path / "out"), "--pack", str(root), "--emit", "ptx")
    assert built.exit_code == 0
    built = run("build", str(text), "-o", str(tmp_path / "art"), "--pack", str(root), "--json")
    assert json.loads((tmp_path / "art" / "manifest.json").read_text())["compiler"]["rules"].keys() == {"acme", *BUILT_IN}, built.output
    pack(PACK, once=rule.replace("status: stable", "status: preview").replace("warps > 1", "warps > 2"))
    assert run("check", str(text), "--pack", str(root)).output.endswith("\n1 text clean\n")
    found = run("check", str(text), "--pack", str(root), "--preview")
    assert found.exit_code == 0 and "warning[acme/once]" in found.output
    assert run("check", str(text), "--pack", str(tmp_path / "nowhere")).exit_code == 3
