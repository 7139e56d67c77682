"""The device check of contracts: its PTX, run on a machine of the ISA, says what the host's check says, and the assembler takes it."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_core.artifact import FALSE, HOLDS, OUTSIDE, ZERO, Check, ParamInfo
from cake_core.assemble import assemble
from cake_core.diagnostics import CakeError
from cake_core.lower import device_check
from cake_core.plugins import load_registry
from cake_core.runtime.elements import ELEMENTS
from cake_core.runtime.host_formula import evaluate

MACHINE = Path(__file__).resolve().parents[1] / "kernels" / "rowwise.py"
REGISTRY = load_registry(environ={"CAKE_LOAD_PLUGINS": ""})
SM90 = REGISTRY.architectures["sm90"]
PARAMS = (
    ParamInfo("N", "scalar", "i32"),
    ParamInfo("eps", "scalar", "f32"),
    ParamInfo("OFF", "tensor", "i32", "in", (["+", "N", 1],)),
    ParamInfo("U", "tensor", "u32", "in", ("N", 2)),
    ParamInfo("X", "tensor", "f32", "in", ("N",)),
)
INPUTS = {
    "OFF": np.array([0, 3, 3, -7], np.int32),
    "U": np.array([[1, 2**32 - 1], [0, 5], [9, 9]], np.uint32),
    "X": np.array([0.1, -2.5, np.nan], np.float32),
}
VALUES = {"N": 3, "eps": float(np.float32(0.1))}


@pytest.fixture(scope="module")
def machine():
    spec = importlib.util.spec_from_file_location("rowwise_of_contracts", MACHINE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def verdicts(machine, formulas, inputs=INPUTS, values=VALUES, params=PARAMS, ctas=2):
    ptx, info = device_check("k", tuple(Check(f, "") for f in formulas), params, SM90)
    found = np.full(len(formulas), HOLDS, np.uint64)
    tensors = {n: np.ascontiguousarray(x).reshape(-1).copy() for n, x in inputs.items()}
    machine.Grid(ptx, 1, info.threads // 32, 0, values, tensors | {"$verdicts": found}).run(ctas)
    return [int(v) for v in found]


def at(tensor, *indices):
    return ["at", tensor, *indices]


# --- conditions


def on_host(formula):
    wide = {n: x.astype(np.int64 if x.dtype.kind in "iu" else np.float32) for n, x in INPUTS.items()}
    try:
        return HOLDS if evaluate(formula, VALUES, wide) else FALSE
    except IndexError:
        return OUTSIDE
    except ZeroDivisionError:
        return ZERO


INTEGERS = st.recursive(
    st.one_of(
        st.integers(-9, 9),
        st.just("N"),
        st.builds(lambda i: at("OFF", i), st.integers(-1, 4)),
        st.builds(lambda i, j: at("U", i, j), st.integers(0, 3), st.integers(0, 1)),
    ),
    lambda inner: st.one_of(
        st.builds(lambda op, a, b: [op, a, b], st.sampled_from(["+", "-", "*", "/", "%", "min", "max", "ceildiv"]), inner, inner),
        st.builds(lambda i: at("OFF", i), inner),
        st.builds(lambda t, a, b: ["if", ["<", t, 2], a, b], inner, inner, inner),
    ),
    max_leaves=4,
)
FLOATS = st.recursive(
    st.one_of(st.sampled_from([0.1, -2.5, 0.0, 3.0]), st.just("eps"), st.builds(lambda i: at("X", i), st.integers(0, 2))),
    lambda inner: st.builds(lambda op, a, b: [op, a, b], st.sampled_from(["+", "-", "*", "/", "min", "max"]), inner, inner),
    max_leaves=4,
)
COMPARE = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
TESTS = st.one_of(
    st.builds(lambda op, a, b: [op, a, b], COMPARE, INTEGERS, INTEGERS), st.builds(lambda op, a, b: [op, a, b], COMPARE, FLOATS, FLOATS)
)
CONDITIONS = st.recursive(
    TESTS,
    lambda inner: st.one_of(
        st.builds(lambda op, a, b: [op, a, b], st.sampled_from(["and", "or"]), inner, inner), st.builds(lambda a: ["not", a], inner)
    ),
    max_leaves=3,
)


@settings(max_examples=80, deadline=None)
@given(st.lists(CONDITIONS, min_size=1, max_size=4))
def test_a_condition_has_the_host_s_verdict(machine, formulas):
    """Where several things are wrong with one, either is named."""
    for formula, found in zip(formulas, verdicts(machine, formulas), strict=True):
        wanted = on_host(formula)
        assert found == wanted or {found, wanted} == {OUTSIDE, ZERO}, formula


@pytest.mark.parametrize(
    ("formula", "verdict"),
    [
        (["==", at("OFF", 0), 0], HOLDS),
        (["==", at("OFF", "N"), -7], HOLDS),
        (["==", at("OFF", "N"), 7], FALSE),
        (["==", at("OFF", ["+", "N", 1]), 0], OUTSIDE),
        (["==", at("U", 0, 2), 0], OUTSIDE),
        ([">", at("U", 0, 1), 2147483647], HOLDS),  # unsigned
        (["==", ["+", at("U", 0, 1), 1], 4294967296], HOLDS),  # 64 bits
        (["==", ["/", at("OFF", 3), 2], -4], HOLDS),  # floor
        (["==", ["%", at("OFF", 3), 4], 1], HOLDS),
        (["==", ["ceildiv", at("OFF", 3), 2], -3], HOLDS),
        (["==", ["/", 1, at("OFF", 0)], 0], ZERO),
        (["==", at("X", 0), 0.1], HOLDS),  # a literal is an f32
        (["==", at("X", 0), "eps"], HOLDS),
        (["==", ["/", at("X", 1), 2], -1.25], HOLDS),  # not floored
        (["==", at("X", 2), at("X", 2)], FALSE),  # a NaN
        (["<=", ["min", at("X", 2), 1.0], 2.0], FALSE),
        (["and", ["<", 0, "N"], ["<", "N", 4], [">=", at("OFF", 1), 3]], HOLDS),
        ("N", HOLDS),
    ],
)
def test_conditions(machine, formula, verdict):
    assert verdicts(machine, [formula]) == [verdict] and on_host(formula) == verdict


# --- statements about a whole input


def about(name, elem, array, *shape):
    return (
        (["monotone" if name == "monotone" else "finite", "T"],),
        (ParamInfo("T", "tensor", elem, "in", shape or (array.size,)),),
        {"T": array},
    )


@pytest.mark.parametrize("size", [0, 1, 2, 31, 32, 33, 600])
@pytest.mark.parametrize("elem", ["i32", "u32"])
def test_monotone(machine, size, elem):
    """On fewer CTAs than there are elements, so that warps go round; one fall anywhere is found, equal neighbours are none."""
    rng = np.random.default_rng(size)
    array = np.sort(rng.integers(-50, 50, size)).astype(np.int64)
    array = (array if elem == "i32" else array + 2**31).astype(np.int32 if elem == "i32" else np.uint32)
    formulas, params, inputs = about("monotone", elem, array)
    assert verdicts(machine, formulas, inputs, {}, params) == [HOLDS]
    for where in {1, size // 2, size - 1} & set(range(1, size)):
        broken = array.copy()
        broken[where:] = broken[where - 1] - 1
        assert verdicts(machine, formulas, {"T": broken}, {}, params) == [where]


NUMPY = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "ue8m0": ml_dtypes.float8_e8m0fnu,
}


@pytest.mark.parametrize("elem", NUMPY)
def test_every_pattern_of_a_float_is_finite_or_not(machine, elem):
    """All patterns of 16 bits and fewer; of f32 those of the upper 16. Each on its own, so that one does not hide another."""
    bits = np.arange(1 << min(8 * ELEMENTS[elem].bytes, 16), dtype=np.uint32)
    bits = (bits << 16 | (bits & 1)) if elem == "f32" else bits.astype(f"u{ELEMENTS[elem].bytes}")
    with np.errstate(invalid="ignore"):  # of signalling NaNs
        finite = np.isfinite(bits.view(NUMPY[elem]).astype(np.float64))
    sample = np.concatenate([np.flatnonzero(~finite)[:6], np.flatnonzero(finite)[[0, 1, -1]]])
    formulas, params, inputs = about("finite", elem, bits[finite])
    assert verdicts(machine, formulas, inputs, {}, params) == [HOLDS]
    for i in sample:
        found = verdicts(
            machine, formulas, {"T": np.concatenate([bits[finite][:40], bits[i : i + 1]])}, {}, (replace(params[0], shape=(41,)),)
        )
        assert found == [HOLDS if finite[i] else 40]


def test_extents_are_those_of_the_launch(machine):
    x = np.zeros((3, 5), np.float32)
    x[2, 4] = np.inf
    params = (ParamInfo("N", "scalar", "i32"), ParamInfo("T", "tensor", "f32", "in", ("N", ["+", "N", 2])))
    assert verdicts(machine, [["finite", "T"]], {"T": x}, {"N": 3}, params) == [14]
    x[2, 4] = 0
    assert verdicts(machine, [["finite", "T"]], {"T": x}, {"N": 3}, params) == [HOLDS]


# --- the text


@pytest.mark.parametrize("arch", ["sm80", "sm90", "sm100"])
def test_the_assembler_takes_it(arch):
    formulas = [["finite", "X"], ["monotone", "OFF"], ["==", ["/", at("OFF", 1), at("U", 0, 1)], ["if", ["<", at("X", 0), "eps"], "N", 1]]]
    target = REGISTRY.architectures[arch]
    ptx, info = device_check("k", tuple(Check(f, "") for f in formulas), PARAMS, target)
    assert assemble(ptx, target.assembler_target, info.entry, lines=[None] * (ptx.count("\n") + 1)).cubin


def test_it_takes_what_it_reads_and_no_more():
    ptx, info = device_check("k", (Check(["monotone", "OFF"], ""),), PARAMS, SM90)
    assert [(e.kind, e.ref) for e in info.entry_params] == [("verdicts", ""), ("pointer", "OFF"), ("scalar", "N")]
    assert info.entry == "k_assumes" and f".visible .entry {info.entry}(" in ptx
    assert "red." not in ptx and "atom." not in ptx, "it runs on targets that offer no atomics"


@pytest.mark.parametrize("formula", [["sin", "N"], ["==", at("OFF"), 0], ["%", 1.5, 2.0], {"a": 1}])
def test_a_formula_that_is_none(formula):
    with pytest.raises((CakeError, ValueError)):
        device_check("k", (Check(formula, ""),), PARAMS, SM90)
