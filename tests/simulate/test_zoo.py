"""Every kernel of the zoo, simulated: small shapes with tails, under several schedules, against its reference; nothing is found."""

import itertools
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import pytest
from simulated_texts import KERNELS, PLOTS, front, launch

from cake_core.cli.simulated import simulated
from cake_core.ir.build import lift
from cake_core.ir.nodes import Kernel
from cake_core.machine.scenarios import value
from cake_core.pipeline import build
from cake_core.runtime.companion import Companion, load_companion
from cake_core.source import Source
from cake_core.syntax import parse

#: Elements of all inputs that a shape may have.
MOST = 60_000
TEXTS = {p.stem: p for p in sorted(KERNELS.rglob("*.cake"))}
#: Kernels whose items the host lists: what it lists comes with the launch.
LISTED = {"attn_fwd_sm90", "moe_grouped_sm90"}
#: Each for each of its targets; what is derived for the others differs little.
TARGETS = {n: parse(Source(n, p.read_text(encoding="utf-8"))).kernels[0].targets for n, p in TEXTS.items()}
CASES = [pytest.param(n, t, 4 if t == TARGETS[n][-1] else 2, id=f"{n}-{t}") for n in sorted(TEXTS.keys() - LISTED) for t in TARGETS[n]]


def elements(kernel: Kernel, shape: dict) -> int:
    """Of all tensors that callers give; what a companion makes of a large shape may take long."""
    given = [p for p in kernel.params if p.mode not in (None, "workspace")]
    return sum(prod(value(lift(e), shape) for e in p.declared.groups[-1]) for p in given)


def shapes_of(name: str, companion: Companion, target: str | None, count: int) -> list[dict]:
    """The smallest of a companion's shapes, one between, and those next to the bound."""
    kernel = parse(Source(name, TEXTS[name].read_text(encoding="utf-8"))).kernels[0]
    typed = front(TEXTS[name].read_text(encoding="utf-8"), target).schedule or kernel
    sizes = sorted(
        (elements(replace(typed, params=tuple(p for p in typed.params if p.name in {q.name for q in kernel.params})), s), n)
        for n, s in enumerate(companion.call("shapes"))
    )
    fitting = [companion.call("shapes")[n] for size, n in sizes if size <= MOST]
    return [fitting[n] for n in sorted({0, len(fitting) // 2, len(fitting) - 1, *range(len(fitting) - count + 2, len(fitting))})]


def agrees(companion: Companion, inputs: dict, expected: dict, ran) -> None:
    admitted = companion.admitted(inputs, expected)
    for name, want in expected.items():
        got = ran.outputs[name].astype(np.float64)
        with np.errstate(invalid="ignore"):
            fine = (got == want) | (np.isnan(got) & np.isnan(want)) | (np.abs(got - want) <= admitted[name])
        assert ran.written[name].all(), f"{name} has elements that no one has written"
        assert fine.all(), f"{name} is wrong at {np.argwhere(~fine)[0]}"


@pytest.mark.parametrize(("name", "target", "count"), CASES)
def test_a_kernel_computes_what_its_reference_says(name, target, count):
    text, companion = TEXTS[name].read_text(encoding="utf-8"), load_companion(TEXTS[name].with_suffix(".py"))
    plots = itertools.cycle(PLOTS)
    for shape in shapes_of(name, companion, target, count)[-count:]:
        inputs = companion.call("inputs", dict(shape), np.random.default_rng(1))
        expected = companion.call("reference", inputs)
        scalars = {n: float(v) if isinstance(v, np.floating) else v for n, v in {**shape, **inputs}.items() if not isinstance(v, np.ndarray)}
        arrays = {n: v for n, v in inputs.items() if isinstance(v, np.ndarray)}
        ran = launch(text, scalars, arrays, next(plots), target)
        assert ran.found == []
        agrees(companion, inputs, expected, ran)


@pytest.mark.parametrize("name", sorted(LISTED))
def test_a_kernel_whose_items_the_host_lists(name, offered, tmp_path):
    made = build(Source(name, TEXTS[name].read_text(encoding="utf-8")), offered, violated=True, read_back=False)
    for file, data in made.files.items():
        (tmp_path / file).write_bytes(data)
    beside: Path = TEXTS[name].with_suffix(".py")
    shapes = shapes_of(name, load_companion(beside), None, 4)
    for schedule in ("adversarial", "random:2"):
        found: list = []
        report = simulated(made, tmp_path, beside, shapes, 0, schedule, found)
        assert found == []
        assert [(r.shape, r.fault, [o for o in r.outputs if not o.ok]) for r in report.results if not r.ok] == []
