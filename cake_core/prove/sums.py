"""Sums over iterations without products of unknowns: how often something has happened when a loop stands at an iteration.

A step that is the same in each iteration sums to a multiple; a step under a guard on the iteration (`k > 0`) to a count in closed form. Any
other step d(i) becomes a *prefix family*: an opaque P(n) = d(0) + .. + d(n-1), one for each text of d, so that
roles with the same loops share it. `lemmas` says of each two values of a family what linear arithmetic can use.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

import z3

from cake_core.prove.numbers import ITERATION, ZERO, Mentioned, Numbers, digest, inner_first, literal, name_of, solver
from cake_core.rules.asked import checked


@dataclass(frozen=True, slots=True)
class Family:
    """P(n, outer..) with P(0) = 0 and P(n + 1) = P(n) + step(n). `step` is written with the iteration `index` and those of `outer`."""

    name: str
    index: str
    outer: tuple[str, ...]
    step: z3.ArithRef
    least: int  # number that no step is below; -1: some may be negative
    invariant: bool  # the step does not depend on the iteration

    def at(self, n: z3.ArithRef) -> z3.ArithRef:
        f = z3.Function(self.name, *[z3.IntSort()] * (len(self.outer) + 2))
        return f(n, *map(z3.Int, self.outer))

    def step_at(self, n: z3.ArithRef, outer: list[z3.ArithRef]) -> z3.ArithRef:
        return z3.substitute(self.step, (z3.Int(self.index), n), *zip(map(z3.Int, self.outer), outer, strict=True))


@dataclass(slots=True)
class Sums:
    numbers: Numbers
    families: dict[str, Family] = field(default_factory=dict)
    applications: Applications = field(default_factory=lambda: Applications())
    divided: dict[str, int] = field(default_factory=dict)  # families of whose every step a number is a divisor
    _families: dict[tuple[str, int], tuple[z3.ArithRef, tuple[Family, int]]] = field(default_factory=dict)  # by index and step, which is held
    _pairs: dict[tuple[int, int], list[z3.BoolRef]] = field(default_factory=dict)
    _solver: z3.Solver | None = None
    _told: int = 0  # how much of what is known the solver has

    # --- validity under the kernel's requires ----------------------------------------------------------------------

    def holds(self, claim: z3.BoolRef, *given: z3.BoolRef) -> bool:
        """Whether a claim is surely true; False also where the solver does not know."""
        claim = z3.simplify(claim)
        if z3.is_true(claim):
            return True
        return self._ask(z3.Not(claim), *given)[0] == z3.unsat

    def example(self, term: z3.ArithRef, *given: z3.BoolRef) -> int | None:
        """A value that a term can have."""
        found, model = self._ask(term, *given)
        return model.eval(term, True).as_long() if found == z3.sat else None

    def _ask(self, term: z3.ExprRef, *given: z3.BoolRef) -> tuple[z3.CheckSatResult, z3.ModelRef | None]:
        """Whether a condition can hold, or a number be, with what is known; and how."""
        if self._solver is None:
            self._solver = solver()
            self._solver.set("rlimit", 400_000)
        self._solver.add(*self.numbers.known[self._told :])
        self._told = len(self.numbers.known)
        self._solver.push()
        self._solver.add(*given, *([term] if z3.is_bool(term) else []), *self.lemmas([term, *given]))
        found = checked(self._solver)
        model = self._solver.model() if found == z3.sat else None
        self._solver.pop()
        return found, model

    def divide(self, by: int) -> bool:
        """Look for families of whose every step `by` is a divisor, so that it is one of their sums; whether there are any. Their lemmas say
        it from then on."""
        found = [n for n, f in self.families.items() if self.divided.get(n, 1) % by and self.holds(f.step % by == 0, z3.Int(f.index) >= 0)]
        self.divided |= dict.fromkeys(found, by)
        return bool(found)

    def residue(self, term: z3.ArithRef, by: int) -> z3.ArithRef:
        """A term that leaves the same remainder by `by`: without the sums that it divides."""
        kept = [(a, c) for a, c in linear(term) if a is None or not (z3.is_app(a) and self.divided.get(a.decl().name(), 1) % by == 0)]
        return z3.simplify(z3.Sum([z3.IntVal(c) if a is None else c * a for a, c in kept])) if kept else ZERO

    # --- sums ------------------------------------------------------------------------------------------------------

    def sum(self, step: z3.ArithRef, index: z3.ArithRef, n: z3.ArithRef) -> z3.ArithRef:
        """step(0) + .. + step(n - 1), `step` written with `index`; n >= 0."""
        total = []
        for atom, factor in linear(step):
            total.append(factor * (n if atom is None else self._atom(atom, index, n)))
        return z3.simplify(z3.Sum(total)) if total else ZERO

    def _atom(self, atom: z3.ArithRef, index: z3.ArithRef, n: z3.ArithRef) -> z3.ArithRef:
        if z3.is_app_of(atom, z3.Z3_OP_ITE):
            test, a, b = atom.children()
            x, y = literal(a), literal(b)
            if x is not None and y is not None:
                if (count := counted(test, index, n, self.numbers.mentioned)) is not None:
                    return x * count + y * (n - count)
                if low := min(x, y):  # what each step adds is no matter of the family, of whose steps the least is to be known
                    return self._atom(z3.If(test, z3.IntVal(x - low), z3.IntVal(y - low)), index, n) + low * n
        family, apart = self.family(atom, index)
        return family.at(n) + apart * n

    def family(self, step: z3.ArithRef, index: z3.ArithRef) -> tuple[Family, int]:
        """The family whose steps are `step`, up to a constant: the second number, once a step."""
        own = name_of(index)
        if (known := self._families.get((own, step.get_id()))) is None:
            known = self._families[own, step.get_id()] = step, self._family(step, own)
        return known[1]

    def _family(self, step: z3.ArithRef, own: str) -> tuple[Family, int]:
        text = step.sexpr()
        key = f"P!{digest(f'{own} {text}')}"
        if key not in self.families:
            if (like := self._alike(step, own)) is not None:
                return like
            met = set(ITERATION.findall(text))
            self.families[key] = Family(key, own, tuple(sorted(met - {own})), step, self._least(step, z3.Int(own) >= 0), own not in met)
        return self.families[key], 0

    def _least(self, step: z3.ArithRef, inside: z3.BoolRef) -> int:
        """The largest number that no step is below, by doubling and then by halves; -1 where 0 is none."""
        least = -1
        for c in (0, 1, 2, 4, 8, 16):
            if not self.holds(step >= c, inside):
                break
            least = c
        return next((c for c in range(2 * least - 1, least, -1) if least > 1 and self.holds(step >= c, inside)), least)

    def _alike(self, step: z3.ArithRef, index: str) -> tuple[Family, int] | None:
        """A family of the same loop whose steps are as far from `step` in every iteration, though written differently."""
        inside = z3.Int(index) >= 0
        for f in self.families.values():
            if f.index != index:
                continue
            apart = self.example(step - f.step, inside)
            if apart is not None and self.holds(step == f.step + apart, inside):
                return f, apart
        return None

    # --- lemmas ----------------------------------------------------------------------------------------------------

    def lemmas(self, terms: list[z3.ExprRef], seen: set | None = None, applied: Iterable[z3.ArithRef] = ()) -> list[z3.BoolRef]:
        """What holds of the opaque values and prefixes in `terms`, and of those `applied`; with `seen`, only of what is new to it."""
        seen = set() if seen is None else seen
        out = []
        by_family: dict[str, list] = {}
        fresh: set = set()
        batch = [*self.applications.of(terms), *applied]
        while batch:
            work = []
            for app in batch:
                if app.get_id() in fresh:
                    continue
                fresh.add(app.get_id())
                name = app.decl().name()
                if app not in seen:
                    if (r := self.numbers.ranges.get(name)) is not None:
                        out += _within(app, r)
                    if (d := self.numbers.defined.get(name)) is not None:
                        term = z3.substitute(d[1], *zip(d[0], app.children(), strict=True))
                        out.append(app == term)
                        work.append(term)
                if name in self.families:
                    by_family.setdefault(name, []).append(app)
                    work.append(self.families[name].step_at(app.arg(0), [app.arg(i) for i in range(1, app.num_args())]))
                    if app not in seen:
                        out.append(z3.Implies(app.arg(0) == 0, app == 0))
                        if name in self.divided:
                            whole = z3.Function(f"{name}/{self.divided[name]}", *[z3.IntSort()] * (app.num_args() + 1))
                            out.append(z3.Implies(app.arg(0) >= 0, app == self.divided[name] * whole(*app.children())))
                        if self.families[name].least >= 0:
                            out.append(z3.Implies(app.arg(0) >= 0, app >= 0))
                            if self.families[name].least > 0:
                                out.append(z3.Implies(app.arg(0) >= 0, app >= self.families[name].least * app.arg(0)))
                        if self.families[name].invariant:
                            step = work[-1]
                            out += [z3.Implies(z3.And(app.arg(0) >= 0, step == c), app == c * app.arg(0)) for c in (0, 1)]
                            out.append(z3.Implies(z3.And(app.arg(0) >= 1, step >= 1), app >= step + app.arg(0) - 1))
            batch = self.applications.of(work)
        old = list(seen)
        for name, apps in by_family.items():
            before = [a for a in old if a.decl().name() == name]
            pairs = itertools.chain(
                itertools.combinations([a for a in apps if a not in seen], 2), itertools.product([a for a in apps if a not in seen], before)
            )
            for a, b in pairs:
                out += self._pair(self.families[name], a, b)
        out += self._beside(by_family, seen)
        seen.update(self.applications.of(terms), applied)
        for apps in by_family.values():
            seen.update(apps)
        return out

    def _beside(self, by_family: dict[str, list], seen: set) -> list[z3.BoolRef]:
        """Sums of different steps over the same iterations: where each step is the other's and one of a few constants, so are the sums."""
        over: dict[tuple, list[z3.ArithRef]] = {}
        for name, apps in by_family.items():
            if self.families[name].invariant:
                for a in {a.get_id(): a for a in apps}.values():
                    over.setdefault((self.families[name].index, *(a.arg(i).get_id() for i in range(a.num_args()))), []).append(a)
        out = []
        for apps in over.values():
            for a, b in itertools.combinations(apps, 2):
                if a in seen and b in seen:
                    continue
                n = a.arg(0)
                x, y = (self.families[t.decl().name()].step_at(n, [t.arg(i) for i in range(1, t.num_args())]) for t in (a, b))
                out += [z3.Implies(z3.And(n >= 0, x == y + c), a == b + c * n) for c in (-1, 0, 1)]
        return out

    def _pair(self, f: Family, a: z3.ArithRef, b: z3.ArithRef) -> list[z3.BoolRef]:
        key = (a.get_id(), b.get_id())
        if key not in self._pairs:
            self._pairs[key] = self._between(f, a, b)
        return self._pairs[key]

    def _between(self, f: Family, a: z3.ArithRef, b: z3.ArithRef) -> list[z3.BoolRef]:
        out = []
        outer_a, outer_b = ([x.arg(i) for i in range(1, x.num_args())] for x in (a, b))
        same = [x == y for x, y in zip(outer_a, outer_b, strict=True) if not x.eq(y)]
        for lo, hi, outer in ((a, b, outer_a), (b, a, outer_b)):
            m, n = lo.arg(0), hi.arg(0)
            step = f.step_at(m, outer)
            facts = [z3.Implies(m + 1 == n, hi == lo + step)]
            if f.invariant:
                facts.append(z3.Implies(z3.And(m < n, step == 0), hi == lo))
                facts.append(z3.Implies(z3.And(m < n, step >= 1), hi >= lo + step + max(f.least, 1) * (n - m - 1)))
            elif f.least >= 0:
                last = f.step_at(n - 1, outer)
                facts.append(z3.Implies(m < n, hi >= lo + step + f.least * (n - m - 1)))
                facts.append(z3.Implies(m < n, hi >= lo + last + f.least * (n - m - 1)))
            out += [z3.Implies(z3.And(same), x) for x in facts] if same else facts
        return out


