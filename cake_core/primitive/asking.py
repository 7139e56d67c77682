"""Asking primitives: a failure of one is told as a finding, and a user never sees a plugin's traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cake_core.diagnostics import CakeError, fail
from cake_core.effects import Attribute, Effect
from cake_core.ir.nodes import Op, Stmt
from cake_core.ir.visit import calls
from cake_core.source import Span

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
            out += operation.effects(s)
    for c in calls(s):
        if (function := registry.functions.get(c.name)) is not None:
            with answering(function, "effects", c.span):
                out += function.effects(c)
    return tuple(out)
