"""Pages of a few kernels, made once: what is known of a text, without the proof, which other rooms try."""

from pathlib import Path

import pytest

from cake_core.check import checked
from cake_core.diagnostics import CakeError
from cake_core.facts import facts_of
from cake_core.ir.plan import read_plan
from cake_core.machine import Scenario
from cake_core.machine.timeline import telling, timeline
from cake_core.pipeline import frontend, pipelines
from cake_core.primitive.groups import warps_of
from cake_core.show import gathered
from cake_core.source import Source

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def pictured(offered):
    """`pictured(text, sizes)`: its picture, with the findings of checks that ask no prover."""

    def get(text: str, sizes: dict | None = None, arch: str | None = None, name: str = "kernel.cake"):
        source = Source(name, text)
        front = frontend(source, offered, arch)
        facts = facts_of(front.typed, offered, front.arch)
        plan = read_plan(front.typed, warps_of(front.typed, offered), offered.spaces)
        try:
            found = checked(front.typed, offered, front.arch).findings
        except CakeError as error:
            found = error.diagnostics
        run = timeline(facts, Scenario(sizes)) if sizes else telling(facts)
        limits = front.arch.limit("shared_bytes_per_block"), front.arch.limit("tensor_columns") if plan.tensors else 0
        return gathered(source, found, plan, facts, limits, tuple(pipelines(front.schedule or front.typed, plan)), run)

    return get


@pytest.fixture(scope="session")
def zoo(pictured):
    """`zoo(name)`: the picture of a kernel of the zoo at small sizes."""
    made = {}
    sizes = {
        "gemm/gemm_sm90": {"M": 4, "N": 16, "K": 576},
        "gemm/gemm_sm100_nvf4": {"M": 128, "N": 256, "KP": 384},
        "attention/attn_fwd_sm90": {"B": 1, "H": 2, "HK": 2, "TQ": 3, "TK": 2, "t_count": 2},
        "moe/moe_grouped_sm90": {"E": 2, "T": 6, "N": 24, "K": 288},
        "softmax/softmax_cluster": {"R": 3, "C": 100},
    }

    def get(name: str):
        if name not in made:
            text = (ROOT / "kernels" / f"{name}.cake").read_text(encoding="utf-8")
            arch = text.split("  target ", 1)[1].split()[0].strip(",")
            made[name] = pictured(text, sizes[name], arch, f"{name}.cake")
        return made[name]

    get.names = tuple(sizes)
    return get


@pytest.fixture(scope="session")
def stuck(pictured, compiled):
    """The picture of a derived text whose barrier counts one arrival more than its roles bring."""
    text = compiled((ROOT / "kernels/gemm/gemm_sm90.cake").read_text(encoding="utf-8")).text
    wrong = text.replace("ab_empty: mbarrier[4] count 4", "ab_empty: mbarrier[4] count 5", 1)
    assert wrong != text
    return pictured(wrong, {"M": 4, "N": 16, "K": 576})
