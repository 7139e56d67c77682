"""Expressions of facts as terms of linear integer arithmetic.

Sums, products with constants, division and remainder by constants, `min`, `max` and comparisons keep their meaning. What lies
outside of it (a product of unknowns, a number read from a tensor) becomes an *opaque* value: a function of the loop iterations that its
operands depend on, named by their text, so that the same expression is the same value in every role. All that is known
of it is its range. This errs towards alarms, never towards proofs.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import field

from cake_core import smt
from cake_core.facts.schema import Facts
from cake_core.frozen import frozen, thawed
from cake_core.ir import ranges
from cake_core.ir.nodes import Binary, Bool, Call, Cond, Expr, Index, Int, Name, Option, Unary
from cake_core.ir.printer import expr_text
from cake_core.ir.ranges import ANY, Range
from cake_core.sha256 import sha256

#: Iterations are integers of this name, by the loop's own text: `it!1f3a`. Those of different roles coincide if their loops do.
ITERATION = re.compile(r"it![0-9a-f]+")
#: Symbols for what a value is at a loop's head (`loops.py`); an opaque value may hide one in its name.
HEAD = re.compile(r"h![^ ()|]+!")
OPAQUE = re.compile(r"u![0-9a-f]+")

TRUE, FALSE, ZERO, ONE = smt.Constant(True), smt.Constant(False), smt.Constant(0), smt.Constant(1)

_COMPARE = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:10]


@thawed
class Mentioned:
    """Names of unknowns and of functions in terms, remembered for each part of a term."""

    met: dict[int, frozenset[str]] = field(default_factory=dict)

    def of(self, term: smt.Term) -> frozenset[str]:
        key = term.ast
        if key not in self.met:
            self._meet(term)
        return self.met[key]

    def _meet(self, term: smt.Term) -> None:
        for t, key, parts in inner_first(term, self.met):
            found = {self.met[k] for k in parts if self.met[k]}
            names = next(iter(found)) if len(found) == 1 else frozenset().union(*found)
            if t.is_free and t.name not in names:
                names = names | {t.name}
            self.met[key] = names


def inner_first(term: smt.Term, met: Container[int]) -> Iterator[tuple[smt.Term, int, list[int]]]:
    """Parts of a term that are not met yet, inner ones first: each with its id and those of its parts. Who asks puts it into `met`."""
    stack = [(term, term.ast, None)]
    while stack:
        t, key, parts = stack.pop()
        if key in met:
            continue
        if parts is None:
            parts = [(c, c.ast) for c in t.args]
            if left := [(c, k, None) for c, k in parts if k not in met]:
                stack += [(t, key, parts), *left]
                continue
        yield t, key, [k for _, k in parts]


def solver(rlimit: int) -> smt.Solver:
    """For what this room asks. Of z3's two simplex cores the older one is the faster one here."""
    return smt.Solver("QF_UFLIA", smt.context(), rlimit=rlimit, **{"arith.solver": 2})


def literal(t: smt.Term) -> int | None:
    return t.value


@frozen
class Num:
    """A term and the range that its value surely lies in."""

    term: smt.Term
    range: Range = ANY

    @staticmethod
    def of(n: int) -> Num:
        return Num(smt.IntVal(n), ranges.constant(n))


Env = dict[str, Num]


