"""Facts of texts that are not checked before: of those in `texts`, of kernels, of the corpus."""

from functools import cache
from pathlib import Path

from cake_core.facts import facts_of
from cake_core.ir.nodes import Program
from cake_core.ir.printer import program_text
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.source import Source

TEXTS = Path(__file__).with_name("texts")


@cache
def registry():
    return load_registry(environ={"CAKE_LOAD_PLUGINS": ""})


@cache
def read(text: str, arch: str | None = None, overrides: tuple = ()):
    """Facts of a text for one of its targets."""
    front = frontend(Source("kernel.cake", text), registry(), arch, dict(overrides))
    return facts_of(front.typed, registry(), front.arch)


@cache
def derived(text: str, arch: str | None = None, overrides: tuple = ()) -> str:
    """The derived text of a schedule text."""
    front = frontend(Source("kernel.cake", text), registry(), arch, dict(overrides))
    return program_text(Program(front.program.version, True, (front.derived,)))
