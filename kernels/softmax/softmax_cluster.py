"""Shapes, inputs and reference of softmax_cluster: those of softmax, for rows of up to 131,072 columns."""

from pathlib import Path

from cake_core.runtime.companion import load_companion

_softmax = load_companion(Path(__file__).with_name("softmax.py")).module

inputs, reference, flops = _softmax.inputs, _softmax.reference, _softmax.flops

#: As of softmax: the exponential is the product of two, whose exponents add up to the one there; each has its own 2**-22 of
#: ex2.approx and a rounding, so two more parts in 2**22 and in 2**24.
tolerance = _softmax.tolerance


def shapes():
    """No row, one row; rows that end in the first CTA's part, at a part's end, just behind one, and in the last part."""
    sizes = [(0, 64), (1, 8), (33, 264), (21, 8192), (17, 32768), (18, 32776), (40, 65528), (16, 98304), (5, 131064), (1, 131072), (36, 131072)]
    return [dict(zip("RC", s)) for s in sizes]


def bench_shapes():
    return [dict(zip("RC", s)) for s in ((8192, 131072), (8192, 65536))]
