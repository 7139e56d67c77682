"""The plugin host: what plugins may implement (`hookspecs`), what they build (`api`), and what they add up to (`Registry`)."""

from cake_core.plugins.host import load_registry
from cake_core.plugins.registry import Registry
from cake_core.plugins.types import Command, Origin, PluginRecord, Status

__all__ = ["Command", "Origin", "PluginRecord", "Registry", "Status", "load_registry"]
