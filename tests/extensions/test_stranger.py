"""A distribution that the project does not know: installed by pip into a folder, found by its entry point in a process of its own.

It brings an architecture and a function. Existing texts build for the architecture from existing primitives, the target's name in the
text being all that changes, and a new text uses the function; the PTX of both is run by the machine of the ISA in `plugins/mma_sync/tests`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KERNELS = ROOT / "kernels"
#: A tile that fits into the shared memory of the new architecture.
TILE = ("--set", "BM=32", "--set", "BN=64", "--set", "BK=32", "--set", "WM=1", "--set", "WN=2")


@pytest.fixture(scope="module")
def machine():
    spec = importlib.util.spec_from_file_location("cta_of_mma_sync", ROOT / "plugins/mma_sync/tests/cta.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The folder that pip installed the stranger's distribution into; no index is asked."""
    folder = tmp_path_factory.mktemp("stranger")
    source = shutil.copytree(HERE / "acme", folder / "acme")  # a build may leave files behind
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        "--target",
        folder / "site",
        source,
    ]
    done = subprocess.run(
        [*map(str, pip)], capture_output=True, text=True, timeout=120, env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def cake(site):
    """`cake ARGS` in a process that sees the folder."""

    def run(*args, **more) -> subprocess.CompletedProcess:
        paths = [p for p in (str(site), os.environ.get("PYTHONPATH")) if p]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("CAKE_")} | {"PYTHONPATH": os.pathsep.join(paths)} | more
        command = [sys.executable, "-m", "cake_core", *map(str, args)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, env=environment)

    return run


@pytest.fixture
def for_ada(tmp_path):
    """A kernel's text with the new target added to those that it names, and with other changes."""

    def text(path: Path, *changes: tuple[str, str]) -> Path:
        source = path.read_text(encoding="utf-8")
        for old, new in (("target sm80,", "target acme_sm89, sm80,"), *changes):
            assert source.count(old) == 1
            source = source.replace(old, new)
        copy = tmp_path / path.name
        copy.write_text(source, encoding="utf-8")
        return copy

    return text


def build(cake, text: Path, out: Path, *more: str) -> dict:
    done = cake("build", text, "--arch", "acme_sm89", "-o", out, *more)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((out / "manifest.json").read_text(encoding="utf-8"))


def close(got, wanted, k=1):
    return np.all(np.abs(got - wanted) <= 2.0**-8 * np.abs(wanted) + k * 2.0**-20 * (1 + np.abs(wanted).max()))


def silu(x):
    return x / (1 + np.exp(-x))


def test_it_is_listed(cake):
    done = cake("plugins")
    (line,) = [row for row in done.stdout.splitlines() if "acme-cake" in row]
    assert done.returncode == 0 and "active" in line


def test_a_gemm_builds_from_existing_primitives(cake, for_ada, machine, tmp_path):
    manifest = build(cake, for_ada(KERNELS / "gemm/gemm_sm80.cake"), tmp_path / "out", *TILE)
    assert (manifest["arch"], manifest["target"], manifest["compute_capability"]) == ("acme_sm89", "sm_89", [8, 9])
    assert manifest["portable"] and manifest["compiler"]["plugins"]["acme"] == "2.1"
    rng = np.random.default_rng(0)
    m, n, k = 33, 72, 104
    a, b = (rng.standard_normal((rows, k)).astype(ml_dtypes.bfloat16) for rows in (m, n))
    d = np.full((m, n), np.nan, ml_dtypes.bfloat16)
    ptx = (tmp_path / "out/kernel.ptx").read_text()
    machine.run(ptx, manifest["launch"]["threads"], 4, manifest["launch"]["shared_bytes"], {"A": a, "B": b, "D": d}, M=m, N=n, K=k)
    assert close(d.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64).T, k)


def test_its_function_fuses_into_an_existing_kernel(cake, for_ada, machine, tmp_path):
    text = for_ada(KERNELS / "gemm/gemm_sm80.cake", ("<- bf16(acc)", "<- bf16(acme.silu(acc))"))
    manifest = build(cake, text, tmp_path / "out", *TILE)
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((rows, 40)).astype(ml_dtypes.bfloat16) for rows in (32, 64))
    d = np.full((32, 64), np.nan, ml_dtypes.bfloat16)
    ptx = (tmp_path / "out/kernel.ptx").read_text()
    machine.run(ptx, manifest["launch"]["threads"], 1, manifest["launch"]["shared_bytes"], {"A": a, "B": b, "D": d}, M=32, N=64, K=40)
    assert close(d.astype(np.float64), silu(a.astype(np.float64) @ b.astype(np.float64).T), 40)


def test_its_own_kernel_uses_its_function(cake, machine, tmp_path):
    manifest = build(cake, HERE / "acme/kernels/swiglu.cake", tmp_path / "out", "--set", "CMAX=1024")
    rng = np.random.default_rng(2)
    g, u = (rng.standard_normal((3, 104)).astype(ml_dtypes.bfloat16) for _ in range(2))
    y = np.full((3, 104), np.nan, ml_dtypes.bfloat16)
    ptx = (tmp_path / "out/kernel.ptx").read_text()
    machine.run(ptx, manifest["launch"]["threads"], 2, manifest["launch"]["shared_bytes"], {"G": g, "U": u, "Y": y}, R=3, C=104)
    assert close(y.astype(np.float64), silu(g.astype(np.float64)) * u.astype(np.float64))


def test_rmsnorm_builds(cake, for_ada, tmp_path):
    manifest = build(cake, for_ada(KERNELS / "rmsnorm/rmsnorm.cake"), tmp_path / "out")
    assert manifest["target"] == "sm_89" and manifest["launch"]["threads"] == 256


# --- what an architecture lacks is named


def test_a_tile_that_does_not_fit_names_the_limit(cake, for_ada, tmp_path):
    done = cake("build", for_ada(KERNELS / "gemm/gemm_sm80.cake"), "--arch", "acme_sm89", "-o", tmp_path / "out")
    assert done.returncode == 1 and "error[core/shared-capacity]" in done.stderr and "acme_sm89 has 101376 bytes" in done.stderr


def test_a_capability_that_it_lacks_is_named(cake, tmp_path):
    source = (KERNELS / "gemm/gemm_sm90.cake").read_text(encoding="utf-8").replace("target sm90", "target acme_sm89")
    text = tmp_path / "gemm.cake"
    text.write_text(source, encoding="utf-8")
    done = cake("check", text)
    assert done.returncode == 1
    for capability in ("cluster", "tma", "wgmma"):
        assert f"'{capability}', which acme_sm89 does not offer" in done.stdout, capability


def test_its_function_is_not_offered_elsewhere(cake, tmp_path):
    text = tmp_path / "swiglu.cake"
    text.write_text(
        (HERE / "acme/kernels/swiglu.cake").read_text(encoding="utf-8").replace("target acme_sm89", "target sm80"), encoding="utf-8"
    )
    done = cake("check", text)
    assert done.returncode == 1 and "'acme.silu' needs 'acme_fast_math', which sm80 does not offer" in done.stdout


def test_without_the_distribution_the_names_are_unknown(cake):
    done = cake("check", HERE / "acme/kernels/swiglu.cake", CAKE_LOAD_PLUGINS="")
    assert done.returncode != 0 and "acme_sm89" in done.stdout + done.stderr
