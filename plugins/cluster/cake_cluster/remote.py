"""One element in the shared memory of a CTA of the cluster: stores and reductions, and sends, which a barrier of that CTA counts."""

from __future__ import annotations

from cake_cluster.place import check_cta, check_element, scalar, writer
from cake_core.diagnostics import fail
from cake_core.effects import Access, BySignal, Effect, Issuer, Mode
from cake_core.frozen import frozen
from cake_core.ir.build import LEADER, WARP_LEADER
from cake_core.ir.nodes import Block, Expr, Op, Word, Words
from cake_core.ir.places import root
from cake_core.ir.types import F32, I32, U32, Elem, Level
from cake_core.primitive import CheckContext, DeriveContext, Form, LowerContext, Operation, Parameter, SimulateContext, WordSpec
from cake_core.primitive.signals import handed
from cake_core.primitive.simulated import combining
from cake_core.ptx.builder import Addr, Operand, Reg

AT = WordSpec("at", "integer", required=True, help="rank in the cluster of the CTA whose shared memory it is")
SIGNAL = WordSpec("signal", "barrier", Form.DERIVED, required=True, help="the barrier of that CTA which receives the element's bytes")


@frozen(kw_only=True)
class Remote(Operation):
    """`NAME x[..] <- value at RANK`. A scalar goes to one element of the same buffer in another CTA.

    It is written by one thread: the leader where it is the same for the instance, each warp's leader where it, or its place,
    differs a warp. It is seen behind the next `cluster.sync`.

    `opcode` without the type; `kinds`: the type in the instruction by element. `combines`: with what is there, in one step.
    """

    opcode: str
    kinds: dict[Elem, str]
    combines: bool
    operands: tuple[Parameter, ...] = (Parameter("destination", "tile", ("shared",), writable=True),)
    arrows: tuple[str, ...] = ("<-",)
    value: Parameter | None = Parameter("value", "scalar")
    words: tuple[WordSpec, ...] = (AT,)
    capabilities: frozenset[str] = frozenset({"cluster"})

    def check(self, op: Op, cx: CheckContext) -> None:
        (target,) = op.operands
        check_element(target, self.name)
        check_cta(op.words.get("at"), cx)
        scalar(op, target, cx.warps)
        if target.type.elem not in self.kinds:
            wanted = " or ".join(e.name for e in self.kinds)
            raise fail(
                "type/element",
                f"'{self.name}' takes {wanted}, not {target.type.elem}",
                target.span,
                why="there is no such instruction on it",
            )

    def effects(self, op: Op) -> tuple[Effect, ...]:
        issuer = Issuer.LEADER if writer(op) <= Level.INSTANCE else Issuer.WARP
        return (Access(op.operands[0], Mode.WRITE, issuer=issuer, cta=op.words.get("at"), atomic=self.combines, scope="cluster" if self.combines else None),)

    def simulate(self, op: Op, cx: SimulateContext) -> None:
        combine = combining(self.name.rpartition(".")[2]) if self.combines else None
        cx.write(op.operands[0], cx.value(op.value), cta=cx.value(op.words.get("at")), combine=combine)

    def lower(self, op: Op, cx: LowerContext) -> None:
        guard = _guard(op, cx)
        if guard is not False:
            to, value = self._operands(op, cx)
            cx.b.emit(f"{self.opcode}.{self.kinds[op.operands[0].type.elem]}", to, value, guard=None if guard is True else guard)

    def _operands(self, op: Op, cx: LowerContext) -> tuple[Addr, Operand]:
        """The element's address in the other CTA, and the value."""
        (target,) = op.operands
        value = _register(op.value, target.type.elem, cx)
        return Addr(remote(cx, cx.element_address(target, ()), cx.value(op.words.get("at")))), value


@frozen(kw_only=True)
class Send(Remote):
    """`NAME x[..] <- value at RANK`, in the derived form with `signal b`: the same, by the leader alone, and 4 bytes count in on the
    barrier of that CTA, whose threads wait for its phase. In the schedule form the barrier is that of a pipeline slot.
    """

    words: tuple[WordSpec, ...] = (AT, SIGNAL)

    def check(self, op: Op, cx: CheckContext) -> None:
        super(Send, self).check(op, cx)
        if writer(op) > (Level.WARP if cx.warps == 1 else Level.INSTANCE):
            raise fail(
                "core/one-place",
                "each warp would send, and the bytes of one element are announced",
                op.span,
                why="a barrier counts the bytes of every sender",
                fix="send one value an instance",
            )

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        (target,) = op.operands
        name, plain = root(target).id, self.name.replace(".send", "", 1) if self.combines else "cluster.store"
        fix = f"put '{name}' into a pipeline of this role, or write it by `{plain}` and meet by `cluster.sync`"
        full = handed(op, target, cx, f"what is sent to '{name}' has come", fix).full
        words = Words((*op.words.items, Word("signal", full, span=op.span)), op.words.flag, span=op.words.span)
        return (Op(self.name, op.operands, "<-", op.value, words, span=op.span),)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        (target,) = op.operands
        rank = op.words.get("at")
        done = BySignal(op.words.get("signal"), target.type.elem.bytes, cta=rank)
        return (Access(target, Mode.WRITE, completion=done, issuer=Issuer.LEADER, cta=rank, atomic=self.combines, scope="cluster" if self.combines else None),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        guard = _guard(op, cx)
        if guard is not False:
            to, value = self._operands(op, cx)
            barrier = Addr(remote(cx, cx.barrier(op.words.get("signal")), cx.value(op.words.get("at"))))
            cx.b.emit(f"{self.opcode}.{self.kinds[op.operands[0].type.elem]}", to, value, barrier, guard=None if guard is True else guard)


def _guard(op: Op, cx: LowerContext) -> Reg | bool:
    """Whether this thread is the one that writes."""
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
_BITS = dict.fromkeys((F32, I32, U32), "b32")
_SENDS = "mbarrier::complete_tx::bytes"


def _combining(name: str, what: str, kinds: dict[Elem, str]) -> tuple[Remote, Send]:
    said = f"{what} of a scalar and an element of another CTA's shared memory, in one step"
    isa = "PTX ISA, Parallel Synchronization and Communication Instructions"
    return (
        Remote(
            name=f"cluster.{name}",
            opcode=f"red.relaxed.cluster.shared::cluster.{name}",
            kinds=kinds,
            combines=True,
            doc=f"{said} ({isa}, red).",
        ),
        Send(
            name=f"cluster.send.{name}",
            opcode=f"red.async.relaxed.cluster.shared::cluster.{_SENDS}.{name}",
            kinds=_INTEGERS,
            combines=True,
            doc=f"{said}, counted by a barrier there ({isa}, red.async).",
        ),
    )


_MOVES = "PTX ISA, Data Movement and Conversion Instructions"
REMOTE = (
    Remote(
        name="cluster.store",
        opcode="st.shared::cluster",
        kinds=_BITS,
        combines=False,
        doc=f"A scalar into an element of another CTA's shared memory ({_MOVES}, mapa and st.shared::cluster).",
    ),
    Send(
        name="cluster.send",
        opcode=f"st.async.shared::cluster.{_SENDS}",
        kinds={F32: "f32", **_INTEGERS},
        combines=False,
        doc=f"A scalar into an element of another CTA's shared memory, counted by a barrier there ({_MOVES}, mapa and st.async).",
    ),
    *_combining("add", "The sum", {F32: "f32", **_INTEGERS}),
    *_combining("min", "The smaller", _INTEGERS),
    *_combining("max", "The larger", _INTEGERS),
)
