"""Typing of calls: the integer functions of the core, and those that plugins offer."""

from __future__ import annotations

from dataclasses import replace

from cake_core.diagnostics import fail
from cake_core.effects import Access, Attribute, Effect, Mode
from cake_core.elaborate.scope import suggestion
from cake_core.elaborate.typing import described, is_float, is_int, is_register_tile, literal, typed
from cake_core.ir import ranges
from cake_core.ir.build import INTEGER_CALLS, integer_call
from cake_core.ir.nodes import Bool, Call, Expr, Float, Int, Name, Option, Tuple
from cake_core.ir.places import root
from cake_core.ir.types import ELEMENTS, Named, Scalar, Type, Unknown, Value, Values
from cake_core.primitive.asking import answering, effects_given

#: Casts of the core: two views of the same 32 bits.
INTEGER_CASTS = ("i32", "u32")


class Calls:
    """Mixed into the elaborator."""

    def _call(self, e: Call) -> Expr:
        function = self.registry.functions.get(e.name)
        symbols = function.symbols if function is not None else 0
        words = {o.name for o in function.options if o.kind == "name"} if function is not None else set()
        args = tuple(self._argument(a, e.name if (a.name in words if isinstance(a, Option) else n < symbols) else None) for n, a in enumerate(e.args))
        if function is not None and function.arguments == "elementwise" and any(is_float(a) for a in args):
            args = tuple(literal(float(a.value), a) if isinstance(a, Int) else a for a in args)
        if e.name in INTEGER_CALLS or function is not None and function.arguments == "elementwise" and e.name != "load":
            args = tuple(a if isinstance(a, Option) else self.operand_of(a) for a in args)
        return self.called(replace(e, args=args))

    def called(self, out: Call) -> Expr:
        """The type of a call whose arguments are typed."""
        e, args = out, out.args
        function = self.registry.functions.get(e.name)
        if any(isinstance((a.value if isinstance(a, Option) else a).type, Unknown) for a in args):
            return typed(out, Unknown())
        if e.name in INTEGER_CALLS and all(is_int(a.type) for a in out.positional):
            return self._integer_call(out)
        if function is None and e.name in INTEGER_CASTS:
            return self._integer_cast(out)
        if function is None and e.name in INTEGER_CALLS:
            other = next(a for a in out.args if isinstance(a, Option) or not is_int(a.type))
            what = f"the option '{other.name}'" if isinstance(other, Option) else described(other.type)
            raise fail("type/operand", f"'{e.name}' takes integers, not {what}", other.span)
        if function is None:
            if not e.name:
                raise fail("type/unknown-function", "only a name can be called", e.span)
            known = [n for n in (*self.registry.functions, *INTEGER_CALLS, *INTEGER_CASTS) if n.isidentifier() and n not in ("and", "or", "not")]
            if (broken := self.registry.unavailable("function", e.name, e.span)) is not None:
                raise broken
            raise fail("type/unknown-function", f"unknown function '{e.name}'", e.function.span, fix=suggestion(e.name, known, "functions"))
        self.need_capabilities(function, e)
        self._options(out, function)
        done = typed(out, self.result_of(function, out))
        self.no_output_is_read(self.effects_of(done), e.span)
        return done

    def no_reads(self, e: Expr, code: str, what: str, why: str, fix: str | None = None) -> None:
        """Raises CakeError for a typed expression that reads memory, where the host evaluates it."""
        if (read := self.read_in(e)) is not None:
            raise fail(code, f"{what} is read from memory", read.span, why=why, fix=fix)

    def result_of(self, function, call: Call) -> Type:
        """What a plugin's function says of its result."""
        with answering(function, "result", call.span):
            return function.result(call, self)

    def effects_of(self, call: Call) -> tuple[Effect, ...]:
        """What a plugin's function does to memory; nothing for the functions of the core."""
        function = self.registry.functions.get(call.name)
        if function is None:
            return ()
        with answering(function, "effects", call.span):
            return tuple(e for e in effects_given(function, call) if not isinstance(e, Attribute))

    def may_change(self, call: Call) -> bool:
        """Whether the call may give another value each time: it writes, or reads what somebody writes (S11: an input does not change)."""
        effects = (e for e in self.effects_of(call) if isinstance(e, Access))
        return any(e.mode is Mode.WRITE or (name := root(e.place)) is None or self.mode(name.id) != "in" for e in effects)

    def _argument(self, a: Expr, symbol: str | None) -> Expr:
        """An argument; `symbol` is the function that takes a bare name there."""
        match a:
            case Option(value=Name(word)) if symbol:
                return replace(a, value=typed(a.value, Named("symbol", word)))
            case Option() if symbol:
                raise fail("type/symbol", f"option '{a.name}' of '{symbol}' takes a bare name", a.value.span)
            case Option():
                return replace(a, value=self.expr(a.value))
            case Name() if symbol:
                return typed(a, Named("symbol", a.id))
            case _ if symbol:
                raise fail("type/symbol", f"'{symbol}' takes a bare name here", a.span)
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
            if spec is not None and a.is_dim:
                raise fail("type/unknown-option", f"'{a.name}:' names a dimension, and '{call.name}' has an option of that name", a.span, fix=f"write `{a.name} = ..`")
            if spec is None:
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
        args, wanted = e.positional, INTEGER_CALLS[e.name]
        if len(e.args) != wanted:
            raise fail("type/arguments", f"'{e.name}' takes {wanted} arguments, not {len(e.args)}", e.span)
        self.one_integer_type(e, *args)
        if e.name == "ceildiv" and (d := args[1].type.range.constant) is not None and d <= 0:
            raise fail("type/division-by-zero", f"'ceildiv' by {d}", args[1].span)
        return integer_call(e)

    def _integer_cast(self, e: Call) -> Expr:
        if len(e.args) != 1 or not is_int(e.args[0].type):
            what = described(e.args[0].type) if len(e.args) == 1 and not isinstance(e.args[0], Option) else f"{len(e.args)} arguments"
            raise fail("type/operand", f"'{e.name}' takes one integer, not {what}", e.span)
        t = e.args[0].type
        same = t.range.nonneg and t.range.hi is not None and t.range.hi < 2**31
        return typed(e, Scalar(ELEMENTS[e.name], t.level, t.range if same else ranges.ANY))
