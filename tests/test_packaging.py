"""The wheel: everything that the compiler reads at run time is inside, and nothing that would land where it must not."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as file:
        yield file


def shipped(package: str) -> set[str]:
    """The files of a package's folder, as the wheel should name them. Only caches are left out."""
    folder = ROOT / package
    return {str(p.relative_to(folder.parent)) for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_of_every_package_is_inside(wheel, package):
    assert shipped(package) - set(wheel.namelist()) == set()


def test_grammar_and_data_are_inside(wheel):
    names = wheel.namelist()
    assert any(n.startswith("cake_core/") and n.endswith(".lark") for n in names)
    assert any(n.startswith("cake_core/") and n.endswith(".json") for n in names)
    assert "cake_registers/codes.toml" in names


def test_top_level_names_are_ours_alone(wheel):
    tops = {n.split("/")[0] for n in wheel.namelist()}
    packages = {Path(p).name for p in PACKAGES}
    info = {t for t in tops if t.endswith(".dist-info")}
    assert tops - info == packages
    assert len(info) == 1 and info.pop().startswith("cake_compiler-")


def test_no_tests_and_no_caches_are_inside(wheel):
    assert [n for n in wheel.namelist() if "/tests/" in n or "__pycache__" in n or n.endswith(".pyc")] == []


def test_entry_points_are_those_of_the_project(wheel):
    (name,) = [n for n in wheel.namelist() if n.endswith("entry_points.txt")]
    text = wheel.read(name).decode()
    for point, value in PROJECT["project"]["entry-points"]["cake"].items():
        assert f"{point} = {value}" in text.splitlines()
    assert "cake = cake_core.cli:main" in text.splitlines()


def test_versions_agree(wheel):
    (name,) = [n for n in wheel.namelist() if n.endswith("dist-info/METADATA")]
    metadata = message_from_string(wheel.read(name).decode())
    import cake_core

    assert metadata["Version"] == cake_core.__version__ == PROJECT["project"]["version"]
    assert metadata["Name"] == "cake-compiler"


def test_every_entry_point_is_a_module_inside(wheel):
    names = set(wheel.namelist())
    for value in PROJECT["project"]["entry-points"]["cake"].values():
        assert value.replace(".", "/") + ".py" in names
