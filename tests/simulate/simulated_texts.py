"""Texts that are simulated: compiled once each, and launched on arrays."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from cake_core.ir.build import lift
from cake_core.ir.nodes import Kernel, Program
from cake_core.ir.printer import program_text
from cake_core.machine.scenarios import value
from cake_core.pipeline import Front, frontend
from cake_core.plugins import load_registry
from cake_core.simulate import Block, Plot, Simulator, blank, diagnostic
from cake_core.simulate.launch import CLUSTERS
from cake_core.source import Source

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
PLOTS = (Plot("adversarial"), Plot("round-robin"), Plot("random", 1))


@cache
def registry():
    return load_registry(environ={"CAKE_LOAD_PLUGINS": ""})


@cache
def front(text: str, arch: str | None = None, overrides: tuple = ()) -> Front:
    return frontend(Source("kernel.cake", text), registry(), arch, dict(overrides))


@cache
def simulator(text: str, arch: str | None = None, overrides: tuple = ()) -> Simulator:
    f = front(text, arch, overrides)
    return Simulator.of(f.typed, registry(), f.arch)


def derived(name: str, arch: str | None = None) -> str:
    """The derived text of a kernel of the zoo."""
    f = front((KERNELS / name).read_text(encoding="utf-8"), arch)
    return program_text(Program(f.program.version, True, (f.derived,)))


def edited(text: str, *edits: str) -> str:
    """A text with the first of each `old` replaced by the `new` behind it."""
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        assert old in text, f"the text has no {old!r}"
        text = text.replace(old, new, 1)
    return text


def without(text: str, line: str, nth: int = 0) -> str:
    """A text without the nth of its lines that are `line`."""
    lines = text.split("\n")
    found = [n for n, x in enumerate(lines) if x.strip() == line]
    del lines[found[nth]]
    return "\n".join(lines)


@dataclass
class Ran:
    """Outputs by name, whether each of their elements was written, and findings."""

    outputs: dict[str, np.ndarray]
    written: dict[str, np.ndarray]
    found: list

    @property
    def codes(self) -> list[str]:
        return [d.code for d in self.found]


def tensors_of(kernel: Kernel, params: dict, given: dict) -> dict[str, Block]:
    """Inputs as they are given, outputs of which nothing is written, workspaces of zeros."""
    out = {}
    sizes = {n: int(v) for n, v in params.items() if isinstance(v, int)}
    for p in kernel.params:
        if p.mode is None:
            continue
        if p.name in given:
            out[p.name] = Block(np.array(given[p.name]), None)
            continue
        block = blank(p.declared.name, tuple(value(lift(e), sizes) for e in p.declared.groups[-1]))
        if p.mode == "workspace":
            block.data[...], block.written[...] = 0, True
        out[p.name] = block
    return out


def launch(text: str, params: dict, given: dict, plot: Plot = PLOTS[0], arch: str | None = None, overrides: tuple = (), most: int = CLUSTERS) -> Ran:
    """Simulate one launch."""
    made = simulator(text, arch, overrides)
    tensors = tensors_of(made.room.kernel, params, given)
    faults = made.run(params, tensors, plot, most=most)
    changed = {p.name: tensors[p.name] for p in made.room.kernel.params if p.mode not in (None, "in")}
    written = {n: np.ones(b.data.shape, bool) if b.written is None else b.written.all(axis=-1) for n, b in changed.items()}
    return Ran({n: b.data for n, b in changed.items()}, written, [diagnostic(f, made.facts, params, plot.name) for f in faults])
