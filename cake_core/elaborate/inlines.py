"""`inline` blocks, written out where they are used before anything is typed (S22).

Names that a block binds are its own: they are called BLOCK_NAME where they are written out. A name that it takes from around
it means what it means where the block stands; one that is not known there, such as a value of the item, is taken from the
place of use. An argument that is a name, a place or a literal stands for itself, and may be assigned if it can be; any other is
evaluated once, in front of the block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, fields, replace

from cake_core.diagnostics import Related, Sink, fail
from cake_core.elaborate.scope import suggestion
from cake_core.frozen import frozen, thawed
from cake_core.ir.flow import walk
from cake_core.ir.nodes import (
    Assign,
    Attr,
    Binding,
    Block,
    Bool,
    Call,
    CallStmt,
    Declare,
    Expr,
    Float,
    For,
    Group,
    If,
    Index,
    Inline,
    Int,
    Let,
    Name,
    Node,
    Op,
    Stmt,
    Var,
    While,
)
from cake_core.ir.places import names
from cake_core.ir.visit import own_expressions

#: Uses of inline blocks in one role: chains of blocks that use one another grow fast.
USES = 1024

INSIDE = (Let, Var, For, While, If, Group, Assign, Op, CallStmt)
BY_NAME = (Name, Index, Attr, Int, Float, Bool)


@frozen
class Definition:
    """A block, what the names that it takes from around it mean where it stands, and the blocks that it may use."""

    block: Inline
    local: frozenset[str]
    outside: dict[str, int]
    known: dict[str, Definition]


def expand(body: Block, verbs: frozenset[str], outer: frozenset[str], item: Callable[[For], tuple[str, ...]], sink: Sink) -> Block:
    """A role's body with its inline blocks written out.

    `verbs`: operations that no block may hold. `outer`: names that are known in front of the role. `item`: names that a loop
    over items binds besides its pattern.
    """
    if not any(isinstance(s, Inline | CallStmt) for s in walk(body)):
        return body
    e = _Expander(verbs, item, sink, taken=set(outer) | set(_all_names(body)))
    e.scopes.append(dict.fromkeys(outer, 0))
    return e.block(body)


def bound_by(s: Stmt) -> tuple[str, ...]:
    """Names that a statement binds in its own block."""
    match s:
        case Let(bindings) | Var(bindings):
            return tuple(b.name for b in bindings)
        case Declare():
            return tuple(d.name for d in s.declarations)
        case Op(words=words) if isinstance(words.get("as"), Name):
            return (words.get("as").id,)
    return ()


@thawed
class _Expander:
    verbs: frozenset[str]
    item: Callable[[For], tuple[str, ...]]
    sink: Sink
    taken: set[str]
    scopes: list[dict[str, int]] = field(default_factory=list)
    known: dict[str, Definition] = field(default_factory=dict)
    chosen: dict[tuple[str, str], str] = field(default_factory=dict)
    bindings: int = 0
    uses: int = 0

    # --- what names mean

    def bind(self, *bound: str) -> None:
        self.bindings += 1
        self.scopes[-1] |= dict.fromkeys(bound, self.bindings)

    def meaning(self, name: str) -> int | None:
        """The number of the binding that a name refers to here; None where there is none."""
        base = name.partition(".")[0]
        return next((s[base] for s in reversed(self.scopes) if base in s), None)

    # --- statements

    def block(self, block: Block, *bound: str) -> Block:
        outer = self.known
        self.scopes.append({})
        self.bind(*bound)
        out: list[Stmt] = []
        for s in block:
            with self.sink.collecting():
                out += self.stmt(s)
        self.scopes.pop()
        self.known = outer
        return tuple(out)

    def stmt(self, s: Stmt) -> Block:
        match s:
            case Inline():
                self.known = self.known | {s.name: self.definition(s)}
                return ()
            case CallStmt(call):
                return self.use(s, call)
            case For():
                return (replace(s, body=self.block(s.body, *s.pattern, *(self.item(s) if s.hi is None else ()))),)
            case While() | Group():
                return (replace(s, body=self.block(s.body)),)
            case If():
                return (replace(s, then=self.block(s.then), other=self.block(s.other) if s.other is not None else None),)
        self.bind(*bound_by(s))
        return (s,)

    # --- definitions

    def definition(self, s: Inline) -> Definition:
        if s.name in self.known or self.meaning(s.name) is not None:
            raise fail("type/redefined", f"'{s.name}' is already a name", s.span, fix="choose another name")
        if len(set(s.params)) < len(s.params):
            raise fail("type/repeated", f"a parameter of '{s.name}' stands twice", s.span)
        for inner in walk(s.body):
            if isinstance(inner, Op) and inner.name in self.verbs:
                raise fail(
                    "type/inline",
                    f"`{inner.name}` stands in inline '{s.name}'",
                    inner.span,
                    why="a block that is written out holds no verb of a pipeline (S22)",
                    fix="write the verb beside the use",
                )
            if not isinstance(inner, INSIDE):
                what = f"'{inner.space}' is declared" if isinstance(inner, Declare) else "this statement stands"
                raise fail(
                    "type/inline",
                    f"{what} in inline '{s.name}'",
                    inner.span,
                    why="a block holds assignments, `let`, `var`, operations, loops and guards",
                    fix="move it in front of the block",
                )
        local = {n for inner in walk(s.body) for n in (*bound_by(inner), *(inner.pattern if isinstance(inner, For) else ()))}
        free = {n.id for inner in walk(s.body) for e in own_expressions(inner) for n in names(e)} - local - set(s.params)
        outside = {n: m for n in free if (m := self.meaning(n)) is not None}
        return Definition(s, frozenset(local), outside, self.known)

    # --- uses

    def use(self, s: CallStmt, call: Call) -> Block:
        definition = self.known.get(call.name)
        if definition is None:
            raise fail(
                "type/unknown-function",
                f"unknown inline block '{call.name or '?'}'",
                call.span,
                why="a call that stands alone writes an inline block out",
                fix=suggestion(call.name, self.known),
            )
        block = definition.block
        if len(call.args) != len(block.params) or len(call.positional) != len(call.args):
            raise fail(
                "type/arguments",
                f"'{block.name}' takes {len(block.params)} arguments, not {len(call.args)}",
                call.span,
                related=(Related("declared here", block.span),),
            )
        self.uses += 1
        if self.uses > USES:
            raise fail("type/inline", f"inline blocks are used more than {USES} times", call.span, why="each use is written out")
        for name, meant in definition.outside.items():
            if self.meaning(name) != meant:
                raise fail(
                    "type/inline",
                    f"'{name}' means something else here than in inline '{block.name}'",
                    call.span,
                    related=(Related("the block stands here", block.span),),
                    fix="rename one of the two, or pass the value",
                )
        env, first = self.environment(definition, call)
        body = _renamed(block.body, env)
        outer, self.known = self.known, definition.known
        out: list[Stmt] = [first] if first is not None else []
        for inner in body:
            out += self.stmt(inner)
        self.known = outer
        if out and s.label is not None:
            out[0] = replace(out[0], label=s.label)
        return tuple(out)

    def environment(self, definition: Definition, call: Call) -> tuple[dict[str, Expr], Let | None]:
        """What the block's own names and parameters become, and the arguments that are evaluated in front."""
        block = definition.block
        env: dict[str, Expr] = {n: Name(self.fresh(block.name, n)) for n in sorted(definition.local)}
        for inner in walk(block.body):
            if isinstance(inner, Var):  # a variable is not declared twice in one block
                env |= {b.name: Name(self.fresh(f"{block.name}{self.uses}", b.name)) for b in inner.bindings}
        evaluated = []
        for param, arg in zip(block.params, call.args, strict=True):
            if isinstance(arg, BY_NAME):
                env[param] = arg
            else:
                env[param] = Name(self.fresh(block.name, param))
                evaluated.append(Binding(env[param].id, arg, span=arg.span))
        return env, Let(tuple(evaluated), span=call.span) if evaluated else None

    def fresh(self, block: str, name: str) -> str:
        """What a name of a block is called: the same in every use, and no other name of the text."""
        if (block, name) not in self.chosen:
            new = f"{block}_{name}"
            while new in self.taken:
                new += "_"
            self.taken.add(new)
            self.chosen[block, name] = new
        return self.chosen[block, name]


