"""An install in a clean environment, from a wheel and in editable mode, used from the root folder.

The environment holds this project alone; its dependencies are read from where these tests run, so no index is asked.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

CHECK = """
import cake_core, sys
from importlib.resources import files
from cake_core.plugins import load_registry
from cake_core.plugins.entries import stale_install

registry = load_registry(environ={"CAKE_LOAD_PLUGINS": ""})
ours = [r for r in registry.plugins if r.distribution == "cake-compiler"]
bad = [(r.name, r.cause) for r in ours if r.status != "active"]
assert len(ours) >= 10 and not bad, bad
assert registry.architecture("sm90").source.distribution == "cake-compiler"
assert stale_install() is None
assert any(f.name.endswith(".lark") for f in files("cake_core.syntax").iterdir())

from cake_core.source import Source
from cake_core.syntax import parse
assert parse(Source("k.cake", "cake 1\\nkernel k(N: i32)\\n  target sm90\\n{\\n}\\n")).kernels[0].name == "k"
print(cake_core.__file__)
"""


def run(*command, cwd="/", timeout=120) -> str:
    """From the root folder, with none of the caller's paths."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "CAKE_", "VIRTUAL_ENV"))}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module", params=["wheel", "editable"])
def installed(request, tmp_path_factory) -> tuple[Path, str]:
    """(the environment's folder of programs, how it was installed)."""
    if request.param == "editable":
        pytest.importorskip("editables", reason="hatchling needs it for an editable install")
    folder = tmp_path_factory.mktemp(request.param)
    venv.create(folder / "env", with_pip=False, system_site_packages=False)
    programs = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    site = Path(run(programs / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")  # behind this environment's own packages
    pip = [sys.executable, "-m", "pip", "--python", programs / "python", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed"]
    if request.param == "editable":
        run(*pip, "-e", ROOT)
    else:
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
        run(*pip, next(folder.glob("*.whl")))
    return programs, request.param


def test_imports_plugins_and_grammar(installed):
    programs, mode = installed
    where = Path(run(programs / "python", "-c", CHECK).strip())
    assert (ROOT in where.parents) == (mode == "editable")


def test_the_program_starts(installed):
    programs, _ = installed
    by_name, by_module = run(programs / "cake", "--help"), run(programs / "python", "-m", "cake_core", "--help")
    assert "build" in by_name and "build" in by_module


def test_no_plugin_is_broken(installed):
    programs, _ = installed
    assert "sm90" in run(programs / "cake", "plugins", "--check")
