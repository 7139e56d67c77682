"""Rule packs of other distributions: the template repository, built as a wheel, installed by pip into a folder, used by a process of its own.

Nothing of a pack runs: its `__init__` raises here. What does not fit is refused, by the name of the distribution that has to be mended.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TEMPLATE = HERE / "template"
BAD = TEMPLATE / "cake_rules_acme" / "rules" / "believed-data" / "bad_believed.cake"
GOOD = BAD.with_name("good_checked.cake")
RAISES = "raise SystemExit('this package was imported')\n"


def run(command: list, cwd: Path = ROOT, **more) -> subprocess.CompletedProcess:
    return subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=120, **more)


def built(source: Path, out: Path) -> Path:
    done = run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out], source)
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl"))


def installed(wheel: Path, site: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-compile", "--target", site, wheel]
    done = run(pip, env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    assert done.returncode == 0, done.stdout + done.stderr


def renamed(folder: Path, name: str, **texts: str) -> Path:
    """A copy of the template of another name; `texts`: in which files what is replaced by what."""
    copy = shutil.copytree(TEMPLATE, folder / name)
    (copy / "cake_rules_acme").rename(copy / f"cake_rules_{name}")
    for path in copy.rglob("*"):
        if path.is_file():
            path.write_text(path.read_text(encoding="utf-8").replace("acme", name), encoding="utf-8")
    return copy


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The template's wheel, from a copy in which importing the package raises."""
    folder = tmp_path_factory.mktemp("wheel")
    source = shutil.copytree(TEMPLATE, folder / "source")
    (source / "cake_rules_acme" / "__init__.py").write_text(RAISES)
    return built(source, folder / "dist")


@pytest.fixture(scope="module")
def acme(wheel, tmp_path_factory) -> Path:
    """The folder that pip installed the template's wheel into."""
    site = tmp_path_factory.mktemp("site")
    installed(wheel, site)
    return site


@pytest.fixture(scope="module")
def zeta(tmp_path_factory) -> Path:
    """Another distribution, made from the template as its authors would."""
    folder = tmp_path_factory.mktemp("zeta")
    installed(built(renamed(folder, "zeta"), folder / "dist"), folder / "site")
    return folder / "site"


def cake(*args, sites: tuple[Path, ...], cwd: Path = ROOT) -> subprocess.CompletedProcess:
    """`cake ARGS` in a process that has the folders on its path."""
    paths = [p for p in (*map(str, sites), os.environ.get("PYTHONPATH")) if p]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CAKE_")} | {"PYTHONPATH": os.pathsep.join(paths)}
    return run([sys.executable, "-m", "cake_core", *args], cwd, env=environment)


# --- a pack that fits --------------------------------------------------------------------------------------------


