"""What the simulator asks of primitives: `simulate`, what a statement or an expression does to data.

Data are logical arrays: a tile is one numpy array of its shape, in the type that it has in memory, whichever threads hold its
elements and however a buffer is swizzled. When a statement's data move, the event machine says: `simulate` of an asynchronous operation
is called when the schedule lets it happen, not when it is issued. It does nothing to barriers, groups and fences, which effects tell of.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any
from typing import Protocol as TypingProtocol

if TYPE_CHECKING:
    import numpy

    from cake_core.ir.nodes import Expr, Node
    from cake_core.ir.types import Elem
    from cake_core.primitive.kinds import Reduction


class SimulateContext(TypingProtocol):
    """The data of who executes: some warps of one instance, in one CTA.

    A tile in registers is an array of all its elements, of which those count that the executing warps hold. A scalar that differs among
    warps is an array [warps, 1], one that differs among lanes [warps, 32]."""

    warps: int  # that execute together
    cta: int  # rank in the cluster
    pair: bool  # whether the cluster's CTAs are a pair

    def value(self, expr: Expr) -> Any:
        """A scalar (int, bool, numpy's float32), a tile's array, a state's arrays by field, or a tuple of such."""

    def operands(self, *exprs: Expr) -> tuple[Any, ...]:
        """`value` of each, so that they meet element by element: a tile along the rows has the shape [n, 1] beside one of two dimensions."""

    def lanes(self, expr: Expr) -> numpy.ndarray:
        """What each lane of the executing warps holds of a register tile, [warps, 32, elements], in the order of its layout."""

    def read(self, place: Expr, fill: float = 0, cta: int | None = None) -> Any:
        """A tile in memory, or a fragment. Past a tensor's extents it reads `fill`. `cta`: of another rank."""

    def write(
        self, place: Expr, value: Any, *, clip: int | None = None, cta: int | None = None, combine: Callable | None = None, front: bool = True
    ) -> None:
        """Put a value into a place; of a tile that lies over the threads those elements that the executing warps hold. What lies past a
        tensor's extents is dropped, and what lies at or behind `clip` along the first dimension that is sliced. `combine(old, new)`:
        what is left there instead, in one step. `front`: as of `effects.Access`."""

    def reduction(self, name: str) -> Reduction | None:
        """The reduction, or fragment type, of that name."""


class Simulated:
    """What every primitive may say of data."""

    __slots__ = ()

    def simulate(self, node: Node, cx: SimulateContext) -> Any:
        """What a statement (`Operation`) does, or the value of a call (`Function`, `Reduction`). A primitive without it that touches data is
        reported as `runtime/not-simulated`."""
        raise NotImplementedError


@cache
def dtypes() -> dict[str, numpy.dtype]:
    """numpy's type of each element type of the language, by name; pairs of floats of 4 bits are bytes."""
    import ml_dtypes
    import numpy as np

    kinds = {
        "f32": np.float32,
        "f16": np.float16,
        "bf16": ml_dtypes.bfloat16,
        "e4m3": ml_dtypes.float8_e4m3fn,
        "e5m2": ml_dtypes.float8_e5m2,
        "ue8m0": ml_dtypes.float8_e8m0fnu,
        "e2m1x2": np.uint8,
        "i32": np.int32,
        "u32": np.uint32,
        "bool": np.bool_,
    }
    return {name: np.dtype(kind) for name, kind in kinds.items()}


def dtype_of(elem: Elem) -> numpy.dtype:
    """numpy's type of an element type."""
    return dtypes()[elem.name]


def combining(name: str) -> Callable:
    """What leaves `old` and `new` combined, of arrays or numbers of one type: add, min, max, and, or, xor, exch."""
    import numpy as np

    of = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    return of.get(name, lambda old, new: new)
