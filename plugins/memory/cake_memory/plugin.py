"""Memory that threads access themselves: the space `shared`, `store` and `load`."""

from __future__ import annotations

from cake_core import hookimpl
from cake_memory.emulated import EMULATES
from cake_memory.load import LOAD
from cake_memory.reread import REREADS
from cake_memory.space import SHARED
from cake_memory.store import STORE

CAKE_API = 1


@hookimpl
def cake_primitives():
    return (SHARED, LOAD, STORE)


@hookimpl
def cake_rereads():
    return REREADS


@hookimpl
def cake_emulates():
    return EMULATES
