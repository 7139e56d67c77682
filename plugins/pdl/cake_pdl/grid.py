"""`grid.wait` and `grid.launch`: a grid and its neighbours in the stream."""

from __future__ import annotations

from cake_core.effects import Effect, GridOrder
from cake_core.frozen import frozen
from cake_core.ir.nodes import Op
from cake_core.primitive import LowerContext, Operation

CAPABILITIES = frozenset({"dependent_launch"})


@frozen(kw_only=True)
class GridControl(Operation):
    """No operands, no words. Every thread that comes there executes it."""

    opcode: str
    waits: bool

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (GridOrder(self.waits),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit(self.opcode)


_ISA = "PTX ISA, Parallel Synchronization and Communication Instructions, griddepcontrol"
GRID = (
    GridControl(
        name="grid.wait",
        opcode="griddepcontrol.wait",
        waits=True,
        capabilities=CAPABILITIES,
        doc=f"Until the grids in front of this one in the stream have ended and their writes are seen by the executing thread ({_ISA}).",
    ),
    GridControl(
        name="grid.launch",
        opcode="griddepcontrol.launch_dependents",
        waits=False,
        capabilities=CAPABILITIES,
        doc=f"The grid behind this one in the stream may start, once every CTA has said so or has ended ({_ISA}).",
    ),
)
