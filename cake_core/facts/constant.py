"""Which values a text alone tells: the same wherever, and whenever, their text is the same.

Parameters are such, and elements of inputs (S11). What memory holds that somebody writes is another value each time that it is read, and
what registers hold is each role's, and each thread's, own.
"""

from __future__ import annotations

from cake_core.effects import Access, Mode
from cake_core.frozen import frozen
from cake_core.ir.build import COMPARISONS, INTEGER_CALLS
from cake_core.ir.nodes import Attr, Binary, Bool, Call, Cond, Expr, Index, Int, Kernel, Name, Option, Unary
from cake_core.ir.places import root
from cake_core.ir.ranges import ANY, Range
from cake_core.ir.types import U32, Scalar, Tile, Type, Value
from cake_core.ir.visit import calls


@frozen
class Constant:
    """For one kernel. `inputs`: its tensors that no one writes."""

    registry: object
    inputs: frozenset[str]

    @staticmethod
    def of(kernel: Kernel, registry) -> Constant:
        return Constant(registry, frozenset(p.name for p in kernel.params if p.mode == "in"))

    def known(self, e: Expr) -> bool:
        """Whether an integer or a condition depends on nothing but parameters, elements of inputs, indices and variables."""
        if isinstance(e.type, Scalar) and e.type.elem.kind == "float":
            return False
        match e:
            case Int() | Bool() | Name():
                return True
            case Unary(_, a):
                return self.known(a)
            case Binary(op, a, b) if op in ("+", "-", "*", "/", "%", "and", "or", *COMPARISONS):
                return self.known(a) and self.known(b)
            case Cond(a, b, c):
                return self.known(a) and self.known(b) and self.known(c)
            case Call() if e.name in INTEGER_CALLS:
                return all(map(self.known, e.positional))
            case Call():
                values = (a.value if isinstance(a, Option) else a for a in e.args)
                return not any(map(self.changes, calls(e))) and all(self.known(v) for v in values if isinstance(v.type, Scalar))
        return False

    def changes(self, c: Call) -> bool:
        """Whether equal texts of a call may have different values, calls inside of it left out."""
        if (function := self.registry.functions.get(c.name)) is None:
            return False
        accesses = [e for e in function.effects(c) if isinstance(e, Access)]
        read = [e.place for e in accesses if e.mode is Mode.READ and (name := root(e.place)) is not None and name.id in self.inputs]
        return len(read) < len(accesses) or any(_of_registers(x) for x in c.positional if not any(x is place for place in read))


def _of_registers(e: Expr) -> bool:
    """Whether an argument is made of what a fragment holds, or a tile that a `let` names."""
    match e:
        case Name() | Index() | Attr():
            return isinstance(e.type, Tile | Value)
        case Unary(_, a):
            return _of_registers(a)
        case Binary(_, a, b):
            return _of_registers(a) or _of_registers(b)
        case Cond(_, a, b):
            return _of_registers(a) or _of_registers(b)
    return False


def values_of(t: Type) -> Range:
    """What a value of a type may be: a u32 is never less than 0."""
    return t.range.meet(Range(0, 2**32 - 1)) if isinstance(t, Scalar) and t.elem == U32 else getattr(t, "range", ANY)
