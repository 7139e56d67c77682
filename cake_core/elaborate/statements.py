"""Typing of statements: one method a node class, several errors a run."""

from __future__ import annotations

from dataclasses import replace

from cake_core.diagnostics import CakeError, fail
from cake_core.elaborate.declarations import Declarations
from cake_core.elaborate.roles import VERBS, Roles
from cake_core.elaborate.scope import Scope, Symbol, reported, suggestion
from cake_core.elaborate.turns import TURN_VERBS
from cake_core.elaborate.typing import described, held, is_int, is_register_tile, level_of, literal, range_of, typed
from cake_core.elaborate.whiles import check_while
from cake_core.ir import ranges
from cake_core.ir.nodes import (
    Assign,
    Binary,
    Block,
    Call,
    CallStmt,
    Declare,
    Expr,
    For,
    Group,
    If,
    Index,
    Inline,
    Int,
    Let,
    Name,
    Op,
    Option,
    Pipeline,
    Role,
    Stmt,
    Tiles,
    Tuple,
    Turn,
    Var,
    While,
)
from cake_core.ir.places import root
from cake_core.ir.printer import expr_text
from cake_core.ir.visit import nested
from cake_core.ir.types import BOOL, I32, Barriers, Level, Named, Product, Scalar, State, Tile, Unknown, Values
from cake_core.primitive import Form, WordSpec
from cake_core.source import Span

LOOP_WORDS = (WordSpec("step", "integer", Form.DERIVED),)
#: What may stand in a kernel's body, outside roles, and what may stand nowhere else.
KERNEL_STATEMENTS = {Form.SCHEDULE: (Let, Tiles, Pipeline, Turn, Role, Declare), Form.DERIVED: (Let, If, Op, Role, Declare)}
KERNEL_ALONE = {Tiles: "a tile schedule", Pipeline: "a pipeline", Turn: "a turn", Role: "a role"}
#: Statements that the unrolled loops of a kernel may become.
UNROLLED = 1024


