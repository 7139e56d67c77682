"""What all statements of the tensor engine share."""

from __future__ import annotations

from typing import Protocol

CAPABILITIES = frozenset({"tcgen05"})
#: The operation that commits what a thread gave to the engine.
COMMIT = "tcgen05.commit"
#: Lanes of tensor memory, and those that one warp of four reaches by loads and stores (PTX ISA, tcgen05 access restrictions).
LANES, WARP_LANES = 128, 32
#: Rows of a buffer. Of 64, row m is lane 32 (m / 16) + m mod 16: the first half of what each warp reaches (PTX ISA, tcgen05, data path
#: layout F; the same in CUTLASS, Triton, TVM).
ROWS = (LANES, 64)
#: How many block scales of a row stand in one cell, and rows in a column of cells.
SCALES, SCALE_LANES = 4, 32


class Paired(Protocol):
    pair: bool


def cta_group(cx: Paired) -> str:
    """`.cta_group` of every statement of a kernel: one engine, or that of a pair. A kernel has one kind (PTX ISA, tcgen05,
    CTA pair; ptxas refuses a mix), so the cluster clause decides."""
    return f"cta_group::{2 if cx.pair else 1}"


class Ranked(Paired, Protocol):
    cta: int


def ctas(cx: Ranked) -> tuple[int, ...]:
    """Ranks of the CTAs that a statement of the engine serves: the executing one, or both of its pair."""
    return (cx.cta & ~1, cx.cta | 1) if cx.pair else (cx.cta,)
