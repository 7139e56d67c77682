"""Shapes, inputs and reference of softmax_short: those of softmax, for rows of up to 8,192 columns."""

from pathlib import Path

from cake_core.runtime.companion import load_companion

_softmax = load_companion(Path(__file__).with_name("softmax.py")).module

inputs, reference, flops, tolerance = _softmax.inputs, _softmax.reference, _softmax.flops, _softmax.tolerance


def shapes():
    """No row, one row, more rows than a multiprocessor holds CTAs; the least and the largest row; rows that end inside a thread's vectors."""
    sizes = [(0, 64), (1, 8), (1, 8192), (3, 64), (7, 72), (133, 264), (300, 1000), (1057, 2048), (64, 8184), (600, 8192)]
    return [dict(zip("RC", s)) for s in sizes]


def bench_shapes():
    return [dict(zip("RC", s)) for s in ((32768, 8192), (8192, 8192))]
