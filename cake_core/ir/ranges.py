"""A small abstract domain for index arithmetic: an interval and a congruence.

It decides what `derive` and `lower` may choose (a shift for a division, a 16-byte access for a row) and is no
proof of absence of overflow; that obligation is reported as its own category.
"""

from __future__ import annotations

from math import gcd

from cake_core.frozen import frozen

#: Bounds beyond this are dropped and moduli beyond it made coarser: indices have 32 bits, and a chain of products would
#: otherwise double the digits at every step.
LARGEST = 2**64


@frozen
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
        """The values of both. Where there are none, `empty` is true of the result if bounds or congruences alone show it."""
        lo = max((x for x in (self.lo, other.lo) if x is not None), default=None)
        hi = min((x for x in (self.hi, other.hi) if x is not None), default=None)
        both = _both(self.mod, self.rem, other.mod, other.rem)
        if both is None:
            return Range(0, -1)
        mod, rem = both
        if mod == 0:
            lo, hi = max(rem, rem if lo is None else lo), min(rem, rem if hi is None else hi)
        elif mod > 1:  # the outermost values that the congruence leaves
            lo, hi = None if lo is None else lo + (rem - lo) % mod, None if hi is None else hi - (hi - rem) % mod
        return _range(lo, hi, mod, rem)

    @property
    def empty(self) -> bool:
        return self.lo is not None and self.hi is not None and self.lo > self.hi


ANY = Range()


def _range(lo: int | None, hi: int | None, mod: int = 1, rem: int = 0) -> Range:
    """A range with numbers of bounded size."""
    lo = None if lo is None or abs(lo) > LARGEST else lo
    hi = None if hi is None or abs(hi) > LARGEST else hi
    if mod > LARGEST or mod == 0 and abs(rem) > LARGEST:
        mod = gcd(mod, LARGEST)
    return Range(lo, hi, mod, rem % mod if mod else rem)


def _both(m: int, r: int, n: int, s: int) -> tuple[int, int] | None:
    """The congruence of what is r mod m and s mod n; None where nothing is (Chinese remainder theorem)."""
    if m == 0:
        agree = (r - s) % n == 0 if n else r == s
        return (0, r) if agree else None
    if n == 0:
        return _both(n, s, m, r)
    g = gcd(m, n)
    if (r - s) % g:
        return None
    return m // g * n, (r + m * ((s - r) // g * pow(m // g, -1, n // g) % (n // g))) % (m // g * n)


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
    return _range(_add(a.lo, b.lo), _add(a.hi, b.hi), *_congruence(gcd(a.mod, b.mod), a.rem + b.rem))


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
    return _range(lo, hi, *_congruence(mod, a.rem * b.rem))


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
        below = None if b.hi is None else b.hi - 1
        known = [x for x in (below, a.hi if a.nonneg else None) if x is not None]
        return Range(0, min(known) if known else None)
    return ANY


def ceildiv(a: Range, b: Range) -> Range:
    """Of `a` over `b`, rounded up: known where the divisor is surely positive."""
    d = b.constant
    if d is not None and d > 0:
        return neg(floordiv(neg(a), b))
    if a.nonneg and b.positive:
        return Range(0, a.hi)
    return ANY


def minimum(a: Range, b: Range) -> Range:
    joined = a.join(b)
    his = [x for x in (a.hi, b.hi) if x is not None]
    return Range(joined.lo, min(his) if his else None, joined.mod, joined.rem)


def maximum(a: Range, b: Range) -> Range:
    joined = a.join(b)
    los = [x for x in (a.lo, b.lo) if x is not None]
    return Range(max(los) if los else None, joined.hi, joined.mod, joined.rem)


def clamp(x: Range, lo: Range, hi: Range) -> Range:
    return minimum(maximum(x, lo), hi)


BINARY = {"+": add, "-": sub, "*": mul, "/": floordiv, "%": mod, "min": minimum, "max": maximum}
