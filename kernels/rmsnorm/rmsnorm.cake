# RMSNorm of rows: Y[r, :] = X[r, :] / sqrt(mean(X[r, :]^2) + eps) * W, bf16 in and out, sums in f32.
#
# One row an item and eight warps a row; the row stays in registers between its one read and its one write, so the kernel
# moves 4 bytes an element and nothing else. While a CTA works on one row, its next one is on its way. One barrier a row: the warps'
# partial sums go through two slots in turn.

cake 1
kernel rmsnorm(R: i32, C: i32, X: in bf16[R, C], W: in bf16[C], Y: out bf16[R, C], eps: f32)
  # CMAX is the longest row: 32 elements a thread at eight warps. Shorter rows leave the rest at 0. The rows at hand, on their way,
  # and of W are held in bf16, 16 registers each, so that four CTAs fit on a multiprocessor.
  const CMAX = 8192, WARPS = 8, CTAS = 4
  # The upper bound of R keeps item numbers in i32. Multiples of 8: accesses of 16 bytes.
  require 0 <= R, R <= 16777216, 1 <= C, C <= CMAX, C % 8 == 0
  target sm80, sm90, sm100
{
  tiles t = persistent(r: R) ctas CTAS  # t.n: how many items this CTA has done; t.next.r: the row that it takes next
  shared part: f32[2][WARPS]

  role main: WARPS warps {
    frag x: bf16[CMAX] vec 8, ahead: bf16[CMAX] vec 8, w: bf16[CMAX] vec 8  # over all threads, 8 neighbours a thread
    w = load(W[0 +: CMAX], fill = 0)  # read once for all rows
    for r in t {
      if t.n == 0 {
        ahead = load(X[r, 0 +: CMAX], fill = 0)  # clipped at C
      }
      x = ahead
      if t.next.r < R {
        ahead = load(X[t.next.r, 0 +: CMAX], fill = 0)
      }
      store part[t.n % 2][warp] <- warpsum(f32(x) * f32(x))  # one value a warp; two slots, so that one barrier a row is enough
      sync main
      # A uniform value: each thread adds the same eight in the same order.
      let inv = rsqrt(sum(load(part[t.n % 2])) / f32(C) + eps)
      store Y[r, 0 +: CMAX] <- bf16(f32(x) * inv * f32(w))
    }
  }
}
