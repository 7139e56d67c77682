"""attn_fwd_sm90 on random ragged batches against float64, causal and full, with poisoned, guarded outputs.

    PYTHONPATH=. python bench/check_attention.py out/attn_fwd_sm90 out/attn_fwd_sm90_full [--cases 200]

The second artifact is built with '--set CAUSAL=false'. Sequences may be empty on either side. Bounds as in
kernels/attention/attn_fwd_sm90.py: probabilities rounded to bf16, f32 sums by truncating steps, one rounding of the result.
"""

from __future__ import annotations

import math
import random

import torch
from guarded import GUARD, Guarded
from harness import arguments, environment, record

import cake_core as cake

D = 128
U_BF16, STEP_F32 = 2.0**-8, 2.0**-23
LOG2_E = math.log2(math.e)

#: (query rows a sequence, key rows a sequence, heads, key heads)
FIRST = (
    ([128], [128], 1, 1),
    ([1], [1], 1, 1),
    ([64], [0], 2, 1),
    ([0], [64], 2, 1),
    ([0, 0], [0, 0], 1, 1),
    ([0, 5, 0], [3, 0, 7], 4, 2),
    ([127, 129], [129, 127], 2, 2),
    ([1000], [128], 2, 1),  # causal: most rows see no key
    ([128], [1000], 8, 1),
    ([256] * 40, [256] * 40, 16, 4),
    ([3000, 17, 900], [3000, 17, 900], 16, 16),
    ([1] * 64, [700] * 64, 8, 8),
)


def cases(count: int, seed: int) -> list[tuple[list[int], list[int], int, int]]:
    rng = random.Random(seed)
    size = lambda: 0 if rng.random() < 0.15 else min(round(2 ** rng.uniform(0, 10.6)), 1500)  # noqa: E731
    out = list(FIRST)
    while len(out) < count:
        lq = [size() for _ in range(rng.randint(1, 8))]
        lk = list(lq) if rng.random() < 0.3 else [size() for _ in lq]
        hk = rng.choice((1, 1, 2, 3, 4))
        out.append((lq, lk, hk * rng.choice((1, 1, 2, 4, 8)), hk))
    return out[:count]


def ends(sizes: list[int]) -> torch.Tensor:
    return torch.tensor([0, *sizes], dtype=torch.int64).cumsum(0).to(torch.int32)


