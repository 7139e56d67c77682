"""Loading: what becomes of each kind of plugin, and that none disturbs another."""

from __future__ import annotations

import time

import pytest

from cake_core import types
from cake_core.diagnostics import CakeError
from cake_core.plugins import Origin, Status
from cake_core.plugins.entries import find_entries


def test_a_plugin_that_works(install, load, record, good):
    install("acme", good("pair"), version="2.3")
    registry = load()
    group = registry.groups["pair"]
    assert (group.warps, group.source) == (2, Origin("acme", "dist-acme", "2.3"))
    r = record("acme")
    assert (r.status, r.hooks, r.provides, r.cause, r.traceback) == (Status.ACTIVE, ("cake_primitives",), ("group:pair",), None, None)
    assert (r.name, r.distribution, r.version, r.module) == ("acme", "dist-acme", "2.3", "stranger_acme")


# Each case: the module, the status, the hook named, and a part of the cause.
FAULTS = {
    "import_error": ("import no_such_module_of_ours", Status.BROKEN, None, "ModuleNotFoundError: No module named 'no_such_module_of_ours'"),
    "syntax_error": ("def", Status.BROKEN, None, "SyntaxError"),
    "system_exit": ("raise SystemExit(3)", Status.BROKEN, None, "SystemExit: 3"),
    "base_exception": ("class Odd(BaseException): pass\nraise Odd('at import\\nsecond line')", Status.BROKEN, None, "Odd: at import"),
    "unprintable": (
        "class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd",
        Status.BROKEN,
        None,
        "Odd",
    ),
    "wrong_api": (
        "from cake_core import hookimpl\nCAKE_API = 99\n@hookimpl\ndef cake_primitives(): return ()",
        Status.BROKEN,
        None,
        "it states CAKE_API = 99, this Cake has 1",
    ),
    "misspelt_hook": (
        "from cake_core import hookimpl\n@hookimpl\ndef cake_primitive(): return ()",
        Status.BROKEN,
        None,
        "it implements 'cake_primitive', which is no hook; did you mean 'cake_primitives'?",
    ),
    "unknown_argument": (
        "from cake_core import hookimpl\n@hookimpl\ndef cake_primitives(registry): return ()",
        Status.BROKEN,
        None,
        "PluginValidationError",
    ),
    "no_hook": ("def cake_primitives(): return ()", Status.BROKEN, None, "it implements no hook"),
    "raises": (
        "from cake_core import hookimpl\n@hookimpl\ndef cake_primitives(): return 1 // 0",
        Status.FAILED,
        "cake_primitives",
        "ZeroDivisionError: integer division or modulo by zero",
    ),
    "raises_midway": (
        "from cake_core import hookimpl, types\n@hookimpl\ndef cake_primitives():\n"
        "    yield types.ThreadGroup(name='half', warps=1)\n    raise RuntimeError('then')",
        Status.FAILED,
        "cake_primitives",
        "RuntimeError: then",
    ),
    "exits_in_hook": (
        "from cake_core import hookimpl\n@hookimpl\ndef cake_commands(): raise SystemExit",
        Status.FAILED,
        "cake_commands",
        "SystemExit",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_faulty_plugin_is_recorded_and_leaves_nothing(case, install, load, record, good):
    body, status, hook, cause = FAULTS[case]
    install("aaa_before", good("before"))
    install("faulty", body)
    install("zzz_after", good("after"))
    r = record("faulty")
    assert (r.status, r.hook) == (status, hook)
    assert cause in r.cause
    assert "\n" not in r.cause
    registry = load()
    assert {"before", "after"} <= set(registry.groups)
    assert "half" not in registry.groups
    warning = next(d for d in registry.problems() if "'faulty'" in d.message)
    assert "dist-faulty 1.0" in warning.message and cause in warning.why


@pytest.mark.parametrize("case", ["import_error", "raises", "system_exit"])
def test_a_strangers_exception_keeps_its_traceback(case, install, record):
    install("faulty", FAULTS[case][0])
    assert "stranger_faulty.py" in record("faulty").traceback


def test_an_interrupt_is_the_users_and_gets_out(install, load):
    install("slow", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        load()


def test_standard_output_belongs_to_results(install, load, capsys):
    install("loud", "print('hello')\nfrom cake_core import hookimpl\n@hookimpl\ndef cake_primitives():\n    print('again')\n    return ()")
    load()
    out, err = capsys.readouterr()
    assert out == "" and err == "hello\nagain\n"


def test_blocked_plugins_are_not_imported(install, record):
    install("acme", "raise AssertionError('imported')")
    by_name, by_distribution = record("acme", disabled=("acme",)), record("acme", disabled=("Dist_Acme",))
    by_variable = record("acme", environ={"CAKE_DISABLE_PLUGINS": "other, acme"})
    not_listed = record("acme", environ={"CAKE_LOAD_PLUGINS": ""})
    for r, cause in (
        (by_name, "disabled by this command"),
        (by_distribution, "disabled by this command"),
        (by_variable, "disabled by CAKE_DISABLE_PLUGINS"),
        (not_listed, "not listed in CAKE_LOAD_PLUGINS"),
    ):
        assert (r.status, r.cause) == (Status.BLOCKED, cause)


def test_load_plugins_chooses_among_strangers_only(install, load, good):
    install("acme", good("pair"))
    install("other", good("trio"))
    registry = load(environ={"CAKE_LOAD_PLUGINS": "acme"})
    status = {r.name: r.status for r in registry.plugins}
    assert (status["acme"], status["other"]) == (Status.ACTIVE, Status.BLOCKED)
    assert Status.BLOCKED not in {r.status for r in registry.plugins if r.distribution == "cake-compiler"}


def test_disabling_an_unknown_plugin_is_an_error_with_a_suggestion(install, load, good):
    install("acme", good("pair"))
    with pytest.raises(CakeError) as caught:
        load(disabled=("acne",))
    (d,) = caught.value.diagnostics
    assert (d.code, d.fix) == ("plugin/unknown-plugin", "did you mean 'acme'?")


# --- clashes


def test_two_strangers_that_offer_one_name_both_lose(install, load, record, good):
    install("one", good("pair"))
    install("two", good("pair"))
    assert "pair" not in load().groups
    for name in ("one", "two"):
        r = record(name)
        assert (r.status, r.hook) == (Status.FAILED, "cake_primitives")
        assert "'pair'" in r.cause and "dist-one 1.0" in r.cause and "dist-two 1.0" in r.cause


def test_a_builtin_name_cannot_be_taken(install, load, record, good):
    install("aaa", good("warpgroup"), distribution="cake-compiler-extras")
    install("core", good("warpgroup"), distribution="cake.compiler", value="stranger_core")
    registry = load()
    assert registry.groups["warpgroup"].source.plugin == "core"
    r = record("aaa")
    assert r.status is Status.FAILED and "cake-compiler-extras 1.0" in r.cause and "cake.compiler 1.0" in r.cause


def test_one_name_may_be_used_in_two_kinds(install, load, good):
    install("one", good("pair"))
    install("two", "from cake_core import hookimpl, types\n@hookimpl\ndef cake_primitives(): return [types.Function(name='pair')]")
    registry = load()
    assert "pair" in registry.groups and "pair" in registry.functions


def test_one_plugin_that_offers_a_name_twice(install, record):
    install("twice", "from cake_core import hookimpl, types\n@hookimpl\ndef cake_primitives(): return [types.Function(name='f')] * 2")
    r = record("twice")
    assert (r.status, r.cause) == (Status.FAILED, "offers function 'f' twice")


def test_two_plugins_of_one_name(install, load, good):
    install("acme", good("pair"), distribution="dist-one", value="stranger_one")
    install("acme", good("trio"), distribution="dist-two", value="stranger_two")
    records = [r for r in load().plugins if r.name == "acme"]
    assert [r.status for r in records] == [Status.BROKEN, Status.BROKEN]
    assert all("dist-one 1.0" in r.cause and "dist-two 1.0" in r.cause for r in records)


# --- the registry that comes out


def test_the_registry_is_sorted_and_read_only(install, load):
    install("many", "from cake_core import hookimpl, types\n@hookimpl\ndef cake_primitives():\n    for n in 'zxy':\n        yield types.Function(name=n)")
    functions = [n for n in load().functions if n in "xyz"]
    assert functions == ["x", "y", "z"]
    with pytest.raises(TypeError):
        load().functions["x"] = None


def test_results_are_the_same_whatever_the_order_of_the_entries(install, load, good):
    for name in ("one", "two", "three"):
        install(name, good("pair" if name != "three" else "trio"))
    entries = find_entries()
    assert load(entries=entries).groups.keys() == load(entries=entries[::-1]).groups.keys()


def test_listing_entry_points_is_quick_and_imports_nothing(install, good):
    install("acme", "raise AssertionError('imported')")
    best = 1.0
    for _ in range(5):
        start = time.perf_counter()
        assert any(e.origin.plugin == "acme" for e in find_entries())
        best = min(best, time.perf_counter() - start)
    assert best < 0.03


def test_nothing_stale_is_kept(install, load, good):
    install("acme", good("pair"))
    assert "late" not in {r.name for r in load().plugins}
    install("late", good("trio"))
    assert "trio" in load().groups


def test_the_builtin_plugins_load(load):
    """All entry points of this project's own distribution are active: nothing of ours is broken."""
    ours = [r for r in load().plugins if r.distribution == "cake-compiler"]
    assert len(ours) >= 10
    assert {r.name: r.cause for r in ours if r.status is not Status.ACTIVE} == {}


def test_builtin_primitives_ask_for_capabilities_that_exist(load):
    """A capability that no architecture offers is a misspelling."""
    registry = load()
    offered = frozenset().union(*(a.capabilities for a in registry.architectures.values()))
    kinds = (registry.operations, registry.functions, registry.layouts, registry.spaces, registry.groups, registry.protocols, registry.role_words)
    asked = {c: p.name for kind in kinds for p in kind.values() for c in p.capabilities}
    assert {c: n for c, n in asked.items() if c not in offered} == {}


def test_the_public_names_are_those_of_the_modules():
    assert sorted(types.__all__) == types.__all__
    assert all(hasattr(types, name) for name in types.__all__)
