cake 1
kernel softmax_cluster(R: i32, C: i32, X: in bf16[R, C], Y: out bf16[R, C])
  const CTAS = 4, WARPS = 32, CMAX = 131072, RESIDENT = 1
  const BC = CMAX / CTAS
  const LOG2E = 1.4426950408889634, LOWEST = -3.4028234663852886e38
  require 0 <= R, R <= 16777216, 1 <= C, C <= CMAX, C % 8 == 0
  target sm90
  cluster c = CTAS
{
  tiles t = persistent(c: CTAS, r: R) ctas RESIDENT
  shared top: f32[WARPS], total: f32[WARPS]
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
        cluster.store tops[t.n % 2][c] <- own at 4
      }
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
