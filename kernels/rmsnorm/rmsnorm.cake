# RMSNorm of rows: Y[r, :] = X[r, :] / sqrt(mean(X[r, :]^2) + eps) * W, bf16 in and out, sums in f32.
#
# One row a CTA and eight warps a row. The row stays in registers between its one read and its one write, so that the
# kernel moves 4 bytes an element and, beside them, W from the second-level cache. CTAs come and go with their rows: the
# reads of one overlap the sums and writes of others without any order in the text.

cake 1
kernel rmsnorm(R: i32, C: i32, X: in bf16[R, C], W: in bf16[C], Y: out bf16[R, C], eps: f32)
  # CMAX is the longest row: 32 elements a thread at eight warps. Shorter rows leave the rest at 0.
  const CMAX = 8192, WARPS = 8
  # The upper bound of R keeps item numbers in i32. Multiples of 8: accesses of 16 bytes.
  require 0 <= R, R <= 16777216, 1 <= C, C <= CMAX, C % 8 == 0
  target sm80, sm90, sm100
{
  tiles t = grid(r: R)
  shared part: f32[1][WARPS]

  role main: WARPS warps {
    frag x: f32[CMAX] vec 8, w: bf16[CMAX] vec 8  # over all threads of the role, 8 neighbours a thread
    for r in t {
      w = load(W[0 +: CMAX], fill = 0)
      x = f32(load(X[r, 0 +: CMAX], fill = 0))  # clipped at C
      store part[0][warp] <- warpsum(x * x)  # one value a warp
      sync main
      # A uniform value: each thread adds the same eight in the same order.
      let inv = rsqrt(sum(load(part[0])) / f32(C) + eps)
      store Y[r, 0 +: CMAX] <- bf16(x * inv * f32(w))
    }
  }
}
