"""Where every element goes: stores and loads are run for all threads, on names instead of values."""

from __future__ import annotations

import pytest

POINTER = 1 << 32


def fragment_store(shape, elem, buffer, by, cast, warps=4, swizzle=0, grid=""):
    words = f" swizzle {swizzle}" if swizzle else ""
    return f"""cake 1 derived
kernel k(D: out f32[8])
  target sm90
{{
  launch 1
  shared d: {elem}[2][{buffer[0]}, {buffer[1]}] at 0{words}
  role main: {warps} warps at 0 {{
    frag acc: f32[{shape[0]}, {shape[1]}]{grid} layout mma
    store d[1]{"" if shape == buffer else f"[:, {buffer[1] - shape[1]} +: {shape[1]}]"} <- {cast}(acc) by {by}
  }}
}}
"""


def mma_element(row, column, warps, columns):
    """(thread, element number) that holds a coordinate: the layout, read backwards."""
    block, inside = divmod(row, 16 * warps)
    warp, r = divmod(inside, 16)
    e = 4 * (block * columns // 8 + column // 8) + 2 * (r // 8) + column % 2
    return 32 * warp + 4 * (r % 8) + column % 8 // 2, e


def place_of(row, column, buffer, size, swizzle):
    """Byte offset in a slot: panels of `swizzle` bytes, chunk bits 4.. XORed with address bits 7.. (PTX ISA, Swizzling Modes)."""
    byte = column * size
    if not swizzle:
        return row * buffer[1] * size + byte
    panel, inside = divmod(byte, swizzle)
    address = panel * buffer[0] * swizzle + row * swizzle + inside
    return address ^ ((address >> 7) & (swizzle // 16 - 1)) << 4


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize(
    ("elem", "by", "shape", "buffer", "warps"),
    [
        ("bf16", "stmatrix", (64, 64), (64, 64), 4),
        ("bf16", "stmatrix", (64, 128), (64, 128), 4),
        ("bf16", "stmatrix", (128, 64), (128, 64), 4),
        ("bf16", "stmatrix", (32, 64), (32, 128), 2),
        ("f16", "stmatrix", (64, 64), (64, 64), 4),
        ("bf16", "4", (64, 64), (64, 64), 4),
        ("bf16", "2", (64, 64), (64, 64), 4),
        ("f32", "8", (64, 64), (64, 64), 4),
        ("f32", "4", (32, 32), (32, 64), 2),
    ],
)
def test_a_fragment_lands_where_the_swizzle_says(ptx_of, run, elem, by, shape, buffer, warps, swizzle):
    size = 4 if elem == "f32" else 2
    text = fragment_store(shape, elem, buffer, by, elem, warps, swizzle)
    machine = run(ptx_of(text), 32 * warps, size, ptr_D=0)
    slot = buffer[0] * buffer[1] * size
    wanted = {}
    for row in range(shape[0]):
        for column in range(shape[1]):
            thread, e = mma_element(row, column, warps, shape[1])
            at = slot + place_of(row, column + buffer[1] - shape[1], buffer, size, swizzle)
            wanted["shared", at] = e + 1 + 128 * thread
    assert machine.memory == wanted
    assert len(machine.writes) == len(wanted)  # no element is written twice


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("by", ["stmatrix", "4"])
@pytest.mark.parametrize("grid", [(2, 2), (1, 4), (2, 3)])
def test_a_fragment_on_a_grid_of_warps_lands_there_too(ptx_of, run, by, grid, swizzle):
    """Rows and columns are dealt out to the grid in stripes of 16."""
    rows, columns = grid
    shape, warps = (32 * rows, 192), rows * columns
    text = fragment_store(shape, "bf16", shape, by, "bf16", warps, swizzle, f" grid {grid}")
    machine = run(ptx_of(text), 32 * warps, 2, ptr_D=0)
    wanted = {}
    for row in range(shape[0]):
        for column in range(shape[1]):
            block, r = divmod(row, 16)
            pair, c = divmod(column, 16)
            warp = block % rows * columns + pair % columns
            granule = 2 * (pair // columns) + c // 8
            e = 4 * (block // rows * (shape[1] // columns // 8) + granule) + 2 * (r // 8) + c % 2
            at = 2 * shape[0] * shape[1] + place_of(row, column, shape, 2, swizzle)
            wanted["shared", at] = e + 1 + 128 * (32 * warp + 4 * (r % 8) + c % 8 // 2)
    assert machine.memory == wanted and len(machine.writes) == len(wanted)


def copy_text(tile, by, extents, elem="bf16", frag="vec 8 layout vector", warps=2, at=None):
    shape = ", ".join(map(str, tile))
    index = ", ".join(f"{a} +: {n}" for a, n in zip(at or [0] * len(tile), tile, strict=True))
    names = ["R", "C"][-len(tile) :]
    requires = ", ".join(extents[n] for n in names)
    dims = ", ".join(names)
    return f"""cake 1 derived
kernel k({", ".join(f"{n}: i32" for n in names)}, X: in {elem}[{dims}], Y: out {elem}[{dims}])
  require {requires}
  target sm90
{{
  launch 1
  role main: {warps} warps at 0 {{
    frag x: {elem}[{shape}] {frag}
    x = load(X[{index}], fill = 0, by = {by})
    store Y[{index}] <- x by {by}
  }}
}}
"""


@pytest.mark.parametrize(
    ("elem", "size", "by", "multiple", "columns"),
    [
        ("bf16", 2, 16, 8, (0, 8, 1000, 1024, 2048)),
        ("bf16", 2, 8, 4, (4, 1020)),
        ("bf16", 2, 4, 2, (2, 1022)),
        ("bf16", 2, 2, 1, (1, 7, 1023, 1024)),
        ("f32", 4, 16, 4, (4, 1020)),
        ("f32", 4, 4, 1, (1, 1023, 1025)),
        ("i32", 4, 8, 2, (2, 1022)),
    ],
)
def test_a_row_is_clipped_at_its_extent(ptx_of, run, elem, size, by, multiple, columns):
    ptx = ptx_of(copy_text((1024,), by, {"C": f"0 <= C, C <= 4096, C % {multiple} == 0"}, elem))
    for c in columns:
        machine = run(ptx, 64, size, arg_C=c, ptr_X=POINTER, ptr_Y=POINTER)
        wanted = {("global", POINTER + size * i): machine.name_of(POINTER + size * i) for i in range(min(c, 1024))}
        assert machine.memory == wanted


@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (61, 64), (70, 130), (1, 2), (10, 30), (9, 0)])
def test_a_tile_is_clipped_in_both_dimensions(ptx_of, run, rows, columns):
    text = copy_text((32, 32), 4, {"R": "0 <= R, R <= 4096", "C": "0 <= C, C <= 4096, C % 2 == 0"}, frag="layout mma", at=(8, 16))
    machine = run(ptx_of(text), 64, 2, arg_R=rows, arg_C=columns, ptr_X=POINTER, ptr_Y=POINTER)
    inside = [(r, c) for r in range(8, min(40, rows)) for c in range(16, min(48, columns))]
    wanted = [POINTER + 2 * (r * columns + c) for r, c in inside]
    assert machine.memory == {("global", a): machine.name_of(a) for a in wanted}


@pytest.mark.parametrize("start", [-2048, -1024, -16, -8, 0, 8, 1000, 1024])
def test_a_start_before_the_tensor_is_clipped_too(ptx_of, run, start):
    text = copy_text((1024,), 16, {"C": "0 <= C, C <= 4096, C % 8 == 0, -4096 <= S, S <= 4096, S % 8 == 0"}, at=("S",)).replace(
        "(C: i32", "(S: i32, C: i32"
    )
    machine = run(ptx_of(text), 64, 2, arg_C=1000, arg_S=start, ptr_X=POINTER, ptr_Y=POINTER)
    assert machine.memory == {
        ("global", POINTER + 2 * i): machine.name_of(POINTER + 2 * i) for i in range(max(0, start), min(1000, start + 1024))
    }


def test_elements_past_the_end_read_as_fill(ptx_of, run):
    text = """cake 1 derived
kernel k(C: i32, X: in bf16[C], Y: out bf16[512])
  require 1 <= C, C <= 512
  target sm90
{
  launch 1
  role main: 2 warps at 0 {
    frag x: bf16[512] vec 8 layout vector
    x = load(X[0 +: 512], fill = 2.0, by = 2)
    store Y[0 +: 512] <- x by 16
  }
}
"""
    ptx = ptx_of(text)
    assert "mov.b16 %h0, 16384;" in ptx  # 2.0 in bf16
    machine = run(ptx, 64, 2, arg_C=509, ptr_X=POINTER, ptr_Y=POINTER)
    names = [machine.memory["global", POINTER + 2 * i] for i in range(512)]
    assert names == [machine.name_of(POINTER + 2 * i) for i in range(509)] + [16384] * 3


def test_an_outer_index_is_64_bits_wide(ptx_of, run):
    text = """cake 1 derived
kernel k(B: i32, R: i32, C: i32, X: in f32[B, R, C], Y: out f32[B, R, C])
  require 1 <= B, B <= 65536, 1 <= R, R <= 65536, 1 <= C, C <= 65536, C % 4 == 0
  target sm90
{
  launch 1
  role main: 1 warp at 0 {
    frag x: f32[128] vec 4 layout vector
    x = load(X[B - 1, R - 1, 0 +: 128], by = 16)
    store Y[B - 1, R - 1, 0 +: 128] <- x by 16
  }
}
"""
    b, r, c = 60000, 50000, 100
    machine = run(ptx_of(text), 32, 4, arg_B=b, arg_R=r, arg_C=c, ptr_X=POINTER, ptr_Y=POINTER)
    first = POINTER + 4 * c * ((b - 1) * r + r - 1)
    assert set(machine.memory) == {("global", first + 4 * i) for i in range(c)}


def test_one_value_a_warp_and_its_sum(ptx_of, run):
    """Each warp writes its own element, and every thread reads all of them."""
    text = """cake 1 derived
kernel k(Y: out f32[512])
  target sm90
{
  launch 1
  shared part: f32[2][4] at 0
  role main: 4 warps at 0 {
    frag x: f32[512] vec 4 layout vector
    x = 0
    store part[1][warp] <- f32(warp) by 4
    bar.sync 1 threads 128
    x = sum(load(part[1], by = 16))
    store Y[0 +: 512] <- x by 16
  }
}
"""
    ptx = ptx_of(text)
    stores = [line for line in ptx.splitlines() if "st.shared" in line]
    assert len(stores) == 1 and stores[0].strip().startswith("@%p")
    lines = ptx.splitlines()
    head = "\n".join(lines[: lines.index("  // bar.sync")])
    machine = run(head, 128, 4, ptr_Y=0)
    assert {a for _, a in machine.memory} == {16, 20, 24, 28}
    assert len(machine.writes) == 4
    loads = [line.strip() for line in lines if "ld.shared" in line]
    assert len(loads) == 1 and loads[0].startswith("ld.shared.v4.b32")
