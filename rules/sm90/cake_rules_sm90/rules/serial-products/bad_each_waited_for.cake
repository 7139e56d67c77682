cake 1
kernel mm(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out bf16[M, N])
  require 1 <= M, M <= 65536, 1 <= N, N <= 65536, 0 <= K, K <= 65536, N % 8 == 0, K % 8 == 0
  target sm90
{
  let nk = ceildiv(K, 64)
  tiles t = persistent(m: ceildiv(M, 64), n: ceildiv(N, 128))
  shared a: bf16[4][64, 64], b: bf16[4][128, 64]
  pipeline ab: 4 { a, b } from load to math
  role load: 1 warp {
    for (m, n) in t {
      for k in 0 .. nk {
        acquire ab as s
        tma.load a[s] <- A[m * 64 +: 64, k * 64 +: 64]
        tma.load b[s] <- B[n * 128 +: 128, k * 64 +: 64]
        commit ab
      }
    }
  }
  role math: 1 warpgroup {
    frag acc: f32[64, 128]
    for (m, n) in t {
      acc = 0
      for k in 0 .. nk {
        wait ab as s
        wgmma acc += a[s] @ b[s].T
        if k > 0 {
          release ab
        }
        wgmma.wait 0
      }
      wgmma.wait 0
      drain ab
      store D[m * 64 +: 64, n * 128 +: 128] <- bf16(acc)
    }
  }
}
