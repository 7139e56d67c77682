"""Every kernel of the zoo at small sizes runs without a fault, as written and as its derived text, for each of its targets."""

from pathlib import Path

import pytest
from machine_texts import derived, read

from cake_core.machine import Kind, Scenario, explore

ROOT = Path(__file__).resolve().parents[2] / "kernels"

#: Name, integer parameters, cluster at hand, how many there are: several items or trips each, with edges.
CASES = [
    ("gemm/gemm_sm90", {"M": 400, "N": 256, "K": 192}, 0, 1),
    ("gemm/gemm_sm90", {"M": 200, "N": 512, "K": 384}, 0, 1),
    ("gemm/gemm_sm90", {"M": 400, "N": 256, "K": 0}, 1, 2),
    ("gemm/gemm_bias_gelu_sm90", {"M": 200, "N": 512, "K": 200}, 0, 1),
    ("gemm/gemm_sm100", {"M": 300, "N": 256, "K": 200}, 0, 1),
    ("gemm/gemm_sm100", {"M": 128, "N": 256, "K": 0}, 0, 1),
    ("gemm/gemm_sm100_pair", {"M": 400, "N": 256, "K": 200}, 0, 1),
    ("gemm/gemm_sm100_pair", {"M": 256, "N": 256, "K": 1024}, 0, 1),
    ("gemm/gemm_sm100_mxf8", {"M": 256, "N": 128, "K": 384}, 0, 1),
    ("gemm/gemm_sm100_nvf4", {"M": 256, "N": 128, "KP": 384}, 0, 1),
    ("gemm/gemm_sm80", {"M": 128, "N": 256, "K": 320}, 0, 1),
    ("gemm/gemm_sm80", {"M": 128, "N": 256, "K": 0}, 0, 1),
    ("kmeans/kmeans_assign_sm90", {"NB": 1, "N": 512, "K": 700}, 0, 1),
    ("kmeans/kmeans_assign_sm90", {"NB": 1, "N": 512, "K": 1}, 0, 1),
    ("knn/knn_part_sm90", {"Q": 300, "N": 3000}, 0, 1),
    ("knn/knn_merge", {"Q": 9}, 0, 1),
    ("softmax/softmax", {"R": 3, "C": 100}, 0, 1),
    ("softmax/softmax_short", {"R": 3, "C": 100}, 0, 1),
    ("softmax/softmax_cluster", {"R": 3, "C": 100}, 0, 1),
    ("rmsnorm/rmsnorm", {"R": 3, "C": 100}, 0, 1),
    ("quantize/quantize_e4m3", {"R": 3, "C": 100}, 0, 1),
    ("elementwise/scale_shift", {"B": 2, "R": 3, "C": 100}, 0, 1),
    ("elementwise/silu_mul_bias", {"R": 3, "C": 100}, 0, 1),
]


def targets(text: str) -> list[str]:
    return [n for n in text.split("  target ", 1)[1].splitlines()[0].replace(",", " ").split()]


def instances() -> list:
    out = []
    for name, params, cluster, clusters in CASES:
        text = (ROOT / f"{name}.cake").read_text(encoding="utf-8")
        for arch in targets(text):
            out.append(pytest.param(text, arch, Scenario(params, cluster, clusters), id=f"{name}-{arch}-{'-'.join(map(str, params.values()))}"))
    return out


@pytest.mark.parametrize(("text", "arch", "scenario"), instances())
def test_a_kernel_has_no_fault(text, arch, scenario):
    outcome = explore(read(text, arch), scenario, limit_states=3000)
    assert [str(f) for f in outcome.faults] == []
    assert outcome.schedules > 1


@pytest.mark.parametrize(("text", "arch", "scenario"), [x for x in instances() if x.values[1] == targets(x.values[0])[0]])
def test_nor_has_its_derived_text(text, arch, scenario):
    outcome = explore(read(derived(text, arch), arch), scenario, mode="adversarial", seconds=2)
    assert [str(f) for f in outcome.faults] == []


# --- kernels whose control reads memory


