"""Tables of items and contracts: made and checked on the host from the manifest alone, without a GPU and against a fake one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_core.artifact import Check, EntryParamInfo, LaunchInfo, Manifest, ParamInfo, PlanInfo
from cake_core.runtime import ArtifactError, DeviceArray, LaunchError, Plan, driver as driver_module, load
from cake_core.runtime.formula import FormulaError
from cake_core.runtime.host_formula import evaluate
from cake_core.runtime.plan import inputs_of, make_items, scalars_of

LENGTH = ["-", ["at", "OFF", ["+", "b", 1]], ["at", "OFF", "b"]]
ORDERS = ("longest_first", "balanced")


def info(order="balanced", cost="cost", section=2, block=4, dims=(("h", "H"),), lets=None):
    lets = (("rows", ["min", ["-", "r1", "r0"], block]), ("cost", ["+", ["*", "rows", "w"], 1])) if lets is None else lets
    return PlanInfo("items", "count", "OFF", "E", block, dims, lets, order, cost, section)


def manifest(plan, **changes):
    scalar = lambda name: ParamInfo(name, "scalar", "i32")  # noqa: E731
    tensor = lambda name, mode, elem, *shape: ParamInfo(name, "tensor", elem, mode, shape, True, 4)  # noqa: E731
    m = Manifest(
        kernel="groups",
        entry="groups",
        arch="fake",
        target="fake",
        compute_capability=(9, 0),
        params=(
            scalar("E"),
            scalar("H"),
            scalar("w"),
            tensor("OFF", "in", "i32", ["+", "E", 1]),
            tensor("X", "in", "f32", "H"),
            tensor("Y", "out", "f32", "H"),
            scalar("count"),
            tensor("items", "in", "i32", "count", 3),
        ),
        entry_params=(EntryParamInfo("pointer", "items"), EntryParamInfo("scalar", "count"), EntryParamInfo("scalar", "E")),
        tensor_maps=(),
        launch=LaunchInfo(128, 1, 0, "count", True),
        requires=(),
        constants={},
        assumes=(
            Check(["==", ["at", "OFF", 0], 0], "OFF[0] == 0"),
            Check(["monotone", "OFF"], "monotone(OFF)"),
            Check(["finite", "X"], "finite(X)"),
        ),
        plan=plan,
    )
    return replace(m, **changes)


def items(plan, off, ctas=3, **values):
    off = np.asarray(off)
    return make_items(manifest(plan), {"E": len(off) - 1, "H": 2, "w": 1} | values, {"OFF": off}, ctas)


def blocks(off, block=4, heads=2):
    """Every item, in no order."""
    return {(g, r, h) for g in range(len(off) - 1) for r in range(off[g], off[g + 1], block) for h in range(heads)}


OFFSETS = st.lists(st.integers(0, 19), max_size=7).map(lambda sizes: np.cumsum([0, *sizes]))


# --- what a table holds ----------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(OFFSETS, st.sampled_from(ORDERS), st.integers(1, 5), st.integers(0, 3), st.integers(1, 9))
def test_every_block_stands_once_whatever_the_order(off, order, ctas, heads, section):
    table = items(info(order, section=section), off, ctas, H=heads)
    assert table.dtype == np.int32 and table.shape[1] == 3
    rows = list(map(tuple, table.tolist()))
    assert len(set(rows)) == len(rows) and set(rows) == blocks(off, heads=heads)


def test_longest_first_goes_by_cost_and_then_by_place():
    table = items(info("longest_first"), [0, 3, 3, 12])
    cost = [min(4, [3, 3, 12][g] - r) for g, r, _ in table]
    assert cost == sorted(cost, reverse=True)
    assert table.tolist()[:4] == [[2, 3, 0], [2, 7, 0], [2, 3, 1], [2, 7, 1]]


def test_sections_come_one_after_another():
    table = items(info(section=2), [0, 9, 9, 18, 20], ctas=2)
    sections = [(g * 2 + h) // 2 for g, _, h in table]
    rounds = [set(sections[i : i + 2]) for i in range(0, len(sections), 2)]
    assert all(max(a) <= min(b) for a, b in zip(rounds, rounds[1:]))


@settings(max_examples=40, deadline=None)
@given(OFFSETS, st.integers(1, 6))
def test_each_round_gives_its_costliest_item_to_the_idlest_cta(off, ctas):
    table = items(info(section=10**6), off, ctas)
    n = min(ctas, len(table))
    cost = np.array([min(4, int(off[g + 1]) - r) + 1 for g, r, _ in table])
    shares = [cost[c::n].sum() for c in range(n)]
    assert not n or max(shares) - min(shares) <= cost.max()
    counts = [len(cost[c::n]) for c in range(n)]
    assert counts == sorted(counts, reverse=True)


def test_dimensions_run_from_the_first():
    plan = info("longest_first", cost=1, dims=(("h", "H"), ("s", 3)), lets=())
    assert items(plan, [0, 4])[:, 2:].tolist() == [[h, s] for s in range(3) for h in range(2)]


@pytest.mark.parametrize("order", ORDERS)
def test_nothing_to_do(order):
    assert items(info(order), [0]).shape == items(info(order), [0, 0, 0]).shape == items(info(order), [0, 5], H=0).shape == (0, 3)


# --- what can't be made ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("off", "values", "says"),
    [
        ([0, 5, 3], {}, "falls"),
        ([-1, 5], {}, "below 0"),
        ([0, 5], {"E": 2}, "2 groups have 3 ends"),
        ([0, 2**31 - 1], {"H": 9}, "is the limit"),
    ],
)
def test_offsets_that_are_none(off, values, says):
    with pytest.raises(LaunchError, match=says) as caught:
        items(info(), off, **values)
    assert caught.value.diagnostic.code == "runtime/plan"


@pytest.mark.parametrize(
    "cost",
    [
        ["/", 1, ["-", "w", 1]],
        ["at", "OFF", ["+", "b", 2]],
        ["at", "OFF", -1],
        "unknown",
        ["sqrt", 1],
        ["at", "OFF", 0, 0],
        ["at", "Z", 0],
        None,
    ],
)
def test_a_cost_that_is_no_value(cost):
    with pytest.raises(LaunchError) as caught:
        items(info(cost=cost), [0, 5])
    assert caught.value.diagnostic.code == "runtime/plan"


# --- formulas --------------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.integers(-50, 50), st.integers(-9, 9).filter(bool))
def test_division_floors_as_in_the_language(a, b):
    env = {"a": np.array([a]), "b": b}
    assert evaluate(["/", "a", "b"], env, {}).item() == a // b
    assert evaluate(["%", "a", "b"], env, {}).item() == a % b
    assert evaluate(["ceildiv", "a", "b"], env, {}).item() == -(-a // b)


def test_floats_divide_and_literals_are_those_of_the_kernel():
    x = {"X": np.array([0.1, -2.5], np.float32)}
    assert evaluate(["/", ["at", "X", 1], 2], {}, x) == -1.25
    assert evaluate(["==", ["at", "X", 0], 0.1], {}, x)


def test_both_arms_of_a_choice_are_arrays():
    env = {"x": np.array([1, 5, 9])}
    assert evaluate(["if", ["and", ["<", 2, "x"], ["not", ["==", "x", 9]]], ["*", "x", 2], 0], env, {}).tolist() == [0, 10, 0]


def test_a_tree_that_is_too_deep_is_refused():
    tree = 1
    for _ in range(300):
        tree = ["+", tree, 1]
    with pytest.raises(FormulaError):
        evaluate(tree, {}, {})


def test_what_a_recipe_asks_for():
    plan = info(lets=(("n", LENGTH), ("m", ["at", "LENS", ["%", "b", "P"]])), cost=["+", "n", "m"])
    assert scalars_of(plan) == ("E", "H", "P")
    assert inputs_of(plan) == ("OFF", "LENS")


# --- a kernel on a fake GPU ------------------------------------------------------------------------------------------


@pytest.fixture
def kernel(gpu, artifact):
    return load(artifact(manifest(info())))


def device(values, elem="i32"):
    values = np.asarray(values, {"i32": np.int32, "f32": np.float32}[elem])
    array = DeviceArray(values.shape, elem, 0, driver_module.driver())
    array.copy_from(values)
    return array


def test_a_call_makes_the_plan_and_launches_as_many_blocks(gpu, kernel):
    seen = {}

    def program(config, arguments, *_):
        seen["blocks"] = config.gridDimX

    gpu.program = program
    kernel(w=1, OFF=device([0, 9, 9, 20]), X=device([1, 2], "f32"))
    assert seen["blocks"] == len(blocks([0, 9, 9, 20]))


def test_parameters_of_the_table_are_nobodys_arguments(kernel):
    assert "items" not in kernel.signature and "count" not in kernel.signature
    with pytest.raises(LaunchError, match="no parameter 'items'"):
        kernel(w=1, OFF=device([0, 9]), X=device([1, 2], "f32"), items=device([[0, 0, 0]]))


def test_a_plan_of_host_values_reads_nothing_back_and_is_made_once(gpu, kernel):
    off = np.array([0, 9, 20], np.int32)
    plan = kernel.plan(OFF=off, H=2, w=1)
    assert isinstance(plan, Plan) and plan.count == len(blocks(off)) and gpu.count("cuMemcpyDtoH") == 0
    assert set(map(tuple, plan.items.numpy().tolist())) == blocks(off)
    assert kernel.plan(OFF=off.tolist(), H=2, w=1) is plan
    assert kernel.plan(OFF=device(off), H=2, w=1) is plan
    assert kernel.plan(OFF=off, H=2, w=2) is not plan


def test_a_plan_serves_launches(gpu, kernel):
    off, x = device([0, 9]), device([1, 2], "f32")
    plan = kernel.plan(OFF=[0, 9], H=2, w=1)
    copies = gpu.count("cuMemcpyDtoH")
    for _ in range(3):
        kernel(w=1, OFF=off, X=x, plan=plan)
    prepared = kernel.prepare(w=1, OFF=off, X=x, plan=plan)
    prepared()
    assert gpu.count("cuMemcpyDtoH") == copies and len(gpu.launches) == 4


def test_a_plan_of_other_sizes_is_refused(kernel):
    plan = kernel.plan(OFF=[0, 9], H=2, w=5)
    with pytest.raises(LaunchError, match="made for w = 5, here w = 1"):
        kernel(w=1, OFF=device([0, 9]), X=device([1, 2], "f32"), plan=plan)


def test_a_plan_of_another_kernel_is_refused(kernel):
    plan = replace(kernel.plan(OFF=[0, 9], H=2, w=1), kernel="other")
    with pytest.raises(LaunchError, match="made for 'other'"):
        kernel(w=1, OFF=device([0, 9]), X=device([1, 2], "f32"), plan=plan)


def test_a_kernel_without_a_table_takes_no_plan(gpu, artifact, fakes):
    scale = load(artifact(fakes.SCALE))
    for call in (lambda: scale.plan(R=1), lambda: scale(by=1.0, X=device([[1]], "f32"), plan=Plan("scale", {}, None, 0))):
        with pytest.raises(LaunchError) as caught:
            call()
        assert caught.value.diagnostic.code == "runtime/no-plan"


@pytest.mark.parametrize(
    ("given_", "code"),
    [
        ({"H": 2, "w": 1}, "runtime/missing-argument"),
        ({"OFF": [0, 9], "w": 1}, "runtime/size-unknown"),
        ({"OFF": [0, 9], "H": 2, "w": 1, "Z": 1}, "runtime/unknown-argument"),
        ({"OFF": [0, 9], "H": 2.5, "w": 1}, "runtime/scalar"),
        ({"OFF": [0.0, 9.0], "H": 2, "w": 1}, "runtime/element-type"),
        ({"OFF": [0, 9], "H": 2, "w": 1, "E": 4}, "runtime/size-conflict"),
    ],
)
def test_what_a_plan_needs(kernel, given_, code):
    with pytest.raises(LaunchError) as caught:
        kernel.plan(**given_)
    assert caught.value.diagnostic.code == code


# --- contracts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("off", "x", "broken"),
    [
        ([0, 4, 4], [1, 2], None),
        ([1, 4, 4], [1, 2], "OFF[0] == 0"),
        ([0, 4, 3], [1, 2], "monotone(OFF)"),
        ([0, 4], [1, np.inf], "finite(X)"),
        ([0, 4], [np.nan, 1], "finite(X)"),
    ],
)
def test_contracts_are_checked_when_asked(kernel, off, x, broken):
    arguments = {"w": 1, "OFF": device(off), "X": device(x, "f32")}
    if broken is None:
        kernel.check(**arguments)
        return
    with pytest.raises(LaunchError) as caught:
        kernel.check(**arguments)
    assert caught.value.diagnostic.code == "runtime/assume" and broken in caught.value.diagnostic.message


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"table": "X2"}, "not there"),
        ({"count": "X"}, "not there"),
        ({"offsets": "X"}, "offsets"),
        ({"block": 0}, "blocks of 0"),
        ({"order": "shortest"}, "order"),
        ({"section": 0}, "sections"),
    ],
)
def test_a_damaged_recipe_is_refused(gpu, artifact, change, says):
    with pytest.raises(ArtifactError, match=says) as caught:
        load(artifact(manifest(replace(info(), **change))))
    assert caught.value.diagnostic.code == "runtime/artifact-manifest"


def test_a_manifest_keeps_plan_and_contracts():
    m = manifest(info())
    again = Manifest.from_json(m.to_json())
    assert again.plan.table == "items" and again.hidden == {"items", "count"}
    assert [c.text for c in again.assumes] == [c.text for c in m.assumes]
    assert make_items(again, {"E": 1, "H": 2, "w": 1}, {"OFF": np.array([0, 9])}, 3).tolist() == items(info(), [0, 9]).tolist()
