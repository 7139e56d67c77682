"""The names that another one is most like, for "did you mean": `difflib` is imported when there is something to ask it."""

from __future__ import annotations

from collections.abc import Iterable


def get_close_matches(name: str, known: Iterable[str], n: int = 3, cutoff: float = 0.6) -> list[str]:
    """As `difflib.get_close_matches`."""
    import difflib

    return difflib.get_close_matches(name, known, n, cutoff)
