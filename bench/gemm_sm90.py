"""gemm_sm90 against torch.matmul (cuBLAS), bf16, D = A @ B.T: alternating bursts, and sustained.

    PYTHONPATH=. python bench/gemm_sm90.py out/gemm_sm90
"""

from __future__ import annotations

from against_matmul import main

if __name__ == "__main__":
    main(__doc__)
