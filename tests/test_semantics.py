"""The rules of the language by number: where each is seen to hold, and what a text that breaks it is told.

`shown` names texts of `derive/texts`, or kernels, and lines of their derived form; `broken` names golden findings
(`room/code/case`). The rules are those of docs/language.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent


@dataclass(frozen=True)
class Rule:
    shown: dict[str, tuple[str, ...]]
    broken: tuple[str, ...]


RULES = {
    # instances have their own cursors and fragments, and all of their warps execute each statement
    1: Rule(
        {"cluster_of_two_consumers": ("  role math[2]: 1 warpgroup at 4 {\n    var ab_wait = 0\n    var ab_release = 0\n    frag acc:", "64 * math.i +: 64")},
        ("elaborate/type-unknown-name/slot_of_other_role", "rules/arrival-count/bad_all_threads", "instructions/core-one-place/store_of_warps"),
    ),
    # the leader issues and waits; the others learn of it by a barrier
    2: Rule(
        {"ring_in_a_loop": ("if leader {\n          tma.store.wait.read 1\n        }\n        bar.sync 1 threads 128",)},
        ("elaborate/type-form/leader", "rules/meeting/bad_cta", "rules/transaction-bytes/bad_none_expected"),
    ),
    # one arrival a warp after reconvergence; one a warpgroup where a retired matrix operation was all that read
    3: Rule(
        {
            "filled_by_threads": ("p_full: mbarrier[2] count 2", "warp.sync\n      if warp.leader {\n        mbarrier.arrive p_full["),
            "cluster_of_two_consumers": ("ab_empty: mbarrier[4] count 8",),
            "persistent": ("wgmma.wait 0\n        if leader {\n          mbarrier.arrive ab_empty[",),
        },
        ("derive/derive-mixed-hand-off/on_two_paths", "rules/arrival-count/bad_too_few", "rules/arrival-count/bad_on_two_paths"),
    ),
    # the newest slot is named, the oldest one given up
    4: Rule(
        {"guarded_slot": ("let i = p_wait % 2\n      if r % 2 == 0 {",), "release_late_by_two": ("let s = ab_wait % 4", "ab_empty[ab_release % 4]")},
        (
            "derive/derive-held-at-end/one_more_wait",
            "derive/derive-held-too-many/late",
            "derive/derive-not-held/before_the_wait",
            "derive/derive-not-held/read_behind_the_release",
            "derive/derive-not-held/written_before_the_acquire",
            "elaborate/type-guarded-slot/other_guard",
        ),
    ),
    5: Rule({"ring_in_a_loop": ("store d[j % 2] <-",)}, ("elaborate/type-pipeline-ends/one_role", "elaborate/type-out-of-range/slot")),
    # constant, whole granules of an instance's own fragments
    6: Rule(
        {"ring_in_a_loop": ("store d[j % 2] <- bf16(acc[:, 0 +: 64]) by stmatrix",), "knn/knn_part_sm90": ("[64] over row layout mma part",)},
        ("derive/derive-fragment-granule/columns", "elaborate/type-assign/register_set", "elaborate/type-partial/whole_into_partial", "elaborate/type-partial/stored"),
    ),
    7: Rule(
        {"persistent": ("wgmma.commit\n        wgmma.wait 0",), "group": ("wgmma left += a[s] @ b[s][0 +: 64, :].T\n        wgmma right +=",)},
        ("check/core-fragment-in-flight/one_too_many", "check/core-fragment-in-flight/a_group_is_one", "elaborate/type-group/two_queues"),
    ),
    8: Rule(
        {"inline_and_turn": ("if math.i == 1 {\n      bar.arrive 1 threads 256", "bar.sync 1 + math.i threads 256", "bar.arrive 1 + (math.i + 1) % 2 threads 256")},
        ("derive/derive-verb-guard/turn", "derive/derive-not-held/turn", "derive/derive-held-too-many/turn", "elaborate/type-wrong-side/turn"),
    ),
    # the first dimension fastest; groups of a raster; the same items for a cluster
    9: Rule(
        {
            "persistent": ("let m = t_i % t_m, n = t_i / t_m",),
            "raster": ("let t_start = t_i / t_group * 8", "let m = t_start + t_inside % t_height, n = t_inside / t_height"),
            "cluster": ("cluster.m",),
            "on_demand_raster": ("role t_sched: 1 warp at 1 {", "if t_i == t_total + cluster.count - 1 {\n        store NEXT[0] <- 0", "if t_at >= 0 {\n        let a = max(t_at, 0)"),
            "ragged_cluster": ("let n = t_inside / t_height * 2 + cluster.n",),
            "ragged_cluster_rows": ("let r0 = load(OFF[t_next - 1], by = 4) + t_inside % t_height * 128 + cluster.rows * 64",),
            "on_demand_next": ("t_at = load(t_item[t_wait_slot][0], by = 4)", "if t_wait > 1 {", "let t_next_c = t_at >= 0 ? max(t_c_at, 0) : C"),
            "ragged_next": ("let t_next_r1 = t_next_end",),
            "two_schedules": ("launch max(rows_total, cols_total) ctas 2 persistent",),
        },
        ("elaborate/type-pattern/too_few", "elaborate/type-schedule/cluster_axis", "elaborate/type-schedule/ragged_axis", "elaborate/type-schedule/grid_beside", "derive/derive-on-demand/two_loops", "derive/derive-on-demand/read"),
    ),
    # constants, positions in loops, the same guard of the item in all roles, the same expression of the same message
    10: Rule(
        {
            "release_late_by_two": ("if k >= 2 {",),
            "guarded_slot": ("if r % 2 == 0 {\n        let i = p_fill % 2",),
            "rows_on_demand": ("while at >= 0 {\n      let s = next_wait % 2", "at = load(item[s][0], by = 4)"),
        },
        (
            "derive/derive-verb-guard/instance",
            "derive/derive-verb-guard/variable",
            "derive/derive-verb-guard/warp",
            "derive/derive-fill-guarded/if",
            "derive/derive-not-received/not_sent",
            "derive/derive-received-differs/other_expression",
            "elaborate/type-while-test/warps",
        ),
    ),
    11: Rule({"moe/moe_grouped_sm90": ("assume OFF[0] == 0", "load(OFF[t_next"), "read_outside": ("cta.sync\n  grid.wait\n  let first = load(N[0], by = 4)",)}, ("elaborate/type-require/assume", "elaborate/type-operand/contract_of_an_output", "elaborate/type-write-only/element", "elaborate/type-read-outside/inout")),
    12: Rule(
        {"filled_by_threads": ("x = load(A[i * 256 +: 256], fill = 0, by = 4)", "store B[i * 256 +: 256] <- y by 4")},
        ("elaborate/type-out-of-range/too_long", "instructions/type-clip/buffer", "instructions/ptx-access-width/fragment"),
    ),
    13: Rule({"knn/knn_part_sm90": ("frag best: topk(", "best = fold(topk, best, s,")}, ("instructions/type-operand/a_state_is_no_number",)),
    # one of them is in use at a time; the pairs stand in the text and in the manifest
    14: Rule(
        {"alias": ("d: bf16[2][64, 64] at 0 swizzle 128 alias a",), "alias_in_tensor_memory": ("p: bf16[2][128, 256] at 0 base tmem_base alias s",), "alias_while_held": ("store b <- x by 8\n      fence.proxy.async\n      warp.sync",)},
        ("elaborate/type-alias/larger", "check/core-alias-at-once/lost", "check/core-alias-at-once/two_roles", "check/core-alias-at-once/tensor_memory", "rules/slot-refill/bad_alias", "rules/slot-race/bad_alias_in_tensor_memory"),
    ),
    15: Rule(
        {"cluster_of_two_consumers": ("b[s][64 * cluster.m +: 64, :] <- B[n * 128 + 64 * cluster.m +: 64,", "mask 3", "] at 0\n          mbarrier.arrive ab_empty[ab_release % 4] at 1")},
        ("elaborate/type-axis/no_cluster", "instructions/ptx-tma-mask/nobody", "derive/derive-uneven-sends/more_to_one"),
    ),
    16: Rule(
        {"pair": ("ab_full: mbarrier[1] count 2", "signal ab_full[s] at 0", "tcgen05.commit ab_empty[0] mask 3", "mma: 1 warp at 1 on pair[0]")},
        ("elaborate/type-pair/no_pair", "instructions/ptx-tcgen05-pair/issued_by_both"),
    ),
    # the author waits for what is in flight, and for slots that the tensor engine gives back the role that fills them
    17: Rule(
        {"ring_in_a_loop": ("if leader {\n      tma.store.wait.read 0",), "pair": ("for ab_last in 0 .. 1 {\n      mbarrier.wait ab_empty[0]",)},
        ("check/core-in-flight-at-end/store", "check/core-in-flight-at-end/product", "derive/derive-held-at-end/on_some_paths"),
    ),
    18: Rule(
        {
            "persistent": ("fence.mbarrier_init\n  }\n  cta.sync",),
            "cluster": ("fence.mbarrier_init\n  }\n  cluster.sync", "  }\n  cluster.sync\n}"),
            "pair": ("tcgen05.alloc tmem_at[0] columns 128", "tcgen05.dealloc tmem_base columns 128"),
        },
        ("rules/barrier-init/bad_never", "rules/tensor-allocation/bad_not_given_back", "derive/derive-no-operation/cluster"),
    ),
    19: Rule({"pair": ("role epi: 4 warps at 4 on pair",), "persistent": ("role math: 1 warpgroup at 4",)}, ("instructions/ptx-tcgen05-warps/unaligned", "rules/warp-overlap/bad_same")),
    20: Rule(
        {"pads_and_registers": ("role load: 1 warp at 0 regs 40 pad 3", "role math: 1 warpgroup at 4 regs 232")},
        ("derive/derive-role-group/three_warps", "rules/register-budget/bad_two_roles", "rules/role-word-group/bad_short_pad", "instructions/type-register-count/odd"),
    ),
    22: Rule({"inline_and_turn": ("acc = acc * 2.0",)}, ("elaborate/type-inline/verb", "elaborate/type-inline/other_meaning")),
    23: Rule({"released_by_warps": ("<- warpsum(v) by 4",)}, ("instructions/core-undistributed/sum_of_a_fragment",)),
    24: Rule({"persistent": ("cake 1 derived",)}, ("elaborate/type-form/verb_in_derived", "elaborate/type-form/leader")),  # derive/test_texts.py
}
#: Numbers of the language that this version has no rule for, and what it says of them.
NOT_IN_THIS_VERSION = {21: None}

#: What parses and is not implemented yet.
NOT_IMPLEMENTED = {
    "two tables of items": "elaborate/type-not-implemented/two_tables",
    "pairs in larger clusters": "elaborate/type-not-implemented/pairs_of_four",
}


def code(case: str) -> str:
    """The code of a golden finding, which must be told first or among others."""
    room, slug, name = case.split("/")
    if room == "rules":  # of the core pack
        assert f"error[core/{slug}]" in (ROOT / "rules/core/cake_rules_core/rules" / slug / f"{name}.diag").read_text(), case
        return f"core/{slug}"
    told = (HERE / room / "cases" / slug / f"{name}.diag").read_text()
    wanted = slug.replace("-", "/", 1)
    assert f"error[{wanted}]" in told, case
    return wanted


def test_every_rule_of_the_language_is_here():
    page = (ROOT / "docs" / "language.md").read_text()
    numbers = [int(n) for n in re.findall(r"^\| S(\d+) \|", page, re.M)]
    assert numbers == list(RULES)
    assert sorted({*RULES, *NOT_IN_THIS_VERSION}) == list(range(1, 25))


@pytest.mark.parametrize("number", RULES)
def test_where_a_rule_is_seen(number, compiled):
    for name, lines in RULES[number].shown.items():
        if "/" in name:
            text = compiled((ROOT / "kernels" / f"{name}.cake").read_text(), lowering=False).text
        else:
            text = (HERE / "derive" / "texts" / f"{name}.derived").read_text()
        for line in lines:
            assert line in text, (name, line)


@pytest.mark.parametrize("number", RULES)
def test_what_breaks_a_rule(number):
    assert RULES[number].broken
    for case in RULES[number].broken:
        code(case)


def test_what_this_version_has_no_rule_for():
    for case in filter(None, NOT_IN_THIS_VERSION.values()):
        assert code(case) == "type/not-implemented"


@pytest.mark.parametrize("case", NOT_IMPLEMENTED.values(), ids=NOT_IMPLEMENTED)
def test_what_is_not_implemented_is_said_so(case):
    assert code(case) == "type/not-implemented"
