"""The entry point: offers `vote.any`, `vote.all` and `vote.ballot`."""

from __future__ import annotations

from cake_core import hookimpl
from cake_core.ptx.emulated import Emulated
from cake_votes.vote import VOTES

CAKE_API = 1

EMULATES = (
    Emulated("vote", "cake_votes.emulate:vote", doc="PTX ISA, vote.sync"),
    Emulated("activemask", "cake_votes.emulate:activemask", doc="PTX ISA, activemask"),
    Emulated("match", "cake_votes.emulate:match", doc="PTX ISA, match.sync"),
    Emulated("redux", "cake_votes.emulate:redux", doc="PTX ISA, redux.sync"),
)


@hookimpl
def cake_primitives():
    return VOTES


@hookimpl
def cake_emulates():
    return EMULATES
