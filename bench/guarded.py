"""Outputs between guard bands, poisoned, as torch tensors: contiguous or with padded rows."""

from __future__ import annotations

import torch

GUARD = 2048  # elements on either side


class Guarded:
    """A bf16 matrix [rows, columns] inside a buffer of poison (all bits set: a NaN that no kernel produces).

    `pad` extra elements follow each row; they, and the bands before and after, must keep the poison.
    """

    def __init__(self, rows: int, columns: int, pad: int = 0):
        self.pitch = columns + pad
        self.buffer = torch.full((2 * GUARD + rows * self.pitch,), -1, dtype=torch.int16, device="cuda")
        body = self.buffer[GUARD : GUARD + rows * self.pitch].view(rows, self.pitch)
        self.bits = body[:, :columns]
        self.tensor = body.view(torch.bfloat16)[:, :columns]
        self._rest = (self.buffer[:GUARD], body[:, columns:], self.buffer[GUARD + rows * self.pitch :])

    def changed_outside(self) -> int:
        """Elements outside the matrix that lost the poison."""
        return sum(int((part != -1).sum()) for part in self._rest)

    def unwritten(self) -> int:
        return int((self.bits == -1).sum())


def matrix(rows: int, columns: int, pad: int, generator: torch.Generator) -> torch.Tensor:
    """Standard normal bf16 [rows, columns] with `pad` elements of NaN behind each row."""
    whole = torch.full((rows, columns + pad), float("nan"), dtype=torch.bfloat16, device="cuda")
    view = whole[:, :columns]
    view.copy_(torch.randn(rows, columns, device="cuda", generator=generator))
    return view


def verdict(out: Guarded, expected: torch.Tensor, admitted: torch.Tensor) -> dict:
    """`worst`: the largest error over the admitted one; over 1, or not a number, is wrong. Two NaNs, or equal infinities, agree."""
    got = out.tensor.double()
    error = (got - expected).abs()
    error[(got == expected) | (got.isnan() & expected.isnan())] = 0
    wrong = int((~((error == 0) | expected.isfinite() & (error <= admitted))).sum())
    ratio = torch.where(error == 0, torch.zeros_like(error), error / admitted)
    finite = ratio[torch.isfinite(ratio)]
    return {
        "wrong": wrong,
        "unwritten": out.unwritten(),
        "outside": out.changed_outside(),
        "worst": round(float(finite.max()), 4) if finite.numel() else 0.0,
    }


def good(v: dict) -> bool:
    return not (v["wrong"] or v["unwritten"] or v["outside"])
