# K-means assignment for Hopper: the nearest of K centroids for each point, 128 dimensions, bf16 inputs, f32 distances.
#
#   X [NB, N, 128] points and C [NB, K, 128] centroids of NB problems; CN [NB, K] the centroids' |c|^2. L [NB, N] gets
#   the k of the least CN[k] - 2 x.c, which is |x - c|^2 less the |x|^2 that all k have in common.
#   Of equal distances the smaller k wins, NaN never does, and a point without a distance below +inf has label 0.
#
# Who does what, in each CTA of a cluster of CL:
#   load   one warp loads a tile of points an item, and fills a ring of ST tiles of centroids with their norms. The CTAs of
#          a cluster have points of one problem: each loads a part of the centroids and multicasts it to all.
#   math   two warpgroups, half of the points each, which they hold in registers: the matrix unit then reads half as much
#          shared memory. They take turns at it: while one's product runs, the other reduces its own. No distance is ever
#          written to memory.

cake 1
kernel kmeans_assign_sm90(NB: i32, N: i32, K: i32, X: in bf16[NB, N, 128], C: in bf16[NB, K, 128], CN: in f32[NB, K],
                          L: out i32[NB, N])
  # CL > 1 shares the reads of centroids in a cluster; on an H200 the L2 cache does as well.
  const BM = 256, BN = 128, ST = 4, CL = 1
  # Upper bounds: indices are i32 and may not overflow. A multiple of 4: the norms are read in 16-byte pieces. One centroid
  # at least: the least of nothing has no answer.
  require 1 <= NB, NB <= 65536, 1 <= N, N <= 16777216, NB * N <= 1073741824, 1 <= K, K <= 1048576, K % 4 == 0
  target sm90
  cluster i = CL
{
  let nc = ceildiv(K, BN)
  tiles t = persistent(i: ceildiv(N, BM), b: NB)  # neighbouring CTAs share a set of centroids, which stays in the L2 cache

  shared x: bf16[1][BM, 128]  # 64 KB; free again as soon as the points are in registers
  shared c: bf16[ST][BN, 128], cn: f32[ST][BN]  # 4 * 32.5 KB; the sum is 198,656 bytes and the barriers
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
        tma.load c[s] <- C[b, j * BN +: BN, :] multicast i  # rows past K are 0
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
        pass order  # the other instance's product queues behind this one
        let n2 = load(cn[cs], along = cols(s))
        wgmma.wait 0
        release cp
        s = n2 - 2 * s
        if (j + 1) * BN > K {  # zero rows would win
          s = where(cols(s) + j * BN < K, s, +inf)
        }
        (best, at) = fold(argmin, (best, at), s, cols(s) + j * BN)  # each lane of a row by itself
      }
      store L[b, i * BM + BM / 2 * math.i +: BM / 2] <- rowargmin(best, at)  # clipped at N
    }
  }
}
