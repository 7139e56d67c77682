"""What is derived, demanded and refused."""

from __future__ import annotations

import pytest
from cake_wgmma.groups import Commit, RegisterFence, Wait
from cake_wgmma.plugin import cake_primitives
from cake_wgmma.product import Wgmma

from cake_core.diagnostics import CakeError
from cake_core.effects import OF_WARPGROUP, Access, CommitGroup, Fence, InGroup, Issuer, Mode, Proxy, WaitGroup
from cake_core.ir.build import op
from cake_core.ir.printer import stmt_text
from cake_core.ir.types import BF16, F16, F32
from cake_core.primitive import Demand, Form


def code(statement, cx, primitive=None) -> str:
    with pytest.raises(CakeError) as caught:
        (primitive or Wgmma()).check(statement, cx)
    (found,) = caught.value.diagnostics
    assert not found.message.endswith(".") and not found.message[0].isupper() or found.message[0] in "MNK"
    return found.code


@pytest.fixture
def gemm(ir):
    a = ir.at(ir.at(ir.shared("a", (4,), (128, 64)), "s"), ir.part(ir.multiple("r", 64), 64), ir.ALL)
    return ir.wgmma(ir.frag("acc", 64, 256), a, ir.T(ir.at(ir.shared("b", (4,), (256, 64)), "s")))


@pytest.fixture
def schedule(ir):
    return ir.Context(form=Form.SCHEDULE)


def test_derives_to_fence_itself_and_commit(ir, gemm):
    assert [stmt_text(s) for s in Wgmma().derive(gemm, ir.Context())] == [
        "wgmma.fence",
        "wgmma acc += a[s][r +: 64, :] @ b[s].T",
        "wgmma.commit",
    ]


def test_demands_and_fragments(ir, gemm, schedule):
    assert Wgmma().demands(gemm, schedule) == (Demand("a", (128, 64, 32), 1024), Demand("b", (128, 64, 32), 1024))
    assert Wgmma().fragments(gemm, schedule) == {"acc": "mma"}
    pv = ir.wgmma(ir.frag("o", 64, 32), ir.frag("p", 64, 128, elem=BF16), ir.shared("v", (128, 32)))
    assert Wgmma().demands(pv, schedule) == (Demand("v", (64, 32), 512),)
    assert Wgmma().fragments(pv, schedule) == {"o": "mma", "p": "mma"}


def test_effects(gemm):
    a, b = gemm.value.left, gemm.value.right.base
    d, group = gemm.operands[0], InGroup("wgmma")
    assert Wgmma().effects(gemm) == (
        Access(a, Mode.READ, Proxy.ASYNC, group, Issuer.WARPGROUP),
        Access(b, Mode.READ, Proxy.ASYNC, group, Issuer.WARPGROUP),
        Access(d, Mode.READ, Proxy.GENERIC, group, Issuer.WARPGROUP),
        Access(d, Mode.WRITE, Proxy.GENERIC, group, Issuer.WARPGROUP),
        OF_WARPGROUP,
    )
    assert Commit().effects(op("wgmma.commit")) == (CommitGroup("wgmma"), OF_WARPGROUP)
    assert Wait().effects(op("wgmma.wait", 1)) == (WaitGroup("wgmma", 1), OF_WARPGROUP)
    assert RegisterFence().effects(op("wgmma.fence")) == (Fence("registers", "warpgroup"), OF_WARPGROUP)


def test_an_assignment_does_not_read_its_result(ir):
    s = ir.wgmma(ir.frag("s", 64, 64), ir.shared("q", (64, 64)), ir.T(ir.shared("k", (64, 64))), "=")
    assert [e.mode for e in Wgmma().effects(s) if isinstance(e, Access)] == [Mode.READ, Mode.READ, Mode.WRITE]


def test_the_gemm_is_fine_in_both_forms(ir, gemm, schedule):
    Wgmma().check(gemm, schedule)
    Wgmma().check(gemm, ir.Context(swizzles={"a": 128, "b": 128}, offsets={"a": 0, "b": 65536}))


@pytest.mark.parametrize(
    ("d", "a", "b", "wanted"),
    [
        ((64, 64), (64, 64), (32, 64), "type/shape"),  # N
        ((64, 64), (128, 64), (64, 64), "type/shape"),  # M
        ((64, 64), (64, 64), (64, 32), "type/shape"),  # K
        ((32, 64), (32, 64), (64, 64), "ptx/wgmma-shape"),
        ((64, 12), (64, 64), (12, 64), "ptx/wgmma-shape"),
        ((64, 264), (64, 64), (264, 64), "ptx/wgmma-shape"),
        ((64, 64), (64, 40), (64, 40), "ptx/wgmma-shape"),
    ],
)
def test_shapes(ir, schedule, d, a, b, wanted):
    assert code(ir.wgmma(ir.frag("d", *d), ir.shared("a", a), ir.T(ir.shared("b", b))), schedule) == wanted


