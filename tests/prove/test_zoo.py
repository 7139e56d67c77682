"""Every kernel of the zoo is proved, for all sizes that its `require`s admit: nothing violated, nothing unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_core.check.safety import REQUIRED
from cake_core.pipeline import build, choose_kernel
from cake_core.plugins import load_registry
from cake_core.source import Source
from cake_core.syntax import parse

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = load_registry()


def _targets():
    for path in sorted((ROOT / "kernels").rglob("*.cake")):
        source = Source(str(path), path.read_text(encoding="utf-8"))
        for arch in choose_kernel(parse(source), None).targets:
            yield pytest.param(source, arch, id=f"{path.stem}-{arch}")


@pytest.mark.parametrize(("source", "arch"), _targets())
def test_proved(source, arch):
    """It builds with nothing to say, and without a permission to leave anything unproved."""
    built = build(source, REGISTRY, arch, prove=True)
    assert built.diagnostics == () and built.manifest.allowed_unproved == ()
    assert set(built.account.proved) >= set(REQUIRED) - {"that buffers which share bytes are in use at different times"}
