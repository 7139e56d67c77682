"""What tests of rules share: facts of a text, and a small pack in a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cake_core.facts import Rows, facts_of, rows_of
from cake_core.pipeline import frontend
from cake_core.source import Source


@pytest.fixture(scope="session")
def rows_from(offered) -> Callable[..., Rows]:
    """`rows_from(text)`: the rows of a kernel's facts."""

    def read(text: str, name: str = "case.cake") -> Rows:
        front = frontend(Source(name, text), offered)
        return rows_of(facts_of(front.typed, offered, front.arch), front.arch, offered)

    return read


PACK = 'schema: 1\nname: acme\nnamespace: acme\nversion: "0.1.0"\nsuites: {default: [{status: stable}]}\n'


@pytest.fixture
def small_pack(tmp_path) -> Callable[..., Path]:
    """`small_pack({"slug": {"rule.yaml": text, ..}})`: the folder of a pack `acme` with these files, beside what was written before. `define`: what
    its manifest says besides."""

    def write(rules: Mapping[str, Mapping[str, str]], define: str = "") -> Path:
        root = tmp_path / "cake_rules_acme"
        for slug, files in rules.items():
            folder = root / "rules" / slug
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (folder / name).write_text(text)
        (root / "pack.yaml").write_text(PACK + define)
        return root

    return write
