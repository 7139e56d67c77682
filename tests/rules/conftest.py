"""What tests of rules share: facts of a text, and verdicts of one rule."""

from __future__ import annotations

from collections.abc import Callable

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
