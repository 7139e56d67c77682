"""Every kernel of the zoo for every target: its PTX, executed without a GPU, against its reference; small shapes with tails, under several schedules."""

import itertools
from math import prod
from pathlib import Path

import numpy as np
import pytest

from cake_core.emulate.device import Api
from cake_core.emulate.turns import turns_of
from cake_core.pipeline import build
from cake_core.runtime import driver
from cake_core.runtime.companion import Companion, load_companion
from cake_core.runtime.execute import run_artifact
from cake_core.source import Source
from cake_core.syntax import parse

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
CASES = [
    pytest.param(text, target, id=f"{text.stem}-{target}")
    for text in sorted(KERNELS.rglob("*.cake"))
    for target in parse(Source(text.name, text.read_text())).kernels[0].targets
]
SCHEDULES = ("round-robin", "random:1", "adversarial", "random:2")
#: Elements of all inputs that a shape may have, by family: rows cost by their number, whatever they hold. Larger ones are for a device, and for bench/emulator.py.
MOST = {"softmax": 3_000, "rmsnorm": 9_000, "quantize": 10_000, "elementwise": 20_000, "knn": 40_000}
OTHERWISE = 150_000


def chosen(companion: Companion) -> list[dict]:
    """Four of a companion's shapes: the smallest, one between, and those next to the bound, which have the most tiles and turns of rings."""
    rng = np.random.default_rng(0)
    sizes = [
        (sum(np.size(x) for x in companion.call("inputs", dict(s), rng).values()), n, s)
        for n, s in enumerate(companion.call("shapes"))
        if prod(s.values()) < 1e8
    ]
    fitting = [s for size, _, s in sorted(sizes, key=lambda x: x[:2]) if size <= MOST.get(companion.path.parent.name, OTHERWISE)]
    return [fitting[n] for n in sorted({0, len(fitting) // 2, len(fitting) - 2, len(fitting) - 1})]


@pytest.mark.parametrize(("text", "target"), CASES)
def test_the_ptx_computes_what_the_reference_says(text, target, offered, tmp_path):
    made = build(Source(text.name, text.read_text()), offered, target, read_back=False)
    for name, data in made.files.items():
        (tmp_path / name).write_bytes(data)
    companion = text.with_suffix(".py")
    schedules, told = itertools.cycle(SCHEDULES), []
    api = Api(offered.emulates, made.arch.compute_capability, lambda grid: told.extend(grid.findings), lambda: turns_of(next(schedules)))
    shapes = chosen(load_companion(companion))
    with driver.use(api):
        report = run_artifact(tmp_path, companion, shapes, 0, text=True)
    assert [(f.code, f.message, f.line) for f in told] == []
    assert [(r.shape, r.fault, [o for o in r.outputs if not o.ok]) for r in report.results if not r.ok] == []
    assert len(report.results) >= 2
