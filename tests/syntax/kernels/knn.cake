cake 1
kernel knn_part_sm90(Q: i32, N: i32, X: in bf16[Q, 128], P: in bf16[N, 128], PN: in f32[N],
                     V: out f32[SPLIT, Q, KK], I: out i32[SPLIT, Q, KK])
  const KK = 10, BM = 256, BN = 128, ST = 4, SPLIT = 8
  require 1 <= Q, 1 <= N, N % 4 == 0, N < 2147483520
  target sm90
{
  let nt = ceildiv(N, BN), per = ceildiv(nt, SPLIT)
  tiles t = grid(i: ceildiv(Q, BM), sp: SPLIT) { let j0 = min(sp * per, nt), j1 = min(j0 + per, nt) }     # j0 == j1: an empty split
  shared x: bf16[1][BM, 128]                       # 64 KB
  shared p: bf16[ST][BN, 128], pn: f32[ST][BN]     # 4 * 32.5 KB
  pipeline xp: 1 { x } from load to math
  pipeline pp: ST { p, pn } from load to math
  turn order over math

  role load: 1 warp regs 24 {
    for (i, sp) in t {
      acquire xp as s;  tma.load x[s] <- X[i*BM +: BM, :];  commit xp
      for j in j0 .. j1 {
        acquire pp as s
        tma.load p[s] <- P[j*BN +: BN, :];  tma.load pn[s] <- PN[j*BN +: BN]
        commit pp
      }
    }
  }

  role math[2]: 1 warpgroup regs 240 {
    frag s: f32[128, BN]
    frag best: topk(KK, f32, i32)[128] over row part    # S13: a fragment type that a plugin defines: size in registers, init, fold, merge, store
    for (i, sp) in t {
      best = empty                                 # KK times (+inf, -1)
      wait xp as xs
      for j in j0 .. j1 {
        wait pp as ps
        take order
        wgmma s = x[xs][128*math.i +: 128, :] @ p[ps].T
        pass order
        wgmma.wait 0
        let n2 = load(pn[ps], along = cols(s))          # after the wait: 128 (s) + 80 (lists) + 32 (n2) would be the whole budget
        release pp
        s = n2 - 2 * s
        if (j + 1) * BN > N { s = where(cols(s) + j*BN < N, s, +inf) }
        best = fold(topk, best, s, cols(s) + j*BN)        # each lane: compare with its own k-th; a vote skips the insertion when nobody gains
      }
      release xp
      best = merge(best)                                  # quad butterfly: the four lane-partial lists of a row become one
      store V[sp, i*BM + 128*math.i +: 128, :] <- best.key
      store I[sp, i*BM + 128*math.i +: 128, :] <- best.val
    }
  }
}

kernel knn_merge(Q: i32, V: in f32[SPLIT, Q, KK], I: in i32[SPLIT, Q, KK], VO: out f32[Q, KK], IO: out i32[Q, KK])
  const KK = 10, SPLIT = 8, WARPS = 8
  require 1 <= Q
  target sm80, sm90, sm100
{
  tiles t = grid(g: ceildiv(Q, WARPS))
  role main[WARPS]: 1 warp {                       # an instance a row
    frag best: topk(KK, f32, i32)[1] over row part
    for g in t {
      let r = g * WARPS + main.i
      if r < Q {                                   # no barrier inside, so a non-uniform trip between instances is harmless (S10d)
        best = empty
        best = fold(topk, best, load(V[0 +: SPLIT, r, 0 +: KK], flat = true), load(I[0 +: SPLIT, r, 0 +: KK], flat = true))
        best = merge(best)
        store VO[r, :] <- best.key
        store IO[r, :] <- best.val
      }
    }
  }
}
