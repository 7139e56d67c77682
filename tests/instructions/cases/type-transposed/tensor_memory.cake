cake 1
kernel gemm_sm100(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out bf16[M, N])
  const BN = 128, BK = 64, ST = 4, EN = 64
  require 1 <= M, M <= 4194304, 1 <= N, N <= 4194304, 0 <= K, K <= 16777216, N % 8 == 0, K % 8 == 0
  target sm100
{
  let nk = ceildiv(K, BK)
  tiles t = persistent(m: ceildiv(M, 128), n: ceildiv(N, BN), raster = 8)
  shared a: bf16[ST][128, BK]
  shared b: bf16[ST][BN, BK]
  shared d: bf16[2][128, EN]
  tmem acc: f32[2][128, 128], p: bf16[128, 128]
  pipeline ab: ST { a, b } from load to mma
  pipeline accp: 2 { acc } from mma to epi
  role load: 1 warp {
    for (m, n) in t {
      for k in 0 .. nk {
        acquire ab as s
        tma.load a[s] <- A[m * 128 +: 128, k * BK +: BK]
        tma.load b[s] <- B[n * BN +: BN, k * BK +: BK]
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
          tcgen05.mma acc[u] += p.T @ b[s].T init k == 0
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
