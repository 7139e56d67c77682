"""What was held against a GPU: every form of an instruction that the zoo's texts for sm80 and sm90 have, and every instruction of sm_90 that the emulator
executes, has a micro-kernel.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cake_core.pipeline import build
from cake_core.ptx.reader import Statement, read
from cake_core.source import Source
from cake_core.syntax import parse

ROOT = Path(__file__).resolve().parents[2]
#: Of other targets.
BLACKWELL = ("tcgen05.", "clusterlaunchcontrol.")
#: What ends a kernel or leaves values undefined, what is executed only to be refused by its name, and hints of maps in spaces where no case has one.
APART = {"trap", "discard", "cp.reduce.async.bulk.shared::cta", "prefetch.const.tensormap", "prefetch.param.tensormap"}


def forms(text: str) -> set[str]:
    return {s.opcode for s in read(text).body if isinstance(s, Statement)}


@pytest.fixture(scope="module")
def held() -> set[str]:
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        from micro.families import MODULES, of_module
    finally:
        sys.path.remove(str(ROOT / "bench"))
    return set().union(*(forms(case.text) for module in MODULES for case in of_module(module)))


def test_every_form_of_the_zoo_was_held_against_a_gpu(offered, held):
    missing: dict[str, str] = {}
    for path in sorted((ROOT / "kernels").rglob("*.cake")):
        source = Source(path.name, path.read_text(encoding="utf-8"))
        for target in {"sm80", "sm90"} & set(parse(source).kernels[0].targets):
            text = build(source, offered, target, read_back=False).files["kernel.ptx"].decode()
            missing |= {form: f"{path.stem} for {target}" for form in forms(text) - held}
    assert not missing


def test_every_instruction_was_held_against_a_gpu(offered, held):
    names = {name for name in offered.emulates if not name.startswith(BLACKWELL)}
    there = {".".join(words[:n]) for words in (form.split(".") for form in held) for n in range(1, len(words) + 1)}
    assert names - there == APART
