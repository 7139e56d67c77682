"""gemm_sm80 against torch.matmul (cuBLAS), bf16, D = A @ B.T: alternating bursts, and sustained.

    PYTHONPATH=. python bench/gemm_sm80.py out/gemm_sm80 [--variants out/other ..]

Build it with `--arch sm90` to time the binary on a Hopper GPU, or with `--arch sm80` to time what the driver makes of its text
there. On such a GPU the other side uses the products of warpgroups, which this kernel does without.
"""

from __future__ import annotations

from against_matmul import main

if __name__ == "__main__":
    main(__doc__)
