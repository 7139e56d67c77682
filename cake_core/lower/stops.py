"""Labels in machine code: where a labelled statement begins, and which registers hold the names and fragments that are in scope there.

What the source map says of a label, for who looks into a run of the machine code; a text without labels has none. An element e of a thread's tile is in
register e // packed, `packed` being the elements of one, at its origin plus the e-th offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cake_core.facts.banks import LANES, Thread
from cake_core.frozen import frozen
from cake_core.ir.nodes import Name, Stmt
from cake_core.ir.types import State
from cake_core.lower import values
from cake_core.ptx.builder import Operand, Reg

if TYPE_CHECKING:
    from cake_core.lower.context import Context
    from cake_core.primitive import Distribution

#: Names that every context has, beside those with a dot, and no text has bound.
OWN = ("leader", "warp")


@frozen
class Label:
    """`item`: number of the body's item that the statement begins with; `what`: the row of the source map, without its line."""

    item: int
    what: dict[str, Any]


def label_of(cx: Context, s: Stmt) -> Label:
    names, tiles = [], []
    for name, bound in cx.names.items():
        match bound:
            case values.Fragment():
                for n, registers in enumerate(bound.sets):
                    slot = "".join(f"[{i}]" for i in _slot(n, bound.slots))
                    tiles.append(_tile(name + slot, bound.elem, bound.whole, registers, _part(cx, name)))
            case values.Held():
                if bound.registers:
                    tiles.append(_tile(name, bound.elem, bound.distribution, bound.registers))
            case _ if "." not in name and name not in OWN and name not in cx.inputs.loaded:
                names.append([name, _said(bound)])
    base = str(cx.base) if cx.base is not None else None
    tensors = [
        {"name": p.name, "elem": p.elem.name, "slots": list(p.slots), "shape": list(p.shape), "column": p.column, "slot_columns": p.slot_columns}
        | {"base": p.base.id if isinstance(p.base, Name) else None}
        for p in cx.plan.tensors.values()
    ]
    what = {"label": s.label, "warps": cx.warps, "base": base, "loops": list(cx.loops), "names": names, "tiles": tiles, "tensors": tensors}
    return Label(len(cx.b.body), what)


def _part(cx: Context, name: str) -> str | None:
    """How lanes have still to combine what they hold of a tile, where they have."""
    declared = cx.declared.get(name)
    word = declared.words.get("part") if declared is not None else None
    return word.id if isinstance(word, Name) else None


def _slot(n: int, slots: tuple[int, ...]) -> tuple[int, ...]:
    out: list[int] = []
    for size in reversed(slots):
        n, i = divmod(n, size)
        out.append(i)
    return tuple(reversed(out))


def _said(x: Operand) -> list | int | float:
    """A register as its name and kind, a constant as itself."""
    return [x.name, x.kind] if isinstance(x, Reg) else x if isinstance(x, int | float) else str(x)


def _tile(name: str, elem: Any, d: Distribution | None, registers: tuple[Operand, ...], part: str | None = None) -> dict[str, Any]:
    if isinstance(elem, State) or d is None:
        return {"name": name, "type": str(elem), "why": f"values of '{elem}' are not read out of registers"}
    shape = f"{elem}[{', '.join(map(str, d.shape))}]"
    try:
        origins = [_numbers(d.layout.origin(Thread(w, lane), d.words)) for w in range(d.warps) for lane in range(LANES)]
    except AttributeError:
        return {"name": name, "type": shape, "why": f"layout '{d.layout.name}' asks more than the place of a thread"}
    row = {"name": name, "type": shape, "elem": elem.name, "shape": list(d.shape), "packed": max(32 // elem.bits, 1), "part": part}
    return row | {"registers": [_said(r) for r in registers], "origins": origins, "offsets": [list(o) for o in d.offsets]}


def _numbers(origin: tuple) -> list[int]:
    return [int(x) for x in origin]
