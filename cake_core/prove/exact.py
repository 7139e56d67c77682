"""What opaque values and sums are where sizes are numbers: an example shall not rest on values that no run has.

`numbers.py` says of a product of unknowns no more than its range, and `sums.py` of a sum no more than linear arithmetic can use. At given sizes
a product of an iteration is linear, and the first few sums are numbers.
"""

from __future__ import annotations

import itertools
from dataclasses import field

from cake_core import smt
from cake_core.frozen import thawed
from cake_core.prove.numbers import literal
from cake_core.prove.sums import Family, Sums

#: Iterations whose sums are looked at: of a loop alone, and of one in another's turn, of so many of each.
FEW, NESTED = 12, 5
#: How deep values stand in each other.
DEEP = 8
#: Kinds that are linear in each of their parts.
LINEAR = frozenset({smt.ADD, smt.UMINUS, smt.ITE, smt.EQ, smt.LE, smt.GE, smt.LT, smt.GT, smt.NOT})

Known = list[tuple[smt.Term, smt.Term]]


@thawed
class Exact:
    """Of the opaque values and sums `met` in some formulas."""

    sums: Sums
    met: list[smt.Term]
    _plain: dict[int, smt.Term] = field(default_factory=dict)

    @property
    def sums_met(self) -> bool:
        """Whether there is a sum of which more can be said than its lemmas do."""
        return any(self._family(a) is not None for a in self.met)

    def at(self, known: Known) -> list[smt.Term]:
        """What holds of them at sizes that are `known`. The sums are those of the first iterations, and no others are looked at."""
        out, tables = [], {}
        for app in self.met:
            if (f := self._family(app)) is not None:
                if f.name not in tables:
                    tables[f.name] = self._table(f, known)
                if (table := tables[f.name]) is not None:
                    out.append(smt.Or([smt.And([app == total, *(x == v for x, v in zip(app.args, at, strict=True))]) for at, total in table.items()]))
            elif app.name in self.sums.numbers.open and _linear(value := smt.simplify(smt.substitute(self._of(app), *known))):
                out.append(app == value)
        return out

    def decided(self, known: Known) -> set[str]:
        """Names of those whose values `at` says."""
        families = {a.name: f for a in self.met if (f := self._family(a)) is not None}
        out = {n for n, f in families.items() if self._table(f, known) is not None}
        return out | {a.name for a in self.met if a.name in self.sums.numbers.open and _linear(smt.simplify(smt.substitute(self._of(a), *known)))}

    def _family(self, app: smt.Term) -> Family | None:
        f = self.sums.families.get(app.name)
        return f if f is not None and not f.invariant and len(f.outer) <= 1 else None

    def _table(self, f: Family, known: Known) -> dict[tuple[int, ...], int] | None:
        """Sums by number and outer iteration; None where a step is no number."""
        out: dict[tuple[int, ...], int] = {}
        few = NESTED if f.outer else FEW
        for outer in itertools.product(range(few + 1), repeat=len(f.outer)):
            total = 0
            for n in range(few + 1):
                out[n, *outer] = total
                step = literal(smt.simplify(smt.substitute(self._of(f.step_at(smt.IntVal(n), [smt.IntVal(o) for o in outer])), *known)))
                if step is None:
                    return None
                total += step
        return out

    def _of(self, term: smt.Term) -> smt.Term:
        """A term, with what opaque values are of in their place."""
        if term.ast not in self._plain:
            numbers, out = self.sums.numbers, term
            for _ in range(DEEP):
                apps = [a for a in self.sums.applications.of([out]) if a.name in numbers.open or a.name in numbers.defined]
                if not apps:
                    break
                values = []
                for a in apps:
                    its, value = numbers.open.get(a.name) or numbers.defined[a.name]
                    values.append((a, smt.substitute(value, *zip(its, a.args, strict=True))))
                out = smt.simplify(smt.substitute(out, *values))
            self._plain[term.ast] = out
        return self._plain[term.ast]


def _linear(term: smt.Term) -> bool:
    """Whether no product of two unknowns stands in it, and no quotient by one."""
    args, kind = term.args, term.kind if term.args else None
    if kind == smt.MUL:
        return sum(literal(a) is None for a in args) <= 1 and all(map(_linear, args))
    if args and kind not in LINEAR and not term.is_free and literal(args[-1]) in (None, 0):
        return False
    return all(map(_linear, args))
