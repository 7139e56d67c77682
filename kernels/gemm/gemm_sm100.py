"""Shapes, inputs and reference of gemm_sm100: D = A @ B.T in bf16, accumulated in f32, the problem of gemm_sm90."""

from pathlib import Path

from cake_core.runtime.companion import load_companion

_hopper = load_companion(Path(__file__).with_name("gemm_sm90.py")).module

inputs, reference, tolerance = _hopper.inputs, _hopper.reference, _hopper.tolerance
bench_shapes, flops = _hopper.bench_shapes, _hopper.flops


def shapes():
    """Those of gemm_sm90, whose tiles are of the same size, and more items than accumulators."""
    return [*_hopper.shapes(), {"M": 384, "N": 768, "K": 64}]
