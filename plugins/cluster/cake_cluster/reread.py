"""What the instructions for clusters do, read from the PTX ISA and apart from lowering."""

from __future__ import annotations

from cake_core.ptx.acts import Act, Moment, Reread, copied, in_rank, met_cluster
from cake_core.ptx.reader import Group, Statement


def _mapped(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`d, a, b`: the address that a has in the CTA of rank b."""
    d, a, b = s.operands
    address, rank = at.known(a), at.known(b)
    at.give(d, None if address is None or rank is None else in_rank(address, rank))
    return ()


def _sent(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`[a], value(s), [mbar]`: as many bytes as the value has, told to the barrier in the CTA of `a`."""
    to, value, barrier = s.operands
    count = len(value.items) if isinstance(value, Group) else 1
    size = count * int(s.words[-1][1:]) // 8
    first = at.shared(to)
    return (copied(((at.shared(barrier), first, first + size),), size),)


REREADS = (
    Reread("barrier.cluster.arrive", lambda s, at: (met_cluster(False),), doc="PTX ISA, barrier.cluster"),
    Reread("barrier.cluster.wait", lambda s, at: (met_cluster(True),), doc="PTX ISA, barrier.cluster"),
    Reread("mapa", _mapped, acts=False, writes=True, doc="PTX ISA, mapa"),
    Reread("st.async", _sent, doc="PTX ISA, st.async"),
    Reread("red.async", _sent, doc="PTX ISA, red.async"),
)
