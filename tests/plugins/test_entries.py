"""Entry points: an install that is behind its checkout, and a checkout that was never installed."""

from __future__ import annotations

import importlib.metadata

import pytest

from cake_core.plugins import entries
from cake_core.plugins.entries import checkout_table, find_entries, stale_install


@pytest.fixture
def checkout(tmp_path):
    def write(table: dict[str, str], name: str = "cake-compiler"):
        root = tmp_path / "checkout"
        root.mkdir(exist_ok=True)
        rows = "".join(f'{k} = "{v}"\n' for k, v in table.items())
        (root / "pyproject.toml").write_text(f'[project]\nname = "{name}"\n[project.entry-points.cake]\n{rows}')
        return root

    return write


@pytest.fixture
def installed(install):
    """An installed cake-compiler with two plugins; it stands before any other on the path."""
    for name in ("one", "two"):
        install(name, "", distribution="cake-compiler", version="9.9")


def test_an_install_that_is_up_to_date(installed, checkout):
    assert stale_install(checkout({"one": "stranger_one", "two": "stranger_two"})) is None


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"one": "stranger_one", "two": "stranger_two", "new": "n.plugin"}, "'new' is not installed"),
        ({"one": "stranger_one"}, "'two' is installed and no longer declared"),
        ({"one": "stranger_one", "two": "moved.plugin"}, "'two' is installed as 'stranger_two'"),
    ],
    ids=["added", "removed", "moved"],
)
def test_an_install_that_is_behind(installed, checkout, table, why):
    d = stale_install(checkout(table))
    assert (d.code, d.severity.value, d.why) == ("plugin/stale-install", "warning", why)
    assert d.fix == "reinstall: pip install -e ."


@pytest.mark.parametrize("root", ["absent", "another project", "not toml"])
def test_no_checkout_is_not_stale(installed, checkout, tmp_path, root):
    if root == "another project":
        path = checkout({"one": "x"}, name="other")
    elif root == "not toml":
        path = checkout({})
        (path / "pyproject.toml").write_text("[project")
    else:
        path = tmp_path / "nowhere"
    assert checkout_table(path) is None
    assert stale_install(path) is None


def test_a_checkout_that_was_never_installed_has_its_own_entry_points(monkeypatch):
    monkeypatch.setattr(entries.metadata, "entry_points", lambda group: ())

    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(entries.metadata, "distribution", absent)
    monkeypatch.setattr(entries, "checkout_table", lambda root=None: {"b": "cake_b.plugin", "a": "cake_a.plugin"})
    found = find_entries()
    assert [(e.origin.plugin, e.point.value, e.builtin) for e in found] == [("a", "cake_a.plugin", True), ("b", "cake_b.plugin", True)]
    assert stale_install() is None


def test_distribution_names_compare_as_indexes_do():
    assert entries.canonical("Cake_Compiler") == entries.canonical("cake.compiler") == entries.DISTRIBUTION
