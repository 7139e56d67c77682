"""A small abstract domain for index arithmetic: an interval and a congruence.

It decides what `derive` and `lower` may choose (a shift for a division, a 16-byte access for a row) and is no
proof of absence of overflow; that obligation is reported as its own category.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd


@dataclass(frozen=True, slots=True)
class Range:
    """All v with lo <= v <= hi (None: unbounded) and v = rem (mod mod). `mod` 0 means the constant `rem`."""

    lo: int | None = None
    hi: int | None = None
    mod: int = 1
    rem: int = 0

    @property
    def nonneg(self) -> bool:
        return self.lo is not None and self.lo >= 0

    @property
    def positive(self) -> bool:
        return self.lo is not None and self.lo > 0

    @property
    def constant(self) -> int | None:
        return self.lo if self.lo is not None and self.lo == self.hi else None

    def multiple_of(self, n: int) -> bool:
        """Whether every value is a multiple of `n`."""
        return self.rem % n == 0 and self.mod % n == 0

    def join(self, other: Range) -> Range:
        lo = None if self.lo is None or other.lo is None else min(self.lo, other.lo)
        hi = None if self.hi is None or other.hi is None else max(self.hi, other.hi)
        mod = gcd(gcd(self.mod, other.mod), abs(self.rem - other.rem))
        return Range(lo, hi, mod, self.rem % mod if mod else self.rem)

    def meet(self, other: Range) -> Range:
        """A range that holds every value of both (the congruence of the finer one is kept)."""
        lo = max((x for x in (self.lo, other.lo) if x is not None), default=None)
        hi = min((x for x in (self.hi, other.hi) if x is not None), default=None)
        finer = self if self.mod == 0 or (other.mod != 0 and self.mod >= other.mod) else other
        return Range(lo, hi, finer.mod, finer.rem)


ANY = Range()


def constant(value: int) -> Range:
    return Range(value, value, 0, value)


def at_least(lo: int) -> Range:
    return Range(lo, None)


def _add(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _congruence(mod: int, rem: int) -> tuple[int, int]:
    mod = abs(mod)
    return (mod, rem % mod) if mod else (0, rem)


def add(a: Range, b: Range) -> Range:
    return Range(_add(a.lo, b.lo), _add(a.hi, b.hi), *_congruence(gcd(a.mod, b.mod), a.rem + b.rem))


def neg(a: Range) -> Range:
    flip = lambda x: None if x is None else -x  # noqa: E731
    return Range(flip(a.hi), flip(a.lo), *_congruence(a.mod, -a.rem))


def sub(a: Range, b: Range) -> Range:
    return add(a, neg(b))


def mul(a: Range, b: Range) -> Range:
    lo, hi = None, None
    if None not in (a.lo, a.hi, b.lo, b.hi):
        corners = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
        lo, hi = min(corners), max(corners)
    elif a.nonneg and b.nonneg:
        lo = a.lo * b.lo
    # (ma*i + ra)(mb*j + rb): every product is ra*rb modulo the gcd of the mixed terms.
    mod = gcd(gcd(a.mod * b.mod, a.mod * b.rem), b.mod * a.rem)
    return Range(lo, hi, *_congruence(mod, a.rem * b.rem))


def floordiv(a: Range, b: Range) -> Range:
    d = b.constant
    if d is not None and d > 0:
        lo = None if a.lo is None else a.lo // d
        hi = None if a.hi is None else a.hi // d
        if a.multiple_of(d):
            return Range(lo, hi, *_congruence(a.mod // d, a.rem // d))
        return Range(lo, hi)
    if a.nonneg and b.positive:
        return Range(0, a.hi)
    return ANY


def mod(a: Range, b: Range) -> Range:
    d = b.constant
    if d is not None and d > 0:
        if a.mod % d == 0 and (a.mod or a.constant is not None):
            return constant(a.rem % d)
        if a.nonneg and a.hi is not None and a.hi < d:
            return a
        return Range(0, d - 1, *_congruence(gcd(a.mod, d), a.rem))
    if b.positive:
        return Range(0, None if b.hi is None else b.hi - 1)
    return ANY


def minimum(a: Range, b: Range) -> Range:
    joined = a.join(b)
    his = [x for x in (a.hi, b.hi) if x is not None]
    return Range(joined.lo, min(his) if his else None, joined.mod, joined.rem)


def maximum(a: Range, b: Range) -> Range:
    joined = a.join(b)
    los = [x for x in (a.lo, b.lo) if x is not None]
    return Range(max(los) if los else None, joined.hi, joined.mod, joined.rem)


BINARY = {"+": add, "-": sub, "*": mul, "/": floordiv, "%": mod, "min": minimum, "max": maximum}
