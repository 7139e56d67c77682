"""One element in the shared memory of a CTA of the cluster: stores and reductions."""

from __future__ import annotations

from dataclasses import dataclass

from cake_cluster.place import check_element, check_rank, scalar, writer
from cake_core.diagnostics import fail
from cake_core.effects import Access, BySignal, Completion, Effect, Issuer, Mode, Now
from cake_core.ir.build import LEADER, WARP_LEADER
from cake_core.ir.nodes import Expr, Op
from cake_core.ir.types import F32, I32, U32, Elem, Level
from cake_core.primitive import CheckContext, Form, LowerContext, Operation, Parameter, WordSpec
from cake_core.ptx.builder import Addr, Operand

AT = WordSpec("at", "integer", required=True, help="rank in the cluster of the CTA whose shared memory it is")
SIGNAL = WordSpec("signal", "barrier", Form.DERIVED, help="the barrier of that CTA which receives the element's bytes")

#: How the type of an element is called in an arithmetic instruction.
SUFFIX = {F32: "f32", I32: "s32", U32: "u32"}


@dataclass(frozen=True, kw_only=True)
class Remote(Operation):
    """`NAME x[..] <- value at RANK [signal b]`. A scalar goes to one element of the same buffer in another CTA.

    It is written by one thread: the leader where it is the same for the instance, each warp's leader where it, or its place,
    differs a warp. Without `signal` it is seen behind the next `cluster.sync`; with one, by who waits for that barrier.
    """

    plain: str  # opcodes without the type
    signalled: str
    signalled_type: dict[Elem, str]
    combines: bool
    operands: tuple[Parameter, ...] = (Parameter("destination", "tile", ("shared",), writable=True),)
    arrows: tuple[str, ...] = ("<-",)
    value: Parameter | None = Parameter("value", "scalar")
    words: tuple[WordSpec, ...] = (AT, SIGNAL)
    capabilities: frozenset[str] = frozenset({"cluster"})

    def check(self, op: Op, cx: CheckContext) -> None:
        (target,) = op.operands
        check_element(target, self.name)
        check_rank(op.words.get("at"), cx)
        scalar(op, target, cx.warps)
        elem = target.type.elem
        if op.words.get("signal") is None:
            if self.combines and self.name != "cluster.add" and elem == F32:
                raise fail("type/element", f"'{self.name}' takes i32 or u32, not {elem}", target.span, why="there is no such instruction on f32")
            return
        if elem not in self.signalled_type:
            raise fail("type/element", f"'{self.name}' with a signal takes i32 or u32, not {elem}", target.span)
        if writer(op) > Level.INSTANCE:
            raise fail(
                "core/one-place",
                "each warp would send, and the bytes of one element are announced",
                op.span,
                why="a barrier counts the bytes of every sender",
                fix="send one value an instance",
            )

    def effects(self, op: Op) -> tuple[Effect, ...]:
        (target,) = op.operands
        rank, signal = op.words.get("at"), op.words.get("signal")
        done: Completion = Now() if signal is None else BySignal(signal, target.type.elem.bytes, cta=rank)
        issuer = Issuer.LEADER if writer(op) <= Level.INSTANCE else Issuer.WARP
        return (Access(target, Mode.WRITE, completion=done, issuer=issuer, cta=rank, atomic=self.combines),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        (target,) = op.operands
        elem, rank, signal = target.type.elem, cx.value(op.words.get("at")), op.words.get("signal")
        guard = self._guard(op, cx)
        if guard is False:
            return
        value = _register(op.value, elem, cx)
        address = Addr(remote(cx, cx.element_address(target, ()), rank))
        guard = None if guard is True else guard
        if signal is None:
            suffix = SUFFIX[elem] if self.combines else "b32"
            cx.b.emit(f"{self.plain}.{suffix}", address, value, guard=guard)
        else:
            barrier = Addr(remote(cx, cx.barrier(signal), rank))
            cx.b.emit(f"{self.signalled}.{self.signalled_type[elem]}", address, value, barrier, guard=guard)

    def _guard(self, op: Op, cx: LowerContext):
        match writer(op):
            case Level.LANE:
                return True
            case Level.WARP:
                return cx.predicate(WARP_LEADER)
        return cx.predicate(LEADER)


def remote(cx: LowerContext, address: Operand, rank: Operand) -> Operand:
    """The address that an own shared address has in the CTA of `rank` (PTX ISA, mapa)."""
    return cx.b.op("mapa.shared::cluster.u32", address, rank)


def _register(e: Expr, elem: Elem, cx: LowerContext) -> Operand:
    value = cx.value(e)
    kind = "f32" if elem == F32 else "b32"
    if isinstance(value, int | float):
        return cx.b.mov(float(value) if kind == "f32" else int(value), kind)
    return value


_INTEGERS = {I32: "s32", U32: "u32"}
_ISA = "PTX ISA, Data Movement and Conversion Instructions, mapa, st and st.async (.shared::cluster)"


def _combining(name: str, what: str) -> Remote:
    return Remote(
        name=f"cluster.{name}",
        plain=f"red.relaxed.cluster.shared::cluster.{name}",
        signalled=f"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{name}",
        signalled_type=_INTEGERS,
        combines=True,
        doc=f"{what} of a scalar into an element of another CTA's shared memory, in one step "
        "(PTX ISA, Parallel Synchronization and Communication Instructions, red and red.async).",
    )


REMOTE = (
    Remote(
        name="cluster.store",
        plain="st.shared::cluster",
        signalled="st.async.shared::cluster.mbarrier::complete_tx::bytes",
        signalled_type={F32: "f32", **_INTEGERS},
        combines=False,
        doc=f"A scalar into an element of another CTA's shared memory ({_ISA}).",
    ),
    _combining("add", "The sum"),
    _combining("min", "The smaller"),
    _combining("max", "The larger"),
)