@thawed
class Numbers:
    """Terms over the parameters of one kernel. `known`: what holds of them and of the opaque values met so far."""

    facts: Facts
    parameters: dict[str, Num] = field(default_factory=dict)
    known: list[smt.Term] = field(default_factory=list)
    opaque: dict[str, str] = field(default_factory=dict)  # what a name stands for
    ranges: dict[str, Range] = field(default_factory=dict)  # of opaque functions of iterations
    defined: dict[str, tuple[tuple[smt.Term, ...], smt.Term]] = field(default_factory=dict)  # functions that stand for a term: its iterations and it
    exact: list[tuple[smt.Term, smt.Term]] = field(default_factory=list)  # what `known` leaves open: products, quotients by unknowns
    open: dict[str, tuple[list, smt.Term]] = field(default_factory=dict)  # functions of iterations that `known` leaves open likewise
    hidden: dict[str, frozenset[str]] = field(default_factory=dict)  # heads that an opaque value depends on
    mentioned: Mentioned = field(default_factory=Mentioned)
    _made: dict[str, Num] = field(default_factory=dict)
    _ways: dict[str, dict[int, tuple[smt.Term, smt.Term]]] = field(default_factory=dict)  # loops by start and step: where they end, and their trips

    def __post_init__(self) -> None:
        bounds = _bounds(self.facts)
        for name in (*self.facts.scalars, "cluster.id", "cluster.count"):
            r = bounds.get(name, ANY)
            self.parameters[name] = Num(smt.Int(name), r)
            self._limit(smt.Int(name), r)
        for e in self.facts.requires:
            self.known.append(self.condition(e, {}))
        items, count = self.number(self.facts.launch.items, {}).term, smt.Int("cluster.count")
        self.known += [smt.Int("cluster.id") < count, count <= items if self.facts.launch.persistent else count == items]

    def _limit(self, term: smt.Term, r: Range) -> None:
        if r.lo is not None:
            self.known.append(term >= r.lo)
        if r.hi is not None:
            self.known.append(term <= r.hi)

    # --- integers --------------------------------------------------------------------------------------------------

    def number(self, e: Expr, env: Env) -> Num:
        match e:
            case Int(v):
                return Num.of(v)
            case Bool(v):
                return Num.of(int(v))
            case Name(id):
                return env.get(id) or self.parameters.get(id) or self.unknown(f"name {id}", id, ANY)
            case Unary("-", a):
                x = self.number(a, env)
                return Num(-x.term, ranges.neg(x.range))
            case Unary("+", a):
                return self.number(a, env)
            case Binary(op, a, b) if op in ranges.BINARY:
                return self._arithmetic(op, self.number(a, env), self.number(b, env), e)
            case Cond(test, a, b):
                x, y = self.number(a, env), self.number(b, env)
                return Num(smt.If(self.condition(test, env), x.term, y.term), x.range.join(y.range))
            case Call() if e.name in ("min", "max", "clamp", "ceildiv"):
                return self._call(e, [self.number(a, env) for a in e.positional])
            case Index() | Call():
                return self._read(e, env)
        return self.unknown(f"expression {expr_text(e)}", expr_text(e), ANY)

    def _arithmetic(self, op: str, x: Num, y: Num, e: Expr) -> Num:
        a, b, r = x.term, y.term, ranges.BINARY[op](x.range, y.range)
        known = y.range.constant
        match op:
            case "+":
                return Num(a + b, r)
            case "-":
                return Num(a - b, r)
            case "*" if known is not None or x.range.constant is not None:
                return Num(a * b, r)
            case "/" if known is not None and known > 0:
                return Num(a / known, r) if known > 1 else x
            case "%" if known is not None and known > 0:
                return Num(a % known, r)
        out = self.unknown(f"{op} {a.sexpr()} {b.sexpr()}", expr_text(e), r)
        if op == "*" or y.range.positive:
            self.is_exactly(out.term, {"*": lambda: a * b, "/": lambda: a / b, "%": lambda: a % b}[op]())
        return out

    def is_exactly(self, opaque: smt.Term, term: smt.Term) -> None:
        """Say for examples what `known` leaves open: an opaque value, or a function of iterations, of which none but its own stand in `term`."""
        if not (args := opaque.args):
            self.exact.append((opaque, term))
        elif opaque.name not in self.open and {n for n in self.mentioned.of(term) if ITERATION.fullmatch(n)} <= {a.name for a in args}:
            self.open[opaque.name] = list(args), term

    def goes(self, way: str, hi: smt.Term, step: smt.Term, trips: smt.Term) -> None:
        """Say of the trips of a loop by an unknown step, which is positive, how they compare with those of loops that start and step as it does:
        who goes further goes round no less often, and at most once more where it is one step further."""
        ways = self._ways.setdefault(way, {})
        if trips.ast in ways:
            return
        for end, other in ways.values():
            for (near, fewer), (far, more) in (((end, other), (hi, trips)), ((hi, trips), (end, other))):
                self.known += [smt.Implies(near <= far, fewer <= more), smt.Implies(far <= near + step, more <= fewer + 1)]
        ways[trips.ast] = hi, trips

    def _call(self, e: Call, args: list[Num]) -> Num:
        match e.name, args:
            case "min", [x, y]:
                return Num(_if(x.term <= y.term, x.term, y.term), ranges.minimum(x.range, y.range))
            case "max", [x, y]:
                return Num(_if(x.term >= y.term, x.term, y.term), ranges.maximum(x.range, y.range))
            case "clamp", [x, lo, hi]:
                raised = _if(x.term >= lo.term, x.term, lo.term)
                return Num(_if(raised <= hi.term, raised, hi.term), ranges.clamp(x.range, lo.range, hi.range))
            case "ceildiv", [x, y] if (d := y.range.constant) is not None and d > 0:
                return Num((x.term + (d - 1)) / d, ranges.ceildiv(x.range, y.range))
        r = ranges.ceildiv(*(a.range for a in args)) if e.name == "ceildiv" else ANY
        out = self.unknown(f"{e.name} " + " ".join(a.term.sexpr() for a in args), expr_text(e), r)
        if e.name == "ceildiv" and args[1].range.positive:
            self.is_exactly(out.term, (args[0].term + args[1].term - 1) / args[1].term)
        return out

    def _read(self, e: Expr, env: Env) -> Num:
        """A function of what it is given: the numbers among its arguments, and its text for the rest."""
        return self.unknown(self._shape(e, env), expr_text(e), ANY)

    def _shape(self, e: Expr, env: Env) -> str:
        match e:
            case Call():
                return f"{e.name}({', '.join(self._shape(a, env) for a in e.args)})"
            case Option(name, value):
                return f"{name}={self._shape(value, env)}"
            case Index(base, indices):
                return f"{expr_text(base)}[{', '.join(self._shape(i, env) for i in indices)}]"
            case Int() | Name() | Unary() | Binary() | Cond():
                return self.number(e, env).term.sexpr() if not isinstance(e, Name) or e.id in env or e.id in self.parameters else e.id
        return expr_text(e)

    def unknown(self, key: str, text: str, r: Range) -> Num:
        """The opaque value of `key`; `text` as a person would know it."""
        if key in self._made:
            return self._made[key]
        name = f"u!{digest(key)}"
        its = sorted(set(ITERATION.findall(key)))
        term = smt.apply(name, [smt.Int(i) for i in its]) if its else smt.Int(name)
        self.opaque[name] = text
        inner = [self.hidden.get(u, frozenset()) for u in OPAQUE.findall(key)]
        if heads := frozenset(HEAD.findall(key)).union(*inner):
            self.hidden[name] = heads
        if its:
            self.ranges[name] = r
        else:
            self._limit(term, r)
        self._made[key] = Num(term, r)
        return self._made[key]

    def named(self, key: str, text: str, x: Num) -> Num:
        """A name for a term that stands at many places. What it equals is known of each use."""
        if key in self._made or literal(x.term) is not None:
            return self._made.get(key, x)
        out = self.unknown(f"{key} {x.term.sexpr()}", text, x.range)
        if its := out.term.args:
            self.defined[out.term.name] = (its, x.term)
        else:
            self.known.append(out.term == x.term)
            self.exact.append((out.term, x.term))
        self._made[key] = out
        return out

    # --- conditions ------------------------------------------------------------------------------------------------

    def condition(self, e: Expr, env: Env) -> smt.Term:
        match e:
            case Bool(v):
                return smt.BoolVal(v)
            case Unary("not", a):
                return smt.Not(self.condition(a, env))
            case Binary("and", a, b):
                return smt.And(self.condition(a, env), self.condition(b, env))
            case Binary("or", a, b):
                return smt.Or(self.condition(a, env), self.condition(b, env))
            case Binary(op, a, b) if op in _COMPARE:
                return _COMPARE[op](self.number(a, env).term, self.number(b, env).term)
            case Cond(test, a, b):
                return smt.If(self.condition(test, env), self.condition(a, env), self.condition(b, env))
        return self.number(e, env).term != 0


