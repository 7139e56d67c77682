"""Unrolled loops written out, and constant guards decided: what is constant after it needs no test at run time.

Each copy of a body stands in the block of its loop, so that what it declares gets a name of its own (S24: the result is a text,
and a text has no block without a statement).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, replace

from cake_core.frozen import frozen
from cake_core.ir import ranges
from cake_core.ir.build import INTEGER_CALLS, arithmetic, integer_call
from cake_core.ir.flow import walk
from cake_core.ir.nodes import (
    Binary,
    Block,
    Bool,
    Call,
    Cond,
    Declare,
    Expr,
    For,
    Group,
    If,
    Int,
    Let,
    Name,
    Node,
    Op,
    Stmt,
    Unary,
    Var,
    While,
)
from cake_core.ir.types import BOOL, I32, Level, Named, Scalar

Fresh = Callable[[str], str]
Env = dict[str, Expr | str]  # a value, or a new name


@frozen
class Unroller:
    """`fresh`: a name that the text does not use yet. `opened`: whether the body of a loop over items is written out in the
    block of its loop (a grid has one item a CTA). `bound`: how often each name is bound in the role and around it."""

    fresh: Fresh
    opened: bool
    bound: Counter[str]

    def block(self, block: Block) -> Block:
        """Every `for .. unroll` written out, outermost first, and constant `if`s decided."""
        out: list[Stmt] = []
        for s in block:
            match s:
                case For(words=w) if w.flag == "unroll":
                    for i in range(s.lo.value, s.hi.value):
                        number = Int(i, span=s.span, type=Scalar(I32, Level.CTA, ranges.constant(i)))
                        out += self.block(_Copy(lambda n, i=i: self.fresh(f"{n}_{i}")).block(s.body, {s.pattern[0]: number}, own=True))
                case For(hi=None) if self.opened:
                    out.append(self._opened(s))
                case If(Bool(v)):
                    chosen = s.then if v else s.other or ()
                    out += self.block(_Copy(self._apart).block(chosen, {}, own=True))
                case Group():  # a block until here: what it binds moves into the block around
                    out.append(replace(s, body=self.block(_Copy(self._apart).block(s.body, {}, own=True))))
                case For() | While():
                    out.append(replace(s, body=self.block(s.body)))
                case If():
                    out.append(replace(s, then=self.block(s.then), other=self.block(s.other) if s.other is not None else None))
                case _:
                    out.append(s)
        return tuple(out)

    def _opened(self, s: For) -> For:
        env: Env = {n: self._apart(n) for n in s.pattern}
        return replace(s, pattern=tuple(env.values()), body=self.block(_Copy(self._apart).block(s.body, env, own=True)))

    def _apart(self, name: str) -> str:
        """A name that moves into the block around: its own, if nothing else there has it."""
        return name if self.bound[name] == 1 else self.fresh(name)


def unroll(body: Block, fresh: Fresh, around: frozenset[str], opened: bool) -> Block:
    """A role's body. `around`: names of the kernel."""
    return Unroller(fresh, opened, Counter([*around, *bound_names(body)])).block(body)


def substitute(e: Expr, env: dict[str, Expr]) -> Expr:
    """A typed expression with names replaced by values, folded where they are constant."""
    return _replaced(e, env)


def bound_names(body: Block) -> Iterator[str]:
    """Every name that a body binds, as often as it does."""
    for s in walk(body):
        match s:
            case Let(bindings) | Var(bindings):
                yield from (b.name for b in bindings)
            case Declare(declarations=ds):
                yield from (d.name for d in ds)
            case For(pattern):
                yield from pattern
            case Op(words=words) if isinstance(name := words.get("as"), Name):
                yield name.id


