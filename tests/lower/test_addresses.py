"""Shared addresses against the definition: a tile is written down element by element, and the machine code must agree."""

from math import prod

import pytest

from cake_core.diagnostics import CakeError
from cake_core.ptx.builder import Addr, Reg

BASE = 1 << 14  # where the machine puts dynamic shared memory


def test_an_offset_below_an_address_is_one_that_is_added():
    """As the assembler reads it: `[%r0-4]` is a syntax error (PTX ISA, Addresses as Operands)."""
    assert [str(Addr(Reg("%r0", "b32"), n)) for n in (-4, 0, 4)] == ["[%r0+-4]", "[%r0]", "[%r0+4]"]


def defined(shape, elem_bytes, swizzle, row, column):
    """Byte offset of an element in its slot (PTX ISA, Tensors, swizzling modes): panels of `swizzle` bytes, 16-byte chunks permuted."""
    if not swizzle:
        return (row * shape[1] + column) * elem_bytes
    panel, inside = divmod(column * elem_bytes, swizzle)
    chunk, rest = divmod(inside, 16)
    chunk ^= {128: row % 8, 64: row // 2 % 4, 32: row // 4 % 2}[swizzle]
    return panel * shape[0] * swizzle + row * swizzle + chunk * 16 + rest


def declared(elem, slots, shape, offset, swizzle):
    groups = "".join(f"[{s}]" for s in slots)
    return f"shared x: {elem}{groups}[{', '.join(map(str, shape))}] at {offset}" + (f" swizzle {swizzle}" if swizzle else "")


BYTES = {"bf16": 2, "f32": 4}
CASES = [
    ("bf16", (64, 64), 128),
    ("bf16", (64, 128), 128),
    ("f32", (32, 32), 128),
    ("bf16", (64, 32), 64),
    ("f32", (32, 64), 64),
    ("bf16", (32, 16), 32),
    ("bf16", (16, 48), 32),
    ("bf16", (16, 40), 0),
    ("f32", (8, 5), 0),
]


@pytest.mark.parametrize("elem, shape, swizzle", CASES)
def test_every_element_of_a_slot(role, run, elem, shape, swizzle):
    """Coordinates in registers; no two elements share an address."""
    low = role(
        "address.element x[S], I, J",
        params="S: i32, I: i32, J: i32",
        require="0 <= S, S <= 3",
        before=declared(elem, (4,), shape, 4096, swizzle),
    )
    slot_bytes = -(-prod(shape) * BYTES[elem] // 128) * 128
    found = {}
    for row in range(shape[0]):
        for column in range(0, shape[1], 3):
            slot = (row + column) % 4
            (address,) = run(low, S=slot, I=row, J=column).trace
            assert address == BASE + 4096 + slot * slot_bytes + defined(shape, BYTES[elem], swizzle, row, column)
            assert found.setdefault(address, (slot, row, column)) == (slot, row, column)


@pytest.mark.parametrize("elem, shape, swizzle", CASES)
def test_elements_of_a_part_count_from_its_start(role, run, elem, shape, swizzle):
    rows, columns = shape[0] // 2, shape[1] // 2
    body = f"address.element x[{rows - 1} +: 2, {columns - 1} +: 2], I, J"
    low = role(body, params="I: i32, J: i32", before=declared(elem, (), shape, 0, swizzle))
    for i in (0, 1):
        for j in (0, 1):
            assert run(low, I=i, J=j).trace == [BASE + defined(shape, BYTES[elem], swizzle, rows - 1 + i, columns - 1 + j)]


def test_a_single_index_takes_its_dimension_away(role, run):
    low = role("address.row x[R, 8 +: 8], J", params="R: i32, J: i32", before=declared("bf16", (), (16, 64), 0, 128))
    for row in range(16):
        assert run(low, R=row, J=3).trace == [BASE + defined((16, 64), 2, 128, row, 11)]


def test_transposed_coordinates_swap(role, run):
    low = role("address.element x[:, :].T, I, J", params="I: i32, J: i32", before=declared("bf16", (), (64, 64), 0, 128))
    assert run(low, I=9, J=21).trace == [BASE + defined((64, 64), 2, 128, 21, 9)]


@pytest.mark.parametrize("slots", [(), (4,), (2, 3), ((2, 3))])
@pytest.mark.parametrize("elem, shape, swizzle", CASES)
def test_start_of_a_slot(role, run, slots, elem, shape, swizzle):
    """Slots are row-major, each a multiple of 128 bytes; several bracket groups count as one index after the other."""
    names = ["S", "T"][: len(slots)]
    index = "".join(f"[{n}]" for n in names)
    params = ", ".join(f"{n}: i32" for n in names) or "N: i32"
    low = role(f"address.tile x{index}", params=params, before=declared(elem, slots, shape, 8192, swizzle))
    size = prod(shape) * BYTES[elem]
    pitch = -(-size // 128) * 128 if size > 128 and slots else size
    for s in range(slots[0] if slots else 1):
        for t in range(slots[1] if len(slots) > 1 else 1):
            number = s * slots[1] + t if len(slots) > 1 else s
            scalars = {"S": s, "T": t, "N": 0}
            assert run(low, **scalars).trace == [BASE + 8192 + number * pitch]


def test_whole_atoms_start_where_their_first_element_lies(role, run):
    low = role(
        "address.tile x[8 * R +: 8, 64 * C +: 64]",
        params="R: i32, C: i32",
        require="0 <= R, R <= 7, 0 <= C, C <= 1",
        before=declared("bf16", (), (64, 128), 0, 128),
    )
    for r in range(8):
        for c in range(2):
            assert run(low, R=r, C=c).trace == [BASE + defined((64, 128), 2, 128, 8 * r, 64 * c)]


@pytest.mark.parametrize("part", ["4 +: 8, :", "R +: 8, :", "4 * R +: 8, :", "0 +: 8, 32 +: 32", "0 +: 8, R +: 64"])
def test_a_start_inside_an_atom_is_refused(role, part):
    """The address of a swizzled tile that starts inside an atom says nothing: that is an error, known or not."""
    with pytest.raises(CakeError) as error:
        role(f"address.tile x[{part}]", params="R: i32", require="0 <= R, R <= 3", before=declared("bf16", (), (64, 128), 0, 128))
    assert error.value.diagnostics[0].code == "derive/swizzle-offset"


@pytest.mark.parametrize(
    "declaration",
    [
        "shared x: bf16[64, 32] at 0 swizzle 128",
        "shared x: bf16[64, 64] at 512 swizzle 128",
        "shared x: bf16[64, 64] at 0 swizzle 48",
        "shared x: bf16[4][4, 64] at 0 swizzle 128",
    ],
)
def test_a_swizzle_that_does_not_fit_is_refused(role, declaration):
    slot = "[0]" if "[4]" in declaration else ""
    with pytest.raises(CakeError) as error:
        role(f"address.tile x{slot}", before=declaration)
    assert error.value.diagnostics[0].code.split("/")[1].startswith("swizzle")


@pytest.mark.parametrize(
    "elem, shape, swizzle, expected",
    [
        ("bf16", (64, 128), 128, (64, 64 * 128)),
        ("f32", (32, 64), 64, (16, 32 * 64)),
        ("bf16", (64, 64), 128, (64, 64 * 128)),
        ("bf16", (16, 40), 0, (40, 16 * 40 * 2)),
    ],
)
def test_panels(role, run, elem, shape, swizzle, expected):
    low = role("panel x", before=declared(elem, (), shape, 0, swizzle))
    assert tuple(run(low, N=0).trace) == expected


@pytest.mark.parametrize("align, swizzle", [(1024, 128), (512, 64), (256, 32)])
def test_the_base_is_rounded_up_inside_the_slack(role, machine, align, swizzle):
    """Wherever the driver puts dynamic shared memory (16 bytes at least), the plan's base is aligned and the plan fits."""
    columns = swizzle // 2
    low = role("address.tile x", before=f"shared x: bf16[8, {columns}] at 0 swizzle {swizzle}")
    for start in range(0, 2 * align, 16):
        special = {"%tid.x": 0, "%ctaid.x": 0, "%nctaid.x": 1, "shared_memory": start}
        (at,) = machine(params={"arg_N": 0}, special=special).run(low.ptx).trace
        assert at % align == 0 and start <= at
        assert at + 8 * swizzle <= start + low.launch.shared_bytes


def test_no_symbol_without_shared_memory(role):
    assert ".extern" not in role("trace N").ptx and role("trace N").launch.shared_bytes == 0


@pytest.mark.parametrize("index, offset", [("[0]", 0), ("[3]", 24), ("[S]", 16)])
def test_barriers_lie_eight_bytes_apart(role, index, offset):
    low = role(f"mbarrier.arrive full{index}", params="S: i32", before="barrier full: mbarrier[4] count 1 at 96")
    assert "mbarrier.arrive" in low.ptx
    assert (f", {96 + offset};" in low.ptx) if index != "[S]" else ("shl.b32" in low.ptx and ", 96;" in low.ptx)
