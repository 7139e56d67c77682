cake 1
kernel scale(M: i32, N: i32, A: in bf16[M, N], E: in bf16[128, 128], D: out bf16[M, N])
  require 1 <= M, M <= 65536, 1 <= N, N <= 65536, N % 8 == 0
  target sm90
{
  tiles t = persistent(m: ceildiv(M, 64), n: ceildiv(N, 128))
  shared a: bf16[2][64, 128], d: bf16[2][64, 64], e: bf16[2][128, 128]
  pipeline p: 2 { a, e } from load to math
  role load: 1 warp {
    for (m, n) in t {
      acquire p as s
      tma.load a[s] <- A[m * 64 +: 64, n * 128 +: 128]
      tma.load e[s] <- E[0 +: 128, 0 +: 128]
      commit p
    }
  }
  role math: 1 warpgroup {
    frag acc: f32[64, 128]
    var before = 0
    for (m, n) in t {
      wait p as s
      wgmma acc = a[s] @ e[s].T
      wgmma.wait 0
      release p
      sync math
      if before > 0 {
        tma.store D[m * 64 +: 64, n * 128 +: 64] <- d[0]
        tma.store.wait.read 0
      }
      sync math
      store d[0] <- bf16(acc[:, 0 +: 64])
      before = before + 1
    }
    tma.store.wait.read 0
  }
}
