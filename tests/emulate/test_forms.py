"""Every form of an instruction that the zoo's texts for sm80 and sm90 have, has a micro-kernel, so that it was held against a GPU."""

from __future__ import annotations

import sys
from pathlib import Path

from cake_core.pipeline import build
from cake_core.ptx.reader import Statement, read
from cake_core.source import Source
from cake_core.syntax import parse

ROOT = Path(__file__).resolve().parents[2]
#: What leaves nothing to compare: registers change hands.
APART = ("setmaxnreg.",)


def forms(text: str) -> set[str]:
    return {s.opcode for s in read(text).body if isinstance(s, Statement)}


def test_every_form_of_the_zoo_was_held_against_a_gpu(offered):
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        from micro.families import MODULES, of_module
    finally:
        sys.path.remove(str(ROOT / "bench"))
    there = set().union(*(forms(case.text) for module in MODULES for case in of_module(module)))
    missing: dict[str, str] = {}
    for path in sorted((ROOT / "kernels").rglob("*.cake")):
        source = Source(path.name, path.read_text(encoding="utf-8"))
        for target in {"sm80", "sm90"} & set(parse(source).kernels[0].targets):
            text = build(source, offered, target, read_back=False).files["kernel.ptx"].decode()
            missing |= {form: f"{path.stem} for {target}" for form in forms(text) - there if not form.startswith(APART)}
    assert not missing