def attention(lq: list[int], lk: list[int], heads: int, cluster: int = 0, clusters: int = 1) -> Scenario:
    """Ragged batches; the table of items in the order of the sequences."""
    cq, ck = ([sum(x[:i]) for i in range(len(x) + 1)] for x in (lq, lk))
    items = [(b, r, h) for b in range(len(lq)) for r in range(cq[b], cq[b + 1], 128) for h in range(heads)]
    tensors = {"CQ": cq, "CK": ck}
    sizes = {"B": len(lq), "H": heads, "HK": 1, "TQ": cq[-1], "TK": ck[-1], "t_count": len(items)}
    return Scenario(sizes, cluster, clusters, lambda t, i: items[i[0]][i[1]] if t == "t_items" else tensors[t][i[0]])


ATTENTION = (ROOT / "attention" / "attn_fwd_sm90.cake").read_text(encoding="utf-8")
MOE = (ROOT / "moe" / "moe_grouped_sm90.cake").read_text(encoding="utf-8")
BATCHES = {"tails": ([130], [200], 1), "empty": ([70, 0, 5, 9], [0, 3, 130, 4], 2), "long": ([128, 100], [900, 300], 1)}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("causal", [True, False])
def test_attention_has_no_fault(batch, causal):
    facts = read(ATTENTION, None, (("CAUSAL", causal),))
    assert [str(f) for f in explore(facts, attention(*BATCHES[batch]), limit_states=3000).faults] == []


@pytest.mark.parametrize("ends", [[0, 0, 5, 135, 200], [0, 200, 200, 200, 200], [0, 64, 128, 192, 200]])
def test_grouped_products_have_no_fault(ends):
    sizes = {"E": 4, "T": 200, "N": 300, "K": 128}
    outcome = explore(read(MOE), Scenario(sizes, loads=lambda t, i: ends[i[0]]), limit_states=3000)
    assert [str(f) for f in outcome.faults] == []


def test_offsets_that_no_one_gives_satisfy_the_contracts():
    """Several worlds are tried, which agree with `assume`; nothing is complete then."""
    outcome = explore(read(MOE), Scenario({"E": 3, "T": 200, "N": 256, "K": 64}), mode="adversarial")
    assert outcome.faults == () and not outcome.complete
    assert outcome.schedules > 40


def test_a_role_that_walks_other_offsets_hangs():
    text = derived(MOE)
    wrong = text.replace("while t_next < E and t_i >= t_behind", "while t_next < E - 1 and t_i >= t_behind", 1)
    assert wrong != text
    scenario = Scenario({"E": 2, "T": 200, "N": 256, "K": 64}, loads=lambda t, i: [0, 100, 200][i[0]])
    assert Kind.DEADLOCK in explore(read(wrong), scenario).found


DYNAMIC = (ROOT / "moe" / "moe_grouped_dynamic_sm90.cake").read_text(encoding="utf-8")


@pytest.mark.parametrize("clusters", [1, 3])
def test_items_on_demand_are_the_messages_that_one_role_writes(clusters):
    """Numbers come from the counter, items through shared memory: a role that ends an item earlier leaves the others waiting."""
    ends = [0, 100, 100, 300]
    scenario = Scenario({"E": 3, "T": 300, "N": 256, "K": 128}, 0, clusters, lambda t, i: ends[i[0]])
    text = derived(DYNAMIC)
    assert [str(f) for f in explore(read(text), scenario, mode="adversarial").faults] == []
    wrong = "while t_at >= 0 and t_wait < 1 {" if clusters == 1 else "while t_at >= 1 {"
    assert Kind.DEADLOCK in explore(read(text.replace("while t_at >= 0 {", wrong, 1)), scenario, mode="adversarial").found


def test_a_counter_may_give_other_numbers():
    """Another cluster has taken all but the last: one item, and the end."""
    ends = [0, 100, 100, 300]
    numbers = [2, 5, 6]
    scenario = Scenario({"E": 3, "T": 300, "N": 256, "K": 128}, 0, 2, lambda t, i: ends[i[0]], draws=lambda tensor, n: numbers[n])
    assert [str(f) for f in explore(read(DYNAMIC), scenario, mode="adversarial").faults] == []


def test_messages_reach_the_other_cta():
    text = (ROOT.parent / "tests" / "derive" / "texts" / "on_demand_cluster.cake").read_text(encoding="utf-8")
    for clusters in (1, 2):
        outcome = explore(read(text, "sm90"), Scenario({"M": 5, "N": 2}, 0, clusters), mode="adversarial")
        assert [str(f) for f in outcome.faults] == []
        assert outcome.limit == "" and outcome.schedules < 40, "no value was left open"
