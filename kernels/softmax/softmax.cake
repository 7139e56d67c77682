# Softmax of rows: Y[r, c] = exp(X[r, c] - m) / sum of exp(X[r, :] - m), m = max X[r, :]; bf16 in and out, f32 in between.
#
# One CTA takes a row at a time and holds it in registers, so that the kernel moves 4 bytes an element and nothing else. While it
# works on one row, the next one is on its way: the loads of a row are in flight for as long as the row before it takes.
#
# A row whose largest element is infinite, and a row with a NaN, become NaN throughout; -inf beside finite elements becomes 0.

cake 1
kernel softmax(R: i32, C: i32, X: in bf16[R, C], Y: out bf16[R, C])
  # CMAX is the longest row: 32 elements a thread at 32 warps. Shorter rows leave the rest at -inf, which counts for nothing.
  const CMAX = 32768, WARPS = 32, CTAS = 1
  const LOG2E = 1.4426950408889634
  # The upper bound of R keeps item numbers in i32. Multiples of 8: accesses of 16 bytes.
  require 0 <= R, R <= 16777216, 1 <= C, C <= CMAX, C % 8 == 0
  target sm80, sm90, sm100
{
  tiles t = persistent(r: R) ctas CTAS
  # One value a warp. Each lives between two barriers, and the other's barrier lies between its last use and its next write.
  shared top: f32[WARPS], total: f32[WARPS]

  role main: WARPS warps {
    frag x: f32[CMAX] vec 8, ahead: bf16[CMAX] vec 8
    for r in t {
      if t.n == 0 {
        ahead = load(X[r, 0 +: CMAX], fill = -inf)
      }
      x = f32(ahead)
      if t.next.r < R {
        ahead = load(X[t.next.r, 0 +: CMAX], fill = -inf)
      }
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
