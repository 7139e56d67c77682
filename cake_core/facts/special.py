"""Where floats may be infinite, or a number that stands in for minus infinity, and what is made of them: a flow through each role.

Elements of tensors are taken for ordinary numbers. Special is what the text itself writes: `-inf` where a mask says so, as a start, or for what lies past
a tensor's end, unless a tile surely has an element of the tensor: then its largest one is none of those. Loops are followed until nothing is added; of what lies in shared memory each
read may be any store. A comparison of a NaN is false, so what is only compared harms nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from math import isinf

from cake_core import effects as declared
from cake_core.frozen import frozen, thawed
from cake_core.ir import nodes as ir
from cake_core.ir import ranges
from cake_core.ir.build import lift
from cake_core.ir.nodes import Assign, Binary, Call, Cond, Expr, Float, For, If, Int, Kernel, Let, Name, Op, Option, Role, Stmt, Unary, Var
from cake_core.ir.places import place_of, root
from cake_core.ir.tiles import range_of
from cake_core.ir.types import BOOL, Scalar, Tile
from cake_core.primitive.asking import effects_of
from cake_core.primitive.special import ORDINARY, STANDS_IN, WRONG, Special, Specials

#: Of a value too: it counts columns.
COLUMNS = "columns"

State = dict[str, frozenset]


@frozen
class Made:
    """A call of `function` one of whose operands may be special. `nan`, `unmasks`: it may make a NaN of what is none; take a stand-in
    for minus infinity from itself, which leaves 0."""

    function: str
    nan: bool
    unmasks: bool


@frozen
class Cut:
    """Of a value: nothing, 0 or minus infinity, in the columns from `bound` on."""

    bound: Expr


@frozen
class Masked:
    """A product whose left factor is cut at `bound`, over the dimension `along` of the right one, a part of `buffer`."""

    bound: Expr
    buffer: str
    along: int


def specials(kernel: Kernel, registry, buffers: Mapping[str, tuple[int, ...]]) -> dict[int, tuple[Made | Masked, ...]]:
    """What statements make of special values, by the identity of the statement."""
    if not _writes(kernel.body, registry):
        return {}
    flow = _Flow(registry, {n: t for n, t in buffers.items() if len(t) > 1})
    while True:
        before = dict(flow.memory)
        flow.found.clear()
        state: State = {}
        for s in kernel.body:
            if isinstance(s, Role):
                flow.block(s.body, dict(state))
            else:
                flow.statement(s, state)
        if flow.memory == before:
            return {n: tuple(dict.fromkeys(made.values())) for n, made in flow.found.items()}


def _writes(x, registry) -> bool:
    """Whether a special value, or a function that chooses, is written anywhere."""
    match x:
        case Float(v):
            return isinf(v) or v <= STANDS_IN
        case Call() if (function := registry.functions.get(x.name)) is not None and function.arms(x) is not None:
            return True
        case tuple():
            return any(_writes(y, registry) for y in x)
        case ir.Node():
            return any(_writes(getattr(x, f.name), registry) for f in fields(x) if f.name not in ("span", "type"))
    return False


@thawed
class _Flow:
    registry: object
    buffers: Mapping[str, tuple[int, ...]]  # shapes of those in shared memory
    turns: dict[str, Expr] = field(default_factory=dict)  # of loops from 0 on around: where they end
    memory: State = field(default_factory=dict)  # of buffers: what any store leaves there
    found: dict[int, dict[int, Made | Masked]] = field(
        default_factory=dict
    )  # by statement and expression: what the last turn of a loop says holds of all
    at: Stmt | None = None

    # --- statements ------------------------------------------------------------------------------------------------

    def block(self, block: ir.Block, state: State) -> None:
        for s in block:
            self.statement(s, state)

    def statement(self, s: Stmt, state: State) -> None:
        match s:
            case For() | ir.While():
                if isinstance(s, For) and s.hi is not None and s.lo == Int(0):
                    self.turns[s.pattern[0]] = s.hi
                while True:
                    inside = dict(state)
                    self.block(s.body, inside)
                    if not _joined(state, inside):
                        return
            case If():
                arms = []
                for block, holds in ((s.then, True), (s.other or (), False)):
                    arms.append(_where(s.test, holds, dict(state)))
                    self.block(block, arms[-1])
                state.clear()
                for a in arms:
                    _joined(state, a)
            case Let(bindings) | Var(bindings):
                self.at = s
                for b in bindings:
                    state[b.name] = self.value(b.value, state)
            case Assign(target, value):
                self.at = s
                for t in target.items if isinstance(target, ir.Tuple) else (target,):
                    self.written(root(t).id, self.value(value, state), state, isinstance(t, Name))
            case Op():
                self.at = s
                self.operation(s, state)

    def operation(self, s: Op, state: State) -> None:
        given = self.value(s.value, state) if s.value is not None else ORDINARY
        for e in effects_of(s, self.registry):
            if isinstance(e, declared.Access) and e.mode is declared.Mode.WRITE:
                # what CTAs tell each other is of parts of one row, one of which has an element
                told = given - {Special.MINUS_INFINITY, Special.LOWEST} if e.cta is not None else given
                self.written(root(e.place).id, told, state, s.arrow == "=" and isinstance(e.place, Name))

    def written(self, name: str, value: Specials, state: State, whole: bool) -> None:
        if name in state or whole:
            state[name] = value if whole else state[name] | value
        else:
            self.memory[name] = self.memory.get(name, ORDINARY) | value

    # --- expressions -----------------------------------------------------------------------------------------------

    def value(self, e: Expr, state: State, compared: bool = False) -> Specials:
        match e:
            case Float(v):
                if isinf(v):
                    return frozenset({Special.INFINITY if v > 0 else Special.MINUS_INFINITY})
                return frozenset({Special.LOWEST}) if v <= STANDS_IN else ORDINARY
            case Name(id):
                return state.get(id, self.memory.get(id, ORDINARY))
            case ir.Index():
                return self.value(root(e), state)
            case Cond(test, a, b):
                self.value(test, state, True)
                return self.value(a, _where(test, True, state), compared) | self.value(b, _where(test, False, state), compared)
            case Unary(op, a):
                return self.applied(op, e, (a,), state, compared)
            case Binary(op, a, b):
                return self.applied(op, e, (a, b), state, compared)
            case Call():
                return self.called(e, state, compared)
        return ORDINARY

    def called(self, e: Call, state: State, compared: bool) -> Specials:
        function = self.registry.functions.get(e.name)
        if function is None or not function.reads:
            return frozenset({COLUMNS}) if getattr(function, "axis", None) == "col" else ORDINARY
        if (arms := function.arms(e)) is not None:
            test, a, b = arms
            cuts = self.cuts(test, state) if b in (Float(0.0), Int(0)) or self.value(b, state) == {Special.MINUS_INFINITY} else ()
            return self.value(Cond(test, a, b), state, compared).union(cuts)
        if (filling := function.filling(e)) is not None and not self.has_one(filling[0]):
            return self.value(filling[1], state)
        return self.applied(e.name, e, e.positional[function.symbols :], state, compared)

    def applied(self, name: str, e: Expr, operands: tuple[Expr, ...], state: State, compared: bool) -> Specials:
        quiet = compared or getattr(e.type, "elem", None) == BOOL
        args = tuple(self.value(a.value if isinstance(a, Option) else a, state, quiet) for a in operands)
        if name == "@":
            self.multiplied(e, args[0], operands[1])
        function = self.registry.functions.get(name)
        if not any(args) or function is None:
            return ORDINARY
        call = e if isinstance(e, Call) else Call(Name(name), operands, span=e.span, type=e.type)
        out = function.special(call, args)
        wrong = out & WRONG
        if not quiet and any(isinstance(x, Special) for x in ORDINARY.union(*args)):
            self.found.setdefault(id(self.at), {})[id(e)] = Made(name, Special.NAN in wrong, Special.UNMASKED in wrong)
        return ORDINARY if wrong else out  # said once, where it is made

    def has_one(self, tile: Expr) -> bool:
        """Whether a tile surely begins in front of the ends of its tensor."""
        name = root(tile)
        if name is None or not isinstance(name.type, Tile) or name.type.space != "global":
            return True
        parts = place_of(tile, name.type).parts
        return all(p.size is None or self.in_front(p.lo, p.size, extent) for p, extent in zip(parts, name.type.shape, strict=True))

    def in_front(self, lo: Expr, size: Expr | int, extent: Expr) -> bool:
        between = ranges.sub(range_of(lift(extent)), range_of(lo))
        if between.lo is not None and between.lo > 0:
            return True
        match lo:  # of the tiles that cover the extent
            case Binary("*", Name(turn), by) | Binary("*", by, Name(turn)) if by == lift(size):
                return self.turns.get(turn) == Call(Name("ceildiv"), (lift(extent), by))
        return False

    def cuts(self, test: Expr, state: State) -> set[Cut]:
        """Where a condition surely does not hold: in the columns from a bound on."""
        match test:
            case Binary("and", a, b):
                return self.cuts(a, state) | self.cuts(b, state)
            case Binary("<", a, bound) | Binary(">", bound, a) if isinstance(bound.type, Scalar) and COLUMNS in self.value(a, state, True):
                return {Cut(bound)}
        return set()

    def multiplied(self, e: Expr, left: frozenset, right: Expr) -> None:
        name = root(right)
        if name is None or name.id not in self.buffers:
            return
        shape = self.buffers[name.id]
        along = len(shape) - (1 if isinstance(right, ir.Attr) else 2)
        for cut in (c for c in left if isinstance(c, Cut)):
            self.found.setdefault(id(self.at), {})[id(e), cut] = Masked(cut.bound, name.id, along)


def _joined(state: State, other: State) -> bool:
    """Add what another way brings; whether that is more."""
    more = False
    for name, value in other.items():
        if not value <= state.get(name, ORDINARY) or name not in state:
            state[name] = state.get(name, ORDINARY) | value
            more = True
    return more


def _where(test: Expr, holds: bool, state: State) -> State:
    """What is so where a condition holds, or does not: a name that is compared with an infinity, or found above a number, is none."""
    match test:
        case Unary("not", a):
            return _where(a, not holds, state)
        case Binary("and", a, b) if holds:
            return _where(b, True, _where(a, True, state))
        case Binary("or", a, b) if not holds:
            return _where(b, False, _where(a, False, state))
        case Binary(op, Name(id), limit) if id in state and (at := _literal(limit)) is not None:
            if isinf(at) and (op, holds) in (("==", False), ("!=", True)):
                return {**state, id: state[id] - {Special.INFINITY if at > 0 else Special.MINUS_INFINITY}}
            if (op, holds) == (">", True) or (op, holds) == (">=", True) and not isinf(at):
                below = {Special.MINUS_INFINITY} | ({Special.LOWEST} if at > STANDS_IN else set())
                return {**state, id: state[id] - below}
    return state


def _literal(e: Expr) -> float | None:
    match e:
        case Float(v) | Int(v):
            return float(v)
        case Unary("-", a) if (v := _literal(a)) is not None:
            return -v
    return None
