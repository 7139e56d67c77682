"""What a command imports until it has its result: what it does without stays away, on any machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = Path(__file__).resolve().parents[2] / "kernels"

#: Modules that are slow to import and of use to other commands, or to none.
SLOW = {"email", "zipfile", "csv", "importlib.metadata", "importlib.resources", "difflib", "tempfile", "subprocess", "lark", "numpy", "ml_dtypes", "rich", "cuda", "z3", "yaml", "_hashlib"}
#: Rooms and commands that none of these commands needs.
ELSEWHERE = {"cake_core.assemble", "cake_core.runtime", "cake_core.diagnostics.catalog", "cake_core.cli.run", "cake_core.cli.plugins", "cake_core.cli.doctor"}

#: What looks up proofs that were made before.
KEPT = {"cake_core.prove.prover", "cake_core.prove.cache", "cake_core.prove.effort", "cake_core.prove.beside"}

#: Plugins by the kernel that needs them.
NEEDED = {
    "gemm/gemm_sm90": {"sm90", "barriers", "cluster", "fragments", "math", "memory", "registers", "tma", "wgmma"},
    "gemm/gemm_sm80": {"sm80", "sm90", "barriers", "cp_async", "fragments", "math", "memory", "mma_sync"},
    "rmsnorm/rmsnorm": {"sm80", "sm90", "sm100", "barriers", "fragments", "math", "memory", "shuffle"},
}


def imported(*args: str) -> tuple[set[str], str]:
    """The modules of a process that ran `cake ARGS`, and what it wrote."""
    code = (
        "import sys\nfrom cake_core.cli.app import app\n"
        f"try: app.main({list(args)!r}, prog_name='cake')\nexcept SystemExit as end: assert not end.code, end.code\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split()), done.stdout


def kernel(name: str) -> str:
    return str(KERNELS / f"{name}.cake")


@pytest.mark.parametrize("name", NEEDED)
def test_a_check_loads_the_plugins_that_the_text_needs(name):
    modules, out = imported("check", kernel(name))
    assert out.endswith("\n1 text clean\n")
    assert {m.partition(".")[0] for m in modules if m.startswith("cake_")} == {"cake_core", *(f"cake_{n}" for n in NEEDED[name])}


@pytest.mark.parametrize("args", [["check", kernel("gemm/gemm_sm90")], ["build", "--emit", "ptx", "--output", "-", kernel("gemm/gemm_sm90")]], ids=["check", "build"])
def test_a_check_and_a_build_of_ptx_do_without(args):
    solver = set(subprocess.run([sys.executable, "-c", "import sys, z3; print(*sys.modules)"], capture_output=True, text=True, check=True).stdout.split())
    imported(*args)  # what it proves is kept
    modules, _ = imported(*args)
    assert modules & ((SLOW - solver) | ELSEWHERE) == set()
    assert not any(m.startswith("cake_core.prove.") and m not in KEPT for m in modules)


def test_help_does_without():
    modules, _ = imported("--help")
    assert modules & (SLOW | ELSEWHERE | {"pluggy", "json", "cake_core.pipeline", "cake_core.ir.nodes", "cake_core.primitive", "cake_core.plugins.host"}) == set()


def test_at_its_end_nothing_is_taken_apart():
    """Which would take longer than what most commands do. What is in cycles, as solvers are, is left to the system."""
    code = (
        "import sys\nfrom cake_core.cli import main\n"
        "class Cycle:\n    def __init__(self): self.own = self\n    def __del__(self): print('taken apart', flush=True)\n"
        "one = [Cycle() for _ in range(3)]\nsys.argv[1:] = ['--version']\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("cake, version") and "apart" not in done.stdout
