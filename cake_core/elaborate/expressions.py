"""Typing of expressions: names resolved, constants folded, every node returned with its type."""

from __future__ import annotations

from dataclasses import replace

from cake_core.diagnostics import CakeError, Related, fail
from cake_core.elaborate.calls import Calls
from cake_core.elaborate.scope import Scope, Symbol, reported, suggestion
from cake_core.elaborate.typing import counted, described, is_bool, is_float_like, is_index_tile, is_int, is_mask, level_of, literal, range_of, typed
from cake_core.ir import ranges
from cake_core.ir.build import arithmetic, integer_elem
from cake_core.ir.elementwise import PARTIAL, is_register_tile
from cake_core.ir.nodes import (
    All,
    Attr,
    Binary,
    Bool,
    Call,
    Cond,
    Expr,
    Float,
    Index,
    Int,
    Name,
    Slice,
    Tuple,
    Unary,
)
from cake_core.ir.places import root
from cake_core.ir.printer import expr_text
from cake_core.ir.types import BOOL, F32, Barriers, Product, Scalar, State, Tile, Type, Unknown, Value
from cake_core.primitive import CheckContext, Form
from cake_core.source import Span

I32_MIN, I32_MAX = -(2**31), 2**31 - 1
#: Built-in names of the derived form alone, cluster axes aside.
DERIVED_NAMES = ("leader", "warp.leader", "cluster.id", "cluster.count")


