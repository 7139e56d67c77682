cake 1
kernel gemm_sm90(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out bf16[M, N])
  const BM = 128, BN = 256, BK = 64, ST = 4, EN = 64
  require 1 <= M, M <= 4194304, 1 <= N, N <= 4194304, 0 <= K, K <= 16777216, N % 8 == 0, K % 8 == 0
  target sm90
  cluster m = 2
{
  let nk = ceildiv(K, BK)
  tiles t = persistent(m: ceildiv(M, BM), n: ceildiv(N, BN), raster = 8)
  shared a: bf16[ST][BM, BK]
  shared b: bf16[ST][BN, BK]
  shared d: bf16[2][2][64, EN]
  pipeline ab: ST { a, b } from load to math
  role load: 1 warp regs 40 {
    for (m, n) in t {
      for k in 0 .. nk {
        acquire ab as s
        tma.load a[s] <- A[m * BM +: BM, k * BK +: BK]
        tma.load b[s] <- B[n * BN +: BN, k * BK +: BK] multicast m
        commit ab
      }
    }
  }
  role math[2]: 1 warpgroup regs 232 {
    frag acc: f32[64, BN]
    for (m, n) in t {
      acc = 0
      for k in 0 .. nk {
        wait ab as s
        wgmma acc += a[s][64 * math.i +: 64, :] @ b[s].T
        if k > 0 {
          wgmma.wait 1
          release ab
        }
      }
      wgmma.wait 0
      drain ab
      for j in 0 .. BN / EN unroll {
        tma.store.wait.read 1
        sync math
        store d[math.i][j % 2] <- bf16(acc[:, j * EN +: EN])
        sync math
        tma.store D[m * BM + 64 * math.i +: 64, n * BN + j * EN +: EN] <- d[math.i][j % 2]
      }
    }
    tma.store.wait.read -1
  }
}
