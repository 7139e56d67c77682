"""The built-in packs are stored as they were read, and nothing else is ever taken for what a pack says."""

from __future__ import annotations

import json
import shutil
from dataclasses import fields
from pathlib import Path

import pytest

from cake_core.rules import ast, find_packs, load_pack, packs
from cake_core.rules.store import packed, written
from cake_core.rules.stored import CLASSES, FILE, head, stored

OURS = [o for o in packs.offers() if o.ours]


@pytest.mark.parametrize("offer", OURS, ids=[o.name for o in OURS])
def test_what_is_stored_is_what_is_read(offer):
    read = load_pack(offer.folder, offer.package, offer.distribution)
    text = (offer.folder / FILE).read_text()
    assert text == written(read, offer.package), "after a change of a rule, or of how rules are read: python -m cake_core.rules.store"
    taken = stored(offer.folder, offer.package, offer.distribution)
    assert taken == read and packed(taken.rules) == packed(read.rules), "places and sorts are no part of =="
    assert list(taken.rules[0].definitions) == list(read.rules[0].definitions)


@pytest.fixture
def copy(tmp_path):
    """The smallest pack, in a folder where it can be changed."""
    return Path(shutil.copytree(next(o for o in OURS if o.name == "ptx").folder, tmp_path / "pack"))


def taken(copy: Path):
    return stored(copy, "cake_rules_ptx", "")


def test_a_copy_of_a_pack_is_as_good(copy):
    assert taken(copy) == load_pack(copy, "cake_rules_ptx")


def edit(path: Path, *change: str) -> None:
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change, 1))


@pytest.mark.parametrize(
    "change",
    {
        "a rule": lambda p: edit(next(p.glob("rules/*/rule.yaml")), "level: error", "level: warning"),
        "the pack": lambda p: edit(p / "pack.yaml", "version: ", "version:  "),
        "a rule more": lambda p: shutil.copytree(next(p.glob("rules/*")), p / "rules" / "more"),
        "a rule less": lambda p: shutil.rmtree(next(p.glob("rules/*"))),
        "another name of a rule": lambda p: next(p.glob("rules/*")).rename(p / "rules" / "other"),
        "a file among the rules": lambda p: (p / "rules" / "notes.txt").write_text("?"),
        "an object": lambda p: edit(p / FILE, '"stable"', '"draft"'),
        "a stored form cut off": lambda p: (p / FILE).write_text((p / FILE).read_text()[:-200]),
        "another Cake": lambda p: edit(p / FILE, '{"cake": "', '{"cake": "9'),
        "other classes": lambda p: edit(p / FILE, '"form": "', '"form": "0'),
        "no stored form": lambda p: (p / FILE).unlink(),
        "no JSON": lambda p: (p / FILE).write_bytes(b"\xff"),
    }.items(),
    ids=lambda change: change[0],
)
def test_what_differs_is_read(copy, change):
    change[1](copy)
    assert taken(copy) is None


def test_another_name_of_the_folder_is_read():
    assert stored(OURS[0].folder, "elsewhere", "") is None, "findings would name files that are not there"


def test_a_pack_of_others_is_read_whatever_stands_beside_it(copy):
    """A stored form that says something else than the rules would hide what is judged."""
    edit(copy / "pack.yaml", "name: ptx\nnamespace: ptx", "name: mine\nnamespace: mine")
    for rule in copy.glob("rules/*/rule.yaml"):
        edit(rule, "id: ptx/", "id: mine/")
    objects = written(load_pack(copy, str(copy)), str(copy)).partition("\n")[2].replace('"error"', '"info"')
    (copy / FILE).write_text(json.dumps(head(copy, str(copy), objects)) + "\n" + objects)
    assert {str(r.level) for r in stored(copy, str(copy), "").rules} == {"info"}, "it is whole, and lies"
    (mine,) = (p for p in find_packs((copy,), local=None) if p.name == "mine")
    assert {str(r.level) for r in mine.rules} == {"error"}


def test_every_class_of_a_pack_can_be_stored():
    nodes = {c for c in vars(ast).values() if isinstance(c, type) and issubclass(c, ast.Node) and c is not ast.Node}
    assert nodes <= set(CLASSES) and not any(hasattr(c, "__post_init__") for c in CLASSES) and all(fields(c) for c in nodes)