def _renamed(node, env: dict[str, Expr]):
    """`node` with names replaced, where they are bound and where they are used; functions keep their names."""
    match node:
        case Name(id):
            base, _, rest = id.partition(".")
            if base not in env:
                return node
            new = replace(env[base], span=node.span)
            if not rest:
                return new
            return replace(new, id=f"{new.id}.{rest}") if isinstance(new, Name) else Attr(new, rest, span=node.span)
        case Call():
            return replace(node, args=_renamed(node.args, env))
        case tuple():
            return tuple(_renamed(x, env) for x in node)
        case Node():
            changes = {f.name: _renamed(getattr(node, f.name), env) for f in fields(node) if f.name not in ("span", "type", "label")}
            changes = {k: v for k, v in changes.items() if v is not getattr(node, k)}
            if isinstance(node, For):
                changes["pattern"] = tuple(_local(n, env) for n in node.pattern)
            elif isinstance(node, Binding):
                changes["name"] = _local(node.name, env)
            return replace(node, **changes) if changes else node
    return node


def _local(name: str, env: dict[str, Expr]) -> str:
    return env[name].id if name in env else name


def _all_names(body: Block) -> Iterator[str]:
    for s in walk(body):
        yield from bound_by(s)
        if isinstance(s, For):
            yield from s.pattern
        for e in own_expressions(s):
            yield from (n.id for n in names(e))
