"""Integer polynomials over named atoms, and conditions on them: the arithmetic of addresses (`quantities.py`).

A product of unknowns stays a product here, so that `t_i - t_group * (t_i / t_group)` and its like cancel by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import gcd

from cake_core.frozen import frozen

Monomial = tuple[str, ...]  # its factors in order, () for 1


class Poly:
    """A sum of monomials with coefficients that are not 0. It never changes; it is no dataclass because a proof makes some ten thousand of them."""

    __slots__ = ("_hash", "_text", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = terms
        self._hash: int | None = None
        self._text: str | None = None

    @staticmethod
    def of(n: int) -> Poly:
        return Poly({(): n} if n else {})

    @staticmethod
    def atom(name: str) -> Poly:
        return Poly({(name,): 1})

    def __add__(self, other: Poly | int) -> Poly:
        return self._sum({(): other} if isinstance(other, int) else other.terms, 1)

    def __sub__(self, other: Poly | int) -> Poly:
        return self._sum({(): other} if isinstance(other, int) else other.terms, -1)

    def _sum(self, more: Mapping[Monomial, int], sign: int) -> Poly:
        out = dict(self.terms)
        for m, c in more.items():
            if c := out.get(m, 0) + sign * c:
                out[m] = c
            else:
                out.pop(m, None)
        return Poly(out)

    def __neg__(self) -> Poly:
        return Poly({m: -c for m, c in self.terms.items()})

    def __mul__(self, other: Poly | int) -> Poly:
        if isinstance(other, int):
            return Poly({m: c * other for m, c in self.terms.items()} if other else {})
        out: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            for n, d in other.terms.items():
                key = tuple(sorted((*m, *n))) if m and n else m or n
                out[key] = out.get(key, 0) + c * d
        return Poly({m: c for m, c in out.items() if c})

    @property
    def text(self) -> str:
        if self._text is None:
            self._text = " + ".join(f"{c}*{'*'.join(m)}" for m, c in sorted(self.terms.items())) or "0"
        return self._text

    def __repr__(self) -> str:
        return f"Poly({self.text})"

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, Poly) and self.terms == other.terms

    @property
    def constant(self) -> int | None:
        """Its value, if it is a number."""
        return None if any(self.terms) else self.terms.get((), 0)

    def atoms(self) -> Iterator[str]:
        return (a for m in self.terms for a in m)

    def common(self) -> tuple[int, Monomial]:
        """The largest number and monomial that divide every term."""
        number, shared = 0, None
        for m, c in self.terms.items():
            number = gcd(number, c)
            shared = m if shared is None else _shared(shared, m)
        return number or 1, shared or ()

    def divided(self, number: int, by: Monomial) -> Poly:
        """By what divides every term."""
        return Poly({_without(m, by): c // number for m, c in self.terms.items()})


def _shared(a: Monomial, b: Monomial) -> Monomial:
    left, out = list(b), []
    for x in a:
        if x in left:
            left.remove(x)
            out.append(x)
    return tuple(out)


def _without(m: Monomial, by: Monomial) -> Monomial:
    left = list(m)
    for x in by:
        left.remove(x)
    return tuple(left)


# --- conditions --------------------------------------------------------------------------------------------------


@frozen
class AtLeast:
    """`poly` >= 0."""

    poly: Poly


@frozen
class All:
    parts: tuple[Condition, ...]


@frozen
class Any:
    parts: tuple[Condition, ...]


@frozen
class Opaque:
    """A condition that nothing is known of, but that it is the same wherever it has the same name."""

    name: str
    denied: bool = False


Condition = AtLeast | All | Any | Opaque

TRUE, FALSE = All(()), Any(())


def equal(a: Poly, b: Poly) -> Condition:
    return All((AtLeast(a - b), AtLeast(b - a)))


def implied(condition: Condition, then: Condition) -> Condition:
    return Any((denied(condition), then))


def denied(c: Condition) -> Condition:
    match c:
        case AtLeast(p):
            return AtLeast(-p - 1)
        case All(parts):
            return Any(tuple(map(denied, parts)))
        case Any(parts):
            return All(tuple(map(denied, parts)))
    return Opaque(c.name, not c.denied)


def leaves(conditions: Iterable[Condition]) -> Iterator[Poly]:
    """All polynomials that conditions compare."""
    for c in conditions:
        match c:
            case AtLeast(p):
                yield p
            case All(parts) | Any(parts):
                yield from leaves(parts)


def conjuncts(conditions: Iterable[Condition]) -> Iterator[Poly]:
    """The polynomials that are surely not negative where all conditions hold."""
    for c in conditions:
        match c:
            case AtLeast(p):
                yield p
            case All(parts):
                yield from conjuncts(parts)
            case Any((one,)):
                yield from conjuncts((one,))
