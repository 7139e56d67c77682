"""One question about addresses, as text for a solver: its atoms, what defines them, and lemmas on their products (`entailment.py`)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from enum import Enum
from math import prod

from cake_core import smt
from cake_core.frozen import frozen, thawed
from cake_core.ir.nodes import Binary, Call, Index, Name
from cake_core.prove.polynomials import All, Any, AtLeast, Condition, Monomial, Opaque, Poly, conjuncts, denied, equal, implied, leaves
from cake_core.prove.quantities import Choice, Element, Free, Quantities, Quotient

#: Products that lemmas are made for; a question with more is not decided.
MOST = 120
#: Steps of one try to make a denial smaller.
SMALLER = 200_000


class Follows(Enum):
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@frozen
class Decision:
    """`values`: of atoms, where it does not follow. `loose`: variables that the answer no rests on, of which less is known than is so."""

    follows: Follows
    values: tuple[tuple[str, int], ...] = ()
    loose: tuple[str, ...] = ()


#: A polynomial, and others on which what is said of it depends.
Above = tuple[tuple[Poly, ...], Poly]


@thawed
class Question:
    """One question: conditions of which none may be kept all together. `definitions`: of the atoms that they meet."""

    quantities: Quantities
    conditions: list[Condition]
    definitions: list[Condition] = field(default_factory=list)
    atoms: dict[str, None] = field(default_factory=dict)
    monomials: dict[Monomial, None] = field(default_factory=dict)
    _compared: dict[tuple[Monomial, int], list[Above]] = field(default_factory=dict)  # by each term
    _indexed: tuple[int, int] = (0, 0)  # so many conditions and definitions

    # --- what it meets ---------------------------------------------------------------------------------------------

    def close(self) -> bool:
        """Gather atoms, definitions and the products that lemmas need; False: there are too many."""
        self._meet(self.conditions)
        self._elements()
        for name in list(self.atoms):
            match self.quantities.atoms[name]:
                case Quotient(over, by, _) if by.constant is None:
                    self._products_of(name, over, by)
        return len([m for m in self.monomials if len(m) > 1]) <= MOST

    def _meet(self, conditions: Iterable[Condition]) -> None:
        work = list(leaves(conditions))
        while work:
            for m in work.pop().terms:
                self._monomial(m, work)

    def _monomial(self, m: Monomial, work: list[Poly]) -> None:
        if m in self.monomials or not m:
            return
        self.monomials[m] = None
        for a in m:
            if a in self.atoms:
                continue
            self.atoms[a] = None
            own = self.quantities.definition(a)
            self.definitions += own
            work += leaves(own)
            if isinstance(at := self.quantities.atoms[a], Element):
                work += at.at
        if 1 < len(m) <= 4:
            for n, a in enumerate(m):  # a choice times the rest is one of the cases times the rest
                if isinstance(c := self.quantities.atoms[a], Choice):
                    rest = Poly({_without(m, n): 1})
                    cases = [implied(test, equal(Poly({m: 1}), value * rest)) for test, value in c.cases]
                    self.definitions += cases
                    work += leaves(cases)
                    break
                if isinstance(c, Quotient) and len(m) == 2 and c.by.constant is not None:
                    rest = Poly({_without(m, n): 1})
                    if self.quantities.range(rest).nonneg:
                        left = c.over - Poly.atom(a) * c.by  # the remainder, 0 .. by - 1
                        times = [AtLeast(left * rest), AtLeast((c.by - 1 - left) * rest)]
                        self.definitions += times
                        work += leaves(times)

    def _products_of(self, name: str, over: Poly, by: Poly) -> None:
        """For q = a / b: products of b with what may bound q."""
        factors = {f for p in conjuncts((*self.conditions, *self.definitions)) for m in p.terms if len(m) > 1 for f in m}
        near = set(over.atoms()) | {a for _, p in self._above(over) for a in p.atoms()}
        for f in sorted((factors & near) - set(by.atoms())):
            if isinstance(self.quantities.atoms[f], Free | Quotient):
                self._meet([AtLeast(Poly.atom(f) * by)])

    def _above(self, a: Poly, known: Iterable[Condition] = ()) -> Iterator[Above]:
        """Polynomials p with a < p, of the conditions that hold, and what else has to be no less than 0 for that."""
        if a.constant is not None:
            return
        wanted = [(m, -c) for m, c in a.terms.items() if m]
        for under, p in (*self._comparing(wanted[0]), *_comparisons(known)):
            if all(p.terms.get(m) == c for m, c in wanted):
                yield tuple(-x - 1 for x in under), p + a + 1

    def _comparing(self, term: tuple[Monomial, int]) -> list[Above]:
        """The comparisons of conditions and definitions in which a term stands, in their order."""
        count = len(self.conditions), len(self.definitions)
        if count != self._indexed:
            self._compared.clear()
            for under, p in _comparisons((*self.conditions, *self.definitions)):
                for of in p.terms.items():
                    self._compared.setdefault(of, []).append((under, p))
            self._indexed = count
        return self._compared.get(term, [])

    def _elements(self) -> None:
        """What the kernel's `assume`s say of the elements that are met."""
        groups: dict[str, list[tuple[str, Element]]] = {}
        for name in list(self.atoms):
            if isinstance(e := self.quantities.atoms[name], Element):
                groups.setdefault(e.tensor, []).append((name, e))
        said = []
        for e in self.quantities.facts.assumes:
            match e:
                case Call(args=(Name(tensor),)) if e.name == "monotone":
                    ends = self._stated(tensor)
                    known = [(at.at[0], Poly.atom(n)) for n, at in groups.get(tensor, ()) if len(at.at) == 1]
                    for (i, x), (j, y) in itertools.permutations([*known, *ends], 2):
                        said.append(implied(AtLeast(j - i), AtLeast(y - x)))
                    for (i, x), (j, y) in itertools.product(known, ends):
                        said.append(implied(equal(i, j), equal(x, y)))
                case Binary("==", Index(Name(tensor), (at,)), value):
                    i, x = self.quantities.number(at, {}), self.quantities.number(value, {})
                    said += [implied(equal(e.at[0], i), equal(Poly.atom(n), x)) for n, e in groups.get(tensor, ()) if len(e.at) == 1]
        self.definitions += said
        self._meet(said)

    def _stated(self, tensor: str) -> list[tuple[Poly, Poly]]:
        out = []
        for e in self.quantities.facts.assumes:
            match e:
                case Binary("==", Index(Name(of), (at,)), value) if of == tensor:
                    out.append((self.quantities.number(at, {}), self.quantities.number(value, {})))
        return out

    # --- lemmas ----------------------------------------------------------------------------------------------------

    def lemmas(self) -> list[Condition]:
        out: list[Condition] = []
        products = [m for m in self.monomials if len(m) > 1]
        for m in products:
            out += self._bounds(m)
        factors = {m: frozenset(m) for m in products}
        for a, b in itertools.combinations(products, 2):
            if not factors[a].isdisjoint(factors[b]):
                out += self._pair(a, b)
        for m in products:  # x*y against x itself: y > 1 or y < 1
            for n, x in enumerate(m):
                rest = Poly({_without(m, n): 1})
                if self.quantities.ranges[x].nonneg:
                    out.append(implied(AtLeast(rest - 1), AtLeast(Poly({m: 1}) - Poly.atom(x))))
                    out.append(implied(AtLeast(-rest), AtLeast(-Poly({m: 1}))))
        return out

    def _bounds(self, m: Monomial) -> list[Condition]:
        p, r = Poly({m: 1}), self.quantities.range(Poly({m: 1}))
        out: list[Condition] = [AtLeast(p - r.lo)] if r.lo is not None else []
        out += [AtLeast(-p + r.hi)] if r.hi is not None else []
        for n, x in enumerate(m):
            rest = _without(m, n)
            if rest not in self.monomials and len(rest) > 1:
                continue
            a, b = Poly.atom(x), Poly({rest: 1})
            ra, rb = self.quantities.ranges[x], self.quantities.range(b)
            for lo_a, lo_b, sign in ((ra.lo, rb.lo, 1), (ra.hi, rb.hi, 1), (ra.lo, rb.hi, -1), (ra.hi, rb.lo, -1)):
                if lo_a is not None and lo_b is not None:  # (a - lo_a) * (b - lo_b) has this sign
                    out.append(AtLeast((p - a * lo_b - b * lo_a + lo_a * lo_b) * sign))
        return out

    def _pair(self, a: Monomial, b: Monomial) -> list[Condition]:
        out = []
        for x in sorted(set(a) & set(b)):
            if not self.quantities.ranges[x].nonneg:
                continue
            y, z = (Poly({_without(m, m.index(x)): 1}) for m in (a, b))
            xy, xz = Poly({a: 1}), Poly({b: 1})
            for u, v, xu, xv in ((y, z, xy, xz), (z, y, xz, xy)):
                out.append(implied(AtLeast(u - v), AtLeast(xu - xv)))
                out.append(implied(AtLeast(u - v - 1), AtLeast(xu - xv - Poly.atom(x))))
        return out

    def quotients(self) -> list[Condition]:
        """Bounds of quotients by what they are of, and of quotients of these."""
        out: dict[Condition, None] = {}
        while True:
            fresh = [c for n in self.atoms if isinstance(q := self.quantities.atoms[n], Quotient) for c in self._quotient(n, q, out) if c not in out]
            if not fresh or len(out) > MOST:
                return list(out)
            out |= dict.fromkeys(fresh)

    def _quotient(self, name: str, q: Quotient, known: Iterable[Condition]) -> Iterator[Condition]:
        for under, above in self._above(q.over, known):
            left = above - q.by * Poly.atom(name)  # > 0, where the divisor is
            number, common = left.common()
            divided = left.divided(number, common)
            if common or number > 1:
                some = [Poly.atom(x) - 1 for x in common] + [q.by - 1]
                conditions = {*under, *(p for p in some if not self.quantities.range(p).nonneg)}
                yield Any((*(denied(AtLeast(p)) for p in sorted(conditions, key=lambda p: p.text)), AtLeast(divided - 1)))

    # --- solving ---------------------------------------------------------------------------------------------------

    def stated(self, conditions: Iterable[Condition]) -> str:
        """As text that a solver reads, which is several times as fast as making its terms."""
        return "".join(f"(assert {self._formula(c)})\n" for c in conditions)

    def small(self) -> Iterator[str]:
        """All parameters but one at their least, which makes most products linear: where a denial is sought. Of two clusters there are two."""
        least = {a: self._least(a) for a in self.atoms if a in self.quantities.facts.scalars or a == "cluster.count"}
        for free in least:
            yield "".join(f"(assert (= |{a}| {_number(n)}))\n" for a, n in least.items() if a != free)

    def _least(self, a: str) -> int:
        r = self.quantities.ranges[a]
        lo = max(r.lo or 0, 2 if a == "cluster.count" and "cluster.id'" in self.atoms else 1)
        return lo + (r.rem - lo) % r.mod if r.mod > 1 else lo

    def declared(self, sort: str = "Int") -> str:
        opaque = dict.fromkeys(_opaque((*self.conditions, *self.definitions)))
        names = {m: None for m in self.monomials if m} | {(a,): None for m in self.monomials for a in m}
        return "".join(f"(declare-const {_name(m)} {sort})\n" for m in names) + "".join(f"(declare-const {_quoted(n)} Bool)\n" for n in opaque)

    def _formula(self, c: Condition) -> str:
        match c:
            case AtLeast(p):
                return f"(>= {self._term(p)} 0)"
            case All(parts):
                return f"(and true {' '.join(map(self._formula, parts))})"
            case Any(parts):
                return f"(or false {' '.join(map(self._formula, parts))})"
            case Opaque(name, no):
                return f"(not {_quoted(name)})" if no else _quoted(name)
        raise AssertionError(c)

    def _term(self, p: Poly) -> str:
        parts = []
        for m, c in p.terms.items():
            self.monomials.setdefault(m)
            parts.append(_number(c) if not m else _name(m) if c == 1 else f"(* {_number(c)} {_name(m)})")
        return f"(+ 0 {' '.join(parts)})"

    def products(self) -> str:
        return "".join(f"(assert (= {_name(m)} (* {' '.join(_name((a,)) for a in m)})))\n" for m in self._stated_products())

    def _stated_products(self) -> list[Monomial]:
        return list(dict.fromkeys(m for p in leaves((*self.conditions, *self.definitions)) for m in p.terms if len(m) > 1))

    def keeps_products(self, model: smt.Model) -> bool:
        value = lambda m: model.number(model.ctx.int("*".join(m)))
        return all(value(m) == prod(value((a,)) for a in m) for m in self._stated_products())

    def smallest(self, s: smt.Solver, model: smt.Model, fits: Callable[[smt.Model], bool] = lambda model: True) -> smt.Model:
        """A model of `s` with small numbers, one after the other: sizes first, in the order of the text. What the solver shows first depends on
        where its memory lies."""
        s.set(rlimit=SMALLER)
        for a in (*(x for x in (*self.quantities.facts.scalars, "cluster.count") if x in self.atoms), *sorted(map(str, self._counted()))):
            x, low, high = model.ctx.int(a), self.quantities.ranges[a].lo or 0, model.number(model.ctx.int(a))
            tried = low
            while low < high:
                s.push()
                s.add(x <= tried, x >= low)
                better = s.model() if s.check() == smt.SAT else None
                s.pop()
                if better is not None and fits(better):
                    model, high = better, better.number(x)
                else:
                    low = tried + 1
                tried = (low + high) // 2
            s.add(x == high)
        return model

    def _counted(self) -> Iterator[str]:
        """Numbers of the run that a person knows by name."""
        return (
            a for a in self.atoms if isinstance(self.quantities.atoms[a], Free) and a not in self.quantities.facts.scalars and a != "cluster.count"
        )

    def denial(self, model: smt.Model, goal: Condition) -> Decision:
        values = tuple((a, model.number(model.ctx.int(a))) for a in self.atoms)
        return Decision(Follows.NO, values, loose_in(self.quantities, (a for p in leaves([goal]) for a in p.atoms())))


