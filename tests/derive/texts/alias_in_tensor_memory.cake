cake 1
# Two buffers in the same columns, slot by slot: what the product left, and what is made of it by the same threads.
kernel chained(R: i32, A: in bf16[R * 128, 64], B: in bf16[128, 64], D: out f32[R * 128, 128])
  require 1 <= R, R <= 65536
  target sm100
{
  tiles t = persistent(r: R)
  shared a: bf16[1][128, 64], b: bf16[1][128, 64]
  tmem s: f32[2][128, 128], p: bf16[2][128, 256] alias s
  pipeline ab: 1 { a, b } from load to mma
  pipeline done: 2 { s } from mma to epi
  role load: 1 warp {
    for r in t {
      acquire ab as i
      tma.load a[i] <- A[r * 128 +: 128, 0 +: 64]
      tma.load b[i] <- B[0 +: 128, 0 +: 64]
      commit ab
    }
  }
  role mma: 1 warp {
    for r in t {
      acquire done as u
      wait ab as i
      tcgen05.mma s[u] = a[i] @ b[i].T
      release ab
      commit done
    }
  }
  role epi: 4 warps aligned 4 {
    frag x: f32[128, 128], y: bf16[128, 128]
    for r in t {
      wait done as u
      tcgen05.ld x <- s[u]
      tcgen05.wait.ld
      tcgen05.st p[u][:, 0 +: 128] <- bf16(x)
      tcgen05.wait.st
      tcgen05.ld y <- p[u][:, 0 +: 128]
      tcgen05.wait.ld
      release done
      store D[r * 128 +: 128, 0 +: 128] <- f32(y)
    }
  }
}
