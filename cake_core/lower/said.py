"""What a statement says stands in what it became: numbers that the proof speaks of are found again in the machine code.

Checks and the proof speak of the derived text. Lowering decides nothing, but it is written by hand, a primitive at a time. So each number that a
statement's effects declare (arrivals, bytes, masks, threads, groups, columns) must be an operand of its instructions, what orders must have become
some instruction, and a tensor map must swizzle as the buffer does that it is used for. What is computed in registers, such as
parities and addresses, is not looked at here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cake_core.diagnostics import CakeError, fail
from cake_core.effects import (
    Access,
    BarrierArrive,
    BarrierInit,
    BarrierWait,
    BySignal,
    CommitGroup,
    Effect,
    EngineCommit,
    Fence,
    Free,
    Mode,
    Rendezvous,
    Reserve,
    WaitGroup,
)
from cake_core.ir.nodes import Int, Op
from cake_core.ir.places import root
from cake_core.primitive.asking import effects_of, owner
from cake_core.ptx.builder import Instruction, Reg, operand_text

if TYPE_CHECKING:
    from cake_core.lower.context import Context

#: What can't have become nothing.
ORDERS = BarrierInit | BarrierWait | BarrierArrive | EngineCommit | CommitGroup | WaitGroup | Rendezvous | Fence | Reserve | Free


def check(cx: Context, s: Op, emitted: list) -> None:
    """`emitted`: what the statement has become. Raises CakeError with `derive/not-as-said`."""
    instructions = [x for x in emitted if isinstance(x, Instruction)]
    effects = effects_of(s, cx.registry)
    if not instructions and any(isinstance(e, ORDERS) for e in effects):
        raise _wrong(cx, s, "it orders others, and has become no instruction")
    operands = [x for i in instructions for x in i.operands]
    there = {x for i in instructions if _takes(i) for x in i.operands if isinstance(x, int)}
    for number, what in _numbers(cx, effects):
        if number not in there and (number or there):  # an instruction that waits for all may not name how many are left
            raise _wrong(cx, s, f"it says {number} {what}, and none of its instructions does")
    texts = [operand_text(x) for x in operands]
    touched = [root(e.place) for e in effects if isinstance(e, Access)]
    swizzles = {cx.plan.buffers[b.id].swizzle for b in touched if b is not None and b.id in cx.plan.buffers}
    for (tensor, _, swizzle), register in cx.inputs.maps.items():
        if swizzles and swizzle not in swizzles and any(f"[{register}," in t for t in texts):
            raise _wrong(cx, s, f"its map of '{tensor}' swizzles by {swizzle} bytes, its buffer lies swizzled by {' or '.join(map(str, swizzles))}")


def _takes(i: Instruction) -> bool:
    """Whether an instruction is told its numbers, and doesn't compute with them: it has no result, or moves one number."""
    return not i.operands or not isinstance(i.operands[0], Reg) or len(i.operands) == 2


def _numbers(cx: Context, effects: tuple[Effect, ...]) -> Iterator[tuple[int, str]]:
    for e in effects:
        match e:
            case BarrierInit(barrier, count):
                yield (cx.plan.barriers[root(barrier).id].count if count is None else count), "arrivals a phase"
            case BarrierArrive(expect_bytes=expected) if expected:
                yield expected, "bytes"
            case EngineCommit(mask=mask) | Access(mode=Mode.WRITE, completion=BySignal(mask=mask)) if mask is not None:
                yield mask, "as the mask of the CTAs"
            case WaitGroup(_, pending):
                yield pending, "groups in flight"
            case Rendezvous(threads=threads, id=id) if id is not None and threads is not None:
                yield threads, "threads"
                if isinstance(id, Int):
                    yield id.value, "as the number of the barrier"
            case Reserve(amount) | Free(amount):
                yield amount, "columns"


def _wrong(cx: Context, s: Op, why: str) -> CakeError:
    operation = owner(cx.registry.operations[s.name])
    fix = "this is a fault of the compiler or of the plugin, not of the text: report it"
    return fail("derive/not-as-said", f"{operation} has written other machine code than the statement says", s.span, why=why, fix=fix)
