"""Sums over iterations without products of unknowns: how often something has happened when a loop stands at an iteration.

A step that is the same in each iteration sums to a multiple; a step under a guard on the iteration (`k > 0`) to a count in closed form. Any
other step d(i) becomes a *prefix family*: an opaque P(n) = d(0) + .. + d(n-1), one for each text of d, so that
roles with the same loops share it. `lemmas` says of each two values of a family what linear arithmetic can use.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import field

from cake_core import smt
from cake_core.frozen import frozen, thawed
from cake_core.prove.numbers import ITERATION, ZERO, Mentioned, Numbers, digest, inner_first, literal, solver


@frozen
class Family:
    """P(n, outer..) with P(0) = 0 and P(n + 1) = P(n) + step(n). `step` is written with the iteration `index` and those of `outer`."""

    name: str
    index: str
    outer: tuple[str, ...]
    step: smt.Term
    least: int  # number that no step is below; -1: some may be negative
    invariant: bool  # the step does not depend on the iteration

    def at(self, n: smt.Term) -> smt.Term:
        return smt.apply(self.name, [n, *map(smt.Int, self.outer)])

    def step_at(self, n: smt.Term, outer: Sequence[smt.Term]) -> smt.Term:
        return smt.substitute(self.step, (smt.Int(self.index), n), *zip(map(smt.Int, self.outer), outer, strict=True))


@thawed
class Sums:
    numbers: Numbers
    families: dict[str, Family] = field(default_factory=dict)
    applications: Applications = field(default_factory=lambda: Applications())
    divided: dict[str, int] = field(default_factory=dict)  # families of whose every step a number is a divisor
    _families: dict[tuple[str, int], tuple[Family, int]] = field(default_factory=dict)  # by index and step
    _pairs: dict[tuple[int, int], list[smt.Term]] = field(default_factory=dict)
    _solver: smt.Solver | None = None
    _told: int = 0  # how much of what is known the solver has

    # --- validity under the kernel's requires ----------------------------------------------------------------------

    def holds(self, claim: smt.Term, *given: smt.Term) -> bool:
        """Whether a claim is surely true; False also where the solver does not know."""
        claim = smt.simplify(claim)
        if smt.is_true(claim):
            return True
        return self._ask(smt.Not(claim), *given)[0] == smt.UNSAT

    def example(self, term: smt.Term, *given: smt.Term) -> int | None:
        """A value that a term can have."""
        found, model = self._ask(term, *given)
        return model.number(term) if found == smt.SAT else None

    def _ask(self, term: smt.Term, *given: smt.Term) -> tuple[smt.Found, smt.Model | None]:
        """Whether a condition can hold, or a number be, with what is known; and how."""
        if self._solver is None:
            self._solver = solver(rlimit=400_000)
        self._solver.add(*self.numbers.known[self._told :])
        self._told = len(self.numbers.known)
        self._solver.push()
        self._solver.add(*given, *([term] if not term.is_int else []), *self.lemmas([term, *given]))
        found = self._solver.check()
        model = self._solver.model() if found == smt.SAT else None
        self._solver.pop()
        return found, model

    def divide(self, by: int) -> bool:
        """Look for families of whose every step `by` is a divisor, so that it is one of their sums; whether there are any. Their lemmas say
        it from then on."""
        found = [n for n, f in self.families.items() if self.divided.get(n, 1) % by and self.holds(f.step % by == 0, smt.Int(f.index) >= 0)]
        self.divided |= dict.fromkeys(found, by)
        return bool(found)

    def residue(self, term: smt.Term, by: int) -> smt.Term:
        """A term that leaves the same remainder by `by`: without the sums that it divides."""
        kept = [(a, c) for a, c in linear(term) if a is None or self.divided.get(a.name, 1) % by]
        return smt.simplify(smt.Sum([smt.IntVal(c) if a is None else c * a for a, c in kept])) if kept else ZERO

    # --- sums ------------------------------------------------------------------------------------------------------

    def sum(self, step: smt.Term, index: smt.Term, n: smt.Term) -> smt.Term:
        """step(0) + .. + step(n - 1), `step` written with `index`; n >= 0."""
        total = []
        for atom, factor in linear(step):
            total.append(factor * (n if atom is None else self._atom(atom, index, n)))
        return smt.simplify(smt.Sum(total)) if total else ZERO

    def _atom(self, atom: smt.Term, index: smt.Term, n: smt.Term) -> smt.Term:
        if atom.kind == smt.ITE:
            test, a, b = atom.args
            x, y = literal(a), literal(b)
            if x is not None and y is not None:
                if (count := counted(test, index, n, self.numbers.mentioned)) is not None:
                    return x * count + y * (n - count)
                if low := min(x, y):  # what each step adds is no matter of the family, of whose steps the least is to be known
                    return self._atom(smt.If(test, smt.IntVal(x - low), smt.IntVal(y - low)), index, n) + low * n
        family, apart = self.family(atom, index)
        return family.at(n) + apart * n

    def family(self, step: smt.Term, index: smt.Term) -> tuple[Family, int]:
        """The family whose steps are `step`, up to a constant: the second number, once a step."""
        own = index.name
        if (known := self._families.get((own, step.ast))) is None:
            known = self._families[own, step.ast] = self._family(step, own)
        return known

    def _family(self, step: smt.Term, own: str) -> tuple[Family, int]:
        text = step.sexpr()
        key = f"P!{digest(f'{own} {text}')}"
        if key not in self.families:
            if (like := self._alike(step, own)) is not None:
                return like
            met = set(ITERATION.findall(text))
            self.families[key] = Family(key, own, tuple(sorted(met - {own})), step, self._least(step, smt.Int(own) >= 0), own not in met)
        return self.families[key], 0

    def _least(self, step: smt.Term, inside: smt.Term) -> int:
        """The largest number that no step is below, by doubling and then by halves; -1 where 0 is none."""
        least = -1
        for c in (0, 1, 2, 4, 8, 16):
            if not self.holds(step >= c, inside):
                break
            least = c
        return next((c for c in range(2 * least - 1, least, -1) if least > 1 and self.holds(step >= c, inside)), least)

    def _alike(self, step: smt.Term, index: str) -> tuple[Family, int] | None:
        """A family of the same loop whose steps are as far from `step` in every iteration, though written differently."""
        inside = smt.Int(index) >= 0
        for f in self.families.values():
            if f.index != index:
                continue
            apart = self.example(step - f.step, inside)
            if apart is not None and self.holds(step == f.step + apart, inside):
                return f, apart
        return None

    # --- lemmas ----------------------------------------------------------------------------------------------------

    def lemmas(self, terms: list[smt.Term], seen: dict[int, smt.Term] | None = None, applied: Iterable[smt.Term] = ()) -> list[smt.Term]:
        """What holds of the opaque values and prefixes in `terms`, and of those `applied`; with `seen`, only of what is new to it."""
        seen = {} if seen is None else seen
        out = []
        by_family: dict[str, list] = {}
        fresh: set = set()
        batch = [*self.applications.of(terms), *applied]
        while batch:
            work = []
            for app in batch:
                if app.ast in fresh:
                    continue
                fresh.add(app.ast)
                name = app.name
                if app.ast not in seen:
                    if (r := self.numbers.ranges.get(name)) is not None:
                        out += _within(app, r)
                    if (d := self.numbers.defined.get(name)) is not None:
                        term = smt.substitute(d[1], *zip(d[0], app.args, strict=True))
                        out.append(app == term)
                        work.append(term)
                if name in self.families:
                    by_family.setdefault(name, []).append(app)
                    work.append(self.families[name].step_at(app.args[0], app.args[1:]))
                    if app.ast not in seen:
                        out.append(smt.Implies(app.args[0] == 0, app == 0))
                        if name in self.divided:
                            whole = smt.apply(f"{name}/{self.divided[name]}", app.args)
                            out.append(smt.Implies(app.args[0] >= 0, app == self.divided[name] * whole))
                        if self.families[name].least >= 0:
                            out.append(smt.Implies(app.args[0] >= 0, app >= 0))
                            if self.families[name].least > 0:
                                out.append(smt.Implies(app.args[0] >= 0, app >= self.families[name].least * app.args[0]))
                        if self.families[name].invariant:
                            step = work[-1]
                            out += [smt.Implies(smt.And(app.args[0] >= 0, step == c), app == c * app.args[0]) for c in (0, 1)]
                            out.append(smt.Implies(smt.And(app.args[0] >= 1, step >= 1), app >= step + app.args[0] - 1))
            batch = self.applications.of(work)
        old = list(seen.values())
        for name, apps in by_family.items():
            before = [a for a in old if a.name == name]
            pairs = itertools.chain(
                itertools.combinations([a for a in apps if a.ast not in seen], 2), itertools.product([a for a in apps if a.ast not in seen], before)
            )
            for a, b in pairs:
                out += self._pair(self.families[name], a, b)
        out += self._beside(by_family, seen)
        seen.update({a.ast: a for apps in (self.applications.of(terms), applied, *by_family.values()) for a in apps})
        return out

    def _beside(self, by_family: dict[str, list], seen: dict[int, smt.Term]) -> list[smt.Term]:
        """Sums of different steps over the same iterations: where each step is the other's and one of a few constants, so are the sums."""
        over: dict[tuple, list[smt.Term]] = {}
        for name, apps in by_family.items():
            if self.families[name].invariant:
                for a in {a.ast: a for a in apps}.values():
                    over.setdefault((self.families[name].index, *(x.ast for x in a.args)), []).append(a)
        out = []
        for apps in over.values():
            for a, b in itertools.combinations(apps, 2):
                if a.ast in seen and b.ast in seen:
                    continue
                n = a.args[0]
                x, y = (self.families[t.name].step_at(n, t.args[1:]) for t in (a, b))
                out += [smt.Implies(smt.And(n >= 0, x == y + c), a == b + c * n) for c in (-1, 0, 1)]
        return out

    def _pair(self, f: Family, a: smt.Term, b: smt.Term) -> list[smt.Term]:
        key = (a.ast, b.ast)
        if key not in self._pairs:
            self._pairs[key] = self._between(f, a, b)
        return self._pairs[key]

    def _between(self, f: Family, a: smt.Term, b: smt.Term) -> list[smt.Term]:
        out = []
        outer_a, outer_b = (x.args[1:] for x in (a, b))
        same = [x == y for x, y in zip(outer_a, outer_b, strict=True) if not x.eq(y)]
        for lo, hi, outer in ((a, b, outer_a), (b, a, outer_b)):
            m, n = lo.args[0], hi.args[0]
            step = f.step_at(m, outer)
            facts = [smt.Implies(m + 1 == n, hi == lo + step)]
            if f.invariant:
                facts.append(smt.Implies(smt.And(m < n, step == 0), hi == lo))
                facts.append(smt.Implies(smt.And(m < n, step >= 1), hi >= lo + step + max(f.least, 1) * (n - m - 1)))
            elif f.least >= 0:
                last = f.step_at(n - 1, outer)
                facts.append(smt.Implies(m < n, hi >= lo + step + f.least * (n - m - 1)))
                facts.append(smt.Implies(m < n, hi >= lo + last + f.least * (n - m - 1)))
            out += [smt.Implies(smt.And(same), x) for x in facts] if same else facts
        return out


