"""What is refused, demands, effects."""

from __future__ import annotations

import pytest
from cake_tma.load import Load
from cake_tma.plugin import cake_primitives
from cake_tma.prefetch import Prefetch
from cake_tma.store import Commit, Store, Wait

from cake_core.diagnostics import CakeError
from cake_core.effects import Access, BySignal, CommitGroup, InGroup, Issuer, Mode, Proxy, WaitGroup
from cake_core.ir.build import op
from cake_core.ir.nodes import Attr, Name
from cake_core.ir.types import BF16, F32, Tile
from cake_core.primitive import Demand, Form


def load(to, of, **words):
    return op("tma.load", to, arrow="<-", value=of, **words)


def code(statement, cx, primitive=None) -> str:
    with pytest.raises(CakeError) as caught:
        (primitive or Load()).check(statement, cx)
    (found,) = caught.value.diagnostics
    assert found.message[0].islower() or found.message[0] == "'"
    assert not found.message.endswith(".")
    return found.code


@pytest.fixture
def schedule(ir):
    return ir.Context(form=Form.SCHEDULE)


def test_element_types_agree(ir, schedule):
    assert (
        code(load(ir.shared("a", (64, 64), elem=F32), ir.at(ir.tensor("A", "M", "K"), ir.part("m", 64), ir.part("k", 64))), schedule)
        == "type/element"
    )


def test_shapes_agree(ir, schedule):
    a = ir.shared("a", (64, 64))
    assert code(load(a, ir.at(ir.tensor("A", "M", "K"), ir.part("m", 64), ir.part("k", 32))), schedule) == "type/shape"
    Load().check(load(a, ir.at(ir.tensor("A", "M", 3, "K"), ir.part("m", 64), 1, ir.part("k", 64))), schedule)


def test_a_slot_is_named(ir, schedule):
    assert (
        code(load(ir.shared("a", (2,), (64, 64)), ir.at(ir.tensor("A", "M", "K"), ir.part("m", 64), ir.part("k", 64))), schedule)
        == "type/slot"
    )


def test_no_transpose(ir, schedule):
    a = ir.shared("a", (64, 64))
    turned = Attr(a, "T", type=Tile("shared", a.type.elem, a.type.groups, transposed=True))
    assert code(load(turned, ir.at(ir.tensor("A", "M", "K"), ir.part("m", 64), ir.part("k", 64))), schedule) == "type/transposed"


def test_sizes_are_constant(ir, schedule):
    assert code(load(ir.shared("a", (64, 64)), ir.tensor("A", "M", "K")), schedule) == "type/slice-size"
    Load().check(load(ir.shared("a", (64, 64)), ir.tensor("A", 64, 64)), schedule)


@pytest.mark.parametrize(("rank", "fine"), [(1, True), (5, True), (6, False)])
def test_rank(ir, schedule, rank, fine):
    source = ir.at(ir.tensor("A", *["E"] * rank), *[0] * (rank - 1), ir.part("k", 64))
    statement = load(ir.shared("a", (64,)), source)
    if fine:
        Load().check(statement, schedule)
    else:
        assert code(statement, schedule) == "ptx/tma-rank"


def test_rows_are_pieces_of_16_bytes(ir, schedule):
    narrow = load(ir.shared("a", (64, 4)), ir.at(ir.tensor("A", "M", "K"), ir.part("m", 64), ir.part("k", 4)))
    assert code(narrow, schedule) == "ptx/tma-box"
    column = load(ir.shared("a", (64,)), ir.at(ir.tensor("A", "M", "K"), ir.part("m", 64), 0))
    assert code(column, schedule) == "ptx/tma-box"


def test_multicast_parts_are_even_and_aligned(ir, schedule):
    for rows, size in ((63, 2), (64, 3), (24, 2)):
        statement = load(
            ir.shared("a", (rows, 64)), ir.at(ir.tensor("A", "M", "K"), ir.part("m", rows), ir.part("k", 64)), multicast=Name("m")
        )
        cx = ir.Context(form=Form.SCHEDULE, cluster_size=size)
        if rows == 24:  # parts of 12 rows: no swizzle, but 128-byte boundaries
            assert Load().demands(statement, cx) == (Demand("a", (0,), 128),)
        else:
            assert code(statement, cx) == "ptx/tma-box"


def test_the_derived_form_moves_one_box(ir):
    source = ir.at(ir.tensor("A", "M", "K"), ir.part("m", 64), ir.part("k", 128))
    statement = load(ir.shared("a", (64, 128)), source, signal=ir.barrier("full"))
    assert code(statement, ir.Context(swizzles={"a": 128})) == "ptx/tma-box"
    Load().check(statement, ir.Context())  # without a swizzle rows are not in panels


