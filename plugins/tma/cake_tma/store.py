"""`tma.store`, its reductions and its groups: a box of shared memory into a tensor."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.effects import Access, CommitGroup, Effect, InGroup, Issuer, Mode, Proxy, WaitGroup
from cake_core.frozen import frozen
from cake_core.ir.build import by_leader
from cake_core.ir.build import op as statement
from cake_core.ir.nodes import Block, Int, Op
from cake_core.ir.places import root
from cake_core.ir.tiles import place, range_of
from cake_core.ir.types import BF16, F16, F32, I32, U32, Elem
from cake_core.primitive import CheckContext, Demand, DeriveContext, Form, LowerContext, Operation, Parameter, SimulateContext
from cake_core.primitive.simulated import combining
from cake_core.ptx.builder import Addr
from cake_tma.copy import Copy, check, copy_of, demand, split, swizzle_of
from cake_tma.instruction import map_operand
from cake_tma.tiles import extent

QUEUE = "bulk"
CAPABILITIES = frozenset({"tma"})


@frozen(kw_only=True)
class Store(Operation):
    """`tma.store T[..] <- x`: clipped at the tensor's extents. The schedule form derives to one group of the leader.

    A negative start coordinate is an illegal instruction, unlike in a load. `reduction`: each element is combined so with what is there,
    in one step, of the types in `elements`; None: it takes its place.
    """

    name: str = "tma.store"
    reduction: str | None = None
    elements: tuple[Elem, ...] = ()
    operands: tuple[Parameter, ...] = (Parameter("dst", "tile", ("global",), writable=True),)
    arrows: tuple[str, ...] = ("<-",)
    value: Parameter | None = Parameter("src", "tile", ("shared",))
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, cp.async.bulk.tensor (.global.shared::cta, .bulk_group)"

    def check(self, op: Op, cx: CheckContext) -> None:
        copy = _copy(op)
        if self.reduction is not None and copy.there.elem not in self.elements:
            wanted = ", ".join(e.name for e in self.elements)
            message = f"'{self.name}' takes {wanted}, not {copy.there.elem}"
            raise fail("type/element", message, op.span, why="there is no such instruction on other types")
        check(copy, cx)
        for part in place(op.operands[0]).parts:
            if (hi := range_of(part.lo).hi) is not None and hi < 0:
                raise fail(
                    "ptx/tma-start",
                    f"'{self.name}' starts at {hi}{'' if range_of(part.lo).constant is not None else ' or less'}",
                    part.lo.span,
                    why="a box that is stored starts inside the tensor, or behind it: only loads may start before it",
                )

    def demands(self, op: Op, cx: CheckContext) -> tuple[Demand, ...]:
        return (demand(_copy(op)),)

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        copy = _copy(op)
        tiles = split(copy, cx.swizzle(copy.here.name))
        stores = tuple(statement(self.name, to, arrow="<-", value=of, at=op.span) for of, to in tiles)
        return (by_leader(*stores, statement("tma.store.commit", at=op.span)),)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        combines = self.reduction is not None
        return (
            Access(op.value, Mode.READ, Proxy.ASYNC, InGroup(QUEUE), Issuer.LEADER),
            Access(
                op.operands[0], Mode.WRITE, Proxy.ASYNC, InGroup(QUEUE), Issuer.LEADER, atomic=combines, scope="gpu" if combines else None, front=False
            ),
        )

    def simulate(self, op: Op, cx: SimulateContext) -> None:
        cx.write(op.operands[0], cx.read(op.value), combine=combining(self.reduction) if self.reduction is not None else None, front=False)

    def lower(self, op: Op, cx: LowerContext) -> None:
        tensor, shared = op.operands[0], op.value
        to = map_operand(cx, tensor, swizzle_of(cx.declaration(root(shared).id)))
        rank = len(extent(tensor).shape)
        copies, combines = ("cp.async", "") if self.reduction is None else ("cp.reduce.async", f".{self.reduction}")
        cx.b.emit(f"{copies}.bulk.tensor.{rank}d.global.shared::cta{combines}.bulk_group", to, Addr(cx.shared_address(shared)))


_INTEGERS = (I32, U32)
_ALL_BUT_F32 = (BF16, F16, *_INTEGERS)
REDUCTIONS = tuple(
    Store(
        name=f"tma.{reduction}",
        reduction=reduction,
        elements=elements,
        doc=f"PTX ISA, cp.reduce.async.bulk.tensor (.global.shared::cta, .{reduction}, .bulk_group)",
    )
    for reduction, elements in (
        ("add", (F32, *_ALL_BUT_F32)),
        ("min", _ALL_BUT_F32),
        ("max", _ALL_BUT_F32),
        ("and", _INTEGERS),
        ("or", _INTEGERS),
        ("xor", _INTEGERS),
    )
)


def _copy(op: Op) -> Copy:
    return copy_of(op, op.value, op.operands[0])


@frozen(kw_only=True)
class Commit(Operation):
    """`tma.store.commit`: the executing thread's stores since the last commit are one group."""

    name: str = "tma.store.commit"
    form: Form = Form.DERIVED
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, cp.async.bulk.commit_group"

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (CommitGroup(QUEUE),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit("cp.async.bulk.commit_group")


@frozen(kw_only=True)
class Wait(Operation):
    """`tma.store.wait N`: at most N of the leader's groups are unfinished. `tma.store.wait.read N`: unfinished in reading,
    so that the shared memory they came from may be written again. Others learn of it by a `sync`.
    """

    reads_only: bool
    operands: tuple[Parameter, ...] = (Parameter("pending", "constant"),)
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, cp.async.bulk.wait_group"

    def check(self, op: Op, cx: CheckContext) -> None:
        pending = op.operands[0]
        if isinstance(pending, Int) and pending.value < 0:
            raise fail("type/pending-groups", f"{pending.value} groups can't be pending", pending.span)

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        return (by_leader(op),)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        pending = op.operands[0]
        return (WaitGroup(QUEUE, pending.value if isinstance(pending, Int) else 0, self.reads_only),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit(f"cp.async.bulk.wait_group{'.read' if self.reads_only else ''}", cx.constant(op.operands[0]))
