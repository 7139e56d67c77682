"""Shapes, inputs and reference of moe_grouped_dynamic_sm90: the problem of moe_grouped_sm90."""

from pathlib import Path

from cake_core.runtime.companion import load_companion

_static = load_companion(Path(__file__).with_name("moe_grouped_sm90.py")).module

shapes, inputs, reference, tolerance = _static.shapes, _static.inputs, _static.reference, _static.tolerance
bench_shapes, flops = _static.bench_shapes, _static.flops
