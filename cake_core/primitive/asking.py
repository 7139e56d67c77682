"""Asking primitives: a failure of one is told as a finding, and a user never sees a plugin's traceback."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, get_args

from cake_core.diagnostics import CakeError, fail
from cake_core.effects import Attribute, Effect
from cake_core.ir.nodes import Op, Stmt
from cake_core.ir.visit import calls
from cake_core.source import Span

EFFECTS = get_args(Effect)
FAULT = "this is a fault of the plugin, not of the text"


def owner(primitive) -> str:
    """The primitive and the plugin that offers it, as messages name them."""
    return f"'{primitive.name}' of {primitive.source}" if getattr(primitive, "source", None) else f"'{primitive.name}'"


@contextmanager
def answering(primitive, method: str, span: Span | None) -> Iterator[None]:
    """Run `method` of a primitive. What it raises, other than findings, becomes `plugin/primitive-failed` at `span`."""
    try:
        yield
    except CakeError:
        raise
    except Exception as error:
        raise fail("plugin/primitive-failed", f"{owner(primitive)} failed in '{method}': {type(error).__name__}: {error}", span, why=FAULT) from error


def one_of(given: Any, kind: type | tuple[type, ...], what: str) -> Any:
    """What a primitive gave. Raises TypeError where it is no `kind`, which `what` says in a word: an answer that no one knows must not pass for nothing."""
    if not isinstance(given, kind):
        raise TypeError(f"'{given!r:.60}' is no {what}")
    return given


def all_of(given: Any, kind: type | tuple[type, ...], what: str) -> tuple:
    """The members of what a primitive gave, each a `kind`. Raises TypeError as `one_of` does."""
    if not isinstance(given, Iterable):
        raise TypeError(f"'{given!r:.60}' is not several of {what}")
    return tuple(one_of(x, kind, what) for x in given)


def effects_given(primitive, node) -> tuple[Effect, ...]:
    """What `primitive` says that `node` does, attributes included. Raises TypeError where that is no effect."""
    return all_of(primitive.effects(node), EFFECTS, "effect")


def effects_of(s: Stmt, registry) -> tuple[Effect, ...]:
    """What one statement itself does, nested ones left out: its operation and the functions that it calls. Attributes do nothing."""
    return tuple(e for e in _declared(s, registry) if not isinstance(e, Attribute))


def attributes_of(s: Stmt, registry) -> tuple[Attribute, ...]:
    """What is said of the statement for rules alone."""
    return tuple(dict.fromkeys(e for e in _declared(s, registry) if isinstance(e, Attribute)))


def _declared(s: Stmt, registry) -> tuple[Effect, ...]:
    out: list[Effect] = []
    if isinstance(s, Op) and (operation := registry.operations.get(s.name)) is not None:
        with answering(operation, "effects", s.span):
            out += effects_given(operation, s)
    for c in calls(s):
        if (function := registry.functions.get(c.name)) is not None:
            with answering(function, "effects", c.span):
                out += effects_given(function, c)
    return tuple(out)
