cake 1
kernel on_demand(R: i32, CTAS: i32, X: in f32[R, 256], Y: out f32[R, 256], NEXT: workspace i32[1])
  require 0 <= R, R <= 65536, 1 <= CTAS, CTAS <= 1024
  target sm90
{
  tiles t = grid(c: CTAS)
  shared row: i32[2][1], mark: i32[2][1] alias row
  pipeline rows: 2 { row } from sched to main
  role sched: 1 warp {
    var r = 0
    while r >= 0 {
      acquire rows as s
      let drawn = atomic.add(NEXT[0], 1)
      r = drawn < R ? drawn : -1
      store row[s][0] <- r
      store mark[s][0] <- 7
      commit rows
    }
  }
  role main: 4 warps {
    frag x: f32[256] vec 2
    var r = 0
    while r >= 0 {
      wait rows as s
      r = load(row[s][0])
      release rows
      if r >= 0 {
        x = load(X[r, 0 +: 256])
        store Y[r, 0 +: 256] <- x * 2.0
      }
    }
  }
}
