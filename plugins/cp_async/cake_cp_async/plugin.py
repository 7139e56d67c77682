"""What this plugin offers."""

from __future__ import annotations

from collections.abc import Iterable

from cake_core import hookimpl
from cake_core.primitive import Primitive
from cake_cp_async.copy import COPY
from cake_cp_async.emulated import EMULATES
from cake_cp_async.groups import COMMIT, WAIT
from cake_cp_async.reread import REREADS

CAKE_API = 1


@hookimpl
def cake_primitives() -> Iterable[Primitive]:
    return (COPY, COMMIT, WAIT)


@hookimpl
def cake_rereads():
    return REREADS


@hookimpl
def cake_emulates():
    return EMULATES
