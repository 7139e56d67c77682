"""The entry point: offers the operations `bulk.*`."""

from __future__ import annotations

from cake_bulk.emulated import EMULATES
from cake_bulk.groups import COMMIT, WAIT, WAIT_READ
from cake_bulk.load import LOAD, PREFETCH
from cake_bulk.reread import REREADS
from cake_bulk.send import SENDS
from cake_bulk.store import STORES
from cake_core import hookimpl

CAKE_API = 1


@hookimpl
def cake_primitives():
    return (LOAD, PREFETCH, *SENDS, *STORES, COMMIT, WAIT, WAIT_READ)


@hookimpl
def cake_rereads():
    return REREADS


@hookimpl
def cake_emulates():
    return EMULATES
