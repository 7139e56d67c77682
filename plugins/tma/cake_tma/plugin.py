"""What this plugin offers."""

from __future__ import annotations

from collections.abc import Iterable

from cake_core import hookimpl
from cake_core.primitive import Primitive
from cake_tma.emulated import EMULATES
from cake_tma.load import Load
from cake_tma.prefetch import Prefetch
from cake_tma.reread import REREADS
from cake_tma.store import REDUCTIONS, Commit, Store, Wait

CAKE_API = 1


@hookimpl
def cake_primitives() -> Iterable[Primitive]:
    waits = (Wait(name="tma.store.wait", reads_only=False), Wait(name="tma.store.wait.read", reads_only=True))
    return (Load(), Prefetch(), Store(), *REDUCTIONS, Commit(), *waits)


@hookimpl
def cake_rereads():
    return REREADS


@hookimpl
def cake_emulates():
    return EMULATES
