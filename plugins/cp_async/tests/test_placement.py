"""Where every piece goes and comes from: the statement is run for all threads, and each element of the tile is followed."""

from __future__ import annotations

import itertools

import pytest

POINTER = 1 << 40


def text(elem, tensor, tile, at, buffer, warps, by, swizzle=0, slot=1, prefetch=""):
    """One copy of a tile of `tensor` into slot `slot` of a buffer of the tile's shape, derived form."""
    dims = ", ".join(map(str, tensor))
    index = ", ".join(str(a) if n is None else f"{a} +: {n}" for a, n in zip(at, tile, strict=True))
    shape = ", ".join(map(str, buffer))
    words = f" swizzle {swizzle}" if swizzle else ""
    return f"""cake 1 derived
kernel k(T: in {elem}[{dims}])
  target sm80
{{
  launch 1
  shared x: {elem}[3][{shape}] at 0{words}
  role main: {warps} warps at 0 {{
    cp.async x[{slot}] <- T[{index}]{prefetch} by {by}
    cp.async.wait 0
  }}
}}
"""


def place_of(row, byte, rows, row_bytes, swizzle):
    """Byte offset in a slot: panels of `swizzle` bytes, chunk bits 4.. XORed with address bits 7.. (PTX ISA, Swizzling Modes)."""
    if not swizzle:
        return row * row_bytes + byte
    panel, inside = divmod(byte, swizzle)
    address = panel * rows * swizzle + row * swizzle + inside
    return address ^ ((address >> 7) & (swizzle // 16 - 1)) << 4


@pytest.mark.parametrize(
    ("elem", "tensor", "tile", "at", "warps", "by", "swizzle"),
    [
        ("bf16", (300, 96), (128, 32), (128, 32), 8, 16, 64),  # two rounds, whole rows
        ("bf16", (300, 96), (128, 32), (256, 64), 8, 16, 64),  # rows past the end
        ("bf16", (128, 72), (128, 64), (0, 64), 4, 16, 128),  # columns past the end
        ("bf16", (64, 128), (64, 128), (0, 0), 4, 16, 128),  # two panels
        ("bf16", (64, 64), (16, 64), (-8, 0), 1, 16, 128),  # rows before the start, rounds of four rows
        ("bf16", (64, 64), (40, 16), (0, 0), 4, 16, 32),  # a round that some threads miss
        ("bf16", (64, 96), (32, 48), (0, 48), 2, 16, 32),  # rows of six pieces
        ("bf16", (9, 512), (4, 512), (4, 0), 1, 16, 0),  # rows of more than one round
        ("f32", (40, 20), (32, 20), (8, 0), 3, 16, 0),
        ("f32", (40, 6), (32, 6), (16, 0), 2, 8, 0),
        ("f32", (40, 5), (32, 5), (16, 0), 2, 4, 0),
        ("bf16", (40, 36), (16, 32), (32, 4), 1, 8, 64),
        ("i32", (1000,), (256,), (768,), 2, 16, 0),  # one row
        ("f32", (4, 20, 64), (2, 8, 32), (3, 16, 32), 2, 16, 128),  # three dimensions
        ("f32", (6, 20, 64), (None, 16, 32), (5, 8, 32), 2, 16, 64),  # one of three picked
        ("f32", (20, 6, 64), (16, None, 32), (8, 5, 32), 2, 16, 64),
    ],
)
def test_every_element_lands_at_its_place(ptx_of, copied, elem, tensor, tile, at, warps, by, swizzle):
    size = {"bf16": 2}.get(elem, 4)
    shape = tuple(n for n in tile if n is not None)
    ptx = ptx_of(text(elem, tensor, tile, at, shape, warps, by, swizzle))
    found = {}
    for to, source, count, ignored in copied(ptx, 32 * warps, T=POINTER):
        assert count == by and to % by == 0
        for n in range(0, by, size):
            assert to + n not in found, "an element is copied twice"
            found[to + n] = None if ignored else source + n - POINTER
    wanted = {}
    rows, row_bytes = len(list(itertools.product(*map(range, shape[:-1])))), shape[-1] * size
    slot = -(-rows * row_bytes // 128) * 128
    for row, inner in enumerate(itertools.product(*map(range, shape[:-1]))):
        for column in range(shape[-1]):
            inside = iter((*inner, column))
            coordinates = [a if n is None else a + next(inside) for a, n in zip(at, tile, strict=True)]
            number = 0
            for x, extent in zip(coordinates, tensor, strict=True):
                number = number * extent + x
            out = any(not 0 <= x < extent for x, extent, n in zip(coordinates, tensor, tile, strict=True) if n is not None)
            wanted[slot + place_of(row, column * size, rows, row_bytes, swizzle)] = None if out else number * size
    assert found == wanted


def test_addresses_of_a_large_tensor_have_64_bits(ptx_of, copied):
    ptx = ptx_of(text("bf16", (4194304, 16777216), (8, 64), (4194296, 16777152), (8, 64), 1, 16, 128))
    found = copied(ptx, 32, T=POINTER)
    assert max(source for _, source, _, _ in found) == POINTER + 2 * (4194304 * 16777216 - 8)
    assert not any(ignored for *_, ignored in found)


def test_the_last_byte_of_the_tail_is_read_and_none_behind_it(ptx_of, copied):
    tensor = (37, 40)
    ptx = ptx_of(text("bf16", tensor, (64, 64), (0, 0), (64, 64), 2, 16, 128))
    read = [source - POINTER for _, source, _, ignored in copied(ptx, 64, T=POINTER) if not ignored]
    assert sorted(read) == list(range(0, 2 * 37 * 40, 16))


def test_copies_of_one_round_share_their_addresses(ptx_of):
    """One address on each side; rows further down are immediates in shared memory and one addition in the tensor."""
    ptx = ptx_of(text("bf16", (256, 64), (128, 64), (0, 0), (128, 64), 4, 16, 128))
    copies = [line.split() for line in ptx.splitlines() if "cp.async.cg" in line]
    assert len(copies) == 8 and len({c[1].strip("[],").partition("+")[0] for c in copies}) == 1
    assert ptx.count("add.s64") == 8 and ptx.count("mad.wide") == 1


@pytest.mark.parametrize(
    ("by", "opcode"), [(16, "cp.async.cg.shared.global"), (8, "cp.async.ca.shared.global"), (4, "cp.async.ca.shared.global")]
)
def test_opcodes(ptx_of, by, opcode):
    ptx = ptx_of(text("f32", (64, 32), (32, 32), (0, 0), (32, 32), 1, by, 128))
    assert f"  {opcode} [" in ptx and f"], {by};" in ptx  # nothing is clipped: no predicate


def test_prefetch(ptx_of):
    ptx = ptx_of(text("f32", (64, 32), (32, 32), (0, 0), (32, 32), 1, 16, 128, prefetch=" prefetch 128"))
    assert "cp.async.cg.shared.global.L2::128B [" in ptx


def test_a_tile_outside_the_tensor_reads_nothing(ptx_of, copied):
    ptx = ptx_of(text("f32", (64, 32), (16, 32), (-16, 0), (16, 32), 1, 16, 128))
    assert all(ignored for *_, ignored in copied(ptx, 32, T=POINTER))
