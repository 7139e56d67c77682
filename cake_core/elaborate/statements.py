"""Typing of statements: one method a node class, several errors a run."""

from __future__ import annotations

from dataclasses import replace

from cake_core.diagnostics import fail
from cake_core.elaborate.declarations import Declarations
from cake_core.elaborate.scope import Scope, Symbol, suggestion
from cake_core.elaborate.typing import held, is_int, is_register_tile, level_of, literal, named, range_of
from cake_core.ir import ranges
from cake_core.ir.flow import walk
from cake_core.ir.nodes import (
    Assign,
    Binary,
    Block,
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
from cake_core.ir.types import I32, Barriers, Level, Named, Scalar, Tile, Unknown, Values
from cake_core.primitive import Form, WordSpec

#: Verbs of a pipeline: whether it stands on the producer's side and whether it names a slot.
VERBS = {"acquire": ("producer", True), "commit": ("producer", False), "wait": ("consumer", True), "release": ("consumer", False), "drain": ("consumer", False)}

LOOP_WORDS = (WordSpec("step", "integer", Form.DERIVED),)
LAUNCH_WORDS = (WordSpec("ctas", "constant", Form.DERIVED),)
ROLE_WORDS = (WordSpec("at", "constant", Form.DERIVED), WordSpec("pad", "constant", Form.DERIVED))
UNFINISHED = {Turn: "turn", Inline: "inline", Group: "group", CallStmt: "a call as a statement"}
KERNEL_STATEMENTS = {Form.SCHEDULE: (Let, Tiles, Pipeline, Role, Declare), Form.DERIVED: (Let, If, Op, Role, Declare)}


class Statements(Declarations):
    """Mixed into the elaborator."""

    verbs = tuple(VERBS)

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
            with self.sink.collecting(role=self.role.name if self.role else None):
                done = self.statement(s)
            if done is None:
                self._bind_unknown(s)
            else:
                out.append(done)
        return tuple(out)

    def statement(self, s: Stmt) -> Stmt:
        if type(s) in UNFINISHED:
            raise fail("type/not-implemented", f"'{UNFINISHED[type(s)]}' is not implemented yet", s.span)
        if self.role is None and not isinstance(s, KERNEL_STATEMENTS[self.form]) and not self.inside:
            raise fail("type/placement", f"this statement belongs inside a role in the {self.form.name.lower()} form", s.span)
        match s:
            case Let():
                return self._let(s)
            case Var():
                return self._var(s)
            case Tiles():
                return self._tiles(s)
            case Pipeline():
                return self._pipeline(s)
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
            case Assign():
                return self._assign(s)
            case Op(name) if name in VERBS:
                return self._verb(s)
            case Op("launch"):
                return self._launch(s)
            case Op():
                return self.operation(s)
        raise fail("type/placement", "this statement is not understood here", s.span)

    def _bind_unknown(self, s: Stmt) -> None:
        names: tuple[str, ...] = ()
        match s:
            case Let(bindings) | Var(bindings):
                names = tuple(b.name for b in bindings)
            case Declare():
                names = tuple(d.name for d in s.declarations)
            case Pipeline() | Tiles():
                names = (s.name,)
            case Op(name) if name in VERBS and isinstance(s.words.get("as"), Name):
                names = (s.words.get("as").id,)
        for n in names:
            if self.scope.find(n) is None:
                self.scope.names[n] = Symbol("name", Unknown(), s.span)

    # --- values

    def _let(self, s: Let) -> Let:
        out = []
        for b in s.bindings:
            value = self.operand_of(b.value)
            if isinstance(value.type, Named | Barriers | Tile) and not is_register_tile(value.type):
                raise fail("type/let", f"'{b.name}' would name a {value.type}", b.span, why="`let` names a value; places are written out")
            if isinstance(value.type, Values):
                raise fail("type/let", f"'{b.name}' would name {len(value.type.items)} results", b.span, fix="assign them to fragments: `(a, b) = ..`")
            self.scope.bind(b.name, Symbol("let", held(value.type), b.span), shadows=("let", "slot", "loop variable"))
            out.append(replace(b, value=value))
        return replace(s, bindings=tuple(out))

    def _var(self, s: Var) -> Var:
        out = []
        for b in s.bindings:
            value = self.expr(b.value)
            if not isinstance(value.type, Scalar):
                raise fail("type/var", f"'{b.name}' would hold a {value.type}", b.span, why="a `var` holds a scalar")
            t = value.type
            if is_int(t):
                t = Scalar(I32, max(t.level, Level.INSTANCE), self._var_range(b.name, t.range))
            self.scope.bind(b.name, Symbol("variable", t, b.span))
            out.append(replace(b, value=value))
        return replace(s, bindings=tuple(out))

    def _var_range(self, name: str, start: ranges.Range) -> ranges.Range:
        """A variable that starts at or above 0 and only ever grows stays there; anything else is unbounded."""
        body = self.role.body if self.role else ()
        grows = all(
            isinstance(a.value, Binary) and a.value.op == "+" and a.value.left == Name(name) and isinstance(a.value.right, Int) and a.value.right.value >= 0
            for a in walk(body)
            if isinstance(a, Assign) and a.target == Name(name)
        )
        return ranges.at_least(max(start.lo, 0)) if grows and start.nonneg else ranges.ANY

    def _assign(self, s: Assign) -> Assign:
        if isinstance(s.target, Tuple):
            return self._assign_all(s)
        if not isinstance(s.target, Name | Index):
            raise fail("type/assign", "only a variable or a fragment can be assigned", s.target.span)
        name = root(s.target)
        symbol = self.scope.find(name.id) if name is not None else None
        if symbol is None:
            raise fail("type/unknown-name", f"unknown name '{name.id if name else '?'}'", s.target.span, fix=suggestion(name.id, self.scope.visible()) if name else None)
        target, value = self.expr(s.target), self.operand_of(s.value)
        if isinstance(target.type, Unknown) or isinstance(value.type, Unknown):
            return replace(s, target=target, value=value)
        if symbol.kind not in ("variable", "fragment"):
            raise fail("type/assign", f"'{name.id}' is a {symbol.kind} and can't be assigned", s.target.span, related=self.related(symbol), fix="declare it with `var`" if symbol.kind == "let" else None)
        if isinstance(target.type, Tile):
            return replace(s, target=target, value=self._fill(target, value))
        if symbol.kind == "variable" and not (isinstance(value.type, Scalar) and value.type.elem == target.type.elem):
            raise fail("type/assign", f"'{name.id}' holds a {target.type}, not a {value.type}", s.value.span)
        return replace(s, target=target, value=value)

    def _assign_all(self, s: Assign) -> Assign:
        """`(a, b) = f(..)`: several results of one function go to fragments of their shapes."""
        value = self.expr(s.value)
        targets = tuple(map(self.expr, s.target.items))
        if any(isinstance(t.type, Unknown) for t in (value, *targets)):
            return replace(s, value=value, target=replace(s.target, items=targets))
        if not isinstance(value.type, Values) or len(value.type.items) != len(targets):
            raise fail("type/assign", f"{len(targets)} targets are assigned a {value.type}", s.span, why="a tuple of targets takes as many results of one function")
        for target, item in zip(targets, value.type.items, strict=True):
            name = root(target)
            if name is None or (symbol := self.scope.find(name.id)) is None or symbol.kind != "fragment":
                raise fail("type/assign", "a tuple assigns fragments", target.span)
            self._same_tile(target, item, s.value)
        return replace(s, value=value, target=replace(s.target, items=targets))

    def _same_tile(self, target: Expr, found, at: Expr) -> None:
        t = target.type
        if not is_register_tile(found) or (t.elem, tuple(t.shape), t.axis) != (found.elem, tuple(found.shape), found.axis):
            raise fail("type/assign", f"the fragment is a {held(t)}, the value a {found}", at.span)
        if found.part is not None and found.part != t.part or t.part is not None and found.part is None:
            raise fail("type/partial", f"the fragment is a {held(t)}, the value a {found}", at.span, why="a lane-partial tile is not the tile that its lanes combine to")

    def _fill(self, target: Expr, value: Expr) -> Expr:
        elem = target.type.elem
        if len(target.type.groups) != 1:
            raise fail("type/assign", "a register set is assigned one member at a time", target.span, fix="index it with a constant")
        if elem.kind == "float" and isinstance(value, Int):
            value = literal(float(value.value), value)
        t = value.type
        if isinstance(t, Scalar) and t.elem.kind == elem.kind:
            return value
        self._same_tile(target, t, value)
        return value

    # --- roles

    def _role(self, s: Role) -> Role:
        group = self.groups.get(s.group)
        if group is None:
            raise fail("type/unknown-group", f"unknown thread group '{s.group}'", s.span, fix=suggestion(s.group.removesuffix("s"), self.groups, "groups"))
        self.need_capabilities(group, s)
        count = self.constant_int(s.count, f"the size of role '{s.name}'")
        instances = self.constant_int(s.instances, f"the instances of role '{s.name}'") if s.instances is not None else None
        for n in (count, instances):
            if n is not None and n.value < 1:
                raise fail("type/role-size", f"role '{s.name}' has a size of {n.value}", n.span, role=s.name)
        specs = ROLE_WORDS + tuple(WordSpec(w.name, "constant") for w in self.registry.role_words.values())
        words = self.words(s.words, specs, "a role")
        if words.flag:
            raise fail("type/unknown-word", f"a role has no flag '{words.flag}'", s.span)
        for w in words.items:
            if (word := self.registry.role_words.get(w.name)) is not None:
                self.need_capabilities(word, w)
                word.check(w.value.value, self)
        header = replace(s, count=count, instances=instances, words=words)
        self.role = header
        try:
            return replace(header, body=self.block(s.body))
        finally:
            self.role = None

    # --- control

    def _for(self, s: For) -> For:
        words = self.words(s.words, LOOP_WORDS, "'for'")
        if words.flag not in (None, "unroll"):
            raise fail("type/unknown-word", f"'for' has no flag '{words.flag}'", s.span, fix=suggestion(words.flag, ["unroll", "step"]))
        if s.hi is None:
            return self._for_items(replace(s, words=words))
        if words.flag == "unroll":
            self.check_form(Form.SCHEDULE, "'unroll'", s)
            lo, hi = self.constant_int(s.lo, "the start of an unrolled loop"), self.constant_int(s.hi, "the end of an unrolled loop")
            if hi.value - lo.value > 1024:
                raise fail("type/unroll", f"unrolling {hi.value - lo.value} times", s.span, why="1,024 is the limit")
        else:
            lo, hi = self.integer(s.lo, "the start of a loop"), self.integer(s.hi, "the end of a loop")
        if len(s.pattern) != 1:
            raise fail("type/pattern", f"a loop over a range binds one name, not {len(s.pattern)}", s.span)
        lr, hr = range_of(lo), range_of(hi)
        step = words.get("step")
        if step is not None and not isinstance(step.type, Unknown) and not step.type.range.positive and not self.is_builtin_count(step):
            raise fail("type/step", "the step is not surely positive", step.span, fix="add a `require`")
        r = ranges.Range(lr.lo, None if hr.hi is None else hr.hi - 1)
        t = Scalar(I32, level_of(lo, hi), r)
        return self._loop(replace(s, lo=lo, hi=hi, words=words), {s.pattern[0]: t})

    def _for_items(self, s: For) -> For:
        self.check_form(Form.SCHEDULE, "a loop over items", s)
        tiles = self.expr(s.lo)
        if not named(tiles.type, "tiles"):
            raise fail("type/operand", "a loop without '..' runs over a tile schedule", s.lo.span, fix="write `for i in lo .. hi`")
        if self.inside:
            raise fail("type/placement", "a loop over items stands at the top of its role", s.span, why="every role must see the same items")
        dims = [a for a in self.scope.find(tiles.id).node.schedule.args if a.is_dim]
        if len(dims) != len(s.pattern):
            raise fail("type/pattern", f"an item has {len(dims)} parts, the pattern {len(s.pattern)}", s.span)
        types = {n: Scalar(I32, Level.CTA, ranges.Range(0, None if range_of(d.value).hi is None else range_of(d.value).hi + self.cluster_size)) for n, d in zip(s.pattern, dims, strict=True)}
        self.item_count = f"{tiles.id}.n"
        try:
            return self._loop(replace(s, lo=tiles), types)
        finally:
            self.item_count = None

    def _loop(self, s: For, types: dict[str, Scalar]) -> For:
        outer, self.scope = self.scope, Scope(self.scope)
        self.inside.append(s)
        try:
            for n, t in types.items():
                self.scope.bind(n, Symbol("loop variable", t, s.span), shadows=("let", "slot", "loop variable"))
            return replace(s, body=self.block(s.body))
        finally:
            self.inside.pop()
            self.scope = outer

    def _while(self, s: While) -> While:
        if self.form is Form.SCHEDULE:
            raise fail("type/not-implemented", "'while' is not implemented yet in the schedule form", s.span)
        out = replace(s, test=self.condition(s.test), words=self.words(s.words, (), "'while'"))
        self.inside.append(out)
        try:
            return replace(out, body=self.block(s.body))
        finally:
            self.inside.pop()

    def _if(self, s: If) -> If:
        test = self.condition(s.test)
        out = replace(s, test=test)
        self.inside.append(out)
        try:
            return replace(out, then=self.block(s.then), other=self.block(s.other) if s.other is not None else None)
        finally:
            self.inside.pop()

    # --- verbs and launch

    def _verb(self, s: Op) -> Op:
        self.check_form(Form.SCHEDULE, f"'{s.name}'", s)
        side, names_slot = VERBS[s.name]
        if len(s.operands) != 1 or s.arrow is not None or s.words.flag is not None:
            raise fail("type/operands", f"'{s.name}' takes one pipeline", s.span, fix=f"write `{s.name} p{' as s' if names_slot else ''}`")
        p = self.expr(s.operands[0])
        if isinstance(p.type, Unknown):
            return replace(s, operands=(p,))
        if not named(p.type, "pipeline"):
            raise fail("type/operand", f"'{s.name}' takes a pipeline, not a {p.type}", s.operands[0].span)
        pipeline: Pipeline = self.scope.find(p.id).node
        ends = pipeline.producers if side == "producer" else pipeline.consumers
        if self.role.name not in [e.name for e in ends]:
            other = " and ".join(e.name for e in ends)
            raise fail("type/wrong-side", f"role '{self.role.name}' is no {side} of pipeline '{p.id}'", s.span, resource=p.id, why=f"`{s.name}` belongs to its {side}: {other}")
        for w in s.words.items:
            if w.name != "as" or not names_slot or not isinstance(w.value, Name):
                raise fail("type/unknown-word", f"'{s.name}' has no word '{w.name}'", w.span, fix="`as NAME` names the slot" if names_slot else None)
        if (slot := s.words.get("as")) is not None:
            t = Scalar(I32, Level.INSTANCE, ranges.Range(0, pipeline.slots.value - 1))
            self.scope.bind(slot.id, Symbol("slot", t, slot.span), shadows=("slot",))
        return replace(s, operands=(p,))

    def _launch(self, s: Op) -> Op:
        self.check_form(Form.DERIVED, "'launch'", s)
        if len(s.operands) != 1 or s.arrow is not None or s.words.flag not in (None, "persistent"):
            raise fail("type/operands", "'launch' takes the number of items, and `persistent` or nothing", s.span)
        return replace(s, operands=(self.integer(s.operands[0], "the number of items"),), words=self.words(s.words, LAUNCH_WORDS, "'launch'"))
