"""Steps: what one agent does at a time, every place, barrier and count in it a number."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from cake_core.effects import Proxy
from cake_core.facts.schema import Event
from cake_core.frozen import frozen
from cake_core.machine.places import Location

LANES = 32


class Do(IntEnum):
    """What a step does; the comment names the fields `a, b, c` of it."""

    ACCESS = 0  # touches
    GROUP = 1  # touches, queue, whether all warps of the instance issue it together
    ENGINE = 2  # touches, engine
    COPY = 3  # touches that it reads, deliveries (touch or None, barrier, bytes)
    INIT = 4  # barriers, count
    WAIT = 5  # barrier, parity
    ARRIVE = 6  # barrier, arrivals, bytes announced
    ENGINE_ARRIVE = 7  # barriers, engine, arrivals
    COMMIT = 8  # queue
    DRAIN = 9  # queue, pending, reads only
    MEET = 10  # key, threads of the meeting, threads that come; lanes -1: does not wait
    CONVERGE = 11
    FENCE = 12  # kind
    RESERVE = 13  # columns
    FREE = 14  # columns
    ROLE_END = 15
    EXIT = 16
    GRID = 17  # whether it waits for the grids in front; of another grid nothing is executed
    TENSOR = 18  # name of a tensor, where an asynchronous statement begins in it and how much it takes: one number a dimension each; only for who asks


@dataclass(slots=True, eq=False)
class Touch:
    """One access of one location. `box`: lo, hi of each dimension, one behind the other. `value`: what a write leaves, where it is known.
    `division`: which warp of the instance touches which of its elements, in words that are equal where the divisions are. `scope`: among whom it is
    atomic."""

    location: Location
    box: tuple[int, ...]
    write: bool
    proxy: Proxy
    atomic: bool
    value: int | None = None
    division: str | None = None
    scope: str | None = None


@dataclass(slots=True, eq=False)
class Step:
    """`all`: every lane does it; otherwise the leading lane alone. `iteration`: values of the loops around. `job`: of an asynchronous one, what is
    done to data when it is carried out; the machine does not look at it."""

    do: Do
    all: bool
    a: object
    b: object
    c: object
    event: Event | None
    iteration: tuple[int, ...]
    loops: tuple[str, ...]
    job: object = None


@frozen
class Doer:
    """Who executes code: threads of one CTA. `warp`: the first of `warps` in the instance (or in the CTA, outside of roles)."""

    cta: int
    role: str
    instance: int
    warp: int
    warps: int


def divided_alike(x: Touch, y: Touch) -> bool:
    """Whether each warp of an instance touches the same elements in both, and no warp those of another one."""
    return x.division is not None and x.division == y.division and x.location is y.location and x.box == y.box


def combine(x: Touch, y: Touch, one_cta: bool) -> bool:
    """Whether both are atomic for each other: the scope of each has who does the other, and they go one way (PTX ISA, memory
    consistency model, morally strong operations)."""
    return x.atomic and y.atomic and x.proxy is y.proxy and (one_cta or "cta" not in (x.scope, y.scope))
