"""Kernels of the zoo, lowered once a target, and what a changed text of theirs is told."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest.mock import patch

from cake_core.facts import facts_of
from cake_core.lower import lower
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.reread import judge, reread
from cake_core.reread.launches import launches
from cake_core.source import Source
from cake_core.syntax import parse

ROOT = Path(__file__).resolve().parents[2]
ZOO = {p.stem: p for p in sorted((ROOT / "kernels").glob("*/*.cake"))}
REGISTRY = load_registry(environ={"CAKE_LOAD_PLUGINS": ""})


def targets(name: str) -> tuple[str, ...]:
    return parse(Source(f"{name}.cake", ZOO[name].read_text(encoding="utf-8"))).kernels[0].targets


@cache
def lowered(name: str, arch: str):
    """(what was lowered, its facts, the target)."""
    front = frontend(Source(f"{name}.cake", ZOO[name].read_text(encoding="utf-8")), REGISTRY, arch)
    return lower(front.typed, REGISTRY, front.arch), facts_of(front.typed, REGISTRY, front.arch), front.arch


def read_back(name: str, arch: str, ptx: str | None = None):
    """A kernel's reading, of another text where one is given."""
    written, facts, target = lowered(name, arch)
    return reread(written if ptx is None else replace(written, ptx=ptx), facts, REGISTRY.rereads, target)


@cache
def _dearest(name: str, arch: str):
    return tuple(launches(lowered(name, arch)[1]))[-1:]


def told_of(name: str, arch: str, ptx: str):
    """What is told of a text at the dearest size, which takes a part of the time, or at all sizes if that is nothing."""
    with patch.object(judge, "launches", lambda facts: _dearest(name, arch)):
        found = read_back(name, arch, ptx).findings
    return found or read_back(name, arch, ptx).findings
