"""Loads plugins one at a time, so that the one at fault is always known, and settles what they add up to.

A plugin is whole or absent: one that fails anywhere leaves nothing in the registry. None of its exceptions gets out,
`SystemExit` included; what it prints while loading goes to standard error, because standard output belongs to results.
A plugin with an index of its offers (`index`) is loaded when one of them is asked for, every other one at the start.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import field, replace

import pluggy

from cake_core.diagnostics import fail
from cake_core.diagnostics.near import get_close_matches
from cake_core.frozen import thawed
from cake_core.plugins import hookspecs, index
from cake_core.plugins.entries import Entry, canonical, find_entries
from cake_core.plugins.offers import RETURNS, BadOffer, effects_alone, hook_of, offers
from cake_core.plugins.registry import KINDS, Observer, Registry, first_line
from cake_core.plugins.tables import Records, Table
from cake_core.plugins.types import PluginRecord, Status

#: Names (of plugins or distributions, comma-separated) to leave out.
DISABLE = "CAKE_DISABLE_PLUGINS"
#: If set, even to nothing: of the plugins that other distributions bring, load these only.
LOAD = "CAKE_LOAD_PLUGINS"

HOOKS = tuple(name for name in dir(hookspecs) if name.startswith("cake_"))


@thawed(eq=False)
class _Loading:
    """A plugin on its way: its record and what it offers, (kind, name) to object.

    `index` is what it says that it offers (label to kinds of effects); while that is all that is known of it, it `waits`.
    """

    entry: Entry
    record: PluginRecord
    offered: dict[tuple[str, str], object] = field(default_factory=dict)
    observe: Callable | None = None
    index: dict[str, tuple[str, ...]] | None = None
    waits: bool = False

    @property
    def names(self) -> list[tuple[str, str]]:
        """(kind, name) of all that it offers, as far as that is known."""
        return [_key(label) for label in self.index] if self.waits else list(self.offered)

    def stop(self, status: Status, cause: str, hook: str | None = None, trace: str | None = None) -> None:
        self.record = replace(self.record, status=status, cause=cause, hook=hook, traceback=trace)

    def stop_by(self, status: Status, error: BaseException, hook: str | None = None) -> None:
        """Reasons of our own are given in their words, a stranger's exception with its type and traceback."""
        if isinstance(error, BadOffer):
            self.stop(status, str(error), hook)
        else:
            import traceback

            self.stop(status, first_line(error), hook, "".join(traceback.format_exception(error)))


def load_registry(
    *, disabled: Iterable[str] = (), environ: Mapping[str, str] | None = None, entries: Iterable[Entry] | None = None
) -> Registry:
    """All that plugins offer that are installed and not blocked. Those with an index are loaded when they are asked.

    `disabled` names plugins (or distributions) to leave out; a name that is not there raises `plugin/unknown-plugin`.
    `environ` stands for the process's environment, `entries` for the installed entry points.
    """
    environ = os.environ if environ is None else environ
    found = find_entries() if entries is None else tuple(entries)
    blocked = _blocked(found, tuple(disabled), environ)
    plugins = [_Loading(e, PluginRecord(e.origin, e.point.value, Status.ACTIVE)) for e in found]
    _settle_plugin_names(plugins)
    for plugin in plugins:
        if cause := blocked.get(plugin.entry.origin):
            plugin.stop(Status.BLOCKED, cause)
        elif plugin.record.status is Status.ACTIVE:
            _announce(plugin) or _load(plugin)
    _settle_clashes(plugins)
    return _registry(plugins)


# --- who may load ----------------------------------------------------------------------------------------------


def _blocked(entries: tuple[Entry, ...], disabled: tuple[str, ...], environ: Mapping[str, str]) -> dict:
    """Origin of each plugin that must not load, to the reason."""
    everyone = sorted({n for e in entries for n in _names(e)})
    for name in disabled:
        if not {name, canonical(name)} & set(everyone):
            close = get_close_matches(name, everyone, n=1)
            fix = f"did you mean '{close[0]}'?" if close else "'cake plugins --all' lists what is installed"
            raise fail("plugin/unknown-plugin", f"no plugin '{name}' is installed", fix=fix)
    switched_off = _listed(environ.get(DISABLE, ""))
    only = _listed(environ[LOAD]) if LOAD in environ else None
    reasons = {}
    for entry in entries:
        names = _names(entry)
        if names & {x for n in disabled for x in (n, canonical(n))}:
            reasons[entry.origin] = "disabled by this command"
        elif names & switched_off:
            reasons[entry.origin] = f"disabled by {DISABLE}"
        elif only is not None and not entry.builtin and not names & only:
            reasons[entry.origin] = f"not listed in {LOAD}"
    return reasons


