"""The micro-kernels that hold the PTX emulator against a GPU: one small text for each form of an instruction. `case.py` says what one is."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from .case import Case

#: A module a family, each with `cases()`.
MODULES = (
    "integers",
    "floats",
    "approximate",
    "convert",
    "lanes",
    "threads",
    "atomics",
    "shared",
    "spaces",
    "mma",
    "wmma",
    "wgmma",
    "tensor_maps",
    "made_maps",
    "bulk",
    "programs",
)


def of_module(name: str) -> Iterator[Case]:
    """The cases of one module, always the same in the same order."""
    return import_module(f"{__package__}.{name}").cases()
