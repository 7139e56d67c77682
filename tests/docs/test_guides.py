"""The guides are run as they stand, command by command, in a copy of the repository where Cake is installed as README.md says."""

from __future__ import annotations

import importlib.util
import json
import sys

import numpy as np
import pytest
from newcomer import ROOT, arrive, expected, matches, steps

GUIDES = ("first-kernel", "from-failure-to-rule", "add-an-instruction", "add-an-architecture")
PAGES = {name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in GUIDES}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Where the first command of README.md has been run."""
    place = arrive(tmp_path_factory.mktemp("guides"))
    (setup, _), *_ = steps((ROOT / "README.md").read_text(encoding="utf-8"))
    code, output = place.bash(setup.text.split(" &&\n")[0], strict=True)
    assert code == 0, output
    return place


@pytest.fixture(scope="module")
def followed(place):
    """`followed(name)`: a guide, once followed to its end; the findings of each step that did not go as it says."""
    done: dict[str, list[str]] = {}

    def follow(name: str) -> list[str]:
        if name not in done:
            done[name] = [wrong for block, outputs in steps(PAGES[name]) if (wrong := _run(place, block, expected(outputs)))]
        return done[name]

    return follow


def _run(place, block, wanted: str) -> str:
    if block.mark == "gpu":
        compile(block.text, "guide", "exec")
        return ""
    assert block.language == "sh", "a guide is pasted into a shell"
    code, output = place.bash(f". .venv/bin/activate; {block.text}")
    if not wanted and not output and code == 0 or wanted and matches(wanted, output):
        return ""
    return f"{block.text}\nended with {code} and printed\n{output}\nand the guide says\n{wanted}"


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_can_be_followed_to_its_end(followed, name):
    if wrong := followed(name):
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_shows_what_goes_right_and_what_is_refused(name):
    """So that the test above compares something: commands, outputs, and among them what Cake does not take."""
    outputs = [b.text for _, shown in steps(PAGES[name]) for b in shown]
    assert len(steps(PAGES[name])) >= 5 and len(outputs) >= 4
    assert any("error[" in o or "does not offer" in o for o in outputs)
    assert all(o.strip(".\n") for o in outputs), "an output of `...` alone compares nothing"


def test_the_first_kernel_computes_what_its_companion_says(place, followed):
    """Its PTX on the machine that runs row-wise kernels, on a shape that ends inside a warp."""
    assert not followed("first-kernel")
    folder = place.folder / "out/first"
    machine, companion = _module(ROOT / "tests/kernels/rowwise.py"), _module(folder / "center.py")
    launch = json.loads((folder / "center/manifest.json").read_text())["launch"]
    shape = {"R": 5, "C": 520}
    inputs = companion.inputs(shape, np.random.default_rng(0))
    wanted = companion.reference(inputs)["Y"]
    y = np.full(wanted.size, np.nan, np.float32)
    tensors = {"X": inputs["X"].reshape(-1).copy(), "Y": y}
    machine.Grid((folder / "center/kernel.ptx").read_text(), 1, launch["threads"] // 32, launch["shared_bytes"], shape, tensors).run(2)
    relative, absolute = companion.tolerance["Y"]
    assert np.all(np.abs(y.reshape(wanted.shape) - wanted) <= relative * np.abs(wanted) + absolute)


def _module(path):
    spec = importlib.util.spec_from_file_location(f"guide_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
