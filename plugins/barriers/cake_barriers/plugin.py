"""What this plugin offers."""

from __future__ import annotations

from collections.abc import Iterable

from cake_barriers.emulated import EMULATES
from cake_barriers.mbarrier import Arrive, Expect, Init, InitFence, Wait
from cake_barriers.protocol import MBARRIER
from cake_barriers.proxy import FENCES
from cake_barriers.rendezvous import BarArrive, BarSync, CtaSync, Sync, WarpSync
from cake_barriers.reread import REREADS
from cake_barriers.space import BARRIER
from cake_barriers.turn import NAMED_BARRIERS
from cake_core import hookimpl
from cake_core.primitive import Primitive

CAKE_API = 1


@hookimpl
def cake_primitives() -> Iterable[Primitive]:
    return (BARRIER, MBARRIER, NAMED_BARRIERS, Init(), Wait(), Expect(), Arrive(), InitFence(), Sync(), BarSync(), BarArrive(), CtaSync(), WarpSync(), *FENCES)


@hookimpl
def cake_rereads():
    return REREADS


@hookimpl
def cake_emulates():
    return EMULATES
