"""`regs N`: which values it takes, and the instruction that it becomes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cake_core.diagnostics import CakeError
from cake_core.plugins import load_registry
from cake_core.ptx.builder import Builder

REGISTRY = load_registry(environ={"CAKE_LOAD_PLUGINS": ""})
REGS = REGISTRY.role_words["regs"]
HOPPER = SimpleNamespace(arch=REGISTRY.architecture("sm90"))


def test_it_acts_on_whole_warpgroups():
    assert (REGS.groups_of, REGS.capabilities) == (4, {"setmaxnreg"})


@pytest.mark.parametrize("value", range(24, 249, 8))
def test_every_multiple_of_eight_in_range_is_taken(value):
    REGS.check(value, HOPPER)


@pytest.mark.parametrize(
    ("value", "nearest"),
    [(-8, 24), (0, 24), (16, 24), (23, 24), (25, 24), (236, 240), (235, 232), (247, 248), (255, 248), (256, 248), (10**9, 248)],
)
def test_other_values_are_refused_with_the_nearest(value, nearest):
    with pytest.raises(CakeError) as caught:
        REGS.check(value, HOPPER)
    (d,) = caught.value.diagnostics
    assert (d.code, d.fix) == ("type/register-count", f"write 'regs {nearest}'")
    assert f"'regs {value}'" in d.message and "from 24 to 248" in d.why
    REGS.check(nearest, HOPPER)


def test_without_an_architecture_the_isa_decides():
    REGS.check(256, SimpleNamespace(arch=None))
    with pytest.raises(CakeError):
        REGS.check(264, SimpleNamespace(arch=None))


def test_a_target_with_fewer_registers_lowers_the_bound():
    small = SimpleNamespace(arch=SimpleNamespace(limit={"registers_per_thread": 127}.__getitem__))
    REGS.check(120, small)
    with pytest.raises(CakeError):
        REGS.check(128, small)


@pytest.mark.parametrize(
    ("value", "entry", "text"),
    [
        (40, 168, ["setmaxnreg.dec.sync.aligned.u32 40;"]),
        (232, 168, ["setmaxnreg.inc.sync.aligned.u32 232;"]),
        (168, 168, []),
    ],
)
def test_lowering_compares_with_the_share_at_entry(value, entry, text):
    b = Builder()
    REGS.lower(value, entry, SimpleNamespace(b=b))
    assert [str(i) for i in b.body] == text
