"""Facts of texts, not checked, and the mutants beside this file as a module: test folders are no packages."""

import importlib.util
import sys
from functools import cache
from pathlib import Path

import pytest

from cake_core.facts import facts_of
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.source import Source

TEXTS = Path(__file__).with_name("texts")

if "mutants" not in sys.modules:
    spec = importlib.util.spec_from_file_location("mutants", Path(__file__).with_name("mutants.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module
    spec.loader.exec_module(module)


@cache
def registry():
    return load_registry(environ={"CAKE_LOAD_PLUGINS": ""})


@cache
def read(text: str, arch: str | None = None, overrides: tuple = ()):
    front = frontend(Source("kernel.cake", text), registry(), arch, dict(overrides))
    return facts_of(front.typed, registry(), front.arch)


@pytest.fixture(scope="session")
def facts():
    """`facts(text or name of a text here, arch=None, old, new, ..)`: its facts, with each `old` in the text replaced by the `new` behind it."""

    def get(text: str, *edits: str, arch: str | None = None, **constants):
        text = text if "\n" in text else (TEXTS / f"{text}.cake").read_text(encoding="utf-8")
        for old, new in zip(edits[::2], edits[1::2], strict=True):
            assert old in text, f"the text has no {old!r}"
            text = text.replace(old, new)
        return read(text, arch, tuple(constants.items()))

    return get
