"""The entry point: offers the functions `atomic.*`, the operations `red.*` and a counter."""

from __future__ import annotations

from cake_atomics.atomic import ATOMICS
from cake_atomics.counter import COUNTER
from cake_atomics.red import REDUCTIONS
from cake_atomics.reread import REREADS
from cake_core import hookimpl
from cake_core.ptx.emulated import Emulated

CAKE_API = 1

EMULATES = (
    Emulated("atom", "cake_atomics.emulate:atom", doc="PTX ISA, atom"),
    Emulated("red", "cake_atomics.emulate:red", doc="PTX ISA, red"),
)


@hookimpl
def cake_primitives():
    return (*ATOMICS, *REDUCTIONS, COUNTER)


@hookimpl
def cake_rereads():
    return REREADS


@hookimpl
def cake_emulates():
    return EMULATES