def test_the_wheel_holds_every_file_of_the_pack_and_its_entry_point(wheel):
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        (points,) = (n for n in names if n.endswith("entry_points.txt"))
        assert "[cake.rule_packs]\nacme = cake_rules_acme" in file.read(points).decode()
    package = TEMPLATE / "cake_rules_acme"
    assert names >= {str(p.relative_to(TEMPLATE)) for p in package.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    assert wheel.name.startswith("cake_rules_acme-0.1.0-"), "the version of the distribution is that of the pack"


def test_its_rules_are_judged_and_nothing_of_it_runs(acme):
    done = cake("check", BAD, sites=(acme,))
    assert done.returncode == 0 and "warning[acme/believed-data]: 'R % 8 == 0' is believed" in done.stdout, done.stdout + done.stderr
    assert "acme/believed-data" not in cake("check", GOOD, sites=(acme,)).stdout
    assert "acme/believed-data" not in cake("check", BAD, sites=()).stdout


def test_it_is_listed_explained_and_tested(acme):
    listed = cake("rules", "list", sites=(acme,))
    assert "acme 0.1.0: 1 rule, from cake-rules-acme 0.1.0" in listed.stdout
    assert "A contract about data that nothing checks" in cake("explain", "acme/believed-data", sites=(acme,)).stdout
    tested = cake("rules", "test", "acme", sites=(acme,))
    assert tested.returncode == 0 and "1 rule, 2 texts, 0 wrong" in tested.stdout, tested.stdout + tested.stderr


def test_a_lock_names_its_distribution_and_refuses_another_state_of_it(acme, tmp_path):
    site = shutil.copytree(acme, tmp_path / "site")
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    assert cake("rules", "lock", sites=(site,), cwd=project).returncode == 0
    (row,) = [r for r in json.loads((project / "cake.lock").read_text())["packs"] if r["name"] == "acme"]
    assert row["distribution"] == "cake-rules-acme"
    assert cake("check", BAD, "--locked", sites=(site,), cwd=project).returncode == 0
    rule = site / "cake_rules_acme" / "rules" / "believed-data" / "rule.yaml"
    rule.write_text(rule.read_text().replace("level: warning", "level: info"))
    done = cake("check", BAD, "--locked", sites=(site,), cwd=project)
    assert done.returncode == 3 and "the pack 'acme' 0.1.0 of cake-rules-acme is locked" in done.stdout
    gone = cake("check", BAD, "--locked", sites=(), cwd=project)
    assert gone.returncode == 3 and "'acme' 0.1.0 of cake-rules-acme is locked, and is not there" in gone.stdout


def test_two_packs_are_judged_together_in_any_order(acme, zeta):
    both = [cake("check", BAD, "--format", "concise", sites=sites) for sites in ((acme, zeta), (zeta, acme))]
    assert both[0].stdout == both[1].stdout and both[0].returncode == 0
    assert "acme/believed-data" in both[0].stdout and "zeta/believed-data" in both[0].stdout


# --- packs that do not fit ---------------------------------------------------------------------------------------


@pytest.fixture
def broken(acme, tmp_path):
    """`broken(FILE, OLD, NEW)`: what a check says with the pack installed so."""

    def check(name: str, old: str, new: str, *sites: Path) -> str:
        site = shutil.copytree(acme, tmp_path / "site")
        path = site / "cake_rules_acme" / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        return refused((site, *sites))

    return check


def refused(sites: tuple[Path, ...]) -> str:
    done = cake("check", GOOD, "--format", "concise", sites=sites)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr and "imported" not in done.stderr
    assert "cake-rules-acme 0.1.0" in done.stdout
    return done.stdout


RULE = "rules/believed-data/rule.yaml"


@pytest.mark.parametrize(
    "name, old, new, said",
    [
        ("pack.yaml", '">=0.1,<0.2", schema', '">=7", schema', "asks for Cake >=7"),
        ("pack.yaml", "schema: 1, packs", "schema: 2, packs", "asks for schema 2 of rules"),
        ("pack.yaml", "schema: 1\n", "schema: 2\n", "this version reads schema 1"),
        ("pack.yaml", "suites:", "suites: [", "this is no YAML"),
        ("pack.yaml", "{name: core,", "{name: coer,", "asks for the pack 'coer', which is not there"),
        ("pack.yaml", '{name: core, version: ">=0.2', '{name: core, version: ">=0.9', "asks for the pack 'core' >=0.9"),
        ("pack.yaml", "schema: 1, packs", "schema: 1, predicates: [sorcery], packs", "no predicate 'sorcery'"),
        (RULE, "require: not c.believed", "require: sorcery(c)", "'sorcery'"),
        (RULE, "id: acme/", "id: core/", "is not in the pack's namespace"),
    ],
)
def test_a_pack_that_does_not_fit_is_refused(broken, name, old, new, said):
    assert said in broken(name, old, new)


def test_a_package_without_a_pack_is_refused(acme, tmp_path):
    site = shutil.copytree(acme, tmp_path / "site")
    (site / "cake_rules_acme" / "pack.yaml").unlink()
    assert "package 'cake_rules_acme' has no 'pack.yaml'" in refused((site,))
    shutil.rmtree(site / "cake_rules_acme")
    assert "package 'cake_rules_acme' has no 'pack.yaml'" in refused((site,))


def test_a_link_out_of_a_pack_is_refused(acme, tmp_path):
    site = shutil.copytree(acme, tmp_path / "site")
    rule = site / "cake_rules_acme" / RULE
    shutil.move(rule, tmp_path / "rule.yaml")
    rule.symlink_to(tmp_path / "rule.yaml")
    assert "rule.yaml' is a link" in refused((site,))


@pytest.mark.parametrize("what", ["name", "namespace"])
def test_two_packs_of_one_name_or_namespace_are_refused_by_both_distributions(acme, zeta, tmp_path, what):
    """A rule's id has its namespace, so two rules of one id need two packs of one namespace."""
    other = shutil.copytree(zeta, tmp_path / "other")
    pack = other / "cake_rules_zeta"
    (pack / "pack.yaml").write_text((pack / "pack.yaml").read_text().replace(f"\n{what}: zeta", f"\n{what}: acme"))
    if what == "name":
        points = next(other.glob("*.dist-info")) / "entry_points.txt"
        points.write_text(points.read_text().replace("zeta = ", "acme = "))
    else:
        rule = pack / RULE
        rule.write_text(rule.read_text().replace("zeta/", "acme/"))
    said = refused((acme, other))
    assert f"two packs have the {what} 'acme'" in said and "cake-rules-zeta 0.1.0" in said