@pytest.mark.parametrize(("columns", "swizzle", "align"), [(64, 128, 1024), (32, 64, 512), (16, 32, 256), (64, 0, 128)])
def test_the_derived_form_keeps_to_its_alignment(ir, columns, swizzle, align):
    source = ir.at(ir.tensor("A", "M", "K"), ir.part("m", 64), ir.part("k", columns))
    statement = load(ir.shared("a", (64, columns)), source, signal=ir.barrier("full"))
    swizzles = {"a": swizzle} if swizzle else {}
    Load().check(statement, ir.Context(swizzles=swizzles, offsets={"a": align}))
    assert code(statement, ir.Context(swizzles=swizzles, offsets={"a": align // 2})) == "ptx/tma-align"


def test_a_part_starts_with_a_pattern(ir):
    source = ir.at(ir.tensor("A", "M", "K"), ir.part("m", 64), ir.part("k", 64))
    cx = ir.Context(swizzles={"a": 128})
    a = ir.shared("a", (128, 64))
    Load().check(load(ir.at(a, ir.part(ir.multiple("r", 64), 64), ir.ALL), source, signal=ir.barrier("full")), cx)
    assert code(load(ir.at(a, ir.part(ir.multiple("r", 4), 64), ir.ALL), source, signal=ir.barrier("full")), cx) == "ptx/tma-box"


@pytest.mark.parametrize("mask", [0, 4])
def test_mask_names_ctas_of_the_cluster(ir, mask):
    statement = load(
        ir.shared("a", (64, 64)),
        ir.at(ir.tensor("A", "M", "K"), ir.part("m", 64), ir.part("k", 64)),
        signal=ir.barrier("full"),
        mask=ir.integer(mask),
    )
    assert code(statement, ir.Context(swizzles={"a": 128})) == "ptx/tma-mask"


@pytest.mark.parametrize(
    ("shape", "swizzles", "align"),
    [
        ((128, 64), (128, 64, 32, 0), 1024),
        ((128, 128), (128, 64, 32, 0), 1024),
        ((128, 32), (64, 32, 0), 512),
        ((128, 48), (32, 0), 256),
        ((8, 40), (0,), 128),
    ],
)
def test_demands_by_row_bytes(ir, schedule, shape, swizzles, align):
    source = ir.at(ir.tensor("A", "M", "K"), ir.part("m", shape[0]), ir.part("k", shape[1]))
    assert Load().demands(load(ir.shared("a", shape), source), schedule) == (Demand("a", swizzles, align),)
    store = op("tma.store", source, arrow="<-", value=ir.shared("a", shape))
    assert Store().demands(store, schedule) == (Demand("a", swizzles, align),)


def test_effects_of_a_load(ir):
    to, of = ir.at(ir.shared("a", (4,), (128, 64)), "s"), ir.at(ir.tensor("A", "M", "K"), ir.part("m", 128), ir.part("k", 64))
    full = ir.barrier("full")
    by = BySignal(full, 128 * 64 * 2)
    assert Load().effects(load(to, of, signal=full)) == (
        Access(of, Mode.READ, Proxy.ASYNC, by, Issuer.LEADER),
        Access(to, Mode.WRITE, Proxy.ASYNC, by, Issuer.LEADER),
    )
    assert Load().effects(load(to, of))[1].completion == BySignal(None, 128 * 64 * 2)


def test_effects_of_a_store(ir):
    d, to = ir.shared("d", (64, 64)), ir.at(ir.tensor("D", "M", "N"), ir.part("m", 64), ir.part("n", 64))
    assert Store().effects(op("tma.store", to, arrow="<-", value=d)) == (
        Access(d, Mode.READ, Proxy.ASYNC, InGroup("bulk"), Issuer.LEADER),
        Access(to, Mode.WRITE, Proxy.ASYNC, InGroup("bulk"), Issuer.LEADER, front=False),
    )
    assert Commit().effects(op("tma.store.commit")) == (CommitGroup("bulk"),)
    assert Wait(name="w", reads_only=True).effects(op("w", 1)) == (WaitGroup("bulk", 1, reads_only=True),)


def test_every_primitive_cites_the_isa():
    for p in cake_primitives():
        assert "PTX ISA" in p.doc and p.capabilities


@pytest.mark.parametrize(("elem", "fine", "wrong"), [(BF16, 8, 4), (F32, 4, 2), (F32, 4, 3)])
def test_a_box_starts_in_a_row_at_a_multiple_of_16_bytes(ir, schedule, elem, fine, wrong):
    """Of loads and stores; a vector starts anywhere."""
    here, there = ir.shared("a", (64, 32), elem=elem), ir.tensor("A", "M", "K", elem=elem)
    for start in (ir.multiple("k", fine), 0, fine, -fine):
        Load().check(load(here, ir.at(there, ir.part("m", 64), ir.part(start, 32))), schedule)
    for start in (ir.multiple("k", wrong), ir.integer("k"), 1, wrong, -wrong):
        tile = ir.at(there, ir.part("m", 64), ir.part(start, 32))
        assert code(load(here, tile), schedule) == "ptx/tma-start"
        assert code(op("tma.store", tile, arrow="<-", value=here), schedule, Store()) == "ptx/tma-start"
        assert code(op("tma.prefetch", tile), schedule, Prefetch()) == "ptx/tma-start"
    vector = ir.tensor("V", "K", elem=elem)
    Load().check(load(ir.shared("v", (32,), elem=elem), ir.at(vector, ir.part(ir.integer("k"), 32))), schedule)
