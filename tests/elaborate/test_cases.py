"""Golden findings of elaboration: names, constants, types, forms."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cake_core.elaborate

HERE = Path(__file__).parent
CASES = sorted((HERE / "cases").glob("*/*.cake"))


@pytest.mark.parametrize("path", CASES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_case(path, golden):
    golden(path)


def test_every_code_has_three_cases():
    sources = "".join(p.read_text() for p in Path(cake_core.elaborate.__file__).parent.glob("*.py"))
    codes = {f"type-{slug}" for slug in re.findall(r'"type/([a-z-]+)"', sources)}
    folders = {p.parent.name for p in CASES}
    assert codes - folders == set()
    assert {f for f in folders & codes if len(list((HERE / "cases" / f).glob("*.cake"))) < 3} == set()
