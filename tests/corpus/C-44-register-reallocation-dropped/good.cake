cake 1
kernel gemm(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out f32[M, N])
  require 1 <= M, M <= 65536, 1 <= N, N <= 65536, 0 <= K, K <= 65536, N % 4 == 0, K % 8 == 0
  target sm90
{
  tiles t = grid(m: ceildiv(M, 64), n: ceildiv(N, 64))
  shared a: bf16[4][64, 64], b: bf16[4][64, 64]
  pipeline ab: 4 { a, b } from load to math
  role load: 1 warp regs 40 {
    for (m, n) in t {
      for k in 0 .. ceildiv(K, 64) {
        acquire ab as s
        tma.load a[s] <- A[m * 64 +: 64, k * 64 +: 64]
        tma.load b[s] <- B[n * 64 +: 64, k * 64 +: 64]
        commit ab
      }
    }
  }
  role math: 1 warpgroup regs 232 {
    frag acc: f32[64, 64]
    for (m, n) in t {
      acc = 0
      for k in 0 .. ceildiv(K, 64) {
        wait ab as s
        wgmma acc += a[s] @ b[s].T
        wgmma.wait 0
        release ab
      }
      store D[m * 64 +: 64, n * 64 +: 64] <- acc
    }
  }
}
