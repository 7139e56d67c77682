"""Expressions of facts as polynomials over atoms, each with its range and what defines it.

Unlike the terms of cuts (`numbers.py`), whose products and quotients of unknowns are opaque, these keep them: a quotient is an
atom q with 0 <= a - b*q < b, a choice (`min`, `clamp`, `c ? a : b`) one with its cases, an element of an input one that the kernel's
`assume`s speak of. Every name has one value a place, so all atoms are plain numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import reduce

from cake_core.facts.schema import Facts
from cake_core.frozen import frozen, thawed
from cake_core.ir import ranges
from cake_core.ir.nodes import Binary, Bool, Call, Cond, Expr, Index, Int, Name, Unary
from cake_core.ir.printer import expr_text
from cake_core.ir.ranges import ANY, Range
from cake_core.prove.polynomials import FALSE, TRUE, All, Any, AtLeast, Condition, Opaque, Poly, conjuncts, denied, equal, implied

Env = dict[str, Poly]

WORD = Range(-(2**31), 2**31 - 1)  # what 32 bits hold
UNSIGNED = Range(0, 2**32 - 1)  # ... of a u32


def unsigned(e: Expr) -> bool:
    return getattr(getattr(e.type, "elem", None), "kind", "") == "uint"


def word_of(e: Expr) -> Range:
    """What 32 bits of the type of `e` hold."""
    return UNSIGNED if unsigned(e) else WORD


@frozen
class Quotient:
    """The floor of `over` / `by`, where `by` is positive and never less than 0; `rest`: the atom of the remainder."""

    over: Poly
    by: Poly
    rest: str


@frozen
class Choice:
    """One of several values, each under its condition; one of these holds."""

    cases: tuple[tuple[Condition, Poly], ...]


@frozen
class Element:
    """Of an input tensor."""

    tensor: str
    at: tuple[Poly, ...]


@frozen
class Free:
    """A number as such: a parameter, an iteration. `loose`: one of which less is known than is so; `carried`: a variable's, at the
    head of a loop that changes it; `counts`: whose remainder by any constant can be any; `computed`: made of other numbers, in a way of which nothing is
    said here."""

    loose: bool = False
    carried: bool = False
    counts: bool = False
    computed: bool = False


Atom = Quotient | Choice | Element | Free


@thawed
class Quantities:
    """`known`: what holds of parameters. `texts`: atoms as a person knows them."""

    facts: Facts
    atoms: dict[str, Atom] = field(default_factory=dict)
    ranges: dict[str, Range] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    known: list[Condition] = field(default_factory=list)
    bounds: dict[str, list[Condition]] = field(default_factory=dict)  # what holds of an atom beside its definition
    rests: dict[str, tuple[Poly, Poly]] = field(default_factory=dict)  # of what over what an atom is the remainder
    steps: dict[str, tuple[Poly, Poly]] = field(default_factory=dict)  # of loops' indices: where they start, and by what they go on
    _made: dict[str, str] = field(default_factory=dict)
    _divisors: dict[str, bool] = field(default_factory=dict)  # by remainder, whether its divisor was known to be positive

    def __post_init__(self) -> None:
        for name in (*self.facts.scalars, "cluster.id", "cluster.count"):
            self.free(name, name, WORD)
        self.meet("cluster.id", Range(0, None))
        self.meet("cluster.count", Range(1, None))
        self.known = [self.condition(e, {}) for e in self.facts.requires]
        for e in self.facts.requires:
            self._narrow(e)
        items, count, own = self.number(self.facts.launch.items, {}), Poly.atom("cluster.count"), Poly.atom("cluster.id")
        self.known += [
            AtLeast(count - own - 1),
            AtLeast(items - own - 1),
            AtLeast(items - count) if self.facts.launch.persistent else equal(count, items),
        ]

    # --- atoms -----------------------------------------------------------------------------------------------------

    def free(self, name: str, text: str, r: Range = ANY, loose: bool = False, carried: bool = False) -> Poly:
        self.atoms[name] = Free(loose, carried)
        self.texts[name] = text
        self.ranges[name] = r
        return Poly.atom(name)

    def meet(self, name: str, r: Range) -> None:
        self.ranges[name] = self.ranges[name].meet(r)

    def _atom(self, key: str, text: Callable[[], str], r: Callable[[], Range], make: Callable[[str], Atom]) -> Poly:
        if key not in self._made:
            name = self._made[key] = f"a{len(self._made)}"
            self.texts[name], self.ranges[name] = text(), r()
            self.atoms[name] = make(name)
        return Poly.atom(self._made[key])

    def range(self, p: Poly) -> Range:
        out: Range | None = None
        for m, c in p.terms.items():
            factors = [self.ranges[a] for a in m]
            if c != 1 or not m:
                factors.insert(0, ranges.constant(c))
            r = reduce(ranges.mul, factors)
            out = r if out is None else ranges.add(out, r)
        return ranges.constant(0) if out is None else out

    def _narrow(self, e: Expr) -> None:
        """Ranges of parameters that a `require` compares with a number."""
        match e:
            case Binary("and", a, b):
                self._narrow(a)
                self._narrow(b)
            case Binary("==", Binary("%", Name(n), Int(m)), Int(r)) if m > 0 and n in self.atoms:
                self.meet(n, Range(None, None, m, r % m))
        for p in conjuncts([self.condition(e, {})]):
            match [m for m in p.terms if m]:
                case [(a,)] if isinstance(self.atoms[a], Free):
                    c, k = p.terms[a,], p.terms.get((), 0)  # c * a + k >= 0
                    self.meet(a, Range(-(k // c), None) if c > 0 else Range(None, k // -c))

    # --- integers --------------------------------------------------------------------------------------------------

    def number(self, e: Expr, env: Env) -> Poly:
        match e:
            case Int(v):
                return Poly.of(v)
            case Bool(v):
                return Poly.of(int(v))
            case Name(id):
                return env[id] if id in env else Poly.atom(id) if id in self.atoms else self.free(id, id, word_of(e), loose=True)
            case Unary("-", a):
                return -self.number(a, env)
            case Unary("+", a):
                return self.number(a, env)
            case Binary("+", a, b):
                return self.number(a, env) + self.number(b, env)
            case Binary("-", a, b):
                return self.number(a, env) - self.number(b, env)
            case Binary("*", a, b):
                return self.number(a, env) * self.number(b, env)
            case Binary("/", a, b):
                return self.quotient(self.number(a, env), self.number(b, env))
            case Binary("%", a, b):
                return self.remainder(self.number(a, env), self.number(b, env))
            case Cond(test, a, b):
                return self.choice(self.condition(test, env), self.number(a, env), self.number(b, env))
            case Call() if e.name in ("min", "max", "clamp", "ceildiv"):
                return self._call(e.name, [self.number(a, env) for a in e.positional])
            case Call() if e.name in ("i32", "u32") and len(e.positional) == 1:
                x = self.number(e.positional[0], env)
                r = self.range(x)
                if r.lo is not None and r.hi is not None and 0 <= r.lo and r.hi <= WORD.hi:
                    return x
            case Call() if (tile := next(iter(e.positional), None)) is not None and isinstance(tile, Index) and isinstance(tile.base, Name):
                at = tuple(self.number(i, env) for i in tile.indices)
                key = f"{e.name} {tile.base.id}[{', '.join(p.text for p in at)}] {', '.join(f'{n}={expr_text(v)}' for n, v in e.options.items())}"
                return self._atom(key, lambda: expr_text(tile), lambda: word_of(e), lambda name: Element(tile.base.id, at))
        key = f"expression {expr_text(e)} {sorted((k, p.text) for k, p in env.items())}"
        return self._atom(key, lambda: expr_text(e), lambda: word_of(e), lambda name: Free(loose=True, computed=True))

    def quotient(self, a: Poly, b: Poly) -> Poly:
        if (parts := self._divided(a, b)) is not None:
            return parts[0]
        return self._atom(f"{a.text} / {b.text}", lambda: self._unknown(a, b, "/"), lambda: ANY, lambda name: Free(loose=True, computed=True))

    def remainder(self, a: Poly, b: Poly) -> Poly:
        if (parts := self._divided(a, b)) is not None:
            return parts[1]
        return self._atom(f"{a.text} % {b.text}", lambda: self._unknown(a, b, "%"), lambda: ANY, lambda name: Free(loose=True, computed=True))

    def _unknown(self, a: Poly, b: Poly, op: str) -> str:
        return f"({self.shown(a)}) {op} ({self.shown(b)})"

    def _divided(self, a: Poly, b: Poly) -> tuple[Poly, Poly] | None:
        """Quotient and remainder; None where the divisor may be less than 0. Where it may be 0, all that is known is under its being none."""
        over, by = self.range(a), self.range(b)
        if not by.nonneg:
            return None
        d = b.constant
        if d == 0:
            return None
        if d is not None and all(c % d == 0 for c in a.terms.values()):
            return Poly({m: c // d for m, c in a.terms.items()}), Poly.of(0)
        if over.nonneg and over.hi is not None and by.positive and over.hi < by.lo:
            return Poly.of(0), a
        rest = self._atom(f"{a.text} % {b.text}", lambda: self._unknown(a, b, "%"), lambda: ranges.mod(over, by), lambda name: Free())
        (name,) = rest.atoms()
        q = self._atom(f"{a.text} / {b.text}", lambda: self._unknown(a, b, "/"), lambda: ranges.floordiv(over, by), lambda _: Quotient(a, b, name))
        if self._divisors.get(name) is by.positive:
            return q, rest  # all is said
        self._divisors[name] = by.positive
        self.bounds[name] = [equal(a, q * b + rest), AtLeast(rest), AtLeast(b - rest - 1)]
        self.rests[name] = a, b
        if not by.positive:
            some = AtLeast(b - 1)
            signs = [implied(AtLeast(a), All((AtLeast(q), AtLeast(a - q), AtLeast(a - rest))))]
            self.bounds[name] = [implied(some, c) for c in (*self.bounds[name], *signs)]
        return q, rest

    def choice(self, test: Condition, a: Poly, b: Poly) -> Poly:
        if a == b or test == TRUE:
            return a
        if test == FALSE:
            return b
        r = self.range(a).join(self.range(b))
        cases = ((test, a), (denied(test), b))
        return self._atom(f"{test} ? {a.text} : {b.text}", lambda: f"({self.shown(a)} or {self.shown(b)})", lambda: r, lambda name: Choice(cases))

    def _call(self, name: str, args: list[Poly]) -> Poly:
        match name, args:
            case "ceildiv", [a, b]:
                return self.quotient(a + b - 1, b)
            case "clamp", [x, lo, hi]:
                return self._call("min", [self._call("max", [x, lo]), hi])
            case _, [a, b]:
                first = self._compared(AtLeast(b - a) if name == "min" else AtLeast(a - b))
                out = self.choice(first, a, b)
                if first not in (TRUE, FALSE):
                    r = (ranges.minimum if name == "min" else ranges.maximum)(self.range(a), self.range(b))
                    for atom in out.atoms():
                        self.meet(atom, r)
                return out
        raise AssertionError(name)

    # --- conditions ------------------------------------------------------------------------------------------------

    def condition(self, e: Expr, env: Env) -> Condition:
        match e:
            case Bool(v):
                return TRUE if v else FALSE
            case Unary("not", a):
                return denied(self.condition(a, env))
            case Binary("and", a, b):
                return All((self.condition(a, env), self.condition(b, env)))
            case Binary("or", a, b):
                return Any((self.condition(a, env), self.condition(b, env)))
            case Binary("==" | "!=" | "<" | "<=" | ">" | ">=" as op, a, b) if _integers(a, b):
                x, y = self.number(a, env), self.number(b, env)
                match op:
                    case "==":
                        return self._both(x, y)
                    case "!=":
                        return denied(self._both(x, y))
                    case "<":
                        return self._compared(AtLeast(y - x - 1))
                    case "<=":
                        return self._compared(AtLeast(y - x))
                    case ">":
                        return self._compared(AtLeast(x - y - 1))
                return self._compared(AtLeast(x - y))
        return Opaque(f"{expr_text(e)} {sorted((k, p.text) for k, p in env.items())}")

    def _both(self, x: Poly, y: Poly) -> Condition:
        parts = tuple(self._compared(AtLeast(p)) for p in (x - y, y - x))
        return FALSE if FALSE in parts else TRUE if parts == (TRUE, TRUE) else All(parts)

    def _compared(self, c: AtLeast) -> Condition:
        r = self.range(c.poly)
        return TRUE if r.nonneg else FALSE if r.hi is not None and r.hi < 0 else c

    # --- what defines an atom --------------------------------------------------------------------------------------

    def definition(self, name: str) -> list[Condition]:
        r = self.ranges[name]
        own = Poly.atom(name)
        out = list(self.bounds.get(name, ()))
        out += [AtLeast(own - r.lo)] if r.lo is not None else []
        out += [AtLeast(-own + r.hi)] if r.hi is not None else []
        match self.atoms[name]:
            case Quotient(_, _, rest):
                out += self.bounds[rest]
            case Choice(cases):
                out += [implied(test, equal(own, value)) for test, value in cases]
        return out

    def shown(self, p: Poly) -> str:
        """As text, for a person."""
        parts = []
        for m, c in sorted(p.terms.items(), key=lambda x: (not x[0], x[0])):
            factors = [self.texts.get(a, a) for a in m]
            number = [str(abs(c))] if abs(c) != 1 or not m else []
            parts.append(("-" if c < 0 else "+", " * ".join(factors + number)))
        text = " ".join(f"{sign} {part}" for sign, part in parts) or "0"
        return text.removeprefix("+ ")


def _integers(*es: Expr) -> bool:
    """Whether expressions are of integers, as far as types say."""
    return all(getattr(getattr(e.type, "elem", None), "kind", "int") != "float" for e in es)