class Expressions(Calls, CheckContext):
    """Mixed into the elaborator, which supplies `scope`, `registry`, `form`, `builtins()` and cluster facts."""

    scope: Scope
    later: frozenset[str] = frozenset()  # consts that are not declared yet
    in_contract: bool = False  # an `assume`: elements of inputs are read by the host, not by a load

    # --- entry points

    def expr(self, e: Expr) -> Expr:
        """`e` with types, constants folded. Raises CakeError."""
        match e:
            case Int(value):
                if not I32_MIN <= value <= I32_MAX:
                    raise fail("type/integer-range", f"{value} does not fit in 32 bits", e.span, why="index arithmetic is i32")
                return literal(value, e)
            case Float(value):
                return typed(e, Scalar(F32))
            case Bool(value):
                return literal(value, e)
            case Name():
                return self._name(e)
            case Unary():
                return self._unary(e)
            case Binary():
                return self._binary(e)
            case Cond():
                return self._cond(e)
            case Index():
                return self._index(e)
            case Attr():
                return self._attr(e)
            case Call():
                return self._call(e)
            case Tuple():
                raise fail("type/tuple", "a tuple is no value here", e.span, fix="bind its parts one by one")
        raise TypeError(f"no expression of its own: {e!r}")  # the grammar keeps slices and options where they belong

    def integer(self, e: Expr, what: str) -> Expr:
        """`e` as a 32-bit integer scalar."""
        out = self.operand_of(e)
        if isinstance(out.type, Unknown) or is_int(out.type):
            return out
        raise fail("type/not-an-integer", f"{what} is {described(out.type)}, not an integer", e.span)

    def constant_int(self, e: Expr, what: str) -> Int:
        out = self.integer(e, what)
        if isinstance(out, Int):
            return out
        if isinstance(out.type, Unknown):
            raise reported()
        raise fail("type/not-constant", f"{what} is not a constant", e.span, why="it decides sizes or code at compile time", fix="use numbers and `const` names")

    def condition(self, e: Expr, what: str) -> Expr:
        """`e` as a condition; `what` asks for one."""
        out = self.operand_of(e)
        if isinstance(out.type, Unknown) or is_bool(out.type):
            return out
        raise fail("type/not-a-condition", f"{what} takes a condition, not {described(out.type)}", e.span, fix="compare it with something, such as `!= 0`")

    def operand_of(self, e: Expr) -> Expr:
        """`e` as an operand of arithmetic: one element of memory, such as `OFF[e + 1]`, is read (S11)."""
        out = self.expr(e)
        if isinstance(out.type, Tile) and out.type.space != "frag" and out.type.groups == ((),):
            if self.in_contract:
                if (mode := self.mode(root(out).id)) != "in":
                    raise fail("type/operand", f"an element of '{root(out).id}', which is no input", e.span, why="a contract is about what a kernel is given" + (f", and it is declared `{mode}`" if mode else ""))
                return typed(out, Scalar(out.type.elem))
            return self.called(Call(Name("load", span=e.span), (out,), span=e.span))
        return out

    # --- names

    def _name(self, e: Name) -> Expr:
        symbol = self.scope.find(e.id)  # a name that is built in is never declared
        if symbol is None and (built := self.builtins().get(e.id)) is not None:
            return built if isinstance(built, Int) else typed(e, built)
        if symbol is None and "." in e.id:
            base, _, attribute = e.id.rpartition(".")
            if (found := self.scope.find(base)) is not None and isinstance(found.type, Tile | Value):
                return self._attr(Attr(Name(base, span=e.span), attribute, span=e.span))
        if symbol is None:
            raise self._unknown(e)
        if symbol.guard is not None:
            self.check_guard(e, symbol)
        if symbol.value is not None:
            return literal(symbol.value.value, e)
        return typed(e, symbol.type)

    def _unknown(self, e: Name) -> CakeError:
        if self.form is Form.SCHEDULE and e.id in DERIVED_NAMES:
            return fail("type/form", f"'{e.id}' belongs to the derived form", e.span, why="who executes a statement of the schedule form follows from the statement")
        if e.id in self.later:
            return fail("type/unknown-name", f"const '{e.id}' is declared further on", e.span, fix="a const may use those before it: move it up")
        if ".next." in e.id and (t := self.scope.find(e.id.partition(".")[0])) is not None and t.kind == "tile schedule":
            return fail("type/unknown-name", f"'{e.id}' is not known", e.span, why="which item comes next is known inside a loop over a schedule of which a CTA takes several items")
        known = [*self.scope.visible(), *self.builtins()]
        return fail("type/unknown-name", f"unknown name '{e.id}'", e.span, fix=suggestion(e.id, known))

    # --- operators

    def _unary(self, e: Unary) -> Expr:
        operand = self.operand_of(e.operand)
        t = operand.type
        match e.op, operand:
            case ("-", Int(v)):
                return self.expr(literal(-v, e))
            case ("-", Float(v)):
                return literal(-v, e)
            case ("+", _) if is_int(t) or is_float_like(t):
                return operand
            case ("not", Bool(v)):
                return literal(not v, e)
        if isinstance(t, Unknown):
            return typed(e, t)
        out = replace(e, operand=operand)
        if e.op == "not" and is_bool(t):
            return typed(out, t)
        if e.op == "not" and is_mask(t) or e.op == "-" and is_index_tile(t):
            function = self._operator(e.op, e, t)
            return typed(out, self.result_of(function, Call(Name(e.op, span=e.span), (operand,), span=e.span)))
        if e.op == "-" and is_int(t):
            return typed(out, Scalar(t.elem, t.level, ranges.neg(t.range)))
        if e.op == "-" and is_float_like(t):
            function = self._operator("-", e, t)
            return typed(out, self.result_of(function, Call(Name("-", span=e.span), (operand,), span=e.span)))
        raise fail("type/operand", f"'{e.op}' does not apply to {described(t)}", e.span)

    def _binary(self, e: Binary) -> Expr:
        left, right = self.operand_of(e.left), self.operand_of(e.right)
        if isinstance(left.type, Unknown) or isinstance(right.type, Unknown):
            return typed(e, Unknown())
        if e.op == "@":
            return self._product(e, left, right)
        if is_mask(left.type) or is_mask(right.type):
            return self._masks(e, left, right)
        if e.op in ("and", "or"):
            return self._logic(e, left, right)
        if is_int(left.type) and is_int(right.type):
            return self._integers(e, left, right)
        if is_index_tile(left.type) or is_index_tile(right.type):
            return self._tilewise(e, left, right)
        if is_float_like(left.type) or is_float_like(right.type):
            return self._floats(e, left, right)
        raise fail("type/operand", f"'{e.op}' does not apply to {described(left.type)} and {described(right.type)}", e.span)

    def _product(self, e: Binary, left: Expr, right: Expr) -> Expr:
        for side in (left, right):
            if not isinstance(side.type, Tile) or len(side.type.groups) != 1 or len(side.type.shape) != 2:
                raise fail("type/product", f"'@' takes two-dimensional tiles, not {described(side.type)}", side.span)
        return typed(replace(e, left=left, right=right), Product(left.type, right.type))

    def _masks(self, e: Binary, left: Expr, right: Expr) -> Expr:
        """`and`, `or` and comparisons of masks; a known condition beside a mask decides, or goes."""
        for a, b in ((left, right), (right, left)):
            if e.op in ("and", "or") and isinstance(a, Bool):
                return literal(a.value, e) if a.value is (e.op == "or") else b
        return self._tilewise(e, left, right)

    def _logic(self, e: Binary, left: Expr, right: Expr) -> Expr:
        for side in (left, right):
            if not is_bool(side.type):
                raise fail("type/not-a-condition", f"'{e.op}' takes conditions, not {described(side.type)}", side.span)
        stop = e.op == "or"  # the value that decides at once
        for a, b in ((left, right), (right, left)):
            if isinstance(a, Bool):
                return literal(stop, e) if a.value is stop else b
        return typed(replace(e, left=left, right=right), Scalar(BOOL, level_of(left, right)))

    def _integers(self, e: Binary, left: Expr, right: Expr) -> Expr:
        if e.op in ("/", "%") and right.type.range.constant == 0:
            raise fail("type/division-by-zero", "division by zero", e.right.span)
        self.one_integer_type(e, left, right)
        out = arithmetic(e.op, left, right, e.span)
        return self.expr(out) if isinstance(out, Int | Bool) else out

    def one_integer_type(self, e: Expr, *args: Expr) -> None:
        """i32 and u32 do not meet; a literal is of either type."""
        kinds = {a.type.elem for a in args if not (isinstance(a, Int) and a.value >= 0)}
        if len(kinds) > 1:
            raise fail("type/mixed", "an i32 meets a u32", e.span, why="they are divided and compared differently", fix="cast one of them: `i32(..)` or `u32(..)`")

    def _floats(self, e: Binary, left: Expr, right: Expr) -> Expr:
        return self._tilewise(e, self.to_float(left), self.to_float(right))

    def _tilewise(self, e: Binary, left: Expr, right: Expr) -> Expr:
        """An operator on register tiles or float scalars: the function of its name."""
        function = self.registry.functions.get(e.op)
        if function is None:
            raise fail("type/no-operator", f"'{e.op}' is not defined on {described(left.type)} and {described(right.type)}", e.span, why="no installed plugin offers it")
        self.need_capabilities(function, e)
        call = Call(Name(e.op, span=e.span), (left, right), span=e.span)
        return typed(replace(e, left=left, right=right), self.result_of(function, call))

    def to_float(self, e: Expr) -> Expr:
        """Integer literals stand for floats where floats are meant; anything else must be cast."""
        if isinstance(e, Int):
            return literal(float(e.value), e)
        if is_int(e.type):
            raise fail("type/mixed", "an integer meets a float", e.span, fix="cast it: `f32(..)`")
        return e

    def _operator(self, op: str, e: Expr, t: Type):
        function = self.registry.functions.get(op)
        if function is None:
            raise fail("type/no-operator", f"'{op}' is not defined on {described(t)}", e.span, why="no installed plugin offers it")
        self.need_capabilities(function, e)
        return function

    def _cond(self, e: Cond) -> Expr:
        test = self.condition(e.test, "'? :'")
        with self.under(test):
            then = self.operand_of(e.then)
        with self.under(Unary("not", test, type=test.type)):
            other = self.operand_of(e.other)
        if isinstance(test, Bool):
            return then if test.value else other
        if any(isinstance(x.type, Unknown) for x in (test, then, other)):
            return typed(e, Unknown())
        level = level_of(test, then, other)
        if is_int(then.type) and is_int(other.type):
            self.one_integer_type(e, then, other)
            elem = integer_elem(then, other)
            return typed(replace(e, test=test, then=then, other=other), Scalar(elem, level, range_of(then).join(range_of(other))))
        if any(is_float_like(x.type) for x in (then, other)):
            then, other = self.to_float(then), self.to_float(other)
            if all(isinstance(x.type, Scalar) and x.type.elem == F32 for x in (then, other)):
                return typed(replace(e, test=test, then=then, other=other), Scalar(F32, level))
        raise fail("type/operand", f"'? :' takes two integers or two f32, not {described(then.type)} and {described(other.type)}", e.span)

    # --- indices

    def _index(self, e: Index) -> Expr:
        base = self.expr(e.base)
        match base.type:
            case Unknown():
                return typed(e, Unknown())
            case Barriers(kind, slots) if slots is not None:
                if len(e.indices) != 1:
                    raise fail("type/index", f"a barrier array takes one index, not {len(e.indices)}", e.span)
                return typed(replace(e, base=base, indices=(self._position(e.indices[0], slots),)), Barriers(kind, None))
            case Tile() as tile if tile.groups and tile.groups[0]:
                return self._tile_index(e, base, tile)
        raise fail("type/index", f"{described(base.type)} can't be indexed", e.span)

    def _position(self, e: Expr, extent) -> Expr:
        if isinstance(e, Slice | All):
            raise fail("type/slot-slice", "a slot is named by one index", e.span)
        out = self.integer(e, "the index")
        if isinstance(extent, int):
            self._inside(out, extent - 1, f"index {{}} is outside 0 .. {extent}", e)
        return out

    def _inside(self, index: Expr, last: int, message: str, at: Expr) -> None:
        """An index that surely lies outside 0 .. last, for one of the values that it takes, is an error; of others nothing is said."""
        if (found := self.leaves(index, last)) is not None:
            r, where = found
            known = r.constant if r.constant is not None else f"of {r.lo} or more" if r.lo is not None and r.lo > last else f"of {r.hi} or less"
            raise fail("type/out-of-range", message.format(known), at.span, why=where or None)

    def _inside_tensor(self, e: Expr, extent: int | Expr) -> Expr:
        """One index of a tensor, which is not clipped."""
        out = self._position(e, extent)
        if isinstance(extent, int) or isinstance(out.type, Unknown):
            return out
        if self.behind(out, extent):
            raise fail("type/out-of-range", f"index {expr_text(out)} is outside 0 .. {expr_text(extent)}", e.span)
        self._inside(out, I32_MAX, "index {} is outside the tensor", e)
        return out

    def _tile_index(self, e: Index, base: Expr, tile: Tile) -> Expr:
        group = tile.groups[0]
        if tile.transposed:
            raise fail("type/index", "a transposed tile can't be indexed", e.span, fix="index first, then `.T`")
        if len(e.indices) != len(group):
            raise fail("type/index", f"{counted(len(e.indices), 'index', 'indices')} for {counted(len(group), 'dimension')}", e.span, why=f"this is {described(tile)}")
        if len(tile.groups) > 1:
            indices = tuple(self._position(i, d) for i, d in zip(e.indices, group, strict=True))
            return typed(replace(e, base=base, indices=indices), replace(tile, groups=tile.groups[1:]))
        if isinstance(base, Index) and base.type is not None and _sliced(base):
            raise fail("type/index", "a slice of a slice is not supported", e.span, fix="write one index with the sum of the offsets")
        indices, sizes = [], []
        for i, d in zip(e.indices, group, strict=True):
            match i:
                case All():
                    if not isinstance(d, int):
                        raise fail("type/slice-size", "':' on a dimension that is not constant", i.span, fix="write `lo +: size` with a constant size")
                    indices.append(i)
                    sizes.append(d)
                case Slice(lo, size):
                    lo, size = self.integer(lo, "the start of a slice"), self.constant_int(size, "the size of a slice")
                    if size.value <= 0:
                        raise fail("type/slice-size", f"a slice of {size.value} elements", i.span)
                    if isinstance(d, int) and tile.space != "global":
                        if size.value > d:
                            raise fail("type/out-of-range", f"{size.value} elements of a dimension of {d}", i.span)
                        self._inside(lo, d - size.value, f"slice {{}} +: {size.value} is outside 0 .. {d}", i)
                    indices.append(replace(i, lo=lo, size=size))
                    sizes.append(size.value)
                case _:
                    indices.append(self._inside_tensor(i, d) if tile.space == "global" else self._position(i, d))
        out = replace(e, base=base, indices=tuple(indices))
        return typed(out, Tile(tile.space, tile.elem, (tuple(sizes),), axis=tile.axis if sizes else None, part=tile.part))

    def _attr(self, e: Attr) -> Expr:
        base = self.expr(e.base)
        if isinstance(base.type, Unknown):
            return typed(e, Unknown())
        if e.name == "T" and isinstance(base.type, Tile) and len(base.type.groups) == 1 and len(base.type.shape) == 2:
            return typed(replace(e, base=base), replace(base.type, transposed=not base.type.transposed))
        if is_register_tile(base.type) and isinstance(base.type.elem, State):
            return self._field(replace(e, base=base), base.type)
        raise fail("type/attribute", f"{described(base.type)} has no '.{e.name}'", e.span, why="`.T` is the transpose of a two-dimensional tile")

    def _field(self, e: Attr, t: Value | Tile) -> Expr:
        """`x.key`: the values of a state, a list for each row."""
        fields = self.reduction(t.elem.type).fields(t.elem.args)
        if e.name not in fields:
            raise fail("type/attribute", f"a '{t.elem}' has no '.{e.name}'", e.span, fix=suggestion(e.name, fields, "fields"))
        if t.part is not None:
            raise fail("type/partial", f"each lane of a row has a '{t.elem}' of its own here", e.span, why=PARTIAL, fix="take it of `merge(..)`")
        elem, size = fields[e.name]
        return typed(e, Value(elem, (*t.shape, size)))

    # --- shared checks

    def need_capabilities(self, primitive, at) -> None:
        """The target must offer what the primitive needs; nothing is ever stepped down."""
        if self.arch is None:
            return
        missing = sorted(primitive.capabilities - self.arch.capabilities)
        if missing:
            raise fail(
                "type/missing-capability",
                f"'{primitive.name}' needs '{missing[0]}', which {self.arch.name} does not offer",
                at.span,
                resource=missing[0],
                fix=f"build for an architecture that offers '{missing[0]}', or write the step another way",
            )

    def check_form(self, form: Form, what: str, at) -> None:
        if self.form not in form:
            other = "derived" if self.form is Form.SCHEDULE else "schedule"
            raise fail(
                "type/form",
                f"{what} belongs to the {other} form",
                at.span,
                why="the two forms do not mix: `cake 1 derived` in the first line says that nothing is left to derive",
            )

    def related(self, symbol: Symbol) -> tuple[Related, ...]:
        return self.at("declared here", symbol.span)

    def at(self, what: str, span: Span) -> tuple[Related, ...]:
        """A second place of a finding; none where no text wrote it."""
        return (Related(what, span),) if span.line else ()


def _sliced(e: Index) -> bool:
    return any(isinstance(i, Slice | All) for i in e.indices)
