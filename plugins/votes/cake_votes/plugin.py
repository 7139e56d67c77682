"""The entry point: offers `vote.any`, `vote.all` and `vote.ballot`."""

from __future__ import annotations

from cake_core import hookimpl
from cake_votes.vote import VOTES

CAKE_API = 1


@hookimpl
def cake_primitives():
    return VOTES
