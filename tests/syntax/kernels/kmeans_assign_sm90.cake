cake 1
kernel kmeans_assign_sm90(NB: i32, N: i32, K: i32, X: in bf16[NB, N, 128], C: in bf16[NB, K, 128], CN: in f32[NB, K], L: out i32[NB, N])
  const BM = 256, BN = 128, XS = 2, ST = 3
  require 1 <= NB, 1 <= N, 1 <= K, K % 4 == 0      # K >= 1: an argmin over nothing has no answer; K % 4: 16-byte pieces of CN
  target sm90
{
  let nc = ceildiv(K, BN)
  tiles t = persistent(i: ceildiv(N, BM), b: NB)      # i fastest: neighbouring CTAs share one centroid set
  shared x: bf16[XS][BM, 128]                      # 2 * 64 KB
  shared c: bf16[ST][BN, 128], cn: f32[ST][BN]     # 3 * 32.5 KB; sum 230,912 + barriers
  pipeline xp: XS { x } from load to math
  pipeline cp: ST { c, cn } from load to math
  turn order over math

  role load: 1 warp regs 24 {
    for (i, b) in t {
      acquire xp as s;  tma.load x[s] <- X[b, i*BM +: BM, :];  commit xp
      for j in 0 .. nc {
        acquire cp as s
        tma.load c[s] <- C[b, j*BN +: BN, :]       # rows past K are 0
        tma.load cn[s] <- CN[b, j*BN +: BN]
        commit cp
      }
    }
  }

  role math[2]: 1 warpgroup regs 240 {
    frag s: f32[128, BN]                           # two m64 blocks; 128 registers
    frag best: f32[128] over row part min, at: i32[128] over row part
    for (i, b) in t {
      best = +inf; at = 0
      wait xp as xs
      for j in 0 .. nc {
        wait cp as cs
        take order
        wgmma s = x[xs][128*math.i +: 128, :] @ c[cs].T
        pass order                                 # the other instance's product queues behind; we reduce while it runs
        let n2 = load(cn[cs], along = cols(s))            # a generic read of the slot: so the release is one arrival a WARP (S3), 8 in all
        wgmma.wait 0
        release cp
        s = n2 - 2 * s
        if (j + 1) * BN > K { s = where(cols(s) + j*BN < K, s, +inf) }      # zero rows would win otherwise
        (best, at) = fold(argmin, (best, at), s, cols(s) + j*BN)        # S6/S13: lane-partial pair; ties to the smaller index; NaN never wins
      }
      release xp
      let lab = rowargmin(best, at)                # shuffles inside the quad, once
      store L[b, i*BM + 128*math.i +: 128] <- lab  # clipped at N
    }
  }
}
