"""Entry points: an install that is behind its checkout, and a checkout that was never installed."""

from __future__ import annotations

import sys
import zipfile
from importlib import metadata

import pytest

from cake_core.plugins import entries
from cake_core.plugins import installed as reader
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
    monkeypatch.setattr(entries, "distributions", lambda group: {})
    monkeypatch.setattr(entries, "checkout_table", lambda root=None: {"b": "cake_b.plugin", "a": "cake_a.plugin"})
    found = find_entries()
    assert [(e.origin.plugin, e.point.value, e.builtin) for e in found] == [("a", "cake_a.plugin", True), ("b", "cake_b.plugin", True)]
    assert stale_install() is None


def test_distribution_names_compare_as_indexes_do():
    assert entries.canonical("Cake_Compiler") == entries.canonical("cake.compiler") == entries.DISTRIBUTION


# --- the reader of installed distributions, against the library


def by_library(group: str) -> list[tuple[str, str, str, str]]:
    return sorted((p.name, p.value, p.dist.metadata["Name"], p.dist.metadata["Version"]) for p in metadata.entry_points(group=group))


def by_reader(group: str) -> list[tuple[str, str, str, str]]:
    return sorted((p.name, p.value, d.name, d.version) for d in reader.distributions(group).values() for p in d.points)


@pytest.mark.parametrize("group", ["console_scripts", "pytest11", "cake", "no.such.group"])
def test_entry_points_are_those_that_the_library_finds(group):
    assert by_reader(group) == by_library(group)


def test_names_and_versions_are_those_that_the_library_finds():
    theirs = {reader.canonical(d.metadata["Name"]) for d in metadata.distributions()}
    assert set(reader.distributions("cake")) == theirs and len(theirs) > 5


ODD = """
[console_scripts]
one = other:main
[cake]
# not = this
spaced   =   stranger_spaced
 dotted.name = stranger.plugin : thing.part  [extra,more]

[other.group]
two = other
"""


def test_a_file_of_entry_points_is_read_as_the_library_reads_it(install, tmp_path):
    install("plain", "", version="1.0rc1", distribution="Some.Name")
    (tmp_path / "Some.Name-1.0rc1.dist-info" / "entry_points.txt").write_text(ODD)
    assert [row for row in by_reader("cake") if row[2] == "Some.Name"] == [row for row in by_library("cake") if row[2] == "Some.Name"]
    assert {row[:2] for row in by_reader("cake")} >= {("spaced", "stranger_spaced"), ("dotted.name", "stranger.plugin : thing.part  [extra,more]")}


def test_of_two_distributions_of_one_name_the_first_on_the_path_counts(install, tmp_path, monkeypatch):
    install("acme", "", version="2.0")
    later = tmp_path / "later" / "Dist.Acme-1.0.dist-info"
    later.mkdir(parents=True)
    (later / "METADATA").write_text("Name: Dist.Acme\nVersion: 1.0\n")
    (later / "entry_points.txt").write_text("[cake]\nacme = old\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(later.parent)])
    assert [row for row in by_reader("cake") if row[0] == "acme"] == [("acme", "stranger_acme", "dist-acme", "2.0")]


def test_an_archive_on_the_path_is_looked_into(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "acme.zip", "w") as file:
        file.writestr("zipped-1.0.dist-info/METADATA", "Name: zipped\nVersion: 1.0\n\nName: not this\n")
        file.writestr("zipped-1.0.dist-info/entry_points.txt", "[cake]\nzipped = stranger_zipped\n")
    monkeypatch.syspath_prepend(tmp_path / "acme.zip")
    assert ("zipped", "stranger_zipped", "zipped", "1.0") in by_reader("cake")


def test_a_finder_that_brings_distributions_is_asked(monkeypatch):
    class Dist(metadata.Distribution):
        def read_text(self, name):
            return {"METADATA": "Name: found\nVersion: 3\n", "entry_points.txt": "[cake]\nfound = stranger_found\n"}.get(name)

        def locate_file(self, path):
            raise NotImplementedError

    class Finder(metadata.DistributionFinder):
        def find_distributions(self, context=None):
            return [Dist()]

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    assert ("found", "stranger_found", "found", "3") in by_reader("cake")


def test_places_that_hold_nothing_are_passed_over(install, tmp_path, monkeypatch):
    (tmp_path / "a_file.egg-info").write_text("Name: a_file\n")
    (tmp_path / "empty-1.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path), str(tmp_path / "nowhere")])
    assert by_reader("cake") == by_library("cake")


def test_a_point_loads_a_module_or_what_is_in_it(install):
    install("acme", "class thing: part = 3")
    assert reader.Point("a", "stranger_acme").load() is sys.modules["stranger_acme"]
    assert reader.Point("a", "stranger_acme:thing.part [extra]").load() == 3
    for value, error in (("no module", ImportError), ("stranger_acme:other", AttributeError), ("no_such_module_of_ours", ModuleNotFoundError)):
        with pytest.raises(error):
            reader.Point("a", value).load()
