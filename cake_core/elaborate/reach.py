"""Which values an index surely takes: what an interval of its type leaves open.

All instances of a role run, all warps of an instance, all CTAs of a cluster, and a loop with constant bounds runs for each of its
numbers. So `a[64 * math.i +: 64, :]` is executed once for every `math.i`, and if one of them leaves the dimension the text is in
error, unless a guard keeps that one away. Guards are decided with the same values; one that can't be decided is taken to let
all of them pass if nothing that it asks for hangs on them, and to let none of them pass otherwise: what is told is sure.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from itertools import product
from math import prod

from cake_core.elaborate.scope import Scope
from cake_core.elaborate.typing import range_of
from cake_core.ir import ranges
from cake_core.ir.build import COMPARISONS, INTEGER_CALLS, INTEGER_RANGES
from cake_core.ir.flow import Linear
from cake_core.ir.nodes import Binary, Bool, Call, Cond, Expr, Index, Int, Name, Unary
from cake_core.ir.places import names
from cake_core.ir.types import U32, Scalar, Unknown
from cake_core.ir.visit import size

#: Combinations of values that are tried for one index.
MOST = 4096
#: Nodes of an expression that is followed through the `let`s in it; a longer one says nothing.
LONGEST = 100
#: What one thread of each instance, or of each warp, is: under it all values that matter are still taken.
LEADERS = ("leader", "warp.leader")
#: A condition that nothing is known of.
OPEN = "?"

Values = dict[str, int]


class Reach:
    """Mixed into the elaborator."""

    scope: Scope
    reached: tuple[Expr, ...] = ()  # conditions under which the statement at hand is executed, `let`s written out
    taken: dict[str, range]  # a loop's variable, by a name of its own: the numbers that it takes
    free: set[str]  # names of the same kind, of what hangs on nothing that is in `taken`

    @contextmanager
    def under(self, *conditions: Expr) -> Iterator[None]:
        """Inside a block, or an arm of `? :`, that runs where typed conditions hold."""
        before = self.reached
        self.reached = (*before, *(self.written_out(c) or Name(OPEN, type=c.type) for c in conditions))
        try:
            yield
        finally:
            self.reached = before

    def written_out(self, e: Expr) -> Expr | None:
        """A typed expression, names of `let`s replaced by their values and loop variables told apart; None: too long."""
        out = self._written_out(e)
        return out if size(out, LONGEST) < LONGEST else None

    def _written_out(self, e):
        if isinstance(e, Name):
            symbol = self.scope.find(e.id)
            return symbol.formula if symbol is not None and symbol.formula is not None else e
        if isinstance(e, tuple):
            return tuple(map(self._written_out, e))
        if not isinstance(e, Expr):
            return e
        changes = {f.name: self._written_out(old) for f in fields(e) if isinstance(old := getattr(e, f.name), Expr | tuple)}
        return replace(e, **changes) if changes else e

    def counted_through(self, name: str, type_: Scalar, values: range | None, *bounds: Expr) -> Expr:
        """What a loop's variable is written out to. `values`: the numbers that it takes, if they are constant; else `bounds` says
        on what they hang."""
        own = f"{name}#{len(self.taken) + len(self.free)}"
        if values is not None:
            self.taken[own] = values
        elif all(self._is_free(n) for b in bounds for n in _hangs_on(self.written_out(b) or Name(OPEN))):
            self.free.add(own)
        return Name(own, type=type_)

    def _is_free(self, n: Name) -> bool:
        symbol = self.scope.find(n.id)
        return n.id in self.free or n.id in LEADERS or symbol is not None and symbol.kind == "parameter"

    def _values_of(self, n: Name) -> range | None:
        """All numbers that a name takes."""
        if n.id in self.taken:
            return self.taken[n.id]
        if n.id in ("pair.i", f"cluster.{self.cluster_axis}") and self.on is not None:
            return range(self.on, self.on + 1) if self.cluster_size == 2 else None
        if self.role is not None and n.id in ("warp", f"{self.role.name}.i", "pair.i", f"cluster.{self.cluster_axis}"):
            r = range_of(n)
            return range(r.lo, r.hi + 1) if r.lo is not None and r.hi is not None else None
        return None

    # --- questions

    def leaves(self, index: Expr, last: int) -> tuple[ranges.Range, str] | None:
        """An index outside 0 .. last that is surely asked for, and where: None if none is known."""
        r = range_of(index)
        if r.hi is not None and r.hi < 0 or r.lo is not None and r.lo > last:
            return None if any(holds(c, {}) is False for c in self.reached) else (r, "")  # a guard of constants may leave it out
        if r.lo is not None and r.lo >= 0 and r.hi is not None and r.hi <= last:
            return None
        followed = self.written_out(index)
        if followed is None:
            return None
        asked = {n.id: v for e in (followed, *self.reached) for n in names(e) if (v := self._values_of(n)) is not None}
        if not any(n.id in asked for n in names(followed)) or prod(map(len, asked.values())) > MOST:
            return None
        for chosen in product(*asked.values()):
            values = dict(zip(asked, chosen, strict=True))
            at = value(followed, values)
            if (at.hi is not None and at.hi < 0 or at.lo is not None and at.lo > last) and self._executed(values):
                where = " and ".join(f"`{n.partition('#')[0]}` is {v}" for n, v in values.items() if n in {x.id for x in names(followed)})
                return at, f"where {where}"
        return None

    def _executed(self, values: Values) -> bool:
        """Whether the statement at hand is surely executed with these values, as far as they decide it."""
        for condition in self.reached:
            found = holds(condition, values)
            if found is False or found is None and not all(n.id not in values and self._is_free(n) for n in _hangs_on(condition)):
                return False
        return True

    def behind(self, index: Expr, extent: Expr) -> bool:
        """Whether a typed index is surely at or behind the end of a dimension that is no constant: `C` of `[C]`."""
        followed = self.written_out(index)
        if followed is None:
            return False
        a, b = Linear.of(followed), Linear.of(extent)
        return a.base is not None and a.base == b.base and a.offset >= b.offset


def _hangs_on(e: Expr) -> Iterator[Name]:
    """The names that a typed expression is computed from; what memory holds is open."""
    if isinstance(e, Call) and e.name in INTEGER_CALLS:
        for a in e.args:
            yield from _hangs_on(a)
    elif isinstance(e, Call | Index):
        yield Name(OPEN)
    elif isinstance(e, Name):
        yield e
    else:
        for f in fields(e):
            if isinstance(inner := getattr(e, f.name), Expr):
                yield from _hangs_on(inner)


def value(e: Expr, values: Values) -> ranges.Range:
    """The range of a typed integer where some names have one value."""
    if isinstance(e.type, Scalar) and e.type.elem == U32:
        return e.type.range  # wraps round
    match e:
        case Int(v):
            return ranges.constant(v)
        case Name(n) if n in values:
            return ranges.constant(values[n])
        case Unary("-", a):
            return ranges.neg(value(a, values))
        case Binary(op, a, b) if op in ranges.BINARY:
            return ranges.BINARY[op](value(a, values), value(b, values))
        case Call() if e.name in INTEGER_CALLS:
            return INTEGER_RANGES[e.name](*(value(a, values) for a in e.args))
        case Cond(test, then, other):
            found = holds(test, values)
            if found is None:
                return value(then, values).join(value(other, values))
            return value(then if found else other, values)
    return range_of(e)


def holds(e: Expr, values: Values) -> bool | None:
    """Whether a typed condition holds there; None: can't tell."""
    match e:
        case Bool(v):
            return v
        case Name("leader"):
            return False if values.get("warp", 0) else None
        case Unary("not", a):
            found = holds(a, values)
            return None if found is None else not found
        case Binary("and" | "or" as op, a, b):
            both, stop = (holds(a, values), holds(b, values)), op == "or"
            return stop if stop in both else None if None in both else not stop
        case Binary(op, a, b) if op in COMPARISONS and not isinstance(a.type, Unknown) and not isinstance(b.type, Unknown):
            return _compared(op, value(a, values), value(b, values))
    return None


def _compared(op: str, a: ranges.Range, b: ranges.Range) -> bool | None:
    if op in (">", ">="):
        return _compared({">": "<", ">=": "<="}[op], b, a)
    if op in ("==", "!="):
        equal = True if a.constant is not None and a.constant == b.constant else False if a.meet(b).empty else None
        return equal if op == "==" or equal is None else not equal
    gap = 0 if op == "<=" else 1  # a + gap <= b
    if a.hi is not None and b.lo is not None and a.hi + gap <= b.lo:
        return True
    if a.lo is not None and b.hi is not None and a.lo + gap > b.hi:
        return False
    return None