def _if(c: smt.Term, a: smt.Term, b: smt.Term) -> smt.Term:
    c = smt.simplify(c)
    return a if smt.is_true(c) else b if smt.is_false(c) else smt.If(c, a, b)


def _bounds(facts: Facts) -> dict[str, Range]:
    """Ranges of parameters from `require`s that compare one with a number, and what a launch gives."""
    out = {"cluster.id": ranges.at_least(0), "cluster.count": ranges.at_least(1)}

    def meet(name: str, r: Range) -> None:
        out[name] = out.get(name, ANY).meet(r)

    for e in facts.requires:
        match e:
            case Binary("<=", Int(c), Name(n)) | Binary(">=", Name(n), Int(c)):
                meet(n, Range(c, None))
            case Binary("<=", Name(n), Int(c)) | Binary(">=", Int(c), Name(n)):
                meet(n, Range(None, c))
            case Binary("<", Int(c), Name(n)) | Binary(">", Name(n), Int(c)):
                meet(n, Range(c + 1, None))
            case Binary("<", Name(n), Int(c)) | Binary(">", Int(c), Name(n)):
                meet(n, Range(None, c - 1))
            case Binary("==", Binary("%", Name(n), Int(m)), Int(r)):
                meet(n, Range(None, None, m, r))
    return out
