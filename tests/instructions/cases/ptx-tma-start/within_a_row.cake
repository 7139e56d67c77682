cake 1
kernel mm(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out bf16[M, N])
  require 1 <= M, M <= 65536, 1 <= N, N <= 65536, 0 <= K, K <= 65536, N % 8 == 0, K % 8 == 0
  target sm90
{
  tiles t = persistent(m: ceildiv(M, 64), n: ceildiv(N, 128))
  shared a: bf16[3][64, 64], b: bf16[3][128, 64]
  shared d: bf16[2][64, 64]
  pipeline ab: 3 { a, b } from load to math
  role load: 1 warp {
    for (m, n) in t {
      for k in 0 .. ceildiv(K, 64) {
        acquire ab as s
        tma.load a[s] <- A[m * 64 +: 64, k * 64 +: 64]
        tma.load b[s] <- B[n * 128 +: 128, k * 64 + 4 +: 64]
        commit ab
      }
    }
  }
  role math: 1 warpgroup {
    frag left: f32[64, 64], right: f32[64, 64]
    for (m, n) in t {
      left = 0; right = 0
      for k in 0 .. ceildiv(K, 64) {
        wait ab as s
        group {
          let at = 64
          wgmma left += a[s] @ b[s][0 +: 64, :].T
          wgmma right += a[s] @ b[s][at +: 64, :].T
        }
        if k > 0 {
          wgmma.wait 1
          release ab
        }
      }
      wgmma.wait 0
      drain ab
      let at = n * 128
      tma.store.wait.read 0
      sync math
      store d[0] <- bf16(left)
      store d[1] <- bf16(right)
      sync math
      group {
        for j in 0 .. 2 unroll {
          if at + 64 * j < N { tma.store D[m * 64 +: 64, at + 64 * j +: 64] <- d[j] }
        }
      }
    }
    tma.store.wait.read 0
  }
}