def expected(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, lq: list[int], lk: list[int], sl2: float, causal: bool
) -> tuple[torch.Tensor, ...]:
    """O and LSE in float64, and the admitted error of each."""
    tq, h, hk = q.shape[0], q.shape[1], k.shape[1]
    wide = {"dtype": torch.float64, "device": "cuda"}
    o, o_bound = torch.zeros(tq, h, D, **wide), torch.zeros(tq, h, D, **wide)
    lse, lse_bound = torch.full((h, tq), -math.inf, **wide), torch.zeros(h, tq, **wide)
    largest = float(q.double().abs().sum(2).max()) * float(k.double().abs().max()) * sl2 if q.numel() and k.numel() else 0.0
    score = (D / 16 + 16 + 4) * STEP_F32 * largest
    relative = 2 * math.log(2) * score + 2.0**-20
    a = b = 0
    for m, n in zip(lq, lk, strict=True):
        if m and n:
            rows = slice(a, a + m)
            qs, ks, vs = (
                q[rows].double().transpose(0, 1),
                *(x[b : b + n].double().transpose(0, 1).repeat_interleave(h // hk, 0) for x in (k, v)),
            )
            s = qs @ ks.transpose(1, 2) * sl2
            if causal:
                s.masked_fill_(~torch.ones(m, n, dtype=torch.bool, device="cuda").tril(n - m), -math.inf)
            top = s.amax(2, keepdim=True)
            some = torch.isfinite(top)
            p = torch.exp2(s - torch.where(some, top, 0.0))
            total = p.sum(2, keepdim=True)
            o[rows] = torch.where(some, p @ vs / total, 0.0).transpose(0, 1)
            weight = torch.where(some, p @ vs.abs() / total, 0.0)
            o_bound[rows] = ((U_BF16 + relative + (n / 16 + n / D + 32) * STEP_F32) * weight).transpose(0, 1)
            lse[:, rows] = torch.where(some, (top + torch.log2(total)) / LOG2_E, -math.inf)[:, :, 0]
            lse_bound[:, rows] = relative + 2.0**-20 * (1 + torch.where(some, top.abs(), 0.0)[:, :, 0])
        a, b = a + m, b + n
    return o, lse, o_bound + U_BF16 * (o.abs() + o_bound) + 2.0**-126, lse_bound


def guarded_f32(rows: int, columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(f32 [rows, columns], the whole buffer's bits): poison between guard bands."""
    bits = torch.full((2 * GUARD + rows * columns,), -1, dtype=torch.int32, device="cuda")
    return bits[GUARD : GUARD + rows * columns].view(torch.float32).view(rows, columns), bits


def worst(got: torch.Tensor, wanted: torch.Tensor, bound: torch.Tensor) -> tuple[int, float]:
    """Wrong elements, and the largest finite error over the admitted one. Equal infinities agree."""
    error = (got.double() - wanted).abs()
    error[got.double() == wanted] = 0.0
    wrong = int((~(error <= bound)).sum())
    ratio = torch.where(error == 0, 0.0, error / bound)
    finite = ratio[torch.isfinite(ratio)]
    return wrong, round(float(finite.max()), 4) if finite.numel() else 0.0


def check(kernel, causal: bool, case: tuple, generator: torch.Generator, scale: float, planned: bool) -> dict:
    lq, lk, h, hk = case
    tq, tk = sum(lq), sum(lk)
    draw = lambda rows, heads: torch.randn(rows, heads, D, device="cuda", generator=generator).bfloat16()  # noqa: E731
    q, k, v = draw(tq, h), draw(tk, hk), draw(tk, hk)
    k[::131] *= 8  # largest scores that grow late
    cq, ck = ends(lq), ends(lk)
    sl2 = float(torch.tensor(scale * LOG2_E, dtype=torch.float32))
    out, (lse, lse_bits) = Guarded(tq, h * D), guarded_f32(h, tq)
    given = {"sl2": sl2, "CQ": cq.cuda(), "CK": ck.cuda(), "Q": q, "K": k, "V": v, "O": out.tensor.view(tq, h, D), "LSE": lse}
    if planned:
        kernel(**given, plan=kernel.plan(CQ=cq, CK=ck, H=h, device=0))
    else:
        kernel.check(**given)
        kernel(**given)
    torch.cuda.synchronize()
    o, lse_wanted, o_bound, lse_bound = expected(q, k, v, lq, lk, sl2, causal)
    wrong_o, worst_o = worst(out.tensor.view(tq, h, D), o, o_bound)
    wrong_lse, worst_lse = worst(lse, lse_wanted, lse_bound)
    outside = out.changed_outside() + int((lse_bits[:GUARD] != -1).sum()) + int((lse_bits[len(lse_bits) - GUARD :] != -1).sum())
    return {
        "causal": causal,
        "query_rows": lq,
        "key_rows": lk,
        "heads": [h, hk],
        "scale": scale,
        "wrong": wrong_o + wrong_lse,
        "unwritten": out.unwritten() + int((lse.view(torch.int32) == -1).sum()),
        "outside": outside,
        "worst_o": worst_o,
        "worst_lse": worst_lse,
    }


def main() -> None:
    args = arguments(__doc__, "causal", "full", cases={"type": int, "default": 200})
    kernels = {True: cake.load(args.causal), False: cake.load(args.full)}
    for causal, kernel in kernels.items():
        if kernel.manifest.constants["CAUSAL"] is not causal:
            raise SystemExit(f"'{args.causal if causal else args.full}' is built with CAUSAL = {not causal}")
    generator = torch.Generator("cuda").manual_seed(args.seed)
    rows = []
    for i, case in enumerate(cases(args.cases, args.seed)):
        for causal, kernel in kernels.items():
            rows.append(check(kernel, causal, case, generator, (D**-0.5, 2 * D**-0.5, 0.01)[i % 3], planned=i % 2 == 0))
            if rows[-1]["wrong"] or rows[-1]["unwritten"] or rows[-1]["outside"]:
                print("WRONG", rows[-1], flush=True)
    bad = [r for r in rows if r["wrong"] or r["unwritten"] or r["outside"]]
    most = {name: max(r[name] for r in rows) for name in ("worst_o", "worst_lse")}
    print(f"{len(rows)} runs, {len(bad)} wrong, largest errors over the bound: {most}", flush=True)
    record(
        args.out, "check_attention", {"seed": args.seed, "environment": environment(*kernels.values()), "wrong": bad, **most, "runs": rows}
    )
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
