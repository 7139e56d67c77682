"""Words on how long the caches keep what an access of global memory touches (PTX ISA, Cache Eviction Priority Hints; createpolicy).

They change no result. `l1 no_allocate` is for what is read or written once; `l2 evict_first` lets it leave before the rest, `l2 evict_last` keeps it.
"""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.ir.nodes import Expr, Name
from cake_core.primitive import LowerContext, WordSpec
from cake_core.ptx.builder import Operand

LEVELS = {"l1": ("no_allocate", "evict_first", "evict_last"), "l2": ("evict_first", "evict_last")}
WORDS = tuple(WordSpec(level, "name", help=f"in the {level.upper()} cache: {', '.join(words)}") for level, words in LEVELS.items())


def check(given: dict[str, Expr | None], space: str) -> None:
    """Raises CakeError."""
    for level, words in LEVELS.items():
        e = given.get(level)
        if e is None:
            continue
        if space != "global":
            raise fail("type/option", f"'{level}' on a tile in {space} memory", e.span, why="only global memory is cached", fix="leave it out")
        if not isinstance(e, Name) or e.id not in words:
            raise fail("type/word", f"'{getattr(e, 'id', '?')}' is no word of '{level}'", e.span, fix=f"write one of {', '.join(words)}")


def qualified(cx: LowerContext, given: dict[str, Expr | None]) -> tuple[str, tuple[Operand, ...]]:
    """(what stands behind the state space in the opcode, the operand that follows)."""
    l1, l2 = given.get("l1"), given.get("l2")
    suffix = f".L1::{l1.id}" if l1 is not None else ""
    if l2 is None:
        return suffix, ()
    policy = cx.b.reg("b64")
    cx.b.emit(f"createpolicy.fractional.L2::{l2.id}.b64", policy, 1.0)
    return f"{suffix}.L2::cache_hint", (policy,)
