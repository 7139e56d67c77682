"""Texts to PTX, and the machine that runs it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.source import Source


@pytest.fixture(scope="session")
def registry():
    return load_registry(environ={"CAKE_LOAD_PLUGINS": ""})


@pytest.fixture
def ptx_of(registry):
    """The PTX of a text, or of a file."""

    def made(text, arch="sm90"):
        return build(Source("test.cake", text), registry, arch).lowered.ptx

    return made


@pytest.fixture(scope="session")
def run():
    """`warps.run`, the machine beside this file."""
    spec = importlib.util.spec_from_file_location("reduce_warps", Path(__file__).with_name("warps.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules["reduce_warps"] = module  # a dataclass asks for the module that it is defined in
    spec.loader.exec_module(module)
    return module.run
