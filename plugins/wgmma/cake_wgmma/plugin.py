"""What this plugin offers."""

from __future__ import annotations

from collections.abc import Iterable

from cake_core import hookimpl
from cake_core.primitive import Primitive
from cake_wgmma.emulated import EMULATES
from cake_wgmma.groups import Commit, RegisterFence, Wait
from cake_wgmma.product import Wgmma
from cake_wgmma.reread import REREADS
from cake_wgmma.warpgroup import WARPGROUP

CAKE_API = 1


@hookimpl
def cake_primitives() -> Iterable[Primitive]:
    return (WARPGROUP, Wgmma(), RegisterFence(), Commit(), Wait())


@hookimpl
def cake_rereads():
    return REREADS


@hookimpl
def cake_emulates():
    return EMULATES
