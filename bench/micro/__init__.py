"""Micro-kernels that hold the PTX emulator against a GPU: one small text for each form of an instruction. `case.py` says what one is."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from .case import Case

#: A module a family, each with `cases()`.
MODULES = ("integers",)


def cases(only: str | None = None) -> Iterator[Case]:
    """Cases of every module, or of those of one family."""
    for name in MODULES:
        yield from (c for c in import_module(f"{__name__}.{name}").cases() if only is None or c.family == only)
