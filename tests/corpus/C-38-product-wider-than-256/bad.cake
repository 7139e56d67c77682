cake 1
kernel gemm(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out f32[M, N])
  require 1 <= M, M <= 65536, 1 <= N, N <= 65536, 1 <= K, K <= 65536, N % 4 == 0, K % 8 == 0
  const BN = 320
  target sm100
{
  let nk = ceildiv(K, 64)
  tiles t = persistent(m: ceildiv(M, 128), n: ceildiv(N, BN))
  shared a: bf16[1][128, 64], b: bf16[1][BN, 64]
  tmem acc: f32[1][128, BN]
  pipeline ab: 1 { a, b } from load to mma
  pipeline done: 1 { acc } from mma to epi
  role load: 1 warp {
    for (m, n) in t {
      for k in 0 .. nk {
        acquire ab as s
        tma.load a[s] <- A[m * 128 +: 128, k * 64 +: 64]
        tma.load b[s] <- B[n * BN +: BN, k * 64 +: 64]
        commit ab
      }
    }
  }
  role mma: 1 warp {
    for (m, n) in t {
      acquire done as u
      for k in 0 .. nk {
        wait ab as s
        tcgen05.mma acc[u] += a[s] @ b[s].T init k == 0
        release ab
      }
      commit done
    }
  }
  role epi: 4 warps aligned 4 {
    frag x: f32[128, 64]
    for (m, n) in t {
      wait done as u
      for j in 0 .. BN / 64 unroll {
        tcgen05.ld x <- acc[u][:, j * 64 +: 64]
        tcgen05.wait.ld
        if j == BN / 64 - 1 {
          release done
        }
        store D[m * 128 +: 128, n * BN + j * 64 +: 64] <- x
      }
    }
  }
}
