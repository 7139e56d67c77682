cake 1
kernel rowsums(M: i32, K: i32, A: in bf16[M, K], B: in bf16[128, K], S: out f32[M])
  require 1 <= M, M <= 65536, 1 <= K, K <= 65536, K % 8 == 0
  target sm90
{
  tiles t = persistent(m: ceildiv(M, 64))
  shared a: bf16[2][64, 64], b: bf16[2][128, 64]
  pipeline ab: 2 { a, b } from load to math
  role load: 1 warp {
    for m in t {
      for k in 0 .. ceildiv(K, 64) {
        acquire ab as s
        tma.load a[s] <- A[m * 64 +: 64, k * 64 +: 64]
        tma.load b[s] <- B[0 +: 128, k * 64 +: 64]
        commit ab
      }
    }
  }
  role math: 1 warpgroup {
    frag acc: f32[64, 128]
    for m in t {
      acc = 0
      for k in 0 .. ceildiv(K, 64) {
        wait ab as s
        wgmma acc += a[s] @ b[s].T
        wgmma.wait 0
        release ab
      }
      store S[m * 64 +: 64] <- rowsum(acc)
    }
  }
}