def _within(app: smt.Term, r) -> list[smt.Term]:
    return ([app >= r.lo] if r.lo is not None else []) + ([app <= r.hi] if r.hi is not None else [])


def linear(term: smt.Term) -> list[tuple[smt.Term | None, int]]:
    """A term as a sum of atoms with constant factors; atom None: the constant. Raises nothing: what it cannot split is an atom."""
    term = smt.simplify(term, sums=True)
    out = []
    for t in term.args if term.kind == smt.ADD else [term]:
        if (c := literal(t)) is not None:
            out.append((None, c))
        elif t.kind == smt.MUL and len(t.args) == 2 and (c := literal(t.args[0])) is not None:
            out.append((t.args[1], c))
        elif t.kind == smt.UMINUS:
            out.append((t.args[0], -1))
        else:
            out.append((t, 1))
    return [(a, c) for a, c in out if c != 0]


def counted(test: smt.Term, index: smt.Term, n: smt.Term, mentioned: Mentioned) -> smt.Term | None:
    """How many i in 0 .. n - 1 satisfy `test`, a bound on `index` by something that does not depend on it; None: another test."""
    if test.kind == smt.NOT:
        inner = counted(test.args[0], index, n, mentioned)
        return None if inner is None else n - inner
    kinds = {smt.LE: "<=", smt.LT: "<", smt.GE: ">=", smt.GT: ">", smt.EQ: "=="}
    kind = kinds.get(test.kind)
    if kind is None or not test.args[0].is_int:
        return None
    rest, sign = [], 0
    for atom, factor in linear(test.args[0] - test.args[1]):
        if atom is not None and atom.eq(index):
            sign = factor
        elif atom is not None and index.name in mentioned.of(atom):
            return None
        else:
            rest.append(factor if atom is None else factor * atom)
    if sign not in (1, -1):
        return None
    bound = smt.Sum([smt.IntVal(x) if isinstance(x, int) else x for x in rest]) if rest else ZERO  # sign * i + bound (kind) 0
    limit = bound if sign < 0 else -bound  # i (kind or its mirror) limit
    if sign < 0:
        kind = {"<=": ">=", "<": ">", ">=": "<=", ">": "<", "==": "=="}[kind]
    clipped = lambda e: _min(_max(e, ZERO), n)
    match kind:
        case "==":
            return smt.If(smt.And(limit >= 0, limit < n), smt.IntVal(1), ZERO)
        case "<":
            return clipped(limit)
        case "<=":
            return clipped(limit + 1)
        case ">=":
            return n - clipped(limit)
        case ">":
            return n - clipped(limit + 1)
    return None


def _min(a, b):
    return smt.If(a <= b, a, b)


def _max(a, b):
    return smt.If(a >= b, a, b)


@thawed
class Applications:
    """Applications of uninterpreted functions in terms, remembered for each part of a term."""

    met: dict[int, tuple[smt.Term, ...]] = field(default_factory=dict)

    def of(self, terms: Iterable[smt.Term]) -> list[smt.Term]:
        """Those of some terms, inner ones too, each once."""
        out: dict[int, smt.Term] = {}
        for term in terms:
            if term.ast not in self.met:
                self._meet(term)
            for app in self.met[term.ast]:
                out[app.ast] = app
        return list(out.values())

    def _meet(self, term: smt.Term) -> None:
        for t, key, parts in inner_first(term, self.met):
            inner = {app.ast: app for k in parts for app in self.met[k]}
            if parts and t.is_free:
                inner[key] = t
            self.met[key] = tuple(inner.values())
