"""A role followed once, with its scalars as expressions of messages, constants and values of the CTA.

A value that no other role can know, such as what an atomic access gives or the number of an instance, gets a name of its own. A loop
is written as its condition with, for each variable in it, the value at first and the value behind a round; names are numbered in the
order in which the condition needs them. So two roles that do the same get the same expression.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace

from cake_core.effects import Access, Mode
from cake_core.frozen import frozen, thawed
from cake_core.ir.aliases import declared_mates
from cake_core.ir.flow import walk
from cake_core.ir.nodes import (
    Assign,
    Binary,
    Binding,
    Block,
    Bool,
    Call,
    Cond,
    Expr,
    Float,
    For,
    If,
    Index,
    Int,
    Kernel,
    Let,
    Name,
    Op,
    Option,
    Pipeline,
    Role,
    Stmt,
    Tuple,
    Unary,
    Var,
    While,
)
from cake_core.ir.places import names, root
from cake_core.ir.printer import expr_text
from cake_core.ir.types import Level, Scalar
from cake_core.ir.visit import size
from cake_core.primitive.asking import effects_of

#: What names begin with that no text can write: a value of one role alone; a message; a variable at the start of a round; what is
#: too long to be followed.
OWN, MESSAGE, ROUND, LONG = "own|", "message|", "round|", "long|"
OPENING = ("acquire", "wait")
#: Nodes of an expression that is followed: `let`s of `let`s may stand for any number.
LONGEST = 200
#: Nodes of a call that a message shows as it stands.
SHOWN = 8


@frozen
class Slot:
    """What a slot's name stands for: the `use` of a pipeline in one round of the loops around, taken in the block `block`."""

    pipeline: str
    use: str
    block: int
    fills: bool


@frozen
class Under:
    condition: Expr
    loop: int | None = None


@frozen
class Taken:
    """A verb that takes a slot, and the conditions that it stands under, outermost first; of loops with their identity."""

    by: Op
    under: tuple[Under, ...]


def whose(e: Expr) -> str | None:
    """What in `e` only one role knows, as its text calls it; None: nothing."""
    return next((n.id.rpartition("|")[2] for n in names(e) if n.id.startswith(OWN)), None)


def said(under: tuple[Under, ...]) -> str:
    """Conditions in words."""
    return ", ".join(_in_words(u.condition) for u in under) if under else "in every case"


def _in_words(c: Expr) -> str:
    match c:
        case Call(Name("while"), (test, *variables)):
            first, again = ({v.args[0].id: v.args[i] for v in variables} for i in (1, 2))
            return f"while `{_shown(put(test, again))}`, at first `{_shown(put(test, first))}`"
        case Call(Name("for"), (lo, hi)):
            return f"in a loop over `{_shown(lo)} .. {_shown(hi)}`"
        case Unary("not", a):
            return f"unless `{_shown(a)}`"
    return f"if `{_shown(c)}`"


def _shown(e: Expr) -> str:
    """A message is shown as a place in its buffer."""
    return expr_text(put(e, {n.id: Name(f"{n.id.rpartition('|')[2]}[..]") for n in names(e) if n.id.startswith(MESSAGE)}))


def put(e: Expr, values: dict[str, Expr]) -> Expr:
    """`e` with names replaced by values."""
    return _mapped(e, lambda x: values.get(x.id) if isinstance(x, Name) else None)


