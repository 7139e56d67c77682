"""Shared memory: swizzles that all users of a buffer can address, and offsets.

Every operation says with which swizzles it can address a buffer; the buffer gets the first that all share. Buffers are
packed by falling alignment in text order, barriers behind them.
"""

from __future__ import annotations

from dataclasses import replace

from cake_core.diagnostics import Related, Sink, fail
from cake_core.frozen import frozen
from cake_core.ir.aliases import WORD, declared_mates, shared_with
from cake_core.ir.build import lift
from cake_core.ir.nodes import Declaration, Declare, Kernel, Word, Words
from cake_core.ir.plan import BufferPlan, constants, integer
from cake_core.primitive import Demand
from cake_core.source import Span


@frozen
class Asked:
    demand: Demand
    by: str
    span: Span


def unify(asked: list[Asked], sink: Sink) -> dict[str, int]:
    """Swizzle bytes of each buffer; disagreement names both users."""
    swizzles: dict[str, int] = {}
    for buffer in dict.fromkeys(a.demand.buffer for a in asked):
        users = [a for a in asked if a.demand.buffer == buffer]
        common = [s for s in users[0].demand.swizzles if all(s in u.demand.swizzles for u in users)]
        if common:
            swizzles[buffer] = common[0]
            continue
        first, other = _at_odds(users)
        sink.error(
            "derive/swizzle",
            f"no swizzle of '{buffer}' suits both '{first.by}' and '{other.by}'",
            other.span,
            resource=buffer,
            why=f"'{first.by}' can address {_list(first.demand.swizzles)}, '{other.by}' {_list(other.demand.swizzles)} (bytes; 0 is none)",
            related=(Related(f"'{first.by}' is here", first.span),),
            fix="split the buffer, or move it in other pieces",
        )
    return swizzles


def _at_odds(users: list[Asked]) -> tuple[Asked, Asked]:
    """Two users that no swizzle suits; where only all together are at odds, the narrowest and the one behind it."""
    for n, a in enumerate(users):
        for b in users[n + 1 :]:
            if not set(a.demand.swizzles) & set(b.demand.swizzles):
                return a, b
    narrow = sorted(users, key=lambda u: len(u.demand.swizzles))
    return narrow[0], narrow[-1]


def _list(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values)) or "with no swizzle"


def plan(kernel: Kernel, barriers: tuple[Declare, ...], asked: list[Asked], swizzles: dict[str, int]) -> tuple[Declare, ...]:
    """Declarations of all buffers and barriers with `at` and `swizzle` filled in."""
    buffers = [d for s in kernel.body if isinstance(s, Declare) and s.space == "shared" for d in s.declarations]
    demanded = {d.name: max([1, *(a.demand.align for a in asked if a.demand.buffer == d.name)]) for d in buffers}
    shared = declared_mates(kernel.body)
    align = {name: max(16, n, *(demanded[m] for m in shared.get(name, ()))) for name, n in demanded.items()}
    offset = 0
    placed: dict[str, Declaration] = {}
    for d in sorted(buffers, key=lambda d: (shared_with(d) is not None, -align[d.name])):  # in the bytes of others when those have their place
        home, swizzle = shared_with(d), swizzles.get(d.name, 0)
        if home is None:
            offset = -(-offset // align[d.name]) * align[d.name]
        at = offset if home is None else integer(placed[home].words, "at")
        kept = tuple(w for w in d.words.items if w.name == WORD)
        words = Words((Word("at", lift(at)), *((Word("swizzle", lift(swizzle)),) if swizzle else ()), *kept))
        placed[d.name] = replace(d, words=words)
        size = BufferPlan.of(placed[d.name])
        if size.slots and size.slot_bytes % demanded[d.name]:
            raise fail("derive/slot-alignment", f"a slot of '{d.name}' is {size.slot_bytes} bytes, which is no multiple of {demanded[d.name]}", d.span, resource=d.name, why="every slot must start at the alignment that its users need")
        offset += size.bytes if home is None else 0
    out = [replace(s, declarations=tuple(placed[d.name] for d in s.declarations)) for s in kernel.body if isinstance(s, Declare) and s.space == "shared"]
    offset = -(-offset // 8) * 8
    for s in barriers:
        done = []
        for d in s.declarations:
            done.append(replace(d, words=replace(d.words, items=(*d.words.items, Word("at", lift(offset))))))
            offset += 8 * (constants(d.declared.groups[0])[0] if d.declared.groups else 1)
        out.append(replace(s, declarations=tuple(done)))
    return tuple(out)