@frozen
class _Copy:
    """Copies statements with names replaced by values or other names, scopes respected and constants folded."""

    rename: Callable[[str], str]

    def block(self, block: Block, env: Env, own: bool = False) -> Block:
        """`own`: the block's bindings get new names; otherwise they hide what `env` says of theirs."""
        env = dict(env)
        return tuple(copy for s in block if (copy := self._stmt(s, env, own)) is not None)

    def _stmt(self, s: Stmt, env: Env, own: bool) -> Stmt | None:
        match s:
            case Let(bindings):
                done = []
                for b in bindings:
                    value = _replaced(b.value, env)
                    if isinstance(value, Int) and value is not b.value:  # a constant from here on
                        env[b.name] = value
                        continue
                    name = self._bind(b.name, env, own)
                    if isinstance(value.type, Scalar):  # what is known of the value may be more than it was
                        env[b.name] = Name(name, type=value.type)
                    done.append(replace(b, value=value, name=name))
                return replace(s, bindings=tuple(done)) if done else None
            case Var(bindings):
                values = [_replaced(b.value, env) for b in bindings]
                return replace(s, bindings=tuple(replace(b, value=v, name=self._bind(b.name, env, own)) for b, v in zip(bindings, values, strict=True)))
            case Declare(declarations=ds):
                # fragments are told apart by name in the whole role, so those of inner blocks get new names too
                return replace(s, declarations=tuple(replace(d, name=self._bind(d.name, env, True)) for d in ds))
            case For(pattern):
                inner = {k: v for k, v in env.items() if k not in pattern}
                words = _replaced(s.words, env)
                return replace(s, lo=_replaced(s.lo, env), hi=None if s.hi is None else _replaced(s.hi, env), words=words, body=self.block(s.body, inner))
            case While():
                return replace(s, test=_replaced(s.test, env), body=self.block(s.body, env))
            case Group():
                return replace(s, body=self.block(s.body, env))
            case If():
                other = self.block(s.other, env) if s.other is not None else None
                return replace(s, test=_replaced(s.test, env), then=self.block(s.then, env), other=other)
            case Op(words=words) if isinstance(slot := words.get("as"), Name):
                s = _replaced(s, env)
                named = replace(slot, id=self._bind(slot.id, env, own))
                return replace(s, words=replace(s.words, items=tuple(replace(w, value=named) if w.name == "as" else w for w in s.words.items)))
        return _replaced(s, env)

    def _bind(self, name: str, env: Env, own: bool) -> str:
        env.pop(name, None)
        if own and (new := self.rename(name)) != name:
            env[name] = new
            return new
        return name


def _replaced(node, env: Env):
    """One statement or expression, no nested statements, with typed names replaced and what became constant folded.

    A name without a type is a word of an operation (`by x`, `as s`), one with the type of a symbol a word of a call (`fold(sum, x)`).
    """
    if isinstance(node, Name):
        new = env.get(node.id) if node.type is not None and not isinstance(node.type, Named) else None
        return node if new is None else replace(node, id=new) if isinstance(new, str) else replace(new, span=node.span)
    if isinstance(node, tuple):
        out = tuple(_replaced(x, env) for x in node)
        return out if any(a is not b for a, b in zip(out, node, strict=True)) else node
    if not isinstance(node, Node):
        return node
    changes = {}
    for f in fields(node):
        old = getattr(node, f.name)
        if f.name not in ("span", "type", "label") and isinstance(old, Node | tuple):
            new = _replaced(old, env)
            if new is not old:
                changes[f.name] = new
    return _folded(replace(node, **changes)) if changes else node


def _folded(e):
    match e:
        case Binary("and", Bool(v), x) | Binary("and", x, Bool(v)):
            return x if v else _bool(False, e)
        case Binary("or", Bool(v), x) | Binary("or", x, Bool(v)):
            return _bool(True, e) if v else x
        case Binary(op, a, b) if op not in ("and", "or", "@") and _is_int(a) and _is_int(b):
            return arithmetic(op, a, b, e.span)
        case Unary("not", Bool(v)):
            return _bool(not v, e)
        case Unary("-", Int(v)):
            return Int(-v, span=e.span, type=Scalar(I32, Level.CTA, ranges.constant(-v)))
        case Unary("-", a) if _is_int(a):
            return replace(e, type=replace(e.type, range=ranges.neg(a.type.range)))
        case Cond(Bool(v), then, other):
            return then if v else other
        case Call() if e.name in INTEGER_CALLS and all(map(_is_int, e.args)):
            return integer_call(e)
    return e


def _is_int(e: Expr) -> bool:
    return isinstance(e.type, Scalar) and e.type.elem.kind in ("int", "uint")


def _bool(value: bool, at: Expr) -> Bool:
    return Bool(value, span=at.span, type=Scalar(BOOL, Level.CTA))
