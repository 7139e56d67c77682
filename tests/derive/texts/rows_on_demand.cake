cake 1
kernel rows_on_demand(R: i32, NC: i32, X: in f32[R, 256], Y: out f32[R, 256], CTR: workspace i32[1])
  require 0 <= R, R <= 65536, 1 <= NC, NC <= 1024
  target sm80, sm90
{
  tiles t = grid(c: NC)
  shared item: i32[2][1]
  pipeline next: 2 { item } from sched to main
  role sched: 1 warp {
    for c in t {
      var at = 0
      while at >= 0 {
        acquire next as s
        let w = atomic.add(CTR[0], 1)
        at = w < R ? w : -1
        store item[s][0] <- at
        commit next
        if w == R + NC - 1 {
          store CTR[0] <- 0
        }
      }
    }
  }
  role main: 2 warps {
    frag x: f32[256] vec 2
    for c in t {
      var at = 0
      while at >= 0 {
        wait next as s
        at = load(item[s][0])
        release next
        if at >= 0 {
          x = load(X[at, 0 +: 256])
          store Y[at, 0 +: 256] <- x * 2.0
        }
      }
    }
  }
}
