"""Questions to a registry: names that are there, names that are not, and why."""

from __future__ import annotations

import pytest

from cake_core.diagnostics import CakeError
from cake_core.plugins import Origin, PluginRecord, Registry, Status
from cake_core.plugins.registry import KINDS
from cake_core.primitive import Operation
from cake_core.source import Span

WHERE = Span("k.cake", 3, 10, 3, 14)


class Arch:
    """Stands for an architecture: a registry never looks inside."""


def plugin(name: str, status: Status, **fields) -> PluginRecord:
    return PluginRecord(Origin(name, f"dist-{name}", "1.2"), f"{name}.plugin", status, **fields)


def missing(registry: Registry, name: str):
    with pytest.raises(CakeError) as caught:
        registry.architecture(name, WHERE)
    (d,) = caught.value.diagnostics
    assert d.span == WHERE
    return d


def test_an_architecture_that_is_there():
    arch = Arch()
    assert Registry(architectures={"hopper": arch}).architecture("hopper") is arch


def test_an_unknown_architecture_lists_what_is_there_and_suggests():
    d = missing(Registry(architectures={"ampere": Arch(), "hopper": Arch()}), "hoper")
    assert (d.code, d.message) == ("plugin/unknown-arch", "no architecture 'hoper' is installed")
    assert (d.why, d.fix) == ("installed: 'ampere', 'hopper'", "did you mean 'hopper'?")


def test_an_unknown_architecture_where_none_is_installed():
    d = missing(Registry(), "hopper")
    assert d.code == "plugin/unknown-arch" and "no plugin that loaded offers an architecture" in d.why and "cake plugins" in d.fix


def test_an_unknown_architecture_names_plugins_that_did_not_load():
    d = missing(Registry(plugins=(plugin("acme", Status.BROKEN, cause="ImportError: x"),)), "hopper")
    assert d.code == "plugin/unknown-arch" and "not loaded: 'acme' (dist-acme 1.2)" in d.why


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (plugin("hopper", Status.BROKEN, cause="ImportError: x"), "while it was loaded: ImportError: x"),
        (plugin("acme", Status.FAILED, hook="cake_commands", cause="bad", provides=("arch:hopper",)), "in hook 'cake_commands': bad"),
    ],
    ids=["by its name", "by what it offered"],
)
def test_an_architecture_of_a_plugin_that_did_not_load(record, why):
    d = missing(Registry(architectures={"ampere": Arch()}, plugins=(record,)), "hopper")
    assert d.code == "plugin/broken"
    assert d.message == f"architecture 'hopper' belongs to plugin '{record.name}' (dist-{record.name} 1.2), which is {record.status}"
    assert d.why == why


def test_an_architecture_of_a_blocked_plugin():
    d = missing(Registry(plugins=(plugin("hopper", Status.BLOCKED, cause="disabled by CAKE_DISABLE_PLUGINS"),)), "hopper")
    assert (d.code, d.why) == ("plugin/blocked", "disabled by CAKE_DISABLE_PLUGINS")


def test_operations_of_a_family_belong_to_the_plugin_of_that_name():
    registry = Registry(plugins=(plugin("copy", Status.BROKEN, cause="ImportError: x"), plugin("math", Status.ACTIVE)))
    assert registry.unavailable("operation", "copy.load").diagnostics[0].code == "plugin/broken"
    assert registry.unavailable("operation", "copying") is None
    assert registry.unavailable("operation", "math.x") is None


@pytest.mark.parametrize("kind", KINDS)
def test_closest(kind):
    registry = Registry(**{KINDS[kind][1]: {"mbarrier.wait": object(), "mbarrier.arrive": object()}})
    assert registry.closest(kind, "mbarrier.wiat") == "mbarrier.wait"
    assert registry.closest(kind, "zzz") is None


def test_problems_are_one_warning_a_plugin():
    records = [plugin(s.value, s, cause=None if s is Status.ACTIVE else "c") for s in Status]
    assert [d.message.split("'")[1] for d in Registry(plugins=tuple(records)).problems()] == ["broken", "failed"]


def test_a_registry_is_frozen():
    with pytest.raises(AttributeError):
        Registry().plugins = ()


def test_registries_share_no_default():
    assert Registry().operations is not Registry(operations={"x": Operation(name="x")}).operations
