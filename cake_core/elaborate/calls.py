"""Typing of calls: the integer functions of the core, and those that plugins offer."""

from __future__ import annotations

from dataclasses import replace

from cake_core.diagnostics import fail
from cake_core.elaborate.scope import suggestion
from cake_core.elaborate.typing import is_float, is_int, is_register_tile, level_of, literal, typed
from cake_core.ir import ranges
from cake_core.ir.nodes import Bool, Call, Expr, Float, Int, Name, Option, Tuple
from cake_core.ir.types import I32, Named, Scalar, Unknown, Value, Values

#: Functions of the core on integers, and how many arguments each takes.
INTEGER_CALLS = {"ceildiv": 2, "min": 2, "max": 2, "clamp": 3}


class Calls:
    """Mixed into the elaborator."""

    def _call(self, e: Call) -> Expr:
        function = self.registry.functions.get(e.name)
        symbols = function.symbols if function is not None else 0
        args = tuple(self._argument(a, n < symbols) for n, a in enumerate(e.args))
        if function is not None and function.arguments == "elementwise" and any(is_float(a) for a in args):
            args = tuple(literal(float(a.value), a) if isinstance(a, Int) else a for a in args)
        if e.name in INTEGER_CALLS or function is not None and function.arguments == "elementwise" and e.name != "load":
            args = tuple(a if isinstance(a, Option) else self.operand_of(a) for a in args)
        out = replace(e, args=args)
        if any(isinstance((a.value if isinstance(a, Option) else a).type, Unknown) for a in args):
            return typed(out, Unknown())
        if e.name in INTEGER_CALLS and all(is_int(a.type) for a in out.positional):
            return self._integer_call(out)
        if function is None:
            known = [n for n in (*self.registry.functions, *INTEGER_CALLS) if n.isidentifier()]
            raise fail("type/unknown-function", f"unknown function '{e.name or '?'}'", e.span, fix=suggestion(e.name, known, "functions"))
        self.need_capabilities(function, e)
        self._options(out, function)
        return typed(out, function.result(out, self))

    def _argument(self, a: Expr, symbol: bool) -> Expr:
        match a:
            case Option():
                return replace(a, value=self.expr(a.value))
            case Name() if symbol:
                return typed(a, Named("symbol", a.id))
            case _ if symbol:
                raise fail("type/symbol", "this argument is a bare name, such as `sum`", a.span)
            case Tuple(items):
                typed_items = tuple(map(self.operand_of, items))
                if any(isinstance(i.type, Unknown) for i in typed_items):
                    return typed(replace(a, items=typed_items), Unknown())
                values = tuple(Value(i.type.elem, tuple(i.type.shape), i.type.axis, i.type.part) if is_register_tile(i.type) else i.type for i in typed_items)
                return typed(replace(a, items=typed_items), Values(values))
        return self.expr(a)

    def _options(self, call: Call, function) -> None:
        specs = {o.name: o for o in function.options}
        seen = set()
        for a in call.args:
            if not isinstance(a, Option):
                continue
            spec = specs.get(a.name)
            if spec is None or a.is_dim:
                raise fail("type/unknown-option", f"'{call.name}' has no option '{a.name}'", a.span, fix=suggestion(a.name, specs, "options"))
            if a.name in seen:
                raise fail("type/repeated", f"option '{a.name}' stands twice", a.span)
            seen.add(a.name)
            self.check_form(spec.form, f"option '{a.name}'", a)
            if spec.kind == "constant" and not isinstance(a.value, Int | Float | Bool):
                raise fail("type/not-constant", f"option '{a.name}' is not a constant", a.span)
        for spec in function.options:
            if spec.required and spec.name not in seen and self.form in spec.form:
                raise fail("type/missing-option", f"'{call.name}' needs the option '{spec.name}'", call.span, why=spec.help or None)

    def _integer_call(self, e: Call) -> Expr:
        args = e.positional
        wanted = INTEGER_CALLS[e.name]
        if len(args) != wanted or len(e.args) != wanted:
            raise fail("type/arguments", f"'{e.name}' takes {wanted} arguments, not {len(e.args)}", e.span)
        rs = [a.type.range for a in args]
        values = [r.constant for r in rs]
        match e.name:
            case "ceildiv":
                if values[1] is not None and values[1] <= 0:
                    raise fail("type/division-by-zero", f"'ceildiv' by {values[1]}", args[1].span)
                r = ranges.floordiv(ranges.sub(ranges.add(rs[0], rs[1]), ranges.constant(1)), rs[1])
                if values[1] is not None and rs[0].multiple_of(values[1]):
                    r = ranges.floordiv(rs[0], rs[1])
                folded = -(-values[0] // values[1]) if None not in values else None
            case "min":
                r, folded = ranges.minimum(*rs), min(values) if None not in values else None
            case "max":
                r, folded = ranges.maximum(*rs), max(values) if None not in values else None
            case _:
                r = ranges.minimum(ranges.maximum(rs[0], rs[1]), rs[2])
                folded = min(max(values[0], values[1]), values[2]) if None not in values else None
        if folded is not None:
            return literal(folded, e)
        return typed(e, Scalar(I32, level_of(*args), r))
