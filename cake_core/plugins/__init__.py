"""The plugin host: what plugins may implement (`hookspecs`), what they build (`api`), and what they add up to (`Registry`).

Names are loaded on use: who asks which plugins are installed (`entries`) loads neither the host nor what plugins build with.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cake_core.plugins.host import load_registry
    from cake_core.plugins.registry import Registry
    from cake_core.plugins.types import Command, Origin, PluginRecord, Status

__all__ = ["Command", "Origin", "PluginRecord", "Registry", "Status", "load_registry"]

_HOME = {"load_registry": "host", "Registry": "registry"}


def __getattr__(name: str):
    if name not in __all__:
        raise AttributeError(f"module 'cake_core.plugins' has no attribute {name!r}")
    return getattr(import_module(f"cake_core.plugins.{_HOME.get(name, 'types')}"), name)
