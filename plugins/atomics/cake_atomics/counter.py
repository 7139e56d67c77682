"""Numbers drawn from a counter: what a schedule on demand takes its items by."""

from __future__ import annotations

from cake_core.ir.build import call
from cake_core.ir.nodes import Expr
from cake_core.primitive import Counter


class AtomicCounter(Counter):
    """One access a warp; it orders nothing else, and need not: who drew a number has nothing to learn from who drew another."""

    def draw(self, counter: Expr) -> Expr:
        return call("atomic.add", counter, 1)


COUNTER = AtomicCounter(
    name="atomic", capabilities=frozenset({"atomics"}), doc="PTX ISA, Parallel Synchronization and Communication Instructions, atom (.add)"
)
