cake 1
kernel gemm_sm80(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out bf16[M, N])
  const BM = 64, BN = 256, BK = 64, ST = 3, WM = 2, WN = 4, CTAS = 1
  require 1 <= M, M <= 4194304, 1 <= N, N <= 4194304, 0 <= K, K <= 16777216, N % 8 == 0, K % 8 == 0
  require BK % 32 == 0, ST >= 2
  target sm80
{
  let nk = ceildiv(K, BK)
  tiles t = grid(m: ceildiv(M, BM), n: ceildiv(N, BN), raster = 8) ctas CTAS
  shared a: bf16[ST][BM, BK], b: bf16[ST][BN, BK]
  role main: WM * WN warps over (WM, WN) {
    frag acc: f32[BM, BN], fa: bf16[2][BM, 16], fb: bf16[2][BN, 16]
    for (m, n) in t {
      acc = 0
      for k in 0 .. ST - 1 unroll {
        if k < nk {
          cp.async a[k] <- A[m * BM +: BM, k * BK +: BK].T
          cp.async b[k] <- B[n * BN +: BN, k * BK +: BK]
        }
        cp.async.commit
      }
      cp.async.wait ST - 2
      sync main
      if 0 < nk {
        ldmatrix fa[0] <- a[0][:, 0 +: 16]
        ldmatrix fb[0] <- b[0][:, 0 +: 16]
      }
      for k in 0 .. nk {
        for c in 0 .. BK / 16 unroll {
          if c + 1 < BK / 16 {
            ldmatrix fa[(c + 1) % 2] <- a[k % ST][:, (c + 1) * 16 +: 16]
            ldmatrix fb[(c + 1) % 2] <- b[k % ST][:, (c + 1) * 16 +: 16]
          } else {
            cp.async.wait ST - 2
            sync main
            if k + 1 < nk {
              ldmatrix fa[0] <- a[(k + 1) % ST][:, 0 +: 16]
              ldmatrix fb[0] <- b[(k + 1) % ST][:, 0 +: 16]
            }
          }
          if c == 0 {
            if k + ST - 1 < nk {
              cp.async a[(k + ST - 1) % ST] <- A[m * BM +: BM, (k + ST - 1) * BK +: BK]
              cp.async b[(k + ST - 1) % ST] <- B[n * BN +: BN, (k + ST - 1) * BK +: BK]
            }
            cp.async.commit
          }
          mma.sync acc += fa[c % 2] @ fb[c % 2].T
        }
      }
      cp.async.wait 0
      store D[m * BM +: BM, n * BN +: BN] <- bf16(acc)
    }
  }
}
