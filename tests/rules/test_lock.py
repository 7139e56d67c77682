"""`cake.lock`: the same packs give the same bytes, and a build that is held to it refuses any other."""

from __future__ import annotations

import hashlib
import json
import os
import string
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cake_core import __version__
from cake_core.cli.app import app
from cake_core.diagnostics import CakeError
from cake_core.rules import find_packs
from cake_core.rules.lock import differences, digest, held, locked, read, text

TEXT = "cake 1 derived\nkernel k(N: i32)\n  target sm90\n{\n  launch 1\n  role a: 1 warp at 0 {\n    warp.sync\n  }\n}\n"
RULE = """schema: 1
id: acme/warps
title: A role of one warp
kind: performance
level: info
status: stable
precision: high
since: "0.1"
owner: someone
match: {r: {role: {}}}
require: r.warps > 1
message: "role '{r.id}' has one warp"
why: It is small.
"""
PACK = 'schema: 1\nname: acme\nnamespace: acme\nversion: "0.3.0"\nsuites: {default: [{status: stable}]}\n'


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A project with a pack of its own."""
    pack = tmp_path / ".cake" / "rules" / "acme"
    (pack / "rules" / "warps").mkdir(parents=True)
    (pack / "rules" / "warps" / "rule.yaml").write_text(RULE)
    (pack / "pack.yaml").write_text(PACK)
    (tmp_path / "k.cake").write_text(TEXT)
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cake(*args):
    return CliRunner().invoke(app, list(map(str, args)))


def refused(run, *args):
    with pytest.raises(CakeError) as caught:
        run(*args)
    return caught.value.diagnostics


def test_a_digest_is_of_names_and_bytes_in_the_stated_order(tmp_path):
    (tmp_path / "a").mkdir()
    for name, data in (("a/b", b"2"), ("a.b", b"1"), ("Z", b""), ("é", b"3")):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.pyc").write_bytes(b"left out")
    stated = b"".join(n.encode() + b"\0" + str(len(d)).encode() + b"\0" + d for n, d in (("Z", b""), ("a.b", b"1"), ("a/b", b"2"), ("é", b"3")))
    assert digest(tmp_path) == hashlib.sha256(stated).hexdigest()


@pytest.mark.parametrize("change", ["edit", "add", "rename", "move bytes"])
def test_a_digest_tells_packs_apart(tmp_path, change):
    for name, data in (("a", b"12"), ("b", b"3")):
        (tmp_path / name).write_bytes(data)
    before = digest(tmp_path)
    match change:
        case "edit":
            (tmp_path / "a").write_bytes(b"13")
        case "add":
            (tmp_path / "c").write_bytes(b"")
        case "rename":
            (tmp_path / "b").rename(tmp_path / "c")
        case "move bytes":
            (tmp_path / "a").write_bytes(b"1")
            (tmp_path / "b").write_bytes(b"23")
    assert digest(tmp_path) != before


@pytest.mark.parametrize("make", ["link", "folder", "pipe"])
def test_what_is_no_file_is_not_hashed(tmp_path, make):
    (tmp_path / "pack").mkdir()
    odd = tmp_path / "pack" / "odd"
    os.mkfifo(odd) if make == "pipe" else odd.symlink_to(tmp_path if make == "folder" else "nowhere")
    (found,) = refused(digest, tmp_path / "pack")
    assert found.code == "rules/pack" and "'" + str(odd) + "' is no file of the pack" in found.message


CORE = next(p.version for p in find_packs(local=None) if p.name == "core")


def test_a_lock_says_what_is_there(folder):
    lock = locked(find_packs())
    assert lock["cake"] == __version__ and lock["z3"].count(".") == 2
    rows = {r["name"]: r for r in lock["packs"]}
    assert rows["acme"] == {"name": "acme", "version": "0.3.0", "sha256": digest(folder / ".cake/rules/acme"), "distribution": None}
    assert rows["core"]["distribution"] == "cake-compiler"
    assert list(rows) == sorted(rows)


def test_the_same_packs_give_the_same_bytes_in_any_process(folder):
    assert cake("rules", "lock").exit_code == 0
    first = (folder / "cake.lock").read_bytes()
    for seed in ("1", "2"):
        (folder / "cake.lock").unlink()
        command = [sys.executable, "-m", "cake_core", "rules", "lock"]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONHASHSEED": seed}, cwd=folder, timeout=60)
        assert done.returncode == 0, done.stderr
        assert (folder / "cake.lock").read_bytes() == first


def test_a_build_that_is_held_to_a_lock_names_it_in_the_manifest(folder):
    said = cake("rules", "lock", "--json")
    assert json.loads(said.output)["lock"] == read(folder / "cake.lock")[1]
    assert cake("rules", "lock", "--check").exit_code == 0
    result = cake("build", "k.cake", "--locked", "-o", "art", "--json")
    assert result.exit_code == 0, result.output
    lock = hashlib.sha256((folder / "cake.lock").read_bytes()).hexdigest()
    assert json.loads((folder / "art" / "manifest.json").read_text())["compiler"]["lock"] == lock
    assert cake("check", "k.cake", "--locked").exit_code == 0
    free = cake("build", "k.cake", "-o", "free", "--json")
    assert json.loads(free.output)["builds"][0]["manifest"]["compiler"]["lock"] is None


def changed(folder: Path, **fields) -> None:
    path = folder / "cake.lock"
    lock = json.loads(path.read_text())
    for key, value in fields.items():
        if key in ("cake", "z3"):
            lock[key] = value
        else:
            row = next(r for r in lock["packs"] if r["name"] == value[0])
            row[key] = value[1]
    path.write_text(text(lock))


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda f: changed(f, cake="0.0.9"), f"Cake 0.0.9 is locked, this is {__version__}"),
        (lambda f: changed(f, z3="4.0.0"), "the solver z3 4.0.0 is locked, this is"),
        (lambda f: changed(f, version=("core", "9.9.9")), "the pack 'core' 9.9.9 of cake-compiler is locked, there is 'core'"),
        (lambda f: changed(f, distribution=("core", "core-fork")), f"'core' {CORE} of core-fork is locked, there is 'core' {CORE} of cake-compiler"),
        (lambda f: changed(f, name=("acme", "acne")), "the pack 'acne' 0.3.0 of a folder is locked, and is not there"),
        (lambda f: changed(f, name=("acme", "acne")), "the pack 'acme' 0.3.0 of a folder is there, and is not locked"),
        (
            lambda f: (f / ".cake/rules/acme/rules/warps/bad_one.cake").write_text(""),
            "the pack 'acme' 0.3.0 of a folder is locked, there is 'acme' 0.3.0 of a folder",
        ),
        (lambda f: (f / "cake.lock").unlink(), "there is no 'cake.lock'"),
        (lambda f: (f / "cake.lock").write_text("{"), "it is no JSON"),
        (lambda f: (f / "cake.lock").write_text('{"schema": 2}'), "this version reads schema 1"),
        (lambda f: (f / "cake.lock").write_text('{"schema": 1}'), "and nothing else"),
        (lambda f: (f / "cake.lock").write_text('{"schema": 1, "schema": 1}'), "a key stands twice"),
        (lambda f: (f / "cake.lock").write_text('{"schema": 1, "cake": "", "z3": "", "packs": [{}]}'), "a pack has 'name'"),
        (lambda f: (f / "cake.lock").write_bytes(b"\xff"), "it is no JSON"),
        (lambda f: [(f / "cake.lock").unlink(), (f / "cake.lock").mkdir()], "it is no file"),
    ],
)
def test_any_difference_is_refused(folder, change, said):
    assert cake("rules", "lock").exit_code == 0
    held(find_packs(), folder / "cake.lock")
    change(folder)
    found = refused(held, find_packs(), folder / "cake.lock")
    assert any(said in d.message and d.code == "rules/lock" for d in found), found
    for command in (("check", "k.cake", "--locked"), ("rules", "lock", "--check")):
        result = cake(*command)
        assert result.exit_code == 3 and said in " ".join(result.output.split()), result.output


def test_a_changed_file_is_told_with_both_digests(folder):
    cake("rules", "lock")
    before = digest(folder / ".cake/rules/acme")
    (folder / ".cake/rules/acme/rules/warps/rule.yaml").write_text(RULE.replace("It is small.", "It is too small."))
    (found,) = refused(held, find_packs(), folder / "cake.lock")
    assert found.why == f"sha256 {before} is locked, {digest(folder / '.cake/rules/acme')} is there"
    assert not (folder / "art").exists()
    assert cake("build", "k.cake", "--locked", "-o", "art").exit_code == 3 and not (folder / "art").exists()


@pytest.mark.parametrize("command", ["run", "bench"])
def test_a_text_that_is_run_is_held_to_the_lock_too(folder, command):
    cake("rules", "lock")
    held_to = cake(command, "k.cake", "--locked", "--if-available")
    assert held_to.exit_code in (0, 1), held_to.output  # as far as the GPU that is not there, or the run
    changed(folder, cake="0.0.9")
    said = cake(command, "k.cake", "--locked", "--if-available")
    assert said.exit_code == 3 and "error[rules/lock]: Cake 0.0.9 is locked" in said.output
    assert cake(command, "k.cake", "--if-available").exit_code == held_to.exit_code
    (folder / "art").mkdir()
    assert cake(command, "art", "--locked").exit_code == 2


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from(string.printable)), min_size=1, max_size=3))
def test_a_damaged_file_is_refused_or_says_the_same(tmp_path, damage):
    lock = {"schema": 1, "cake": "1", "z3": "2", "packs": [{"name": "a", "version": "1", "sha256": "0" * 64, "distribution": None}]}
    chars = list(text(lock))
    for at, char in damage:
        chars[at % len(chars)] = char
    path = tmp_path / "cake.lock"
    path.write_text("".join(chars), newline="")
    try:
        _, found = read(path)
        assert found == lock or [d.code for d in differences(found, lock, "cake.lock")] != []
    except CakeError as error:
        assert [d.code for d in error.diagnostics] == ["rules/lock"]
