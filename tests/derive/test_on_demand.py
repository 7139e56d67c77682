"""Items on demand in the kernels of the zoo: the word `dynamic` put behind their schedules, and nothing else changed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
TILES = re.compile(r"^  tiles t = (persistent|ragged)[^\n{#]*?(?=\s*(\{|#|$))", re.M)


def on_demand(path: Path) -> str | None:
    """The text with the word and its counter; None where a CTA has one item, or its warps meet the cluster themselves. One more warp fits."""
    text = path.read_text().replace("WARPS = 32", "WARPS = 16")
    schedule = TILES.search(text)
    if schedule is None or "dynamic" in schedule[0] or "cluster.sync" in text:
        return None
    text = f"{text[: schedule.end()]} dynamic NEXT{text[schedule.end() :]}"
    return re.sub(r"^(kernel \w+\((?:[^()]|\([^()]*\))*)\)", r"\1, NEXT: workspace i32[1])", text, count=1, flags=re.M)


TEXTS = {p.stem: t for p in sorted(KERNELS.rglob("*.cake")) if (t := on_demand(p)) is not None}


def test_there_are_all_kinds():
    """A table, a walk, clusters with multicast, pairs, a look at the next item."""
    assert {"softmax", "attn_fwd_sm90", "moe_grouped_sm90", "gemm_sm90", "gemm_sm100_pair"} <= set(TEXTS)


@pytest.mark.parametrize("name", TEXTS)
def test_a_kernel_takes_its_items_on_demand(name, compiled):
    targets = re.search(r"^  target (.*?)( *#.*)?$", TEXTS[name], re.M)[1].split(", ")
    for target in targets:
        done = compiled(TEXTS[name], arch=target)
        assert done.findings == ()
        (scheduler,) = re.findall(r"^  role t_sched: .*$", done.text, re.M)
        cluster = re.search(r"^  cluster m = (\d+)", done.text, re.M)
        assert (" on cluster[0] {" in scheduler) is (cluster is not None and cluster[1] != "1")
        again = compiled(done.text)
        assert again.findings == () and again.lowered.ptx == done.lowered.ptx


def test_the_role_that_draws_lives_in_idle_warps_where_there_are_some(compiled):
    for name in ("attn_fwd_sm90", "gemm_sm90"):
        assert (
            "role load: 1 warp at 0 regs" in (text := compiled(TEXTS[name], lowering=False).text) and "role t_sched: 1 warp at 1 " in text
        )
