cake 1
kernel gemm_sm100_mxf8(M: i32, N: i32, K: i32, A: in e4m3[M, K], SA: in ue8m0[ceildiv(M, 128), K / 128, 32, 16],
                       B: in e4m3[N, K], SB: in ue8m0[ceildiv(N, 128), K / 128, 32, 16], D: out bf16[M, N])
  const BN = 128, BK = 128, ST = 5, EN = 64
  require 1 <= M, M <= 4194304, 1 <= N, N <= 4194304, 0 <= K, K <= 16777216, N % 8 == 0, K % 128 == 0
  target sm100
{
  let nk = K / BK
  tiles t = persistent(m: ceildiv(M, 128), n: ceildiv(N, BN), raster = 8)
  shared a: e4m3[ST][128, BK], b: e4m3[ST][BN, BK]
  shared sa: ue8m0[ST][32, 16], sb: ue8m0[ST][32, 16]
  shared d: bf16[2][128, EN]
  tmem acc: f32[2][128, BN]
  tmem ta: ue8m0[ST][128, 4], tb: ue8m0[ST][BN, 4]
  pipeline ab: ST { a, b } from load to mma
  pipeline accp: 2 { acc } from mma to epi
  role load: 1 warp {
    for (m, n) in t {
      for k in 0 .. nk {
        acquire ab as s
        tma.load a[s] <- A[m * 128 +: 128, k * BK +: BK]
        tma.load b[s] <- B[n * BN +: BN, k * BK +: BK]
        tma.load sa[s] <- SA[m, k, 0 +: 32, 0 +: 16]
        tma.load sb[s] <- SB[n, k, 0 +: 32, 0 +: 16]
        commit ab
      }
    }
  }
  role mma: 1 warp {
    for (m, n) in t {
      if nk > 0 {
        acquire accp as u
        for k in 0 .. nk {
          wait ab as s
          tcgen05.cp ta[s] <- sa[s]
          tcgen05.cp tb[s] <- sb[s]
          tcgen05.mma acc[u] += a[s] @ b[s].T init k == 0 scale_a ta[s] scale_b tb[s]
          release ab
        }
        commit accp
      }
    }
  }
  role epi: 4 warps aligned 4 {
    frag x: f32[128, EN]
    for (m, n) in t {
      if nk > 0 {
        wait accp as u
      }
      for j in 0 .. BN / EN unroll {
        x = 0
        if nk > 0 {
          tcgen05.ld x <- acc[u][:, j * EN +: EN]
          tcgen05.wait.ld
          if j == BN / EN - 1 {
            release accp
          }
        }
        tma.store.wait.read 1
        sync epi
        store d[j % 2] <- bf16(x)
        sync epi
        tma.store D[m * 128 +: 128, n * BN + j * EN +: EN] <- d[j % 2]
      }
    }
    tma.store.wait.read 0
  }
}
