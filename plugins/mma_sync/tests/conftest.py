"""Texts to typed kernels and PTX for sm80, and the machine that runs whole kernels."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from cake_core.assemble import assemble
from cake_core.elaborate import elaborate
from cake_core.lower import lower
from cake_core.plugins import load_registry
from cake_core.source import Source
from cake_core.syntax import parse


@pytest.fixture(scope="session")
def registry():
    return load_registry(environ={"CAKE_LOAD_PLUGINS": ""})


@pytest.fixture(scope="session")
def arch(registry):
    return registry.architectures["sm80"]


@pytest.fixture
def typed(registry, arch):
    """A text to its one elaborated kernel."""

    def elaborated(text, **overrides):
        program = parse(Source("test.cake", text))
        return elaborate(program.kernels[0], registry, arch, derived=program.derived, overrides=overrides)

    return elaborated


@pytest.fixture
def ptx_of(typed, registry, arch):
    """The PTX of a derived text; assembled."""

    def made(text):
        kernel = typed(text)
        lowered = lower(kernel, registry, arch)
        assert assemble(lowered.ptx, arch.target, kernel.name, lines=lowered.lines).cubin
        return lowered.ptx

    return made


@pytest.fixture
def run():
    """`cta.run`, the machine beside this file."""
    spec = importlib.util.spec_from_file_location("cta", Path(__file__).with_name("cta.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules["cta"] = module  # a dataclass asks for the module that it is defined in
    spec.loader.exec_module(module)
    return module.run
