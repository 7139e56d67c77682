"""What this plugin offers."""

from __future__ import annotations

from collections.abc import Iterable

from cake_core import hookimpl
from cake_core.primitive import Primitive
from cake_mma_sync.emulated import EMULATES
from cake_mma_sync.matrices import LDMATRIX
from cake_mma_sync.product import MMA_SYNC
from cake_mma_sync.reread import REREADS

CAKE_API = 1


@hookimpl
def cake_primitives() -> Iterable[Primitive]:
    return (LDMATRIX, MMA_SYNC)


@hookimpl
def cake_rereads():
    return REREADS


@hookimpl
def cake_emulates():
    return EMULATES