def _mapped(e: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """`e` with each part replaced for which `change` has another, outermost parts first."""
    if (found := change(e)) is not None:
        return found
    again = lambda x: _mapped(x, change)  # noqa: E731
    match e:
        case Unary(op, a):
            return Unary(op, again(a))
        case Binary(op, a, b):
            return Binary(op, again(a), again(b))
        case Cond(test, then, other):
            return Cond(again(test), again(then), again(other))
        case Index(base, indices):
            return Index(again(base), tuple(map(again, indices)))
        case Option(name, value):
            return Option(name, again(value))
        case Call(function, args):
            return Call(function, tuple(map(again, args)))
    return e


@thawed
class Follower:
    """Follows one role. `apart`: whether a statement goes by what may differ among roles."""

    role: Role
    pipelines: dict[str, Pipeline]
    kernel: Kernel
    registry: object
    apart: Callable[[Stmt], bool]
    values: dict[str, Expr | Slot] = field(default_factory=dict)
    under: tuple[Under, ...] = ()
    decided: list[tuple[Stmt, Expr]] = field(default_factory=list)
    taken: dict[str, list[Taken]] = field(default_factory=dict)
    sent: dict[Expr, Expr] = field(default_factory=dict)  # values of the role's own by the messages that carry them
    stores: dict[Expr, int] = field(default_factory=dict)  # by message; a doubtful one counts for two
    uses: dict[str, int] = field(default_factory=dict)  # of each pipeline, in this round of the innermost loop
    depth: int = 0
    block: int = 0
    fresh: int = 0

    def follow(self) -> tuple[list[tuple[Stmt, Expr]], dict[str, list[Taken]]]:
        """What each statement of control that may decide apart goes by, and the slots that are taken, by pipeline."""
        self._block(self.role.body)
        carried = {value: message for value, message in self.sent.items() if self.stores[message] == 1 and whose(value)}
        known = lambda c: _mapped(c, carried.get)  # noqa: E731
        return [(s, known(c)) for s, c in self.decided], self._under_known(known)

    def _under_known(self, known: Callable[[Expr], Expr]) -> dict[str, list[Taken]]:
        """The slots taken, with more known of the conditions."""
        more = lambda t: replace(t, under=tuple(replace(u, condition=known(u.condition)) for u in t.under))  # noqa: E731
        return {p: list(map(more, found)) for p, found in self.taken.items()}

    # --- statements

    def _block(self, block: Block) -> None:
        """What a block binds ends with it, but for slots, which outlive their guard (S4)."""
        outer, self.fresh = self.block, self.fresh + 1
        self.block = self.fresh
        before: dict[str, Expr | Slot | None] = {}
        for s in block:
            if isinstance(s, Let | Var):
                for b in s.bindings:
                    value = self._followed(b.value, b.name)
                    before.setdefault(b.name, self.values.get(b.name))
                    self.values[b.name] = value
            else:
                self._stmt(s)
        for name, value in before.items():
            if value is None:
                del self.values[name]
            else:
                self.values[name] = value
        self.block = outer

    def _stmt(self, s: Stmt) -> None:
        match s:
            case Assign(Name(name), value) if name in self.values:
                self.values[name] = self._followed(value, name)
            case Op(name, (Name(p),)) if name in OPENING and p in self.pipelines:
                self._take(s, p)
            case Op():
                self._store(s)
            case If(test, then, other):
                self._if(s, self._value(test, "the condition"), then, other)
            case For(pattern, lo, None):  # all roles have the same items, whatever they call the coordinates
                self._round(s, {n: Name(f"{lo.id}|{i}") for i, n in enumerate(pattern)})
            case For(pattern, lo, hi):
                lo, hi = self._value(lo, "the start of a loop"), self._value(hi, "the end of a loop")
                self._under(
                    s, Call(Name("for"), (lo, hi)), lambda: self._round(s, {pattern[0]: Call(Name("index"), (lo, hi, Int(self.depth)))})
                )
            case While():
                self._while(s)

    def _under(self, s: Stmt, condition: Expr, inside: Callable[[], None]) -> None:
        outer = self.under
        if self._apart(s, condition):
            self.under = (*outer, Under(condition, id(s) if isinstance(s, For | While) else None))
        inside()
        self.under = outer

    def _apart(self, s: Stmt, condition: Expr) -> bool:
        """Whether roles may decide a statement apart: by what its values are, or by memory that somebody writes."""
        return self.apart(s) or whose(condition) is not None

    def _if(self, s: If, test: Expr, then: Block, other: Block | None) -> None:
        if self._apart(s, test):
            self.decided.append((s, test))
        before = dict(self.values)
        self._under(s, test, lambda: self._block(then))
        first, self.values = self.values, before
        self._under(s, Unary("not", test), lambda: self._block(other or ()))
        for name, value in first.items():
            now = self.values.get(name)
            if now is None or isinstance(value, Slot):  # a slot under its guard
                self.values[name] = value
            elif now != value:
                self.values[name] = self._own(name) if isinstance(now, Slot) else Cond(test, value, now)

    def _round(self, s: For, bound: dict[str, Expr]) -> None:
        """The body once, standing for every round: what it assigns is not followed from round to round."""
        if self.under and self.under[-1].loop == id(s):
            self.decided.append((s, self.under[-1].condition))
        changed = self._changed(s.body)
        before = {n: self.values.get(n) for n in bound}
        self.values |= {n: self._own(n) for n in changed} | bound
        self._body(s.body)
        self.values |= {n: self._own(n) for n in changed}
        self.values |= {n: v for n, v in before.items() if v is not None}

    def _body(self, body: Block) -> None:
        uses, self.uses = self.uses, {}
        self.depth += 1
        self._block(body)
        self.depth -= 1
        self.uses = uses

    def _while(self, s: While) -> None:
        """In the body, what the loop asks held at the start of the round."""
        changed = self._changed(s.body)
        self.fresh += 1
        marks = {n: Name(f"{ROUND}{self.fresh}|{n}") for n in changed}
        mark = Name(f"{ROUND}{self.fresh}|")
        start = {marks[n].id: self.values[n] for n in changed}
        self.values |= marks
        test = self._value(s.test, "the condition")
        self.decided.append((s, mark))
        self._under(s, mark, lambda: self._body(s.body))
        condition, numbered = self._closed(test, start, {marks[n].id: self.values[n] for n in changed})
        found = {m.id: self._own(n) for n, m in marks.items()} | numbered | {mark.id: condition}
        self.decided = [(x, put(c, found)) for x, c in self.decided]
        self.taken = self._under_known(lambda c: put(c, found))
        self.sent = {put(value, found): message for value, message in self.sent.items()}
        self.values |= {n: self._own(n) for n in changed}

    def _closed(self, test: Expr, start: dict[str, Expr | Slot], behind: dict[str, Expr | Slot]) -> tuple[Expr, dict[str, Expr]]:
        """The loop as an expression, and the numbers of the variables that it needs."""
        numbered: dict[str, Expr] = {}
        waiting = [test]
        while waiting:
            for n in names(waiting.pop(0)):
                if n.id in start and n.id not in numbered:
                    numbered[n.id] = Name(f"{ROUND}{self.depth}.{len(numbered)}")
                    waiting.append(behind[n.id])
        variables = tuple(Call(Name("var"), (numbered[m], start[m], put(behind[m], numbered))) for m in numbered)
        return Call(Name("while"), (put(test, numbered), *variables)), numbered

    def _changed(self, body: Block) -> list[str]:
        """Variables of around that a body assigns."""
        targets = (t for s in walk(body) if isinstance(s, Assign) for t in (s.target.items if isinstance(s.target, Tuple) else (s.target,)))
        return [n for n in dict.fromkeys(t.id for t in map(root, targets) if t is not None) if isinstance(self.values.get(n), Expr)]

    # --- messages

    def _take(self, s: Op, p: str) -> None:
        self.taken.setdefault(p, []).append(Taken(s, self.under))
        self.uses[p] = self.uses.get(p, 0) + 1
        if (named := s.words.get("as")) is not None:
            self.values[named.id] = Slot(p, f"{self.depth}.{self.uses[p]}", self.block, s.name == "acquire")

    def _store(self, s: Op) -> None:
        """A scalar that is stored into an acquired slot is what the consumers load, if nothing else is, and it is always stored."""
        if (
            s.value is None
            or not isinstance(s.value.type, Scalar)
            or len(s.operands) != 1
            or (found := self._message(s.operands[0])) is None
        ):
            return
        slot, message = found
        if not slot.fills:
            return
        always = slot.block == self.block and not (isinstance(self.role.instances, Int) and self.role.instances.value > 1)
        self.stores[message] = self.stores.get(message, 0) + (1 if always else 2)
        self.sent[self._value(s.value, "the value")] = message

    def _message(self, place: Expr) -> tuple[Slot, Expr] | None:
        """The slot that a place lies in and, as an expression, the message there; None for any other place, and where another buffer has the
        same bytes: what is stored there may be gone when it is read."""
        indices: tuple[Expr, ...] = ()
        while isinstance(place, Index):
            place, indices = place.base, (*place.indices, *indices)
        slot = self.values.get(indices[0].id) if isinstance(place, Name) and indices and isinstance(indices[0], Name) else None
        if not isinstance(slot, Slot) or place.id not in self.pipelines[slot.pipeline].buffers or place.id in declared_mates(self.kernel.body):
            return None
        rest = tuple(self._value(i, "an index") for i in indices[1:])
        base = Name(f"{MESSAGE}{slot.pipeline}|{slot.use}|{place.id}")
        return None if any(map(whose, rest)) else (slot, Index(base, rest) if rest else base)

    # --- values

    def _own(self, what: str) -> Name:
        self.fresh += 1
        return Name(f"{OWN}{self.role.name}|{self.fresh}|{what}")

    def _followed(self, e: Expr, name: str) -> Expr:
        """What a name stands for. One that stands for too much is a name again, which no other role has."""
        value = self._value(e, name)
        if size(value, LONGEST) < LONGEST:
            return value
        return self._own(name) if whose(value) else Name(f"{LONG}{self.role.name}|{name}")

    def _value(self, e: Expr, what: str) -> Expr:
        """`e` in terms of messages, constants and values of the CTA; of anything else a name of the role's own, called `what`."""
        again = lambda x: self._value(x, what)  # noqa: E731
        match e:
            case Int() | Float() | Bool():
                return e
            case Name(id) if id in self.values:
                found = self.values[id]
                return self._own(id) if isinstance(found, Slot) else found
            case Name(id):
                shared = isinstance(e.type, Scalar) and e.type.level is Level.CTA
                return e if shared else self._own(id)
            case Unary(op, a):
                return Unary(op, again(a))
            case Binary(op, a, b):
                return Binary(op, again(a), again(b))
            case Cond(test, then, other):
                return Cond(again(test), again(then), again(other))
            case Option(name, value):
                return Option(name, again(value))
            case Call(Name("load"), (place,)) if (found := self._message(place)) is not None and not found[0].fills:
                return found[1]
            case Call(function, args) if isinstance(e.type, Scalar) and self._pure(e):
                return Call(function, tuple(self._place(a, what) if isinstance(a, Index) else again(a) for a in args))
        return self._own(expr_text(e) if isinstance(e, Call) and size(e, SHOWN) < SHOWN else what)

    def _place(self, place: Expr, what: str) -> Expr:
        if not isinstance(place, Index):
            return place
        return Index(self._place(place.base, what), tuple(self._value(i, what) for i in place.indices))

    def _pure(self, call: Call) -> bool:
        """A function of its arguments: it touches nothing, or reads inputs, which are the same for the whole kernel (S11)."""
        inputs = {p.name for p in self.kernel.params if p.mode == "in"}
        touched = (e for e in effects_of(Let((Binding("", call),)), self.registry) if isinstance(e, Access))
        return all(e.mode is Mode.READ and (name := root(e.place)) is not None and name.id in inputs for e in touched)
