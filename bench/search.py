"""What the scripts of the search kernels share: guarded outputs of any element type, and float64 distances with their bounds."""

from __future__ import annotations

from collections.abc import Callable

import torch

GUARD = 2048  # elements on either side
POISON = -1515870811  # 0xA5A5A5A5: no label, no index, and as an f32 no distance of these inputs

#: Truncating steps of the matrix unit for a product of depth 128, each of at most 2**-23 of the sum of |x| |c|; twice, for 2 x.c.
ACCUMULATION = 2 * (128 / 16 + 16) * 2.0**-23


class Guarded:
    """A tensor [shape] of i32 or f32 inside a buffer of poison; the bands before and after must keep it."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype):
        count = torch.Size(shape).numel()
        self.buffer = torch.full((2 * GUARD + count,), POISON, dtype=torch.int32, device="cuda")
        self.bits = self.buffer[GUARD : GUARD + count].view(shape)
        self.tensor = self.bits if dtype == torch.int32 else self.bits.view(dtype)

    def faults(self) -> dict[str, int]:
        outside = int((self.buffer[:GUARD] != POISON).sum() + (self.buffer[GUARD + self.bits.numel() :] != POISON).sum())
        return {"unwritten": int((self.bits == POISON).sum()), "outside": outside}


def normal(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", generator=generator).bfloat16()


def norms(c: torch.Tensor) -> torch.Tensor:
    """|c|^2 along the last dimension, f32."""
    return c.float().square().sum(-1).contiguous()


def distances(cn: torch.Tensor, x: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(cn - 2 x.c, admitted error), float64 [rows of x, rows of c]; NaN as +inf. Products of bf16 are exact in float64.

    The error: the f32 accumulation, and one rounding of the result.
    """
    a, b = x.double(), c.double()
    d = cn.double()[None] - 2 * a @ b.T
    error = ACCUMULATION * (a.abs() @ b.abs().T) + 2.0**-24 * d.abs()
    return torch.where(d.isnan(), torch.inf, d), error.nan_to_num_(0.0)


def usable(sides: dict[str, Callable[[], object]]) -> dict[str, Callable[[], object]]:
    """Those of the sides that run: another library may not take a shape, or this GPU."""
    found = {}
    for name, side in sides.items():
        try:
            side()
            torch.cuda.synchronize()
        except Exception as error:  # noqa: BLE001 - whatever another library raises
            print(f"{name} is left out: {type(error).__name__}: {error}"[:200], flush=True)
            continue
        found[name] = side
    return found
