"""The kind of primitive that draws numbers: what a schedule on demand takes its items by."""

from __future__ import annotations

from cake_core.frozen import frozen
from cake_core.ir.nodes import Expr
from cake_core.primitive.kinds import Primitive


@frozen(slots=False, kw_only=True)
class Counter(Primitive):
    """How numbers are drawn from an element i32 of global memory, which all CTAs of a grid share (S9)."""

    def draw(self, counter: Expr) -> Expr:
        """An expression of the derived form: the element is raised by 1, and what it held before is the value, the same for all
        lanes of the one warp that evaluates it. `counter`: the element."""
        raise NotImplementedError
