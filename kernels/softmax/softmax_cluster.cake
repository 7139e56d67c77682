# Softmax of rows that one CTA cannot hold: Y[r, c] = exp(X[r, c] - m) / sum of exp(X[r, :] - m), m = max X[r, :]; bf16 in and out.
#
# The CTAs of a cluster share a row, each BC of its columns, and hold it in registers: 4 bytes an element are moved and nothing else.
# Each CTA takes the exponentials of its part with its own largest element; then it tells the others that element and its sum, and
# all of them know by what to scale. One barrier of the cluster a row. The next row is on its way while this one is worked on.
#
# A row whose largest element is infinite, and a row with a NaN, become NaN throughout; -inf beside finite elements becomes 0.

cake 1
kernel softmax_cluster(R: i32, C: i32, X: in bf16[R, C], Y: out bf16[R, C])
  # CTAS x BC columns: 32 elements a thread at 32 warps. A CTA whose part lies past the end of a row holds -inf and takes no part.
  const CTAS = 4, WARPS = 32, CMAX = 131072, RESIDENT = 1
  const BC = CMAX / CTAS
  # LOWEST is the least finite f32.
  const LOG2E = 1.4426950408889634, LOWEST = -3.4028234663852886e38
  # The upper bound of R keeps item numbers in i32. Multiples of 8: accesses of 16 bytes.
  require 0 <= R, R <= 16777216, 1 <= C, C <= CMAX, C % 8 == 0
  target sm90, sm100
  cluster c = CTAS
{
  tiles t = persistent(c: CTAS, r: R) ctas RESIDENT
  # One value a warp. Each lives between two barriers of the CTA.
  shared top: f32[WARPS], total: f32[WARPS]
  # One value a CTA, and two slots: the cluster's barrier of one row lies between the uses of the other slot.
  shared tops: f32[2][CTAS], totals: f32[2][CTAS]

  role main: WARPS warps {
    frag x: f32[BC] vec 8, ahead: bf16[BC] vec 8
    for (c, r) in t {
      if t.n == 0 {
        ahead = load(X[r, c * BC +: BC], fill = -inf)
      }
      x = f32(ahead)
      if t.next.r < R {
        ahead = load(X[t.next.r, c * BC +: BC], fill = -inf)
      }
      store top[warp] <- warpmax(x)
      sync main
      let own = maximum(load(top))
      for k in 0 .. CTAS unroll {
        cluster.store tops[t.n % 2][c] <- own at k
      }
      # A part that is -inf throughout is measured from a finite number: its exponentials are 0, not NaN.
      let pivot = max(own, LOWEST)
      x = exp2((x - pivot) * LOG2E)
      store total[warp] <- warpsum(x)
      sync main
      let sum_own = sum(load(total))
      for k in 0 .. CTAS unroll {
        cluster.store totals[t.n % 2][c] <- sum_own at k
      }
      cluster.sync
      let each = load(tops[t.n % 2])
      let m = maximum(each)
      let all = sum(load(totals[t.n % 2]) * exp2((each - m) * LOG2E))
      let scale = exp2((load(tops[t.n % 2][c]) - m) * LOG2E) * rcp(all)
      store Y[r, c * BC +: BC] <- bf16(x * scale)
    }
  }
}
