"""`cake fmt`: what it writes and what it leaves alone."""

from __future__ import annotations

import json
import os
import stat

import pytest
from click.testing import CliRunner

from cake_core.cli.app import app
from cake_core.diagnostics.json import SCHEMA_FILE

UGLY = "cake 1\nkernel k(M:i32)\n      target   t\n{\n let x=1+2*M\n}\n"
BROKEN = "cake 1\nkernel k(M: i32)\n  target t\n{\n  let x = = 1\n}\n"


def fmt(*args, **more):
    return CliRunner().invoke(app, ["fmt", *map(str, args)], prog_name="cake", **more)


@pytest.fixture
def ugly(tmp_path):
    path = tmp_path / "ugly.cake"
    path.write_text(UGLY)
    return path


@pytest.fixture
def tidy(tmp_path):
    path = tmp_path / "tidy.cake"
    path.write_text(fmt("-", input=UGLY).stdout)
    return path


def test_a_text_is_rewritten_in_place_and_then_stays(ugly, tidy):
    ugly.chmod(0o640)
    assert fmt(ugly).exit_code == 0
    assert ugly.read_text() == tidy.read_text() != UGLY
    assert stat.S_IMODE(ugly.stat().st_mode) == 0o640
    before = ugly.stat().st_mtime_ns
    assert fmt(ugly).exit_code == 0 and ugly.stat().st_mtime_ns == before
    assert [p.name for p in ugly.parent.iterdir() if p.name.startswith(".")] == []


def test_check_names_the_files_that_would_change_and_writes_nothing(ugly, tidy):
    result = fmt("--check", tidy, ugly)
    assert result.exit_code == 1 and result.stdout == f"{ugly} would change\n"
    assert ugly.read_text() == UGLY
    assert fmt("--check", tidy).exit_code == 0


def test_diff_prints_and_writes_nothing(ugly):
    result = fmt("--diff", ugly)
    assert result.exit_code == 0 and ugly.read_text() == UGLY
    assert f"--- {ugly}" in result.stdout and "- let x=1+2*M\n" in result.stdout and "+  let x = 1 + 2 * M\n" in result.stdout
    assert fmt("--check", "--diff", ugly).exit_code == 1


@pytest.mark.parametrize("change", [lambda t: t.replace("\n", "\r\n"), lambda t: "\ufeff" + t, lambda t: t.rstrip("\n"), lambda t: t + "\n\n"])
def test_line_ends_and_marks_are_changes_too(tidy, change):
    good = tidy.read_bytes()
    tidy.write_bytes(change(good.decode()).encode())
    assert fmt("--check", tidy).exit_code == 1
    assert fmt(tidy).exit_code == 0 and tidy.read_bytes() == good


def test_stdin_goes_to_stdout(tidy):
    assert fmt("-", input=UGLY).stdout == tidy.read_text()
    assert fmt("-", "--check", input=UGLY).exit_code == 1
    assert fmt("-", "--check", input=tidy.read_text()).exit_code == 0


def test_a_text_with_an_error_is_reported_and_left_and_the_others_are_done(tmp_path, ugly):
    broken = tmp_path / "broken.cake"
    broken.write_text(BROKEN)
    result = fmt(broken, ugly)
    assert result.exit_code == 1 and broken.read_text() == BROKEN
    assert "error[syntax/" in result.stderr and "let x = = 1" in result.stderr
    assert ugly.read_text() != UGLY


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "k.cake"
    path.write_bytes(b"cake 1\n\xff\xfe\n")
    result = fmt(path)
    assert result.exit_code == 1 and "error[syntax/encoding]" in result.stderr and path.read_bytes() == b"cake 1\n\xff\xfe\n"


def test_a_link_stays_a_link(tmp_path, ugly, tidy):
    link = tmp_path / "link.cake"
    link.symlink_to(ugly)
    assert fmt(link).exit_code == 0
    assert link.is_symlink() and ugly.read_text() == tidy.read_text()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind this user")
def test_a_folder_that_can_not_be_written(ugly):
    ugly.parent.chmod(0o500)
    try:
        result = fmt(ugly)
    finally:
        ugly.parent.chmod(0o700)
    assert result.exit_code == 2 and ugly.read_text() == UGLY


def test_json(ugly, tidy):
    import jsonschema

    data = json.loads(fmt("--check", "--json", ugly, tidy).stdout)
    jsonschema.validate(data, json.loads(SCHEMA_FILE.read_text()))
    assert [f["state"] for f in data["files"]] == ["would-change", "clean"]
