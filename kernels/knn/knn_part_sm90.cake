# Nearest neighbours by brute force for Hopper, first of two kernels: the KK nearest points of each query in each of SPLIT
# parts of the points; 128 dimensions, bf16 inputs, f32 distances.
#
#   X [Q, 128] queries and P [N, 128] points; PN [N] the points' |p|^2. V and I [SPLIT, Q, KK] get, ascending, the least
#   PN[j] - 2 x.p and their j. Of equal keys the smaller j comes first; NaN and +inf are never taken; a part with fewer
#   than KK points ends in (+inf, -1). knn_merge makes one list a query of the SPLIT lists.
#
# Who does what:
#   load   one warp loads a tile of queries once, and fills a ring of ST tiles of points with their norms.
#   math   two warpgroups, half of the queries each. The list of a query lies in registers, one for each of the four lanes
#          that hold a part of its row; they are merged at the end. A vote of the warp skips the lists where nobody gains.

cake 1
kernel knn_part_sm90(Q: i32, N: i32, X: in bf16[Q, 128], P: in bf16[N, 128], PN: in f32[N], V: out f32[SPLIT, Q, KK],
                     I: out i32[SPLIT, Q, KK])
  const KK = 10, BM = 128, BN = 256, ST = 2, SPLIT = 4
  # Upper bounds: indices are i32 and may not overflow. A multiple of 4: the norms are read in 16-byte pieces.
  require 1 <= Q, Q <= 1048576, 1 <= N, N <= 1073741824, N % 4 == 0
  target sm90
{
  let nt = ceildiv(N, BN)
  let per = ceildiv(nt, SPLIT)
  tiles t = grid(i: ceildiv(Q, BM), sp: SPLIT) {
    let j0 = min(sp * per, nt)
    let j1 = min(j0 + per, nt)  # j0 of a part without points
  }

  shared x: bf16[1][BM, 128]  # 32 KB
  shared p: bf16[ST][BN, 128], pn: f32[ST][BN]  # 2 * 65 KB
  pipeline xp: 1 { x } from load to math
  pipeline pp: ST { p, pn } from load to math

  role load: 1 warp regs 24 {
    for (i, sp) in t {
      acquire xp as s
      tma.load x[s] <- X[i * BM +: BM, :]
      commit xp
      for j in j0 .. j1 {
        acquire pp as s
        tma.load p[s] <- P[j * BN +: BN, :]  # rows past N are 0
        tma.load pn[s] <- PN[j * BN +: BN]
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
        s = load(pn[ps], along = cols(s)) - 2 * s  # behind the product: beside the tile and the lists there is no room for the norms
        release pp
        if (j + 1) * BN > N {  # zero rows would be near
          s = where(cols(s) + j * BN < N, s, +inf)
        }
        best = fold(topk, best, s, cols(s) + j * BN)
      }
      release xp
      let top = merge(best)
      store V[sp, i * BM + BM / 2 * math.i +: BM / 2, :] <- top.key  # clipped at Q
      store I[sp, i * BM + BM / 2 * math.i +: BM / 2, :] <- top.val
    }
  }
}
