"""Plugins of strangers, as installed distributions: a module and a dist-info folder in a directory on the path."""

from __future__ import annotations

import sys
from collections.abc import Callable
from textwrap import dedent

import pytest

from cake_core.plugins import PluginRecord, Registry, load_registry

GOOD = """
from cake_core import hookimpl, types

@hookimpl
def cake_primitives():
    return [types.ThreadGroup(name={group!r}, warps=2)]
"""


@pytest.fixture
def install(tmp_path, monkeypatch) -> Callable:
    """`install("name", body)` writes module `stranger_name` and the distribution `dist-name` that points to it.

    `offers`: the lines of an index; the module is then `stranger_name.plugin`, and the index lies beside it.
    """
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def write(
        name: str, body: str, *, distribution: str | None = None, version: str = "1.0", value: str | None = None, offers: str | None = None
    ) -> None:
        distribution = distribution or f"dist-{name}"
        value = value or f"stranger_{name}" + (".plugin" if offers is not None else "")
        path = tmp_path / f"{value.partition(':')[0].replace('.', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedent(body))
        if offers is not None:
            (path.parent / "offers.txt").write_text(offers)
        info = tmp_path / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        with (info / "entry_points.txt").open("a") as file:
            file.write(f"[cake]\n{name} = {value}\n" if file.tell() == 0 else f"{name} = {value}\n")

    yield write
    for module in set(sys.modules) - before:
        if module.startswith("stranger_"):
            del sys.modules[module]


@pytest.fixture
def load() -> Callable[..., Registry]:
    """Loads with an environment of its own, so that the caller's settings decide nothing."""
    return lambda environ=None, **options: load_registry(environ=environ or {}, **options)


@pytest.fixture
def record(load) -> Callable[..., PluginRecord]:
    """The record of one plugin."""
    return lambda name, **options: next(r for r in load(**options).plugins if r.name == name)


@pytest.fixture
def good() -> Callable[[str], str]:
    """The text of a plugin that works and offers the thread group `group`."""
    return lambda group: GOOD.format(group=group)
