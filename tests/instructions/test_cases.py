"""Golden findings of instructions: what plugins check about the statements and functions that they offer.

Their own tests try every condition; here is how a user is told, one case a code at least.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CASES = sorted((HERE / "cases").glob("*/*.cake"))


@pytest.mark.parametrize("path", CASES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_case(path, golden):
    golden(path)


#: Not to be reached from a text, and why.
UNREACHED = {
    "derive-commit-kind": "no fill is committed by warpgroups",
    "derive-release-kind": "a reader arrives by warps, by warpgroups or by an engine",
    "ptx-tma-rank": "no tensor has more than five dimensions",
    "type-barrier-kind": "the built-in plugins have one kind of barrier",
}


def test_every_code_of_a_plugin_has_a_case():
    """Here, or in the plugin's own tests."""
    left = set()
    for plugin in (p for d in ("plugins", "arch") for p in (ROOT / d).iterdir() if p.is_dir()):
        sources = "".join(p.read_text() for p in plugin.glob("cake_*/**/*.py"))
        own = "".join(p.read_text() for p in plugin.glob("tests/*.py"))
        left |= {c for c in re.findall(r'"((?:core|derive|ptx|type)/[a-z0-9-]+)"', sources) if c not in own}
    folders = {p.parent.name for p in (ROOT / "tests").glob("*/cases/*/*.cake")}
    assert {c.replace("/", "-") for c in left} - folders <= set(UNREACHED)
