"""Every kernel of the zoo is proved, for all sizes that its `require`s admit: nothing violated, nothing unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_core.check.safety import REQUIRED
from cake_core.pipeline import build, choose_kernel
from cake_core.plugins import load_registry
from cake_core.prove.effort import counting
from cake_core.source import Source
from cake_core.syntax import parse

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = load_registry()


def _targets():
    for path in sorted((ROOT / "kernels").rglob("*.cake")):
        source = Source(str(path), path.read_text(encoding="utf-8"))
        for arch in choose_kernel(parse(source), None).targets:
            yield pytest.param(source, arch, id=f"{path.stem}-{arch}")


#: By kernel: how often the solver may be asked, and with how many thousand steps. A person waits for it: docs/decisions/0056.
MOST = {
    "gemm_sm80": (220, 3_200),
    "gemm_sm90": (110, 5_000),
    "gemm_sm100": (58, 3_700),
    "gemm_sm100_pair": (90, 8_000),
    "gemm_bias_gelu_sm90": (118, 9_000),
}


@pytest.mark.parametrize(("source", "arch"), _targets())
def test_proved(source, arch):
    """It builds with nothing to say, without a permission to leave anything unproved, and without more questions than it needs."""
    with counting() as effort:
        built = build(source, REGISTRY, arch, prove=True)
    spent = effort.spent
    checks, steps = MOST.get(Path(source.name).stem, (spent.checks, spent.steps))
    assert spent.checks <= checks and spent.steps <= 1000 * steps
    assert built.diagnostics == () and built.manifest.allowed_unproved == ()
    assert set(built.account.proved) >= set(REQUIRED) - {"that buffers which share bytes are in use at different times"}
