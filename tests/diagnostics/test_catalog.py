"""The catalogue: every code that the source reports has an entry, and the page in docs/ is the catalogue's."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from cake_core.diagnostics import catalog
from cake_core.diagnostics.catalog import CODE, CatalogError, catalogue, core_table, markdown, read_table
from cake_core.diagnostics.categories import OWN
from cake_core.rules import find_packs
from cake_core.rules.entries import entries

ROOT = Path(__file__).resolve().parents[2]
ENTRY_POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["cake"]
PACKAGES = tuple(sorted({v.partition(".")[0] for v in ENTRY_POINTS.values()}))
FOLDERS = {p: next(iter((*ROOT.glob(f"plugins/*/{p}"), *ROOT.glob(f"arch/*/{p}")))) for p in PACKAGES}

LITERAL = re.compile(r"""["']((?:%s|ptx|sm\d+)/[a-z0-9-]+)["']""" % "|".join(OWN))


RULES = entries(find_packs(local=None))


def reported(folder: Path) -> set[str]:
    """Codes that stand in the Python source of a package."""
    return {code for path in folder.rglob("*.py") for code in LITERAL.findall(path.read_text())}


def own_table(package: str) -> dict:
    path = FOLDERS[package] / "codes.toml"
    return read_table(path, package) if path.is_file() else {}


def test_every_code_of_the_core_has_an_entry():
    """Its own; what is found by executing a kernel is told in the code of the rule that is about the same."""
    assert reported(ROOT / "cake_core") - core_table().keys() - RULES.keys() == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_code_of_a_plugin_has_an_entry(package):
    own = own_table(package)
    assert reported(FOLDERS[package]) - core_table().keys() - own.keys() == set()
    assert own.keys() & core_table().keys() == set(), "a code means one thing"


def test_no_entry_without_a_code():
    """An entry outlives its code only by mistake: nothing is released yet."""
    said = set().union(reported(ROOT / "cake_core"), *map(reported, FOLDERS.values()))
    known = set(core_table()).union(*map(own_table, PACKAGES))
    assert known - said == set()
    assert known & RULES.keys() == set(), "a code means one thing"


def test_the_compilers_entries_are_in_its_namespaces():
    assert {c.partition("/")[0] for c in core_table()} == set(OWN)


def test_entries_are_written_in_one_style():
    for e in (*core_table().values(), *(x for p in PACKAGES for x in own_table(p).values()), *RULES.values()):
        assert CODE.fullmatch(e.code)
        assert e.title and e.title[0].isupper() or e.title[0] in "':", e.code
        assert not e.title.endswith("."), e.code
        assert e.why.strip() and e.why.rstrip().endswith((".", "?")), e.code
        assert e.fix.strip() and not e.fix.rstrip().endswith("."), e.code


def test_the_page_is_the_catalogues():
    entries = {**core_table(), **{c: e for p in PACKAGES for c, e in own_table(p).items()}, **RULES}
    assert (ROOT / "docs" / "diagnostics.md").read_text() == markdown(entries.values()), "write it anew: cake explain --markdown > docs/diagnostics.md"


# --- tables of plugins


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An importable package whose code must not run; returns a function that writes its table."""
    folder = tmp_path / "cake_stranger"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise SystemExit('this package was imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    catalog.catalogue.cache_clear()
    yield lambda text: (folder / "codes.toml").write_text(text)
    catalog.catalogue.cache_clear()


GOOD = '["acme/slow"]\ntitle = "Slow"\nwhy = "It is."\nfix = "do less"\n'


def test_a_plugins_table_is_read_without_running_it(package):
    package(GOOD)
    entry = catalogue(("cake_stranger", "no_such_package"))["acme/slow"]
    assert (entry.title, entry.origin) == ("Slow", "cake_stranger")


def test_a_plugin_can_not_change_what_a_code_of_the_compiler_means(package):
    package(GOOD.replace("acme/slow", "type/unknown-name"))
    assert catalogue(("cake_stranger",))["type/unknown-name"] == core_table()["type/unknown-name"]


BAD = {
    "no TOML": "[",
    "no code": GOOD.replace("acme/slow", "Acme"),
    "a field missing": GOOD.replace('fix = "do less"\n', ""),
    "a field too many": GOOD + 'level = "error"\n',
    "no table": "title = 1\n",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_damaged_table_is_refused_alone_and_left_out_among_others(package, text, tmp_path):
    package(text)
    with pytest.raises(CatalogError):
        read_table(tmp_path / "cake_stranger" / "codes.toml", "cake_stranger")
    assert catalogue(("cake_stranger",)) == core_table()
