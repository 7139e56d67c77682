"""Plugins with an index of their offers: loaded when one of these is asked for, and otherwise as every other plugin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cake_core.effects import CommitGroup, Rendezvous
from cake_core.plugins import Status, index
from cake_core.plugins.entries import find_entries
from cake_core.plugins.host import index_of
from cake_core.plugins.reindex import main as reindex
from cake_core.source import Span

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
WHERE = Span("k.cake", 3, 10, 3, 14)

MEETING = """
from dataclasses import dataclass
from cake_core import hookimpl, types

@dataclass(frozen=True, kw_only=True)
class Meet(types.Operation):
    def effects(self, op): return (types.Rendezvous("acme"),)

@hookimpl
def cake_primitives(): return (Meet(name="acme.meet"), types.Function(name="acme.f"))
"""
MEETING_INDEX = "# written by hand\nfunction:acme.f\noperation:acme.meet Rendezvous\n"


def loaded(name: str) -> bool:
    return f"stranger_{name}.plugin" in sys.modules


def test_it_is_listed_and_not_imported(install, load):
    install("acme", MEETING, offers=MEETING_INDEX)
    registry = load()
    record = next(r for r in registry.plugins if r.name == "acme")
    assert (record.status, record.hooks, record.provides) == (
        Status.ACTIVE,
        ("cake_primitives",),
        ("function:acme.f", "operation:acme.meet"),
    )
    assert "acme.meet" in list(registry.operations) and registry.closest("operation", "acme.meat") == "acme.meet"
    assert registry.operations.get("acme.other") is None
    assert not loaded("acme") and "stranger_acme" not in sys.modules


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: t["acme.f"],
        lambda t: t.get("acme.f"),
        lambda t: dict(t.items())["acme.f"],
        lambda t: next(f for f in t.values() if f.name == "acme.f"),
    ],
)
def test_asking_loads_it_once(install, load, ask):
    install("acme", MEETING, offers=MEETING_INDEX)
    registry = load()
    found = ask(registry.functions)
    assert loaded("acme") and (found.name, str(found.source)) == ("acme.f", "'acme' (dist-acme 1.0)")
    assert registry.functions["acme.f"] is found and registry.operations["acme.meet"].source == found.source


def test_a_name_that_is_in_a_table_loads_too(install, load):
    install("acme", MEETING, offers=MEETING_INDEX)
    assert "acme.f" in load().functions and loaded("acme")


def test_operations_are_found_by_their_effect(install, load):
    install("acme", MEETING, offers=MEETING_INDEX)
    registry = load()
    assert "acme.meet" not in [o.name for o in registry.alone(CommitGroup)] and not loaded("acme")
    assert "acme.meet" in [o.name for o in registry.alone(Rendezvous)] and loaded("acme")


def test_what_it_prints_is_no_result(install, load, capsys):
    install("acme", "print('hello')\n" + MEETING, offers=MEETING_INDEX)
    assert load().functions["acme.f"]
    assert capsys.readouterr() == ("", "hello\n")


def test_a_blocked_one_is_not_imported(install, load):
    install("acme", MEETING, offers=MEETING_INDEX)
    registry = load(disabled=("acme",)).whole()
    assert "acme.f" not in registry.functions and not loaded("acme")
    assert registry.unavailable("function", "acme.f", WHERE).diagnostics[0].code == "plugin/blocked"


# --- failures

FAULTS = {
    "import": ("raise SystemExit(3)", MEETING_INDEX, Status.BROKEN, "SystemExit: 3"),
    "hook": (MEETING.replace("return (Meet", "return 1 // 0, (Meet"), MEETING_INDEX, Status.FAILED, "ZeroDivisionError"),
    "observes": (
        MEETING + "\n@hookimpl\ndef cake_after_pass(name): pass\n",
        MEETING_INDEX,
        Status.FAILED,
        "it implements 'cake_after_pass', and with 'offers.txt' it is loaded too late for that",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_one_that_fails_is_as_if_it_had_failed_at_the_start(case, install, load):
    body, offers, status, cause = FAULTS[case]
    install("acme", body, offers=offers)
    registry = load()
    assert [d for d in registry.problems() if "'acme'" in d.message] == [], "nobody has asked yet"
    assert registry.operations.get("acme.meet") is None and "acme.meet" not in list(registry.operations)
    (problem,) = [d for d in registry.problems() if "'acme'" in d.message]
    assert problem.code == "plugin/not-loaded" and cause in problem.why
    error = registry.unavailable("operation", "acme.meet", WHERE).diagnostics[0]
    assert (error.code, error.span) == ("plugin/broken", WHERE) and cause in error.why
    record = next(r for r in registry.plugins if r.name == "acme")
    assert record.status is status and cause in record.cause
    with pytest.raises(KeyError):
        registry.operations["acme.meet"]


def test_a_name_of_its_family_that_nobody_has_says_that_it_is_broken(install, load):
    install("acme", "import no_such_module_of_ours", offers=MEETING_INDEX)
    assert load().unavailable("operation", "acme.other", WHERE).diagnostics[0].code == "plugin/broken"


def test_all_of_them_can_be_loaded(install, load):
    install("acme", "import no_such_module_of_ours", offers=MEETING_INDEX)
    install("fine", MEETING.replace("acme", "fine"), offers=MEETING_INDEX.replace("acme", "fine"))
    registry = load().whole()
    assert {r.name: r.status for r in registry.plugins if r.distribution != "cake-compiler"} == {
        "acme": Status.BROKEN,
        "fine": Status.ACTIVE,
    }
    assert all(registry.functions.values())


@pytest.mark.parametrize("offers", ["operations:acme.meet\n", "acme.meet\n", "operation:\n"])
def test_an_index_with_a_label_that_is_none_is_not_used(install, record, offers):
    install("acme", MEETING, offers=offers)
    assert (record("acme").status, loaded("acme")) == (Status.ACTIVE, True)
    assert "'function:acme.f' is not in 'offers.txt'" in record("acme").cause


@pytest.mark.parametrize("offers", ["", "# nothing\n"])
def test_an_index_that_says_nothing_is_none(install, load, offers):
    install("acme", MEETING, offers=offers)
    assert load().functions["acme.f"] and loaded("acme")


#: An index that is behind: what it lacks or has too much, and the warning.
BEHIND = {
    "offers less": (
        MEETING.replace(', types.Function(name="acme.f")', ","),
        MEETING_INDEX,
        "'function:acme.f' is in 'offers.txt' and is not offered",
    ),
    "offers more": (MEETING, MEETING_INDEX.replace("function:acme.f\n", ""), "'function:acme.f' is not in 'offers.txt'"),
    "other effects": (
        MEETING,
        MEETING_INDEX.replace("Rendezvous", "Fence"),
        "'operation:acme.meet' has other effects than in 'offers.txt'",
    ),
}


@pytest.mark.parametrize("case", BEHIND)
def test_an_index_that_is_behind_is_a_warning_once_the_plugin_is_loaded(case, install, load):
    body, offers, why = BEHIND[case]
    install("acme", body, offers=offers)
    registry = load()
    assert registry.operations["acme.meet"].source.plugin == "acme" and list(registry.functions) == sorted(registry.functions)
    assert ("acme.f" in registry.functions) == (case != "offers less")
    (problem,) = [d for d in registry.problems() if "'acme'" in d.message]
    assert (problem.code, problem.severity, problem.why) == ("plugin/stale-index", "warning", why)
    assert problem.fix == "python -m cake_core.plugins.reindex acme"


def test_a_name_that_an_index_kept_back_still_clashes(install, load):
    install("acme", MEETING, offers=MEETING_INDEX.replace("function:acme.f\n", ""))
    install("other", "from cake_core import hookimpl, types\n@hookimpl\ndef cake_primitives(): return [types.Function(name='acme.f')]")
    registry = load()
    assert registry.operations.get("acme.meet") is None and registry.functions["acme.f"].source.plugin == "other"
    assert (
        "function 'acme.f' is offered by 'acme' (dist-acme 1.0) and by 'other'"
        in next(r for r in registry.plugins if r.name == "acme").cause
    )


def test_names_clash_before_anything_is_loaded(install, load, good):
    install("acme", MEETING, offers=MEETING_INDEX)
    install("other", MEETING)
    registry = load()
    assert registry.functions.get("acme.f") is None and not loaded("acme")
    causes = {r.name: (r.status, r.hook, r.cause) for r in registry.plugins if r.name in ("acme", "other")}
    assert all(s is Status.FAILED and h == "cake_primitives" and "'acme.f'" in c for s, h, c in causes.values()), causes


def test_the_index_of_a_plugin_can_be_written(install, load, tmp_path, capsys):
    install("acme", MEETING, offers="function:acme.g\n")
    assert reindex(["acme"]) == 0
    assert (tmp_path / "stranger_acme" / "offers.txt").read_text().splitlines()[1:] == MEETING_INDEX.splitlines()[1:]
    assert load().functions["acme.f"]
    install("flat", MEETING)
    assert reindex(["flat"]) == 2 and "no plugin 'flat' is installed as a package" in capsys.readouterr().err


def test_an_observer_has_no_index(install, capsys):
    install("watch", "from cake_core import hookimpl\n@hookimpl\ndef cake_after_pass(name): pass", offers="")
    assert reindex(["watch"]) == 2 and "observes passes" in capsys.readouterr().err


# --- ours


OURS = [e for e in find_entries() if e.builtin]


@pytest.mark.parametrize("entry", OURS, ids=lambda e: e.origin.plugin)
def test_the_index_of_a_built_in_plugin_is_what_it_offers(entry):
    assert index.read(entry.point.value) == index_of(entry)


def test_checking_a_text_loads_the_plugins_that_it_needs():
    code = (
        "import sys\nfrom cake_core.cli.app import app\n"
        f"try: app.main(['check', {str(KERNELS / 'gemm' / 'gemm_sm90.cake')!r}], prog_name='cake')\nexcept SystemExit: pass\n"
        "print(*sorted({m.partition('.')[0] for m in sys.modules if m.startswith('cake_')}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *_, clean, modules = done.stdout.splitlines()
    assert clean == "1 text clean"
    assert set(modules.split()) == {
        f"cake_{n}" for n in ("core", "sm90", "barriers", "cluster", "fragments", "math", "memory", "registers", "tma", "wgmma")
    }


def test_a_broken_plugin_that_a_text_needs_is_an_engine_error(install, tmp_path):
    install("acme", "import no_such_module_of_ours", offers=MEETING_INDEX)
    text = tmp_path / "k.cake"
    text.write_text("cake 1\nkernel k(N: i32)\n  target sm90\n{\n  role r: 1 warp {\n    acme.meet\n  }\n}\n")
    from click.testing import CliRunner

    from cake_core.cli import host
    from cake_core.cli.app import app

    host.registry.cache_clear()
    try:
        result = CliRunner().invoke(app, ["check", str(text)], prog_name="cake")
    finally:
        host.registry.cache_clear()
    assert result.exit_code == 3
    assert "error[plugin/broken]: operation 'acme.meet' belongs to plugin 'acme' (dist-acme 1.0), which is broken" in result.output
    assert "warning[plugin/not-loaded]: plugin 'acme' (dist-acme 1.0) is broken and was left out" in result.output
