cake 1
kernel scale(M: i32, N: i32, A: in bf16[M, N], D: out bf16[M, N])
  require 1 <= M, M <= 65536, 1 <= N, N <= 65536, N % 8 == 0
  target sm90
{
  tiles t = persistent(m: ceildiv(M, 64), n: ceildiv(N, 128))
  shared a: bf16[2][64, 128], d: bf16[2][64, 64], e: bf16[128, 128]
  pipeline p: 2 { a } from load to math
  role load: 1 warp {
    for (m, n) in t {
      acquire p as s
      tma.load a[s] <- A[m * 64 +: 64, n * 128 +: 128]
      commit p
    }
  }
  role math: 1 warpgroup {
    frag acc: f32[64, 128]
    for (m, n) in t {
      wait p as s
      wgmma acc = a[s] @ e.T
      wgmma.wait 0
      release p
      for j in 0 .. 2 unroll {
        tma.store.wait.read 1
        sync math
        store d[j % 2] <- bf16(acc[:, 64 * j +: 64])
        sync math
        tma.store D[m * 64 +: 64, n * 128 + 64 * j +: 64] <- d[j % 2]
      }
    }
    tma.store.wait.read 0
  }
}
