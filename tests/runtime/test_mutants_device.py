"""What `bench/mutants_device.py` calls right, varying, wrong, a fault and a hang, on the fake GPU; where `bench/delays.py` puts its waits."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from cuda.bindings import driver as cu

from cake_core.runtime.companion import load_companion
from cake_core.runtime.driver import driver
from cake_core.runtime.execute import arguments_of
from cake_core.runtime.kernel import load

BENCH = Path(__file__).resolve().parents[2] / "bench"
COMPANION = """
import numpy as np
tolerance = {"Y": (1e-6, 0.0)}
def shapes(): return [{"R": 3, "C": 8}]
def inputs(shape, rng): return {"X": rng.standard_normal((shape["R"], shape["C"]), dtype=np.float32), "by": 0.5}
def reference(inputs): return {"Y": inputs["X"].astype(np.float64) * 0.5}
"""


def module(name):
    spec = importlib.util.spec_from_file_location(name, BENCH / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


device, delays = module("mutants_device"), module("delays")


@pytest.fixture
def found(gpu, fakes, artifact, tmp_path):
    """What becomes of a kernel that scales by the factors that a list gives, one a launch."""
    (tmp_path / "scale.py").write_text(COMPANION)
    folder, beside = artifact(fakes.SCALE), load_companion(tmp_path / "scale.py")

    def of(*factors, outside=False):
        draw = list(factors)

        def program(config, params):
            x, y, rows, columns, _by = fakes.cells(params, 5)
            n, factor = rows * columns, np.float32(draw.pop(0))
            view = lambda at, count: np.frombuffer((np.ctypeslib.ctypes.c_char * (4 * count)).from_address(at), np.float32)
            if factor:
                view(y, n + outside)[:n] = view(x, n) * np.float32(0.5) * factor
                view(y, n + outside)[n:] = 0

        gpu.program = program
        kernel, cuda = load(folder), driver()
        case = arguments_of(kernel, beside, {"R": 3, "C": 8}, 0, 0, cuda)
        device.write_references(beside, [case], tmp_path)
        return device.launches(kernel, case, device.reader(tmp_path, 0), cuda)

    return of


def test_right_is_right_each_time(found):
    assert found(1, 1, 1) == {"outcome": "right", "detail": None}


def test_other_bits_vary(found):
    assert found(1, 1, 1 + 2**-21)["outcome"] == "varies"


def test_one_wrong_launch_is_wrong(found):
    assert found(1, 1, 1.5) == {"outcome": "wrong", "detail": "Y: 24 wrong, 0 unwritten, 0 bytes outside"}


def test_each_launch_starts_from_poison(found):
    assert found(1, 0, 1) == {"outcome": "wrong", "detail": "Y: 24 wrong, 24 unwritten, 0 bytes outside"}


def test_a_write_outside_is_wrong_though_the_output_is_right(found):
    assert found(1, 1, 1, outside=True) == {"outcome": "wrong", "detail": "Y: 0 wrong, 0 unwritten, 4 bytes outside"}


def test_a_fault_and_a_hang(gpu, found, monkeypatch):
    gpu.fail["cuStreamQuery"] = [cu.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS]
    gpu.fail["cuCtxSynchronize"] = [cu.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS]
    assert found(1, 1, 1)["outcome"] == "fault"
    monkeypatch.setattr(device, "DEADLINE_S", 0.01)
    gpu.fail["cuStreamQuery"] = [cu.CUresult.CUDA_ERROR_NOT_READY] * 1000
    assert found(1, 1, 1)["outcome"] == "hang"


PTX = """.version 8.6
{
  // role load: warps 0 to 0
  setp.ge.s32 %p2, %r1, 4;
  // mbarrier.wait
$wait_0:
  mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r41], %r44;
  // role math: warps 4 to 7, instance 0
  // mbarrier.wait
$wait_1:
  // wgmma.fence
  wgmma.fence.sync.aligned;
  // wgmma
  wgmma.mma_async
  // wgmma.commit
  wgmma.commit_group.sync.aligned;
  // mbarrier.arrive
  mbarrier.arrive.shared::cluster.b64 _, [%r116];
}"""


def test_waits_stand_in_front_of_statements():
    assert delays.delayed(PTX, 0) == PTX
    texts = {seed: delays.delayed(PTX, seed) for seed in range(1, 30)}
    assert texts == {seed: delays.delayed(PTX, seed) for seed in texts} and len(set(texts.values())) > 20
    for text in texts.values():
        rest, inside = [], False
        for line in text.split("\n"):
            inside = inside or line == "  {"
            if not inside:
                rest.append(line)
            inside = inside and line != "  }"
        assert "\n".join(rest) == PTX  # nothing but whole waits was put in
        products = text[text.index("  wgmma.fence.sync") : text.index("  wgmma.commit_group")]
        assert "nanosleep" not in products


def test_one_manner_delays_a_single_role():
    """The second of three: every place of one role, none of the others."""
    counts = set()
    for seed in range(2, 40, 3):
        head, _, tail = delays.delayed(PTX, seed).partition("  // role math")
        counts.add((head.count("nanosleep"), tail.count("nanosleep")))
    assert counts == {(1, 0), (0, 3)}
