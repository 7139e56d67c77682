"""What this plugin offers."""

from __future__ import annotations

from collections.abc import Iterable

from cake_core import hookimpl
from cake_core.primitive import Primitive
from cake_tcgen05.emulated import EMULATES
from cake_tcgen05.layout import LAYOUT
from cake_tcgen05.memory import Alloc, Dealloc, Relinquish
from cake_tcgen05.mma import Mma
from cake_tcgen05.move import WAIT_LOADS, WAIT_STORES, Load, Store
from cake_tcgen05.order import AFTER, BEFORE, Commit
from cake_tcgen05.reread import REREADS
from cake_tcgen05.scales import Copy
from cake_tcgen05.space import TMEM

CAKE_API = 1


@hookimpl
def cake_primitives() -> Iterable[Primitive]:
    return (
        TMEM,
        LAYOUT,
        Alloc(),
        Relinquish(),
        Dealloc(),
        Copy(),
        Mma(),
        Commit(),
        BEFORE,
        AFTER,
        Load(),
        Store(),
        WAIT_LOADS,
        WAIT_STORES,
    )


@hookimpl
def cake_rereads():
    return REREADS


@hookimpl
def cake_emulates():
    return EMULATES
