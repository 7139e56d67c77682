"""A text that the verifier refuses is built on request alone, and marked."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_core import artifact
from cake_core.diagnostics import CakeError, Severity
from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.runtime.execute import bench_artifact, run_artifact
from cake_core.runtime.loader import ArtifactError, read_manifest
from cake_core.source import Source

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = load_registry()
GEMM = (ROOT / "kernels" / "gemm" / "gemm_sm80.cake").read_text(encoding="utf-8")


def text(old: str, new: str = "") -> Source:
    assert GEMM.count(old) >= 1
    return Source("gemm_sm80.cake", GEMM.replace(old, new))


WAIT = next(line for line in GEMM.splitlines(keepends=True) if "wait" in line and not line.lstrip().startswith("#"))


def test_it_is_refused_else_built_and_marked(tmp_path):
    wrong = text(WAIT)
    with pytest.raises(CakeError) as raised:
        build(wrong, REGISTRY, "sm80", prove=True)
    codes = tuple(sorted({d.code for d in raised.value.diagnostics if d.severity is Severity.ERROR}))
    assert codes
    built = build(wrong, REGISTRY, "sm80", prove=True, violated=True)
    assert built.manifest.violated == codes and {d.code for d in built.diagnostics} >= set(codes)
    artifact.write(tmp_path / "a", built.files)
    assert read_manifest(tmp_path / "a").violated == codes
    for run in (run_artifact, bench_artifact):
        with pytest.raises(ArtifactError) as refused:
            run(tmp_path / "a", None, [{"M": 1}], 0)
        assert refused.value.diagnostic.code == "runtime/violated"
        with pytest.raises(CakeError) as other:  # it has no cubin, and there may be no GPU; it is not its mark that ends this
            run(tmp_path / "a", None, [{"M": 1}], 0, violated=True)
        assert other.value.diagnostics[0].code == "runtime/artifact-no-cubin"


def test_a_right_text_is_not_marked_and_gives_the_same_files():
    right = Source("gemm_sm80.cake", GEMM)
    built, plain = (build(right, REGISTRY, "sm80", violated=v) for v in (True, False))
    assert built.manifest.violated == () and built.files == plain.files


def test_what_is_no_text_is_refused_all_the_same():
    with pytest.raises(CakeError) as raised:
        build(text("wait", "wiat"), REGISTRY, "sm80", violated=True)
    assert raised.value.diagnostics[0].code.startswith(("syntax/", "type/"))