def _within(app: z3.ArithRef, r) -> list[z3.BoolRef]:
    return ([app >= r.lo] if r.lo is not None else []) + ([app <= r.hi] if r.hi is not None else [])


def linear(term: z3.ArithRef) -> list[tuple[z3.ArithRef | None, int]]:
    """A term as a sum of atoms with constant factors; atom None: the constant. Raises nothing: what it cannot split is an atom."""
    term = z3.simplify(term, som=True)
    out = []
    for t in term.children() if z3.is_add(term) else [term]:
        if (c := literal(t)) is not None:
            out.append((None, c))
        elif z3.is_mul(t) and t.num_args() == 2 and (c := literal(t.arg(0))) is not None:
            out.append((t.arg(1), c))
        elif z3.is_app_of(t, z3.Z3_OP_UMINUS):
            out.append((t.arg(0), -1))
        else:
            out.append((t, 1))
    return [(a, c) for a, c in out if c != 0]


def counted(test: z3.BoolRef, index: z3.ArithRef, n: z3.ArithRef, mentioned: Mentioned) -> z3.ArithRef | None:
    """How many i in 0 .. n - 1 satisfy `test`, a bound on `index` by something that does not depend on it; None: another test."""
    if z3.is_not(test):
        inner = counted(test.arg(0), index, n, mentioned)
        return None if inner is None else n - inner
    kinds = {z3.Z3_OP_LE: "<=", z3.Z3_OP_LT: "<", z3.Z3_OP_GE: ">=", z3.Z3_OP_GT: ">", z3.Z3_OP_EQ: "=="}
    kind = kinds.get(test.decl().kind())
    if kind is None or not z3.is_int(test.arg(0)):
        return None
    rest, sign = [], 0
    for atom, factor in linear(test.arg(0) - test.arg(1)):
        if atom is not None and atom.eq(index):
            sign = factor
        elif atom is not None and name_of(index) in mentioned.of(atom):
            return None
        else:
            rest.append(factor if atom is None else factor * atom)
    if sign not in (1, -1):
        return None
    bound = z3.Sum([z3.IntVal(x) if isinstance(x, int) else x for x in rest]) if rest else ZERO  # sign * i + bound (kind) 0
    limit = bound if sign < 0 else -bound  # i (kind or its mirror) limit
    if sign < 0:
        kind = {"<=": ">=", "<": ">", ">=": "<=", ">": "<", "==": "=="}[kind]
    clipped = lambda e: _min(_max(e, ZERO), n)
    match kind:
        case "==":
            return z3.If(z3.And(limit >= 0, limit < n), z3.IntVal(1), ZERO)
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
    return z3.If(a <= b, a, b)


def _max(a, b):
    return z3.If(a >= b, a, b)


@dataclass(slots=True)
class Applications:
    """Applications of uninterpreted functions in terms, remembered for each part of a term: by its id, which it keeps while the whole is held."""

    met: dict[int, tuple[z3.ArithRef, ...]] = field(default_factory=dict)
    held: list[z3.ExprRef] = field(default_factory=list)

    def of(self, terms: Iterable[z3.ExprRef]) -> list[z3.ArithRef]:
        """Those of some terms, inner ones too, each once."""
        out: dict[int, z3.ArithRef] = {}
        for term in terms:
            if term.get_id() not in self.met:
                self.held.append(term)
                self._meet(term)
            for app in self.met[term.get_id()]:
                out[app.get_id()] = app
        return list(out.values())

    def _meet(self, term: z3.ExprRef) -> None:
        for t, key, parts in inner_first(term, self.met):
            inner = {app.get_id(): app for k in parts for app in self.met[k]}
            if parts and t.decl().kind() == z3.Z3_OP_UNINTERPRETED:
                inner[key] = t
            self.met[key] = tuple(inner.values())