def _names(entry: Entry) -> set[str]:
    return {entry.origin.plugin, canonical(entry.origin.distribution)}


def _listed(text: str) -> set[str]:
    names = {n.strip() for n in text.split(",")} - {""}
    return names | {canonical(n) for n in names}


def _key(label: str) -> tuple[str, str]:
    """(kind, name) of a label such as `operation:NAME`."""
    kind, _, name = label.partition(":")
    return kind, name


def _settle_plugin_names(plugins: list[_Loading]) -> None:
    """Two plugins of one name: neither is imported, unless one is built in; that one nobody can displace."""
    by_name = defaultdict(list)
    for plugin in plugins:
        by_name[plugin.record.name].append(plugin)
    for name, same in by_name.items():
        for plugin, other in _losers(same):
            plugin.stop(Status.BROKEN, f"plugin '{name}' of {_versioned(plugin)} has the name of a plugin of {_versioned(other)}")


# --- one plugin ------------------------------------------------------------------------------------------------


def _announce(plugin: _Loading) -> bool:
    """Take a plugin's index for its offers; False without one, and for one with labels that are none."""
    plugin.index = index.read(plugin.record.module)
    if plugin.index is None or not all(kind in KINDS and name for kind, name in map(_key, plugin.index)):
        return False
    plugin.waits = True
    hooks = {hook_of(KINDS[kind][0]) for kind, _ in plugin.names}
    plugin.record = replace(plugin.record, provides=tuple(sorted(plugin.index)), hooks=tuple(sorted(hooks)))
    return True


def _load(plugin: _Loading) -> None:
    """Import, check, register and ask one plugin. Where its index says another thing than it offers, that is its `cause`."""
    plugin.waits = False
    with redirect_stdout(sys.stderr):
        _import_and_ask(plugin)
    if plugin.index is None or plugin.record.status is not Status.ACTIVE:
        return
    if plugin.observe:
        plugin.stop(Status.FAILED, f"it implements 'cake_after_pass', and with '{index.FILE}' it is loaded too late for that")
    elif differences := index.differences(plugin.index, effects_alone(plugin.offered)):
        plugin.record = replace(plugin.record, cause=differences)


def _import_and_ask(plugin: _Loading) -> None:
    """Every plugin has a manager of its own: none can disturb another."""
    try:
        manager = _register(plugin)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit at import is a broken plugin, not our end
        plugin.stop_by(Status.BROKEN, error)
        return
    for hook in plugin.record.hooks:
        if hook in RETURNS:
            try:
                _ask(plugin, manager, hook)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001
                plugin.stop_by(Status.FAILED, error, hook)
                break
    provides = tuple(sorted(f"{kind}:{name}" for kind, name in plugin.offered))
    plugin.record = replace(plugin.record, provides=provides)
    if "cake_after_pass" in plugin.record.hooks:
        plugin.observe = manager.hook.cake_after_pass


def _register(plugin: _Loading) -> pluggy.PluginManager:
    module = plugin.entry.point.load()
    stated = getattr(module, "CAKE_API", hookspecs.API_VERSION)
    if stated != hookspecs.API_VERSION:
        raise BadOffer(f"it states CAKE_API = {stated!r}, this Cake has {hookspecs.API_VERSION}")
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(module, plugin.record.name)
    callers = manager.get_hookcallers(module) or []
    for unknown in sorted(c.name for c in callers if c.name not in HOOKS):
        close = get_close_matches(unknown, HOOKS, n=1)
        raise BadOffer(f"it implements '{unknown}', which is no hook" + (f"; did you mean '{close[0]}'?" if close else ""))
    manager.check_pending()
    if not callers:
        raise BadOffer("it implements no hook: mark a function with 'cake_core.hookimpl'")
    plugin.record = replace(plugin.record, hooks=tuple(sorted(c.name for c in callers)))
    return manager


