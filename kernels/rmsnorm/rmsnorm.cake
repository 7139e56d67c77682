# RMSNorm of rows: Y[r, :] = X[r, :] / sqrt(mean(X[r, :]^2) + eps) * W, bf16 in and out, sums in f32.
#
# One row an item and eight warps a row; the row stays in registers between its one read and its one write, so the kernel
# moves 4 bytes an element and nothing else. One barrier a row: the warps' partial sums go through two slots in turn.

cake 1
kernel rmsnorm(R: i32, C: i32, X: in bf16[R, C], W: in bf16[C], Y: out bf16[R, C], eps: f32)
  # CMAX is the longest row: 32 elements a thread at eight warps. Shorter rows leave the rest at 0.
  const CMAX = 8192, WARPS = 8
  # The upper bound of R keeps item numbers in i32. Multiples of 8: accesses of 16 bytes.
  require 0 <= R, R <= 16777216, 1 <= C, C <= CMAX, C % 8 == 0
  target sm80, sm90, sm100
{
  tiles t = persistent(r: R)  # t.n: how many items this CTA has done
  shared part: f32[2][WARPS]

  role main: WARPS warps {
    frag x: f32[CMAX] vec 8, w: bf16[CMAX] vec 8  # over all threads of the role, 8 neighbours a thread
    w = load(W[0 +: CMAX], fill = 0)  # read once for all rows
    for r in t {
      x = f32(load(X[r, 0 +: CMAX], fill = 0))  # clipped at C
      store part[t.n % 2][warp] <- warpsum(x * x)  # one value a warp; two slots, so that one barrier a row is enough
      sync main
      # A uniform value: each thread adds the same eight in the same order.
      let inv = rsqrt(sum(load(part[t.n % 2])) / f32(C) + eps)
      store Y[r, 0 +: CMAX] <- bf16(x * inv * f32(w))
    }
  }
}
