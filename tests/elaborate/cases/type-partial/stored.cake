cake 1
kernel p(M: i32, A: in bf16[M, 64], B: in bf16[128, 64], S: out f32[M], R: out f32[M, 128])
  require 1 <= M, M <= 65536
  target sm90
{
  tiles t = persistent(m: ceildiv(M, 64))
  shared a: bf16[2][64, 64], b: bf16[2][128, 64]
  pipeline ab: 2 { a, b } from load to math
  role load: 1 warp {
    for m in t {
      acquire ab as s
      tma.load a[s] <- A[m * 64 +: 64, 0 +: 64]
      tma.load b[s] <- B[0 +: 128, 0 +: 64]
      commit ab
    }
  }
  role math: 1 warpgroup {
    frag acc: f32[64, 128], l: f32[64] over row part sum, w: f32[64] over row, mx: f32[64] over row part max, c: f32[128] over col
    for m in t {
      acc = 0; l = 0; w = 0; mx = 0; c = 0
      wait ab as s
      wgmma acc = a[s] @ b[s].T
      wgmma.wait 0
      release ab
      l = fold(sum, acc)
      store S[m * 64 +: 64] <- l
    }
  }
}
