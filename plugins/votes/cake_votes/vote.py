"""`vote.any(c)`, `vote.all(c)`, `vote.ballot(c)`: what the lanes of a warp say of a condition."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.effects import OF_WARP, Effect
from cake_core.frozen import frozen
from cake_core.ir.nodes import Call, Expr
from cake_core.ir.types import BOOL, U32, Elem, Level, Scalar, Type, Value
from cake_core.primitive import CheckContext, Function, LowerContext, SimulateContext
from cake_core.ptx.builder import Operand, Reg

ALL_LANES = -1


@frozen(kw_only=True)
class Vote(Function):
    """Of a condition, or of a mask: each lane first combines its own elements by `fold`, then the warp votes.

    All lanes of the warp must be there: it stands where the whole warp is (vote.sync with a full mask).
    """

    opcode: str
    fold: str | None  # how the elements of a mask that a lane holds become one; None: no mask is taken
    arguments: str = "own"
    capabilities: frozenset[str] = frozenset({"shuffle"})

    def result(self, call: Call, cx: CheckContext) -> Type:
        if len(call.args) != 1 or len(call.positional) != 1:
            raise fail("type/arguments", f"'{self.name}' takes 1 condition, not {len(call.args)} arguments", call.span)
        (a,) = call.positional
        match a.type:
            case Scalar(elem) if elem == BOOL:
                return Scalar(self.gives, Level.WARP)
            case Value(elem) if elem == BOOL and self.fold is not None:
                return Scalar(self.gives, Level.WARP)
            case Value(elem) if elem == BOOL:
                raise fail("type/operand", f"'{self.name}' takes one condition a lane, not a mask", a.span, fix="vote on one element's condition")
        raise fail("type/not-a-condition", f"'{self.name}' takes a condition, not a {a.type}", a.span, fix="compare it with something")

    def effects(self, call: Call) -> tuple[Effect, ...]:
        return (OF_WARP,)

    @property
    def gives(self) -> Elem:
        return U32 if self.opcode.endswith("b32") else BOOL

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        import numpy as np

        held = cx.lanes(call.positional[0]).astype(np.bool_)
        if self.name == "vote.ballot":
            found = (held[:, :, 0].astype(np.int64) << np.arange(32)).sum(axis=1, keepdims=True)
        else:
            found = (np.any if self.fold == "or" else np.all)(held.reshape(cx.warps, -1), axis=1, keepdims=True)
        return found if cx.warps > 1 else found[0, 0].item()

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        (a,) = call.positional
        out = cx.b.reg("b32" if self.gives == U32 else "pred")
        cx.b.emit(self.opcode, out, self._own(a, cx), ALL_LANES)
        return (out,)

    def _own(self, a: Expr, cx: LowerContext) -> Reg:
        """This lane's condition as a predicate register: a vote takes no immediate."""
        if isinstance(a.type, Scalar):
            result = cx.predicate(a)
        else:
            (mask,) = cx.elements(a)
            result = mask.at(0)
            for n in range(1, mask.count):
                result = _folded(cx, self.fold, result, mask.at(n))
        return result if isinstance(result, Reg) else cx.b.op("setp.ne.s32", cx.b.mov(int(result)), 0)


def _folded(cx: LowerContext, fold: str, p: Reg | bool, q: Reg | bool) -> Reg | bool:
    for known, other in ((p, q), (q, p)):
        if isinstance(known, bool):
            return known if known is (fold == "or") else other
    return cx.b.op(f"{fold}.pred", p, q)


_ISA = "PTX ISA, Parallel Synchronization and Communication Instructions, vote.sync"
VOTES = (
    Vote(
        name="vote.any",
        opcode="vote.sync.any.pred",
        fold="or",
        doc=f"Whether any lane's condition holds, or any element of a mask ({_ISA}).",
    ),
    Vote(
        name="vote.all",
        opcode="vote.sync.all.pred",
        fold="and",
        doc=f"Whether every lane's condition holds, or every element of a mask ({_ISA}).",
    ),
    Vote(
        name="vote.ballot",
        opcode="vote.sync.ballot.b32",
        fold=None,
        doc=f"A u32 whose bit i is the condition of lane i ({_ISA}).",
    ),
)
