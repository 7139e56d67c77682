"""Shuffles without a GPU, against the ISA's pseudocode lane by lane."""

from __future__ import annotations

import numpy as np
import pytest

from cake_core.emulate.outcome import Unsupported
from cake_core.emulate.registers import on_registers
from cake_core.plugins import load_registry

LANE = np.arange(32, dtype=np.uint32)


@pytest.fixture(scope="module")
def emulates():
    return load_registry().emulates


def source(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """PTX ISA, shfl.sync, Semantics."""
    bval, cval, mask = b & 31, c & 31, c >> 8 & 31
    most, least = (lane & mask) | (cval & ~mask & 31), lane & mask
    match mode:
        case "up":
            j = lane - bval
            inside = j >= most
        case "down":
            j = lane + bval
            inside = j <= most
        case "bfly":
            j = lane ^ bval
            inside = j <= most
        case "idx":
            j = least | (bval & ~mask & 31)
            inside = j <= most
    return (j if inside else lane), inside


#: What compilers write: whole warps, segments of 16, 8 and 2 lanes, and a clamp in the middle.
CLAMPS = {"up": (0, 0x1000, 0x1800), "down": (31, 0x101F, 0x1E1F, 19), "bfly": (31, 0x181F, 15), "idx": (31, 0x101F, 0x181F, 20)}


@pytest.mark.parametrize(("mode", "clamp"), [(m, c) for m, cs in CLAMPS.items() for c in cs])
def test_every_mode(emulates, mode, clamp):
    values = LANE * 7 + 1
    for b in (0, 1, 5, 16, 31, 33):
        for fixed in (True, False):
            text = f"shfl.sync.{mode}.b32 %d|%p, %a, {b}, {clamp}, -1;" if fixed else f"shfl.sync.{mode}.b32 %d|%p, %a, %b, %c, 0xffffffff;"
            given = {"a": values, "b": np.full(32, b, np.uint32), "c": np.full(32, clamp, np.uint32)}
            run = on_registers(text, given, {"d": "uint32", "p": "bool"}, emulates)
            wanted = [source(mode, lane, b, clamp) for lane in range(32)]
            assert run.findings == []
            assert run["d"].tolist() == [values[j] for j, _ in wanted] and run["p"].tolist() == [inside for _, inside in wanted], (b, fixed)


def test_each_lane_has_its_own_source(emulates):
    b = (LANE * 5 + 3) % 32
    run = on_registers("shfl.sync.idx.b32 %d, %a, %b, 31, -1;", {"a": LANE + 100, "b": b}, {"d": "uint32"}, emulates)
    assert run["d"].tolist() == (b + 100).tolist()


def test_a_result_that_is_the_source(emulates):
    run = on_registers("shfl.sync.bfly.b32 %a, %a, 1, 31, -1;", {"a": LANE}, {"a": "uint32"}, emulates)
    assert run["a"].tolist() == [n ^ 1 for n in range(32)]


def test_halves_of_a_warp_shuffle_apart(emulates):
    """In a branch of one half, and with a mask for each half where all lanes are together."""
    text = "@!%p bra $not;\nshfl.sync.down.b32 %a, %a, 4, 31, 0xFFFF;\n$not:\n"
    run = on_registers(text, {"a": LANE, "p": LANE < 16}, {"a": "uint32"}, emulates)
    assert run.codes == ["emulate/operand"] and "lane 12 reads from lane 16" in run.findings[0].message
    text = text.replace("31, 0xFFFF", "0x101F, 0xFFFF")
    run = on_registers(text, {"a": LANE, "p": LANE < 16}, {"a": "uint32"}, emulates)
    assert run.findings == [] and run["a"].tolist() == [n + 4 if n < 12 else n for n in range(32)]
    masks = np.where(LANE < 16, np.uint32(0xFFFF), np.uint32(0xFFFF0000))
    run = on_registers("shfl.sync.bfly.b32 %a, %a, 8, 31, %m;", {"a": LANE, "m": masks}, {"a": "uint32"}, emulates)
    assert run.findings == [] and run["a"].tolist() == [n ^ 8 for n in range(32)]
    run = on_registers("shfl.sync.bfly.b32 %a, %a, 16, 31, %m;", {"a": LANE, "m": masks}, {"a": "uint32"}, emulates)
    assert set(run.codes) == {"emulate/operand"}


def test_lanes_wait_for_those_of_their_mask(emulates):
    """The odd lanes come later, through a loop; without them the even ones would stand."""
    text = """mov.b32 %n, 0;
              @!%p bra $go;
              $loop:
              add.u32 %n, %n, 1;
              setp.lt.u32 %q, %n, 50;
              @%q bra $loop;
              $go:
              shfl.sync.bfly.b32 %n, %n, 1, 31, -1;"""
    run = on_registers(text, {"p": LANE % 2 == 1}, {"n": "uint32"}, emulates, ".reg .pred %q;")
    assert run.findings == [] and run["n"].tolist() == [50, 0] * 16


def test_a_lane_that_ended_is_not_waited_for_but_not_read_either(emulates):
    run = on_registers("@%p exit;\nshfl.sync.bfly.b32 %a, %a, 1, 31, -1;", {"a": LANE, "p": LANE >= 30}, {"a": "uint32"}, emulates)
    assert run.findings == [] and run["a"].tolist() == [*(n ^ 1 for n in range(30)), 0, 0]
    run = on_registers("@%p exit;\nshfl.sync.bfly.b32 %a, %a, 1, 31, -1;", {"a": LANE, "p": LANE >= 31}, {"a": "uint32"}, emulates)
    assert run.codes == ["emulate/operand"] and "lane 30 reads from lane 31" in run.findings[0].message


def test_a_lane_outside_of_its_mask(emulates):
    run = on_registers("shfl.sync.bfly.b32 %a, %a, 1, 31, 0xFF;", {"a": LANE}, {"a": "uint32"}, emulates)
    assert run.codes == ["emulate/operand"] and "lane 8 is not in the mask 0xff" in run.findings[0].message


@pytest.mark.parametrize("text", ["shfl.bfly.b32 %a, %a, 1, 31;", "shfl.sync.rot.b32 %a, %a, 1, 31, -1;", "shfl.sync.up.b64 %a, %a, 1, 31, -1;"])
def test_other_forms_are_refused(emulates, text):
    with pytest.raises(Unsupported):
        on_registers(text, {"a": LANE}, {}, emulates)
