"""The entry point: offers the operations `bulk.*`."""

from __future__ import annotations

from cake_bulk.groups import COMMIT, WAIT, WAIT_READ
from cake_bulk.load import LOAD, SEND
from cake_bulk.store import STORES
from cake_core import hookimpl

CAKE_API = 1


@hookimpl
def cake_primitives():
    return (LOAD, SEND, *STORES, COMMIT, WAIT, WAIT_READ)
