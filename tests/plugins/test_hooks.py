"""Each hook: what it adds, what it refuses, and that the documentation shows it as it is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from cake_core.ir.nodes import Kernel
from cake_core.plugins import Status, hookspecs
from cake_core.plugins.host import HOOKS
from cake_core.plugins.offers import REQUIRED_LIMITS, RETURNS

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")

ARCHITECTURE = """
from cake_core import hookimpl, types

class Backend:
    def entry_directives(self, launch): return ()
    def cluster_identity(self, builder, cluster): raise NotImplementedError

LIMITS = {{n: types.Limit(1, "measured") for n in {limits}}}

@hookimpl
def cake_architectures():
    fields = dict(name="acme", target="acme_1", ptx_version="8.6", compute_capability=(9, 0),
                  capabilities=frozenset({{"shuffle"}}), limits=LIMITS, backend=Backend)
    return [types.Architecture(**(fields | dict({changes})))]
"""


def architecture(changes: str = "", limits=REQUIRED_LIMITS) -> str:
    return ARCHITECTURE.format(changes=changes, limits=limits)


def primitives(expression: str) -> str:
    return f"from cake_core import hookimpl, types\n@hookimpl\ndef cake_primitives():\n    return {expression}\n"


def test_cake_architectures(install, load, record):
    install("acme", architecture())
    registry = load()
    assert registry.architectures["acme"].limit("named_barriers") == 1
    assert str(registry.architectures["acme"].source) == "'acme' (dist-acme 1.0)"
    assert record("acme").provides == ("arch:acme",)


def test_cake_primitives(install, load):
    kinds = {
        "operations": "Operation",
        "functions": "Function",
        "layouts": "Layout",
        "groups": "ThreadGroup",
        "protocols": "Protocol",
        "role_words": "RoleWord",
        "spaces": "Space",
    }
    extra = {"ThreadGroup": ", warps=1", "Space": ", memory='shared'"}
    install("acme", primitives("[" + ", ".join(f"types.{c}(name='acme.x'{extra.get(c, '')})" for c in kinds.values()) + "]"))
    registry = load()
    for kind, cls in kinds.items():
        item = getattr(registry, kind)["acme.x"]
        assert type(item).__name__ == cls and item.source.plugin == "acme"


def test_a_subclass_keeps_its_class(install, load):
    install(
        "acme",
        """
        from dataclasses import dataclass
        from cake_core import hookimpl, types

        @dataclass(frozen=True, kw_only=True)
        class Twist(types.Operation):
            turns: int = 1
            def effects(self, op): return (types.Rendezvous("warp"),)

        @hookimpl
        def cake_primitives(): return (Twist(name="acme.twist", turns=3),)
        """,
    )
    twist = load().operations["acme.twist"]
    assert (type(twist).__name__, twist.turns, len(twist.effects(None))) == ("Twist", 3, 1)


def test_cake_rereads(install, load, record):
    install(
        "acme",
        """
        from cake_core import hookimpl, types

        @hookimpl
        def cake_rereads():
            return [types.Reread("acme.arrive", lambda s, at: (types.acts.arrived(at.shared(s.operands[0])),), doc="PTX ISA, acme")]
        """,
    )
    found = load().rereads["acme.arrive"]
    assert (found.acts, found.writes, found.source.distribution) == (True, False, "dist-acme")
    assert record("acme").provides == ("reread:acme.arrive",)


def test_cake_emulates(install, load, record):
    install(
        "acme",
        """
        from cake_core import hookimpl, types

        @hookimpl
        def cake_emulates():
            return [types.Emulated("acme.pause", "acme.emulate:pause", waits=True, doc="PTX ISA, nanosleep")]
        """,
    )
    found = load().emulates["acme.pause"]
    assert (found.make, found.waits, found.source.distribution) == ("acme.emulate:pause", True, "dist-acme")
    assert record("acme").provides == ("emulated:acme.pause",)


def test_cake_commands(install, load, record):
    install(
        "acme",
        """
        from cake_core import hookimpl, types

        @hookimpl
        def cake_commands():
            def later(): raise AssertionError("loaded before it runs")
            return [types.Command("acme-report", "A report", later)]
        """,
    )
    command = load().commands["acme-report"]
    assert (command.summary, command.source.distribution) == ("A report", "dist-acme")
    assert record("acme").provides == ("command:acme-report",)


def test_cake_after_pass(install, load):
    install(
        "watch",
        """
        from cake_core import hookimpl
        seen = []

        @hookimpl
        def cake_after_pass(name, kernel): seen.append((name, kernel.name))
        """,
    )
    install("faulty", "from cake_core import hookimpl\n@hookimpl\ndef cake_after_pass(name): raise SystemExit('no\\nmore')")
    registry = load()
    found = registry.after_pass("derive", Kernel("k", (), (), ()))
    import stranger_watch

    assert stranger_watch.seen == [("derive", "k")]
    (d,) = found
    assert d.code == "plugin/observer-failed" and "'faulty' (dist-faulty 1.0)" in d.message and d.why == "in hook 'cake_after_pass': SystemExit: no"


# What a hook may not return, and the cause that is recorded.
WRONG = {
    "none": (primitives("None"), "returned None, expected an iterable of Primitive"),
    "number": (primitives("3"), "returned int, expected an iterable of Primitive"),
    "text": (primitives("'abc'"), "returned str, expected an iterable of Primitive"),
    "one object": (primitives("types.Function(name='f')"), "returned Function, expected an iterable of Primitive"),
    "item of another kind": (primitives("[types.Limit(1, 's')]"), "returned Limit among its objects, expected Primitive"),
    "class, not object": (primitives("[types.Function]"), "returned the class Function among its objects, expected Primitive"),
    "base class": (primitives("[types.Primitive(name='p')]"), "returned a Primitive, which is none of Operation, Function"),
    "name of another type": (primitives("[types.Function(name=1)]"), "function has the name 1, expected a word"),
    "name of two words": (primitives("[types.Function(name='a b')]"), "function has the name 'a b', expected a word"),
    "capabilities as text": (
        primitives("[types.Function(name='f', capabilities='shuffle')]"),
        "Function 'f': capabilities is str, expected a frozenset of names",
    ),
    "capabilities as letters": (
        primitives("[types.Function(name='f', capabilities=frozenset('shuffle'))]"),
        "Function 'f': 'e' is no capability's name",
    ),
    "operands not a tuple": (
        primitives("[types.Operation(name='o', operands=[types.Parameter('x', 'tile')])]"),
        "Operation 'o': operands is list, expected tuple",
    ),
    "word of the wrong type": (
        primitives("[types.Operation(name='o', words=('by',))]"),
        "an item of Operation 'o': words is str, expected WordSpec",
    ),
    "options of the wrong type": (
        primitives("[types.Function(name='f', options=({},))]"),
        "an item of Function 'f': options is dict, expected WordSpec",
    ),
    "no end": (primitives("iter(lambda: types.Function(name='f'), None)"), "offers function 'f' twice"),
    "no end of names": (
        "import itertools\n" + primitives("(types.Function(name=f'f{i}') for i in itertools.count())"),
        "returned more than 10000 objects",
    ),
    "arch: version": (architecture("ptx_version=8.6"), "architecture 'acme': ptx_version is 8.6, expected a text such as '8.6'"),
    "arch: capability": (architecture("compute_capability=90"), "architecture 'acme': compute_capability is 90, expected (major, minor)"),
    "arch: limit": (architecture("limits={'x': 3}"), "architecture 'acme': limit 'x' is 3, expected a Limit with an integer and its source"),
    "arch: limits": (architecture(limits=REQUIRED_LIMITS[1:]), f"architecture 'acme': limits lack '{REQUIRED_LIMITS[0]}'"),
    "arch: backend": (architecture("backend=Backend()"), "architecture 'acme': backend is Backend, expected a callable"),
    "emulated: maker": (
        "from cake_core import hookimpl, types\n@hookimpl\ndef cake_emulates(): return [types.Emulated('acme.x', 'no function')]",
        "emulated 'acme.x': make is 'no function', expected 'package.module:function'",
    ),
    "reread: reader": (
        "from cake_core import hookimpl, types\n@hookimpl\ndef cake_rereads(): return [types.Reread('acme.x', read='module:f')]",
        "reread 'acme.x': read is str, expected a function or None",
    ),
    "command: loader": (
        "from cake_core import hookimpl, types\n@hookimpl\ndef cake_commands(): return [types.Command('c', 's', 'module:main')]",
        "command 'c': load is str, expected a callable",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_hook_that_returns_what_it_must_not(case, install, record):
    body, cause = WRONG[case]
    install("faulty", body)
    r = record("faulty")
    assert r.status is Status.FAILED
    assert r.hook in HOOKS
    assert r.cause.startswith(cause)


# --- documentation


def test_every_hook_is_known_to_the_host():
    assert set(HOOKS) == {n for n, f in vars(hookspecs).items() if inspect.isfunction(f) and hasattr(f, "cake_spec")}
    assert set(HOOKS) == set(RETURNS) | {"cake_after_pass"}


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_documented_with_its_exact_signature(hook):
    signature = str(inspect.signature(getattr(hookspecs, hook))).replace("'", "")
    assert f"### `{hook}{signature}`" in DOCS


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_has_an_example_and_a_test(hook):
    assert re.search(rf"@hookimpl\ndef {hook}\(", DOCS)
    assert f"test_{hook}" in globals()


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_says_since_when(hook):
    assert ".. versionadded::" in inspect.getdoc(getattr(hookspecs, hook))


def test_the_documentation_names_no_hook_that_is_not_there():
    assert set(re.findall(r"^### `(cake_\w+)", DOCS, re.M)) == set(HOOKS)


def test_the_documented_plugin_works(install, record):
    """The page's first example, as it stands there."""
    body = re.search(r"```python\n# cake_acme/plugin\.py\n(.*?)```", DOCS, re.S).group(1)
    install("acme", body)
    r = record("acme")
    assert (r.status, r.cause, r.provides) == (Status.ACTIVE, None, ("operation:acme.pause",))
