"""That different CTAs never touch one element of a tensor: the predicate `disjoint`.

Two executions stand at two accesses. What follows from a common element is collected: their tiles overlap, so of two numbers
c * x + r and c * y + s, with r and s less than c apart, x is y; of equal quotients and equal remainders by one divisor the
dividends are equal; what is made of equal numbers in one way is equal; and equal indices of loops that start below their step and go
on by it have started at one number. Where all of this says that the cluster and the rank are the same, the accesses are
one CTA's. No solver is asked; what is left is asked of linear arithmetic on two copies of all numbers (`entailment.py`), which also finds the
counterexamples.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import field

from cake_core.facts.schema import Access, Tensor
from cake_core.frozen import frozen, thawed
from cake_core.prove.places import Places, Spot
from cake_core.prove.polynomials import All, Any, AtLeast, Condition, Monomial, Opaque, Poly, conjuncts, equal
from cake_core.prove.quantities import Choice, Element, Free, Quantities, Quotient

#: Of a difference: least and most, None: any.
Gap = tuple[int | None, int | None]
NONE: Gap = (0, 0)


class Apart(Exception):
    """The two can't both be."""


@thawed
class Twins:
    """What is known to be equal of two executions: atoms of the one and of the other. Constants of the kernel are equal by themselves."""

    places: Places
    path: tuple[Condition, ...]  # what holds at the first
    same: set[tuple[str, str]] = field(default_factory=set)
    _used: set[tuple[str, str]] = field(default_factory=set)

    @property
    def quantities(self) -> Quantities:
        return self.places.quantities

    # --- what is equal ---------------------------------------------------------------------------------------------

    def equal(self, p: Poly, q: Poly) -> bool:
        """Whether a number of the first surely is that of the second."""
        return len(p.terms) == len(q.terms) and not self._left(p, q)[0].terms

    def _left(self, p: Poly, q: Poly) -> tuple[Poly, Poly]:
        """The two without the terms that are equal; all constants in the first."""
        rest = {m: c for m, c in q.terms.items() if m}
        own = {(): p.terms.get((), 0) - q.terms.get((), 0)}
        for m, c in p.terms.items():
            if m:
                twin = next((n for n, d in rest.items() if c == d and self._monomials(m, n)), None)
                if twin is None:
                    own[m] = c
                else:
                    del rest[twin]
        return Poly({m: c for m, c in own.items() if c}), Poly(rest)

    def _monomials(self, m: Monomial, n: Monomial) -> bool:
        left = list(n)
        for a in m:
            twin = next((b for b in left if self._atoms(a, b)), None)
            if twin is None:
                return False
            left.remove(twin)
        return not left

    def _atoms(self, a: str, b: str) -> bool:
        if (a, b) in self.same:
            return True
        q = self.quantities
        if a in q.rests and b in q.rests:
            return all(self.equal(x, y) for x, y in zip(q.rests[a], q.rests[b], strict=True))
        match q.atoms[a], q.atoms[b]:
            case Free(), Free():
                return a == b and (a in self.places.facts.scalars or a == "cluster.count")
            case Quotient(x, d, _), Quotient(y, e, _):
                return self.equal(x, y) and self.equal(d, e)
            case Choice(x), Choice(y):
                return len(x) == len(y) and all(self._conditions(c, d) and self.equal(v, w) for (c, v), (d, w) in zip(x, y, strict=True))
            case Element(t, x), Element(u, y):  # of an input, which no one writes
                return t == u and len(x) == len(y) and all(map(self.equal, x, y))
        return False

    def _conditions(self, c: Condition, d: Condition) -> bool:
        match c, d:
            case AtLeast(p), AtLeast(q):
                return self.equal(p, q)
            case (All(x), All(y)) | (Any(x), Any(y)):
                return len(x) == len(y) and all(map(self._conditions, x, y))
        return False

    # --- what follows ----------------------------------------------------------------------------------------------

    def learn(self, p: Poly, q: Poly, gap: Gap = NONE) -> None:
        """That the first's `p` less the second's `q` is in `gap`. Raises Apart."""
        p, q = self._left(p, q)
        least, most = (None if g is None else g - p.terms.get((), 0) for g in gap)
        p = Poly({m: c for m, c in p.terms.items() if m})
        if not p.terms and not q.terms:
            if least is not None and least > 0 or most is not None and most < 0:
                raise Apart
            return
        if least == most == 0 and len(p.terms) == len(q.terms) == 1:
            ((m, c),), ((n, d),) = p.terms.items(), q.terms.items()
            if c == d and len(m) == len(n) == 1:
                self._found(m[0], n[0])
                return
        for c in sorted({abs(c) for c in (*p.terms.values(), *q.terms.values())}, reverse=True):
            self._split(p, q, c, least, most)

    def _split(self, p: Poly, q: Poly, c: int, least: int | None, most: int | None) -> None:
        """By the terms that are multiples of `c`: what is left is smaller than c, so they are equal."""
        (x, r), (y, s) = _multiples(p, c), _multiples(q, c)
        a, b = self.quantities.range(r), self.quantities.range(s)
        if None in (least, most, a.lo, a.hi, b.lo, b.hi) or not x.terms and not y.terms:
            return
        lo, hi = -((a.hi - b.lo - least) // c), (most - a.lo + b.hi) // c  # of x - y
        if lo > hi:
            raise Apart
        if lo == hi and (r.terms or s.terms or c > 1):
            self.learn(x, y, (lo, lo))
            self.learn(r, s, (least - c * lo, most - c * lo))

    def _found(self, a: str, b: str) -> None:
        if (a, b) in self.same:
            return
        self.same.add((a, b))

    def close(self, asked: list[tuple[Poly, Poly, Gap]]) -> None:
        """All that follows from some differences. Raises Apart."""
        while True:
            before = len(self.same), len(self._used)
            for p, q, gap in asked:
                self.learn(p, q, gap)
            for a, b in list(self.same):
                if (a, b) not in self._used:
                    self._whence(a, b)
            if (len(self.same), len(self._used)) == before:
                return

    def _whence(self, a: str, b: str) -> None:
        """What equal numbers were made of, where it follows."""
        q = self.quantities
        match q.atoms[a], q.atoms[b]:
            case Quotient(x, d, r), Quotient(y, e, s) if self._atoms(r, s) and self.equal(d, e) and self._holds(AtLeast(d - 1)):
                self._used.add((a, b))
                self.learn(x, y)
        if a in q.steps and b in q.steps:
            (x, d), (y, e) = q.steps[a], q.steps[b]
            if self.equal(d, e) and self._below(x, d) and self._below(y, e):
                self._used.add((a, b))
                self.learn(x, y)

    def _below(self, lo: Poly, step: Poly) -> bool:
        return all(self.places.entailment.holds(c, ()) for c in (AtLeast(lo), AtLeast(step - lo - 1)))

    def _holds(self, c: Condition) -> bool:
        return self.places.entailment.holds(c, self.path)


def _multiples(p: Poly, c: int) -> tuple[Poly, Poly]:
    """p as c * x + r."""
    x = {m: k // c for m, k in p.terms.items() if m and k % c == 0}
    return Poly(x), Poly({m: k for m, k in p.terms.items() if m not in x})


# --- two executions ------------------------------------------------------------------------------------------------


@thawed
class Second:
    """The numbers of the other execution: every atom that is no constant of the kernel has a copy."""

    places: Places
    names: dict[str, str] = field(default_factory=dict)

    def number(self, p: Poly) -> Poly:
        return Poly({tuple(sorted(map(self._atom, m))): c for m, c in p.terms.items()})

    def condition(self, c: Condition) -> Condition:
        match c:
            case AtLeast(p):
                return AtLeast(self.number(p))
            case All(parts):
                return All(tuple(map(self.condition, parts)))
            case Any(parts):
                return Any(tuple(map(self.condition, parts)))
        return Opaque(f"{c.name}'", c.denied)

    def _atom(self, name: str) -> str:
        q, facts = self.places.quantities, self.places.facts
        if name in facts.scalars or name == "cluster.count":
            return name
        if name not in self.names:
            own = self.names[name] = f"{name}'"
            if own in q.atoms:  # of a question before
                return own
            q.ranges[own], q.texts[own], q.atoms[own] = q.ranges[name], f"{q.texts[name]}'", q.atoms[name]
            match q.atoms[name]:
                case Quotient(over, by, rest):
                    q.atoms[own] = Quotient(self.number(over), self.number(by), self._atom(rest))
                case Choice(cases):
                    q.atoms[own] = Choice(tuple((self.condition(c), self.number(v)) for c, v in cases))
                case Element(tensor, at):
                    q.atoms[own] = Element(tensor, tuple(map(self.number, at)))
            if name in q.bounds:
                q.bounds[own] = [self.condition(c) for c in q.bounds[name]]
            if name in q.rests:
                q.rests[own] = tuple(map(self.number, q.rests[name]))
            if name in q.steps:
                q.steps[own] = tuple(map(self.number, q.steps[name]))
        return self.names[name]


@frozen
class Pair:
    """Two accesses of a tensor, each at a place of its text."""

    places: Places
    tensor: Tensor
    a: Access
    b: Access
    at_a: Spot
    at_b: Spot

    def never(self) -> bool:
        """Whether it follows that a common element is one CTA's."""
        twins = Twins(self.places, self.at_a.path)
        try:
            twins.close([*self._overlap(), *self._fixed(), *((p, q, NONE) for p, q in self.known())])
        except Apart:
            return True
        return all(twins.equal(p, q) or self._single(p, q) for p, q in self.ctas())

    def known(self) -> list[tuple[Poly, Poly]]:
        """What is equal of the two."""
        return []

    def _single(self, p: Poly, q: Poly) -> bool:
        a, b = self.places.quantities.range(p), self.places.quantities.range(q)
        return a.lo == a.hi == b.lo == b.hi is not None

    def _overlap(self):
        for x, y in zip(self.a.region.box, self.b.region.box, strict=True):
            (lo_x, most), (lo_y, least) = self.places.extent(x, self.at_a), self.places.extent(y, self.at_b)
            yield lo_x, lo_y, (None if most is None else -(most - 1), None if least is None else least - 1)

    def _fixed(self):
        """What the conditions around both say to be a number."""
        yield from ((p, q, NONE) for p, q in itertools.product(self._zeros(self.at_a), self._zeros(self.at_b)))

    def _zeros(self, at: Spot) -> list[Poly]:
        """What is neither less than 0 nor more."""
        least = list(conjuncts(at.path))
        return [p for p in least if -p in least or self.places.quantities.range(-p).nonneg]

    def ctas(self) -> list[tuple[Poly, Poly]]:
        """What tells CTAs apart: of the first, of the second."""
        own, rank = Poly.atom("cluster.id"), f"cluster.{self.places.facts.axis}"
        return [(own, own), *((self.at_a.env[n], self.at_b.env[n]) for n in (rank,) if n in self.at_a.env and n in self.at_b.env)]

    def starts(self) -> Iterator[Poly]:
        """What a common element depends on: where the two tiles start."""
        q = self.places.quantities
        for access, at in ((self.a, self.at_a), (self.b, self.at_b)):
            yield from (q.number(x.lo, at.env) for x in access.region.box)

    def goal(self) -> tuple[Condition, tuple[Condition, ...]]:
        """The same for the solver: that the CTAs are one, where an element is common."""
        q, second = self.places.quantities, Second(self.places)
        path = [*self.at_a.path, *map(second.condition, (*self.at_b.path, *q.known))]
        path += [equal(p, second.number(r)) for p, r in self.known()]
        if self.a.when is not None:
            path.append(q.condition(self.a.when, self.at_a.env))
        if self.b.when is not None:
            path.append(second.condition(q.condition(self.b.when, self.at_b.env)))
        for n, (x, y, extent) in enumerate(zip(self.a.region.box, self.b.region.box, self.tensor.shape, strict=True)):
            element = q.free(f"element {n}", f"index {n}")
            path += [AtLeast(element), AtLeast(q.number(extent, {}) - element - 1)]
            for lo, size in (
                (q.number(x.lo, self.at_a.env), q.number(x.size, self.at_a.env)),
                (second.number(q.number(y.lo, self.at_b.env)), second.number(q.number(y.size, self.at_b.env))),
            ):
                path += [AtLeast(element - lo), AtLeast(lo + size - element - 1)]
        ctas = [equal(p, second.number(r)) for p, r in self.ctas()]
        indices = [p for p in self.at_a.env.values()] + [second.number(p) for p in self.at_b.env.values()]
        path += self._steps({a for p in indices for a in p.atoms()})
        return All(tuple(ctas)), tuple(path)

    def _steps(self, names: set[str]) -> list[Condition]:
        """Of loops' indices: so many steps behind their start."""
        q, out = self.places.quantities, []
        for name in sorted(names.intersection(q.steps)):
            lo, step = q.steps[name]
            if step.constant != 1:
                turns = q.free(f"turns {name.replace('#', ' ')}", f"turns of {q.texts[name]}")
                out += [AtLeast(turns), equal(Poly.atom(name), lo + step * turns)]
        return out