class Statements(Declarations, Roles):
    """Mixed into the elaborator."""

    # --- blocks

    def block(self, block: Block) -> Block:
        """A block in a scope of its own; a statement with an error is dropped and what it binds becomes unknown."""
        outer, self.scope = self.scope, Scope(self.scope)
        try:
            return self.statements(block)
        finally:
            self.scope = outer

    def statements(self, block: Block) -> Block:
        out: list[Stmt] = []
        for s in block:
            done = None
            with self.sink.collecting(role=self.role.name if self.role else None, span=s.span):
                done = self.statement(s)
            if done is None:
                self._bind_unknown(s)
                self._look_inside(s)
            else:
                out.append(done)
        return tuple(out)

    def statement(self, s: Stmt) -> Stmt:
        self._placed(s)
        match s:
            case Let():
                return self._let(s)
            case Var():
                return self._var(s)
            case Tiles():
                return self._tiles(s)
            case Pipeline():
                return self._pipeline(s)
            case Turn():
                return self._turn(s)
            case Inline() | CallStmt():
                self.check_form(Form.SCHEDULE, "an inline block", s)
            case Role():
                return self._role(s)
            case Declare():
                return self._declare(s)
            case For():
                return self._for(s)
            case While():
                return self._while(s)
            case If():
                return self._if(s)
            case Group():
                return self._group(s)
            case Assign():
                return self._assign(s)
            case Op(name) if name in VERBS:
                return self._verb(s)
            case Op(name) if name in TURN_VERBS:
                return self._turn_verb(s)
            case Op("launch"):
                return self._launch(s)
            case Op():
                return self.operation(s)
        raise fail("type/placement", "this statement is not understood here", s.span)

    def _placed(self, s: Stmt) -> None:
        """Raises CakeError for a statement that can't stand here."""
        top = self.role is None and not self.inside
        if (alone := KERNEL_ALONE.get(type(s))) is not None:
            if self.form is Form.DERIVED and not isinstance(s, Role):
                self.check_form(Form.SCHEDULE, alone, s)
            if not top:
                raise fail("type/placement", f"{alone} stands in a kernel's body, not in a block", s.span, fix="move it out")
        elif top and not isinstance(s, KERNEL_STATEMENTS[self.form]):
            raise fail("type/placement", "this statement belongs inside a role", s.span, why="a kernel's body declares what the roles share")

    def _look_inside(self, s: Stmt) -> None:
        """The blocks of a statement whose head is in error: their own errors are found in the same run."""
        if self.role is None and self.form is Form.SCHEDULE:
            return  # a block that belongs into a role as a whole
        match s:
            case For(pattern):
                outer, self.scope = self.scope, Scope(self.scope)
                for n in (*pattern, *self._dimensions(s)):
                    self.scope.names[n] = Symbol("loop variable", Unknown(), s.span)
                self._inner(s, s.body)
                self.scope = outer
            case While() | Group():
                self._inner(s, s.body)
            case If():
                self._inner(s, s.then)
                self._inner(s, s.other or ())

    def _dimensions(self, s: For) -> tuple[str, ...]:
        """What the coordinates of an item are called where its schedule is written: likely the names that a faulty pattern misses."""
        symbol = self.scope.find(s.lo.id) if s.hi is None and isinstance(s.lo, Name) else None
        return tuple(a.name for a in symbol.node.schedule.args if isinstance(a, Option) and a.is_dim) if symbol is not None and isinstance(symbol.node, Tiles) and isinstance(symbol.node.schedule, Call) else ()

    def _inner(self, s: Stmt, block: Block) -> Block:
        self.inside.append(s)
        try:
            return self.block(block)
        finally:
            self.inside.pop()

    def _bind_unknown(self, s: Stmt) -> None:
        names: tuple[str, ...] = ()
        match s:
            case Let(bindings) | Var(bindings):
                names = tuple(b.name for b in bindings)
            case Declare():
                names = tuple(d.name for d in s.declarations)
            case Pipeline() | Tiles() | Turn():
                names = (s.name,)
            case Op() if isinstance(s.words.get("as"), Name):
                written = s.words.get("as").id
                names = (written, written.partition(".")[0])  # `as s.t` may have meant `s`
        for n in names:
            old = self.scope.names.get(n)
            if old is None or not _within(old.span, s.span):  # what the statement has bound before its error stays
                self.scope.names[n] = Symbol("name", Unknown(), s.span)

    # --- values

    def _let(self, s: Let) -> Let:
        out = []
        for n, b in enumerate(s.bindings):
            if any(b.name == other.name for other in s.bindings[:n]):
                raise fail("type/repeated", f"'{b.name}' stands twice in this `let`", b.span, fix="give one of them another name")
            value = self.operand_of(b.value)
            if isinstance(value.type, Named | Barriers | Product | Tile) and not is_register_tile(value.type):
                raise fail("type/let", f"'{b.name}' would name {described(value.type)}", b.value.span, why="`let` names a value; places are written out")
            if isinstance(value.type, Values):
                raise fail("type/let", f"'{b.name}' would name {len(value.type.items)} results", b.span, fix="assign them to fragments: `(a, b) = ..`")
            at_top = self.role is None and not self.inside  # roles and the launch read these: one value each
            if at_top and self.form is Form.SCHEDULE:
                self.shared_by_roles(b, value)
            self.scope.bind(b.name, Symbol("let", held(value), b.span, formula=self._formula(value)), shadows=() if at_top else ("let", "slot", "loop variable"))
            out.append(replace(b, value=value))
        return replace(s, bindings=tuple(out))

    def _formula(self, value: Expr) -> Expr | None:
        return self.written_out(value) if isinstance(value.type, Scalar) else None

    def _var(self, s: Var) -> Var:
        out = []
        for b in s.bindings:
            value = self.operand_of(b.value)
            if isinstance(value.type, Unknown):
                raise reported()
            if not isinstance(value.type, Scalar):
                raise fail("type/var", f"'{b.name}' would hold {described(value.type)}", b.value.span, why="a `var` holds a scalar", fix="use `let` or a fragment")
            t = value.type
            level = max(t.level, Level.INSTANCE, self.var_levels.get((b.name, b.span), Level.CTA))
            t = Scalar(t.elem, level, self._var_range(b.name, t.range) if is_int(t) else ranges.ANY)
            self.scope.bind(b.name, Symbol("variable", t, b.span))
            out.append(replace(b, value=value))
        return replace(s, bindings=tuple(out))

    def _var_range(self, name: str, start: ranges.Range) -> ranges.Range:
        """A variable that starts at or above 0 and only ever grows stays there; anything else is unbounded."""
        grows = self.role is None or name not in self.shrinking
        return ranges.at_least(start.lo) if grows and start.nonneg else ranges.ANY

    def _assign(self, s: Assign) -> Assign:
        if isinstance(s.target, Tuple):
            return self._assign_all(s)
        if not isinstance(s.target, Name | Index):
            raise fail("type/assign", "only a variable or a fragment can be assigned", s.target.span)
        name = root(s.target)
        symbol = self.scope.find(name.id) if name is not None else None
        if symbol is None:
            raise fail("type/unknown-name", f"unknown name '{name.id if name else '?'}'", s.target.span, fix=suggestion(name.id, self.scope.visible()) if name else None)
        target = self.expr(s.target)
        value = typed(s.value, held(target)) if self._is_empty(s.value, target.type) else self.operand_of(s.value)
        if isinstance(target.type, Unknown) or isinstance(value.type, Unknown):
            return replace(s, target=target, value=value)
        if symbol.kind not in ("variable", "fragment"):
            raise fail("type/assign", f"'{name.id}' is a {symbol.kind} and can't be assigned", s.target.span, related=self.related(symbol), fix="declare it with `var`" if symbol.kind == "let" else None)
        if isinstance(target.type, Tile):
            return replace(s, target=target, value=self._fill(target, value))
        if target.type.elem.kind == "float" and isinstance(value, Int):
            value = literal(float(value.value), value)
        if not (isinstance(value.type, Scalar) and value.type.elem == target.type.elem):
            raise fail("type/assign", f"'{name.id}' holds {described(target.type)}, not {described(value.type)}", s.value.span)
        level = max(level_of(value), *(level_of(*_deciders(around)) for around in self.inside), Level.INSTANCE)
        if level > symbol.type.level:
            self.var_levels[name.id, symbol.span] = level
            self.scope.change(name.id, replace(symbol, type=replace(symbol.type, level=level)))
        return replace(s, target=target, value=value)

    def _is_empty(self, e: Expr, target) -> bool:
        """`x = empty`: what a state is before anything is folded into it."""
        return isinstance(e, Name) and e.id == "empty" and isinstance(target, Tile) and isinstance(target.elem, State) and self.scope.find("empty") is None

    def _assign_all(self, s: Assign) -> Assign:
        """`(a, b) = f(..)`: several results of one function go to fragments of their shapes."""
        value = self.expr(s.value)
        targets = tuple(map(self.expr, s.target.items))
        if any(isinstance(t.type, Unknown) for t in (value, *targets)):
            return replace(s, value=value, target=replace(s.target, items=targets))
        if not isinstance(value.type, Values) or len(value.type.items) != len(targets):
            raise fail("type/assign", f"{len(targets)} targets are assigned {described(value.type)}", s.span, why="a tuple of targets takes as many results of one function")
        for target, item in zip(targets, value.type.items, strict=True):
            name = root(target)
            if name is None or (symbol := self.scope.find(name.id)) is None or symbol.kind != "fragment":
                raise fail("type/assign", "a tuple assigns fragments", target.span)
            self._same_tile(target, item, s.value)
        return replace(s, value=value, target=replace(s.target, items=targets))

    def _same_tile(self, target: Expr, found, at: Expr) -> None:
        t = target.type
        if not is_register_tile(found) or (t.elem, tuple(t.shape), t.axis) != (found.elem, tuple(found.shape), found.axis):
            raise fail("type/assign", f"the target is {described(t)}, the value {described(found)}", at.span, why="a fragment is assigned a value of its own type and shape")
        if found.part is not None and found.part != t.part or t.part is not None and found.part is None:
            raise fail("type/partial", f"the target is {described(t)}, the value {described(found)}", at.span, why="a lane-partial tile is not the tile that its lanes combine to")

    def _fill(self, target: Expr, value: Expr) -> Expr:
        elem = target.type.elem
        if len(target.type.groups) != 1:
            raise fail("type/assign", "a register set is assigned one member at a time", target.span, fix="index it with a constant")
        if elem.kind == "float" and isinstance(value, Int):
            value = literal(float(value.value), value)
        t = value.type
        if isinstance(t, Scalar) and (t.elem == elem or t.elem.kind == elem.kind == "float" or isinstance(value, Int) and elem.kind == "uint"):
            if target.type.part == "sum" and getattr(value, "value", None) != 0:
                raise fail("type/partial", f"each lane of a row would hold {expr_text(value)}", value.span, why="the lanes of a row are added up in the end", fix="start from 0")
            return value
        self._same_tile(target, t, value)
        return value

    # --- control

    def _for(self, s: For) -> For:
        words = self.words(s.words, LOOP_WORDS, "'for'", s.span)
        if words.flag not in (None, "unroll"):
            raise fail("type/unknown-word", f"'for' has no flag '{words.flag}'", words.span, fix=suggestion(words.flag, ["unroll", "step"]))
        if s.hi is None:
            return self._for_items(replace(s, words=words))
        if words.flag == "unroll":
            self.check_form(Form.SCHEDULE, "'unroll'", s)
            lo, hi = self.constant_int(s.lo, "the start of an unrolled loop"), self.constant_int(s.hi, "the end of an unrolled loop")
            if hi.value - lo.value > UNROLLED:
                raise self._too_much(s, hi.value - lo.value)
        else:
            lo, hi = self.integer(s.lo, "the start of a loop"), self.integer(s.hi, "the end of a loop")
        if len(s.pattern) != 1:
            raise fail("type/pattern", f"a loop over a range binds one name, not {len(s.pattern)}", s.span)
        lr, hr = range_of(lo), range_of(hi)
        step = words.get("step")
        if step is not None and not isinstance(step.type, Unknown) and not step.type.range.positive:
            raise fail("type/step", "the step is not surely positive", step.span, why="loops count upwards", fix=None if isinstance(step, Int) else "add a `require`")
        r = ranges.Range(lr.lo, None if hr.hi is None else hr.hi - 1)
        t = Scalar(I32, level_of(lo, hi), r)
        numbers = (lo, hi, step or Int(1))
        values = range(*(n.value for n in numbers)) if all(isinstance(n, Int) for n in numbers) else None
        own = self.counted_through(s.pattern[0], t, values, lo, hi)
        with self.under(Binary("<", lo, hi, type=Scalar(BOOL, level_of(lo, hi)))):
            out = self._loop(replace(s, lo=lo, hi=hi, words=words), {s.pattern[0]: Symbol("loop variable", t, s.span, formula=own)})
        if words.flag == "unroll" and not any(isinstance(x, For) and x.words.flag == "unroll" for x in self.inside):
            self.unrolled += _written(out)
            if self.unrolled > UNROLLED:
                raise self._too_much(s, _written(out))
        return out

    def _too_much(self, s: For, statements: int) -> CakeError:
        return fail("type/unroll", f"this loop is written out to {statements} statements or more", s.hi.span, why=f"all unrolled loops of a kernel may become {UNROLLED} statements together", fix="unroll the inner loops alone")

    def _loop(self, s: For, variables: dict[str, Symbol]) -> For:
        outer, self.scope = self.scope, Scope(self.scope)
        try:
            for n, symbol in variables.items():
                self.scope.bind(n, symbol, shadows=("let", "slot", "loop variable"))
            return replace(s, body=self._inner(s, s.body))
        finally:
            self.scope = outer

    def _while(self, s: While) -> While:
        out = replace(s, test=self.condition(s.test, "'while'"), words=self.words(s.words, (), "'while'", s.span))
        if self.form is Form.SCHEDULE:
            check_while(s, out.test, self.warps, self.may_change)
        with self.under(out.test):
            return replace(out, body=self._inner(out, s.body))


def _written(s: Stmt) -> int:
    """How many statements a statement becomes when its unrolled loops are written out."""
    inner = sum(_written(x) for block in nested(s) for x in block)
    return (s.hi.value - s.lo.value) * inner if isinstance(s, For) and s.words.flag == "unroll" else 1 + inner


def _within(inner: Span, outer: Span) -> bool:
    return (outer.line, outer.column) <= (inner.line, inner.column) and (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)


def _deciders(s: Stmt) -> tuple[Expr, ...]:
    """What decides how often a statement's blocks run."""
    match s:
        case If(test) | While(test):
            return (test,)
        case For(lo=lo, hi=hi) if hi is not None:
            return (lo, hi)
    return ()
