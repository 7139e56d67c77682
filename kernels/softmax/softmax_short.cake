# Softmax of rows that fit eight warps: Y[r, c] = exp(X[r, c] - m) / sum of exp(X[r, :] - m), m = max X[r, :]; bf16 in and out, f32 in
# between.
#
# One row a CTA, held in registers: 4 bytes an element are moved and nothing else. Several CTAs fit on a multiprocessor and come and go
# with their rows, so the reads of one overlap the sums and writes of others. Longer rows: softmax, and softmax_cluster.
#
# A row whose largest element is infinite, and a row with a NaN, become NaN throughout; -inf beside finite elements becomes 0.

cake 1
kernel softmax_short(R: i32, C: i32, X: in bf16[R, C], Y: out bf16[R, C])
  # CMAX is the longest row: 32 elements a thread at eight warps. Shorter rows leave the rest at -inf, which counts for nothing.
  const CMAX = 8192, WARPS = 8
  const LOG2E = 1.4426950408889634
  # The upper bound of R keeps item numbers in i32. Multiples of 8: accesses of 16 bytes.
  require 0 <= R, R <= 16777216, 1 <= C, C <= CMAX, C % 8 == 0
  target sm80, sm90, sm100
{
  tiles t = grid(r: R)
  shared top: f32[WARPS], total: f32[WARPS]  # one value a warp

  role main: WARPS warps {
    frag x: f32[CMAX] vec 8
    for r in t {
      x = f32(load(X[r, 0 +: CMAX], fill = -inf))
      store top[warp] <- warpmax(x)
      sync main
      # The difference first: it can't overflow, whatever the row holds.
      let m = maximum(load(top))
      x = exp2((x - m) * LOG2E)
      store total[warp] <- warpsum(x)
      sync main
      store Y[r, 0 +: CMAX] <- bf16(x * rcp(sum(load(total))))
    }
  }
}
