"""Operations against their signatures: operands, arrows, words, flags, forms and capabilities."""

from __future__ import annotations

from dataclasses import replace

from cake_core.diagnostics import fail
from cake_core.effects import Access, Effect, Mode
from cake_core.elaborate.scope import suggestion
from cake_core.elaborate.typing import counted, described, is_bool, is_int, is_register_tile, named
from cake_core.ir.elementwise import PARTIAL
from cake_core.ir.nodes import Expr, Int, Name, Op, Tuple, Word, Words
from cake_core.ir.places import root
from cake_core.ir.types import Barriers, Named, Product, Scalar, Tile, Unknown
from cake_core.primitive import Operation, Parameter, WordSpec
from cake_core.primitive.asking import answering, effects_given
from cake_core.source import Span


class Operations:
    """Mixed into the elaborator."""

    def operation(self, op: Op) -> Op:
        """`op` with typed operands. Raises CakeError."""
        primitive = self.registry.operations.get(op.name)
        if primitive is None:
            if (broken := self.registry.unavailable("operation", op.name, op.span)) is not None:
                raise broken
            raise fail("type/unknown-operation", f"unknown operation '{op.name}'", op.span, fix=suggestion(op.name, [*self.registry.operations, *self.verbs], ""))
        self.check_form(primitive.form, f"'{op.name}'", op)
        self.need_capabilities(primitive, op)
        if len(op.operands) != len(primitive.operands):
            names = ", ".join(p.name for p in primitive.operands) or "none"
            raise fail("type/operands", f"'{op.name}' takes {counted(len(primitive.operands), 'operand')} ({names}), not {len(op.operands)}", op.span)
        operands = tuple(self.operand(e, p, op.name) for e, p in zip(op.operands, primitive.operands, strict=True))
        value = self._value(op, primitive)
        words = self.words(op.words, primitive.words, f"'{op.name}'", op.span)
        if op.words.flag is not None and op.words.flag not in primitive.flags:
            raise fail("type/unknown-word", f"'{op.name}' has no flag '{op.words.flag}'", op.words.span if op.words.span.line else op.span, fix=suggestion(op.words.flag, [*primitive.flags, *(w.name for w in primitive.words)], "words"))
        out = replace(op, operands=operands, value=value, words=words)
        parts = (*operands, *((value,) if value is not None else ()), *(w.value for w in words.items))
        if not any(isinstance(e.type, Unknown) for e in parts):
            with answering(primitive, "check", op.span):
                primitive.check(out, self)
            with answering(primitive, "effects", op.span):
                effects = effects_given(primitive, out)
            self.no_output_is_read(effects, op.span)
        return out

    def _value(self, op: Op, primitive: Operation) -> Expr | None:
        if op.arrow is None:
            if primitive.arrows:
                raise fail("type/arrow", f"'{op.name}' needs a value behind '{primitive.arrows[0]}'", op.span)
            return None
        if op.arrow not in primitive.arrows:
            allowed = " or ".join(f"'{a}'" for a in primitive.arrows)
            raise fail("type/arrow", f"'{op.name}' does not take '{op.arrow}'", op.span, fix=f"write {allowed}" if allowed else "leave the value out")
        return self.operand(op.value, primitive.value, op.name)

    def operand(self, e: Expr, p: Parameter, owner: str) -> Expr:
        """`e` as what `p` asks for."""
        what = f"operand '{p.name}' of '{owner}'"
        if p.kind == "constant":
            return self.constant_int(e, what)
        out = self.expr(e)
        t = out.type
        if isinstance(t, Unknown):
            return out
        if not _KINDS[p.kind](t) or p.kind == "tile" and p.spaces and t.space not in p.spaces:
            wanted = f"a tile in {' or '.join(p.spaces)} memory" if p.kind == "tile" and p.spaces else _NOUNS[p.kind]
            raise fail("type/operand", f"{what} is {described(t)}, not {wanted}", e.span)
        if p.kind == "value" and getattr(t, "part", None) is not None:
            raise fail("type/partial", f"{what} is a lane-partial tile", e.span, why=PARTIAL, fix="combine its lanes first, such as by `rowsum`")
        if p.writable:
            self._writable(out, what)
        return out

    def no_output_is_read(self, effects: tuple[Effect, ...], at: Span) -> None:
        """Raises CakeError where a tensor is read that a kernel only writes. What combines with it in one step is no such read."""
        for e in effects:
            name = root(e.place) if isinstance(e, Access) and e.mode is Mode.READ and not e.atomic else None
            symbol = self.scope.find(name.id) if name is not None else None
            if symbol is not None and symbol.kind == "tensor" and symbol.node.mode == "out":
                raise fail(
                    "type/write-only",
                    f"'{name.id}' is an output, and is read here",
                    at,
                    related=self.related(symbol),
                    why="what an output holds before the kernel writes it is not defined",
                    fix="declare it `inout`",
                )

    def _writable(self, e: Expr, what: str) -> None:
        name = root(e)
        symbol = self.scope.find(name.id) if name is not None else None
        if symbol is not None and symbol.kind == "tensor" and symbol.node.mode == "in":
            raise fail("type/read-only", f"{what} is '{name.id}', an input", e.span, related=self.related(symbol), fix="declare it `out` or `inout`")

    def words(self, words: Words, specs: tuple[WordSpec, ...], owner: str, at: Span) -> Words:
        """Words against their specifications, values typed. `at`: the statement that they belong to."""
        by_name = {s.name: s for s in specs}
        out: list[Word] = []
        for w in words.items:
            spec = by_name.get(w.name)
            if spec is None:
                raise fail("type/unknown-word", f"{owner} has no word '{w.name}'", w.span, fix=suggestion(w.name, by_name, "words"))
            if any(o.name == w.name for o in out):
                raise fail("type/repeated", f"word '{w.name}' stands twice", w.span)
            self.check_form(spec.form, f"word '{w.name}' of {owner}", w)
            out.append(replace(w, value=self._word(w, spec, owner)))
        for spec in specs:
            if spec.required and self.form in spec.form and not any(o.name == spec.name for o in out):
                raise fail("type/missing-word", f"{owner} needs the word '{spec.name}'", at, why=spec.help or None)
        return replace(words, items=tuple(out))

    def _word(self, w: Word, spec: WordSpec, owner: str) -> Expr:
        what = f"word '{w.name}' of {owner}"
        match spec.kind:
            case "name":
                if isinstance(w.value, Name):
                    symbol = self.scope.find(w.value.id)
                    if symbol is not None and symbol.value is not None:
                        return self.expr(w.value)
                    return w.value
                if isinstance(w.value, Int):
                    return self.expr(w.value)
                raise fail("type/word", f"{what} takes a name or a number", w.value.span)
            case "numbers":
                items = w.value.items if isinstance(w.value, Tuple) else (w.value,)
                return Tuple(tuple(self.constant_int(e, what) for e in items), span=w.value.span)
            case "pair":
                return self.pair_place(w.value, what)
            case "axis":
                if isinstance(w.value, Name) and w.value.id == self.cluster_axis:
                    return w.value
                why = f"the cluster's axis is '{self.cluster_axis}'" if self.cluster_axis else "the kernel has no `cluster`"
                raise fail("type/axis", f"{what} is not an axis of the cluster", w.value.span, why=why)
            case kind:
                return self.operand(w.value, Parameter(w.name, kind), owner.strip("'"))


_KINDS = {
    "tile": lambda t: isinstance(t, Tile),
    "value": lambda t: is_register_tile(t) or isinstance(t, Scalar) and not is_bool(t),
    "scalar": lambda t: isinstance(t, Scalar),
    "integer": is_int,
    "condition": is_bool,
    "barrier": lambda t: isinstance(t, Barriers) and t.slots is None,
    "barriers": lambda t: isinstance(t, Barriers),
    "product": lambda t: isinstance(t, Product),
    "role": lambda t: named(t, "role"),
    "pipeline": lambda t: named(t, "pipeline"),
    "any": lambda t: not isinstance(t, Named),
}
_NOUNS = {
    "tile": "a tile",
    "value": "a register tile or a scalar",
    "scalar": "a scalar",
    "integer": "an integer",
    "condition": "a condition",
    "barrier": "one barrier",
    "barriers": "a barrier array",
    "product": "a product `a @ b`",
    "role": "a role",
    "pipeline": "a pipeline",
    "any": "a value",
}
