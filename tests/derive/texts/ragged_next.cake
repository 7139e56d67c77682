cake 1
kernel grouped_ahead(E: i32, T: i32, N: i32, OFF: in i32[E + 1], A: in bf16[T, 64], W: in bf16[E, N, 64], D: out bf16[T, N],
                    NEXT: out i32[1024])
  require 0 <= E, E <= 65536, 0 <= T, T <= 4194304, 1 <= N, N <= 65536, N % 8 == 0
  assume OFF[0] == 0, OFF[E] == T, monotone(OFF)
  target sm90
{
  tiles t = ragged(rows: OFF, block = 64) * grid(n: ceildiv(N, 128)) order group_major
  shared a: bf16[2][64, 64], b: bf16[2][128, 64]
  pipeline ab: 2 { a, b } from load to math
  role load: 1 warp {
    for (e, r0, r1, n) in t {
      acquire ab as s
      tma.load a[s] <- A[r0 +: 64, 0 +: 64]
      tma.load b[s] <- W[e, n * 128 +: 128, 0 +: 64]
      commit ab
    }
  }
  role math: 1 warpgroup {
    frag acc: f32[64, 128]
    for (e, r0, r1, n) in t {
      wait ab as s
      wgmma acc = a[s] @ b[s].T
      wgmma.wait 0
      release ab
      store D[r0 +: 64, n * 128 +: 128] <- bf16(acc) clip r1
      store NEXT[t.n % 1024] <- t.next.r1 - t.next.r0
    }
  }
}
