"""A primitive's failure while it lowers, told as a finding that names the primitive, its plugin and the statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from cake_core.diagnostics import CakeError, fail
from cake_core.primitive.asking import FAULT, owner
from cake_core.ptx.builder import PtxTypeError
from cake_core.source import Span


@contextmanager
def blamed(primitive, span: Span | None) -> Iterator[None]:
    """Run a plugin's code. What it raises, other than findings, becomes one: a user never sees a plugin's traceback.
    Findings without a place get `span`."""
    named = owner(primitive)
    try:
        yield
    except CakeError as error:
        raise CakeError(*(d if d.span else replace(d, span=span) for d in error.diagnostics)) from error.__cause__
    except NotImplementedError:
        raise fail("plugin/no-lowering", f"{named} has no lowering", span, why="its plugin does not define 'lower'") from None
    except PtxTypeError as error:
        raise fail(
            "plugin/ptx-type",
            f"{named} built an ill-typed instruction: {error}",
            span,
            why=FAULT,
        ) from error
    except Exception as error:
        raise fail(
            "plugin/lowering-failed",
            f"{named} failed while it was lowered: {type(error).__name__}: {error}",
            span,
            why=FAULT,
        ) from error