def test_a_missing_transpose_is_suggested(ir, schedule):
    with pytest.raises(CakeError) as caught:
        Wgmma().check(ir.wgmma(ir.frag("d", 64, 128), ir.shared("a", (64, 64)), ir.shared("b", (128, 64))), schedule)
    assert ".T" in caught.value.diagnostics[0].fix


@pytest.mark.parametrize(("a", "b", "d"), [(BF16, F16, F32), (F32, F32, F32), (BF16, BF16, BF16)])
def test_element_types(ir, schedule, a, b, d):
    statement = ir.wgmma(ir.frag("d", 64, 64, elem=d), ir.shared("a", (64, 64), elem=a), ir.T(ir.shared("b", (64, 64), elem=b)))
    assert code(statement, schedule) == "type/element"


def test_factors_lie_where_the_instruction_reads_them(ir, schedule):
    assert code(ir.wgmma(ir.frag("d", 64, 64), ir.shared("a", (64, 64)), ir.T(ir.frag("b", 64, 64, elem=BF16))), schedule) == "type/operand"
    turned = ir.wgmma(ir.frag("d", 64, 64), ir.T(ir.frag("a", 64, 64, elem=BF16)), ir.T(ir.shared("b", (64, 64))))
    assert code(turned, schedule) == "type/transposed"


@pytest.mark.parametrize(("group", "warps"), [("warp", 4), ("warp", 1), ("warpgroup", 8), (None, 0)])
def test_the_role_is_one_warpgroup(ir, gemm, group, warps):
    assert code(gemm, ir.Context(form=Form.SCHEDULE, group=group, warps=warps)) == "ptx/wgmma-warpgroup"


@pytest.mark.parametrize("n", [8, 24])
def test_rows_hold_a_swizzle(ir, schedule, n):
    """Rows of 16 or 48 bytes."""
    statement = ir.wgmma(ir.frag("d", 64, n), ir.shared("a", (64, 64)), ir.shared("b", (64, n)))
    assert code(statement, schedule) == "ptx/wgmma-operand"


def test_a_part_starts_with_a_pattern(ir, schedule):
    a = ir.shared("a", (128, 64))
    b = ir.T(ir.shared("b", (64, 64)))
    assert code(ir.wgmma(ir.frag("d", 64, 64), ir.at(a, ir.part(ir.multiple("r", 4), 64), ir.ALL), b), schedule) == "ptx/wgmma-operand"
    Wgmma().check(ir.wgmma(ir.frag("d", 64, 64), ir.at(a, ir.part(ir.multiple("r", 8), 64), ir.ALL), b), schedule)


def test_slots_are_whole_patterns(ir, schedule):
    """Slots of 12 rows would put every second one into the middle of a pattern."""
    b = ir.at(ir.at(ir.shared("b", (2,), (12, 64)), "s"), ir.part(0, 8), ir.ALL)
    assert code(ir.wgmma(ir.frag("d", 64, 8), ir.shared("a", (64, 64)), ir.T(b)), schedule) == "ptx/wgmma-operand"


def test_the_derived_form_is_held_to_what_it_declares(ir, gemm):
    fine = {"a": 128, "b": 128}
    assert code(gemm, ir.Context(swizzles={"a": 128})) == "ptx/wgmma-operand"  # b is not swizzled
    assert code(gemm, ir.Context(swizzles={"a": 16, "b": 128})) == "ptx/wgmma-operand"
    assert code(gemm, ir.Context(swizzles=fine, offsets={"b": 512})) == "ptx/wgmma-align"
    assert code(gemm, ir.Context(swizzles=fine, layout="vector")) == "ptx/wgmma-layout"
    assert code(gemm, ir.Context(swizzles=fine, layout=None)) == "ptx/wgmma-layout"


@pytest.mark.parametrize("pending", [-1, 8])
def test_pending_groups(ir, pending):
    assert code(op("wgmma.wait", ir.integer(pending)), ir.Context(), Wait()) == "ptx/wgmma-pending"


def test_every_primitive_cites_the_isa():
    for p in cake_primitives():
        assert "PTX ISA" in p.doc and p.capabilities == {"wgmma"}
