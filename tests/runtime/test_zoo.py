"""The zoo's kernels as the compiler builds them, launched on the fake GPU: every shape of a companion keeps the contract,
every map is one that the driver takes, every grid is whole clusters."""

from pathlib import Path

import numpy as np
import pytest

from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.runtime import DeviceArray, driver as driver_module, load
from cake_core.runtime.companion import load_companion
from cake_core.runtime.execute import run_artifact
from cake_core.runtime.host import packed_bytes
from cake_core.runtime.launch import MAX_GRID
from cake_core.source import Source
from cake_core.syntax import parse

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
TEXTS = sorted(p for p in KERNELS.rglob("*.cake"))


@pytest.fixture(scope="module")
def registry():
    return load_registry(environ={"CAKE_LOAD_PLUGINS": ""})


@pytest.fixture(params=TEXTS, ids=lambda p: p.stem)
def built(request, tmp_path, registry, fakes, gpu):
    """(kernel's file, artifact folder); the cubin is a whole ELF file without code, since nothing runs it. Built for the last
    of the text's targets, for a fake GPU of that capability."""
    source = Source(request.param.name, request.param.read_text())
    result = build(source, registry, parse(source).kernels[0].targets[-1])
    gpu.capability = result.arch.compute_capability
    folder = tmp_path / request.param.stem
    folder.mkdir()
    for name, data in (result.files | {"kernel.cubin": fakes.elf()}).items():
        (folder / name).write_bytes(data)
    return request.param, folder


def test_every_shape_of_the_companion_is_launched(gpu, built):
    text, folder = built
    companion = load_companion(text.with_suffix(".py"))
    shapes = [s for s in companion.call("shapes") if np.prod(list(s.values()), dtype=np.int64) < 3e7]
    report = run_artifact(folder, text.with_suffix(".py"), shapes, 1)
    assert [r.fault for r in report.results] == [None] * len(shapes)
    m = load(folder).manifest
    for config, _, _ in gpu.launches:
        assert config.gridDimX % m.launch.cluster == 0 and 0 < config.gridDimX <= MAX_GRID
        assert config.blockDimX % 32 == 0 and config.sharedMemBytes <= 232448
    assert report.unproved == load(folder).unproved
    # Nothing ran, so nothing was written: the report must say so wherever there is an element.
    assert all(o.unwritten == o.wrong == np.prod(o.shape) for r in report.results for o in r.outputs)


def test_outputs_may_be_left_out(gpu, built):
    text, folder = built
    kernel, companion = load(folder), load_companion(text.with_suffix(".py"))
    shape = companion.call("shapes")[2]
    inputs = companion.call("inputs", shape, np.random.default_rng(0))
    arguments = {}
    for name, value in inputs.items():
        arguments[name] = value
        if isinstance(value, np.ndarray):
            elem = next(p.elem for p in kernel.manifest.params if p.name == name)
            arguments[name] = DeviceArray(value.shape, elem, 0, driver_module.driver())
            arguments[name].copy_from(packed_bytes(value))
    out = kernel(**arguments)
    expected = companion.call("reference", inputs)
    outs = out if isinstance(out, tuple) else (out,)
    assert [o.shape for o in outs] == [v.shape for v in expected.values()]
