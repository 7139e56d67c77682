"""Modules beside this file, and facts of edited texts: test folders are no packages."""

import importlib.util
import sys
from pathlib import Path

import pytest

for name in ("mutants", "machine_texts"):
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)

from machine_texts import TEXTS, read


@pytest.fixture(scope="session")
def facts():
    """`facts(name of a text here, old, new, ..)`: its facts, with each `old` in the text replaced by the `new` behind it."""

    def get(name: str, *edits: str):
        text = (TEXTS / f"{name}.cake").read_text(encoding="utf-8")
        for old, new in zip(edits[::2], edits[1::2], strict=True):
            assert old in text, f"the text has no {old!r}"
            text = text.replace(old, new)
        return read(text)

    return get
