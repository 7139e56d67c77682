cake 1
kernel knn_part_sm90(Q: i32, N: i32, X: in bf16[Q, 128], P: in bf16[N, 128], PN: in f32[N],
                     V: out f32[SPLIT, Q, KK], I: out i32[SPLIT, Q, KK])
  # Each of BM queries an item against one of SPLIT parts of the points; knn_merge makes one list a query of the SPLIT lists.
  const KK = 10, BM = 128, BN = 256, ST = 2, SPLIT = 4
  require 1 <= Q, Q <= 1048576, 1 <= N, N <= 1073741824, N % 4 == 0
  target sm90
{
  let nt = ceildiv(N, BN)
  let per = ceildiv(nt, SPLIT)
  tiles t = grid(i: ceildiv(Q, BM), sp: SPLIT) {
    let j0 = min(sp * per, nt) # j0 == j1: a part without points
    let j1 = min(j0 + per, nt)
  }
  shared x: bf16[1][BM, 128]
  shared p: bf16[ST][BN, 128], pn: f32[ST][BN]
  pipeline xp: 1 { x } from load to math
  pipeline pp: ST { p, pn } from load to math

  role load: 1 warp regs 24 {
    for (i, sp) in t {
      acquire xp as s
      tma.load x[s] <- X[i*BM +: BM, :]
      commit xp
      for j in j0 .. j1 {
        acquire pp as s
        tma.load p[s] <- P[j*BN +: BN, :]
        tma.load pn[s] <- PN[j*BN +: BN]
        commit pp
      }
    }
  }

  role math[2]: 1 warpgroup regs 240 {
    frag s: f32[BM / 2, BN]
    frag best: topk(KK, f32, i32)[BM / 2] over row part
    for (i, sp) in t {
      best = empty
      wait xp as xs
      for j in j0 .. j1 {
        wait pp as ps
        wgmma s = x[xs][BM / 2 * math.i +: BM / 2, :] @ p[ps].T
        wgmma.wait 0
        s = load(pn[ps], along = cols(s)) - 2 * s # read after the product: the lists and the tile leave no room before it
        release pp
        if (j + 1) * BN > N { s = where(cols(s) + j*BN < N, s, +inf) } # rows past N are zero, and would be near
        best = fold(topk, best, s, cols(s) + j*BN)
      }
      release xp
      let top = merge(best)
      store V[sp, i*BM + BM / 2 * math.i +: BM / 2, :] <- top.key
      store I[sp, i*BM + BM / 2 * math.i +: BM / 2, :] <- top.val
    }
  }
}