def loose_in(q: Quantities, atoms: Iterable[str], computed: bool = False) -> tuple[str, ...]:
    """Variables on which atoms depend, of which less is known than is so. `computed`: only those that other numbers decide."""
    loose: dict[str, None] = {}
    work = [(a, False) for a in atoms]
    seen: set[tuple[str, bool]] = set()
    while work:
        if (item := work.pop()) in seen:
            continue
        seen.add(item)
        a, rest = item
        match q.atoms[a]:
            case Free(loose=True, counts=counts) as free:
                if not (counts and rest) and (free.computed or not computed):
                    loose[q.texts[a]] = None
            case Quotient(over, by, _):
                work += [(x, False) for x in (*over.atoms(), *by.atoms())]
            case Choice(cases):
                inner = [x for test, value in cases for x in (*value.atoms(), *(y for p in leaves([test]) for y in p.atoms()))]
                work += [(x, False) for x in inner]
            case Element(_, at):
                work += [(x, False) for p in at for x in p.atoms()]
            case Free() if a in q.rests:
                over, by = q.rests[a]
                work += [(x, by.constant is not None) for x in over.atoms()] + [(x, False) for x in by.atoms()]
    return tuple(loose)


def _comparisons(conditions: Iterable[Condition]) -> Iterator[Above]:
    """What is surely no less than 0, where each of some is less than that."""
    for c in conditions:
        under: tuple[Poly, ...] = ()
        if isinstance(c, Any) and c.parts and all(isinstance(x, AtLeast) for x in c.parts):
            under, c = tuple(x.poly for x in c.parts[:-1]), c.parts[-1]
        for p in conjuncts((c,)):
            yield under, p


def _without(m: Monomial, n: int) -> Monomial:
    """All factors but the n-th."""
    return m[:n] + m[n + 1 :]


def _opaque(conditions: Iterable[Condition]) -> Iterator[str]:
    for c in conditions:
        match c:
            case All(parts) | Any(parts):
                yield from _opaque(parts)
            case Opaque(name):
                yield name


def _number(n: int) -> str:
    return str(n) if n >= 0 else f"(- {-n})"


def _name(m: Monomial) -> str:
    return f"|{'*'.join(m)}|"


def _quoted(name: str) -> str:
    return f"|{name.replace('|', '!').replace(chr(92), '!')}|"
