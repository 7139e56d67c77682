"""A rule as a page: `cake rules show` and `cake explain` say what the folder says, and nothing else."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from cake_core.cli.app import app
from cake_core.rules import find_packs
from cake_core.rules.page import explained, page, record

RULES = {r.id: r for p in find_packs(local=None) for r in p.rules}


def cake(*args: str):
    return CliRunner().invoke(app, args, prog_name="cake")


@pytest.mark.parametrize("id", RULES)
def test_a_page_is_made_of_what_stands_in_the_folder(id):
    found = page(RULES[id])
    text, whole = explained(found), record(found)
    names = {p.name for p in RULES[id].path.parent.glob("*.cake")}
    assert set(whole["texts"]["bad"] + whole["texts"]["good"] + whole["texts"]["gaps"]) == names
    assert all(n in " ".join(text.split()) for n in names)
    assert " ".join(RULES[id].why.split()) in " ".join(text.split())
    assert all(" ".join(whole["written"].get(key, "").split()) in " ".join(text.split()) for key in ("where", "assume"))
    name, lines = found.avoid
    bad = (RULES[id].path.parent / name).read_text().splitlines()
    assert lines and all(line == "..." or bad[int(line[:3]) - 1] == line[6:] for line in lines.splitlines())
    assert found.prefer[0] in whole["texts"]["good"] and found.told.split("[")[1].startswith(id)
    assert found.avoid[1] != found.prefer[1]
    assert found.matches and all(m.strip() for m in found.matches)


def test_what_a_rule_matches_is_said_in_words():
    said = {id: page(RULES[f"core/{id}"]).matches for id in ("missing-proxy-fence", "tensor-lifetime", "threads")}
    assert said["missing-proxy-fence"] == (
        "every way from an access with space shared, mode write, proxy generic to an access with space shared, proxy async or tensor",
        "must pass a fence with kind proxy_async, executed by each thread that executed the first",
    )
    assert said["tensor-lifetime"][0] == "each kernel sees events as: (alloc use* dealloc)?"
    assert said["threads"][1] == "l: a limit with id threads_per_block"


def test_a_rule_is_shown_and_explained():
    shown = cake("rules", "show", "arrival-count")
    assert shown.exit_code == 0 and shown.output.startswith("core/arrival-count\n")
    assert "total(bar: barrier, at: rank) = sum(brought(r, bar, at) for r in role)" in shown.output
    assert "require    alike(bar, at) and total(bar, at) == bar.count" in shown.output
    found = json.loads(cake("rules", "show", "core/arrival-count", "--json").output)
    assert found["schema_version"] == 1 and found["rule"]["written"]["require"] == "alike(bar, at) and total(bar, at) == bar.count"
    text = cake("explain", "core/arrival-count").output
    assert text.startswith("core/arrival-count: Hand-offs that do not add up\n") and "Avoid (bad_" in text and "Prefer (good_" in text
    assert json.loads(cake("explain", "core/arrival-count", "--json").output)["rule"] == found["rule"]
    assert json.loads(cake("explain", "type/unknown-name", "--json").output)["rule"] is None


def test_a_rule_that_is_not_there_is_usage():
    result = cake("rules", "show", "core/arival-count")
    assert result.exit_code == 2 and "did you mean 'core/arrival-count'?" in result.output