def _ask(plugin: _Loading, manager: pluggy.PluginManager, hook: str) -> None:
    results = getattr(manager.hook, hook)()
    if not results:  # pluggy drops a result that is None
        raise BadOffer(f"returned None, expected an iterable of {RETURNS[hook].__name__}")
    for kind, name, item in offers(hook, results[0], plugin.entry.origin):
        if (kind, name) in plugin.offered:
            raise BadOffer(f"offers {KINDS[kind][2]} '{name}' twice")
        plugin.offered[kind, name] = item


# --- all of them -----------------------------------------------------------------------------------------------


def _settle_clashes(plugins: list[_Loading]) -> None:
    """Names are unique a kind. All clashes are found first: which plugin loads first decides nothing."""
    by_name = defaultdict(list)
    for plugin in plugins:
        if plugin.record.status is Status.ACTIVE:
            for key in plugin.names:
                by_name[key].append(plugin)
    for (kind, name), same in sorted(by_name.items(), key=lambda x: x[0]):
        for plugin, other in _losers(same):
            if plugin.record.status is Status.ACTIVE:  # the first clash is the one reported
                cause = f"{KINDS[kind][2]} '{name}' is offered by {plugin.record.origin} and by {other.record.origin}"
                plugin.stop(Status.FAILED, cause, hook_of(KINDS[kind][0]))


def _losers(same: list[_Loading]) -> list[tuple[_Loading, _Loading]]:
    """Of plugins that claim one name, those that lose it, each with one that it clashes with. A built-in one keeps it."""
    if len(same) == 1:
        return []
    builtin = [p for p in same if p.entry.builtin]
    keeper = builtin[0] if len(builtin) == 1 else None
    return [(p, keeper or next(q for q in same if q is not p)) for p in same if p is not keeper]


def _versioned(plugin: _Loading) -> str:
    return f"{plugin.record.origin.distribution} {plugin.record.origin.version}"


def _registry(plugins: list[_Loading]) -> Registry:
    active = [p for p in plugins if p.record.status is Status.ACTIVE]
    found: dict[str, dict] = {kind: {} for kind in KINDS}
    waiting: dict[str, dict] = {kind: {} for kind in KINDS}
    for plugin in active:
        for kind, name in plugin.names:
            if plugin.waits:
                waiting[kind][name] = plugin, plugin.index[f"{kind}:{name}"]
            else:
                found[kind][name] = plugin.offered[kind, name]

    def load(plugin: _Loading) -> None:
        announced = set(plugin.names)
        _load(plugin)
        for kind, name in plugin.offered.keys() - announced:  # the index is behind
            if name in tables[kind] and plugin.record.status is Status.ACTIVE:
                plugin.stop(
                    Status.FAILED, f"{KINDS[kind][2]} '{name}' is offered by {plugin.record.origin} and by {tables[kind][name].source}"
                )
        offered = plugin.offered if plugin.record.status is Status.ACTIVE else {}
        for key in sorted(announced | offered.keys()):
            tables[key[0]].settle(key[1], offered.get(key))

    tables = {kind: Table(found[kind], waiting[kind], load) for kind in KINDS}
    return Registry(
        **{KINDS[kind][1]: table for kind, table in tables.items()},
        plugins=Records(plugins),
        observers=tuple(Observer(p.record.origin, p.observe) for p in active if p.observe),
    )


def index_of(entry: Entry) -> dict[str, tuple[str, ...]]:
    """What the index of a plugin should say. Raises `plugin/broken` where it does not load."""
    plugin = _Loading(entry, PluginRecord(entry.origin, entry.point.value, Status.ACTIVE))
    _load(plugin)
    record = plugin.record
    if record.status is not Status.ACTIVE:
        raise fail("plugin/broken", f"plugin {record.origin} is {record.status}", why=f"{record.where}: {record.cause}")
    if plugin.observe:
        raise fail(
            "plugin/broken",
            f"plugin {record.origin} observes passes",
            why="an observer is loaded before a command runs, so it has no index",
        )
    return effects_alone(plugin.offered)
