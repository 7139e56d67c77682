cake 1
kernel kmeans_assign_sm90(NB: i32, N: i32, K: i32, X: in bf16[NB, N, 128], C: in bf16[NB, K, 128], CN: in f32[NB, K],
                          L: out i32[NB, N])
  const BM = 256, BN = 128, ST = 4, CL = 1
  require 1 <= NB, NB <= 65536, 1 <= N, N <= 16777216, NB * N <= 1073741824, 1 <= K, K <= 1048576, K % 4 == 0
  target sm90
  cluster i = CL
{
  let nc = ceildiv(K, BN)
  tiles t = persistent(i: ceildiv(N, BM), b: NB)
  shared x: bf16[1][BM, 128]
  shared c: bf16[ST][BN, 128], cn: f32[ST][BN]
  pipeline xp: 1 { x } from load to math
  pipeline cp: ST { c, cn } from load to math
  turn order over math
  role load: 1 warp regs 24 {
    for (i, b) in t {
      acquire xp as s
      tma.load x[s] <- X[b, i * BM +: BM, :]
      commit xp
      for j in 0 .. nc {
        acquire cp as s
        tma.load c[s] <- C[b, j * BN +: BN, :] multicast i
        tma.load cn[s] <- CN[b, j * BN +: BN] multicast i
        commit cp
      }
    }
  }
  role math[2]: 1 warpgroup regs 240 {
    frag p: bf16[BM / 2, 128], s: f32[BM / 2, BN]
    frag best: f32[BM / 2] over row part min, at: i32[BM / 2] over row part
    for (i, b) in t {
      best = +inf
      at = 0
      wait xp as xs
      ldmatrix p <- x[xs][BM / 2 * math.i +: BM / 2, :]
      release xp
      for j in 0 .. nc {
        wait cp as cs
        take order
        wgmma s = p @ c[cs].T
        pass order
        let n2 = load(cn[cs][0 +: 32], along = cols(s))
        wgmma.wait 0
        release cp
        s = n2 - 2 * s
        if (j + 1) * BN > K {
          s = where(cols(s) + j * BN < K, s, +inf)
        }
        (best, at) = fold(argmin, (best, at), s, cols(s) + j * BN)
      }
      store L[b, i * BM + BM / 2 * math.i +: BM / 2] <- rowargmin(best, at)
    }
  }
}
