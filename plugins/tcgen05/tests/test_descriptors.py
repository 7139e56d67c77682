"""Descriptors of factors in shared memory reach every element where the buffer holds it.

The engine's side is written here from the PTX ISA (tcgen05, canonical layouts), the buffer's from what the derived text says.
A swizzle permutes bits of the absolute address, alike on both sides, so linear addresses are compared.
"""

from __future__ import annotations

import re

import pytest

BASE = 0x2400  # of dynamic shared memory: 1,024-byte aligned


def field(descriptor: int, bit: int, width: int) -> int:
    return descriptor >> bit & (1 << width) - 1


def buffer(compiled, name: str) -> tuple[int, int, tuple[int, int]]:
    """(offset, swizzle, shape) of a buffer of the derived text."""
    m = re.search(rf"\b{name}: \w+\[1\]\[(\d+), (\d+)\] at (\d+) swizzle (\d+)", compiled.derived)
    return int(m[3]), int(m[4]), (int(m[1]), int(m[2]))


def reach(descriptor: int, compiled, name: str, extent: int, step: int, k_major: bool, size: int) -> None:
    """One instruction's factor: `extent` rows or columns, 32 bytes of K from element `step` on; elements of `size` bytes."""
    offset, swizzle, (rows, _) = buffer(compiled, name)
    start, leading, stride = (field(descriptor, bit, 14) << 4 for bit in (0, 16, 32))
    assert field(descriptor, 46, 3) == 0b001
    assert field(descriptor, 49, 3) == 0 and field(descriptor, 52, 1) == 0 and field(descriptor, 53, 8) == 0
    assert {2: 128, 4: 64, 6: 32}[field(descriptor, 61, 3)] == swizzle
    assert (BASE + offset) % (8 * swizzle) == 0
    columns = swizzle // size
    for e in range(extent):
        for k in range(32 // size):
            if k_major:
                engine = start + e // 8 * stride + e % 8 * swizzle + k * size
                row, column = e, step + k
            else:
                byte = e * size
                engine = start + byte // swizzle * leading + k // 8 * stride + k % 8 * swizzle + byte % swizzle
                row, column = step + k, e
            held = BASE + offset + column // columns * rows * swizzle + row * swizzle + column % columns * size
            assert engine == held


CASES = [
    # elem, size, N, K, A along, B along, words
    ("bf16", 2, 128, 64, "K", "K", ""),  # one panel
    ("bf16", 2, 256, 192, "K", "K", ""),  # three panels of 128 bytes
    ("f16", 2, 16, 32, "K", "K", ""),  # 64-byte rows
    ("bf16", 2, 48, 16, "K", "K", ""),  # 32-byte rows
    ("bf16", 2, 128, 64, "MN", "K", ""),  # A: two panels of 64 rows of M
    ("bf16", 2, 256, 32, "K", "MN", ""),  # B: four panels
    ("bf16", 2, 96, 64, "MN", "MN", ""),  # B: three panels of 32 columns
    ("bf16", 2, 48, 16, "K", "MN", ""),  # B: panels of 32 bytes
    ("f32", 4, 64, 32, "K", "K", "kind tf32"),
    ("f32", 4, 32, 64, "K", "K", "kind tf32"),  # two panels
    ("e4m3", 1, 64, 128, "K", "K", ""),
    ("e5m2", 1, 128, 64, "MN", "MN", ""),  # 128 bytes of M and of N a row
]


@pytest.mark.parametrize(("elem", "size", "n", "k", "a", "b", "words"), CASES)
@pytest.mark.parametrize("pair", [False, True])
def test_every_element_is_reached(compile_, values, text_of, elem, size, n, k, a, b, words, pair):
    if pair and n % 32:
        n *= 2
    compiled = compile_(text_of(elem, n, k, a, b, pair, words), assembled=not pair)
    products = values(compiled, "tcgen05.mma", {"shared_memory": BASE})
    step = 32 // size
    assert len(products) == k // step
    for number, (_, left, right, *_) in enumerate(products):
        reach(left, compiled, "a", 128, number * step, a == "K", size)
        reach(right, compiled, "b", n // 2 if pair else n, number * step, b == "K", size)


def test_the_constants_are_those_of_other_producers(one):
    """64 elements of 16 bits a row, K-major, 128-byte swizzle: CUTLASS and the CuTe DSL write these bits beside the address."""
    assert f"or.b64 %d, %d, {0x4000404000010000}" in one.all("or.b64")


def test_a_k_step_adds_32_bytes_and_nothing_else(one):
    """As in CUTLASS, DeepGEMM and TVM: the field holds 16-byte units."""
    assert set(one.all("add.s64 ")) >= {f"add.s64 %d, %d, {n}" for n in (2, 4, 6)}
