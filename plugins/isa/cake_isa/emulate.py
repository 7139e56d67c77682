"""Instructions whose name is one for integers and floats: the type says whose semantics they have."""

from __future__ import annotations

from cake_core.ptx.emulated import Coder, Step
from cake_core.ptx.reader import Statement
from cake_isa import floats, functions, integers

_FLOATS = {"f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"}


def _by_type(whole, floating):
    def make(s: Statement, c: Coder) -> Step:
        return (whole if _FLOATS.isdisjoint(s.words) else floating)(s, c)

    return make


add = _by_type(integers.add, floats.add)
sub = _by_type(integers.sub, floats.sub)
mul = _by_type(integers.mul, floats.mul)
mad = _by_type(integers.mad, floats.mad)
div = _by_type(integers.div, floats.div)
neg = _by_type(integers.neg, functions.neg)
absolute = _by_type(integers.absolute, functions.absolute)
least = _by_type(integers.least, functions.least)
greatest = _by_type(integers.greatest, functions.greatest)
