cake 1
kernel mm(M: i32, K: i32, A: in bf16[M, K], B: in bf16[128, K], D: out f32[M, 128])
  const AT = 1
  require 1 <= M, M <= 65536, 1 <= K, K <= 65536, K % 8 == 0
  target sm100
{
  let nk = ceildiv(K, 64)
  tiles t = persistent(m: ceildiv(M, 128))
  shared a: bf16[3][128, 64], b: bf16[3][128, 64]
  tmem acc: f32[AT][128, 128]
  pipeline ab: 3 { a, b } from load to mma
  pipeline accp: AT { acc } from mma to epi
  role load: 1 warp {
    for m in t {
      for k in 0 .. nk {
        acquire ab as s
        tma.load a[s] <- A[m * 128 +: 128, k * 64 +: 64]
        tma.load b[s] <- B[0 +: 128, k * 64 +: 64]
        commit ab
      }
    }
  }
  role mma: 1 warp {
    for m in t {
      acquire accp as u
      for k in 0 .. nk {
        wait ab as s
        tcgen05.mma acc[u] += a[s] @ b[s].T init k == 0
        release ab
      }
      commit accp
    }
  }
  role epi: 4 warps aligned 4 {
    frag x: f32[128, 128]
    for m in t {
      wait accp as u
      tcgen05.ld x <- acc[u]
      tcgen05.wait.ld
      release accp
      store D[m * 128 +: 128, :] <- x
    }
  }
}
