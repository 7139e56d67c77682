"""What is under test: all packages come from one place, and where that is asked for, from the installed wheel.

`CAKE_TEST_INSTALLED` and `CAKE_TEST_ASSEMBLER` are set by `.ci/run`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = [Path(p).name for p in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]]


def places() -> dict[str, Path]:
    return {name: Path(find_spec(name).origin).resolve() for name in PACKAGES}


def test_all_packages_come_from_one_place():
    """A mixture of an old install and a checkout passes tests that mean nothing."""
    inside = {name for name, path in places().items() if ROOT in path.parents and "site-packages" not in path.parts}
    assert inside in (set(), set(PACKAGES))


def test_the_installed_packages_are_tested_where_that_is_asked_for():
    if not os.environ.get("CAKE_TEST_INSTALLED"):
        return
    assert all("site-packages" in path.parts for path in places().values()), places()
    code = "import cake_core; print(cake_core.__file__)"
    child = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "site-packages" in Path(child.strip()).parts, "child processes must find the installed packages too"


def test_there_is_an_assembler_where_that_is_asked_for():
    from cake_core.assemble import find_assembler

    if os.environ.get("CAKE_TEST_ASSEMBLER"):
        assert "nvidia-cuda-nvcc" in find_assembler().found
