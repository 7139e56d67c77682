cake 1 derived
kernel rows_on_demand(R: i32, NC: i32, X: in f32[R, 256], Y: out f32[R, 256], CTR: workspace i32[1])
  require 0 <= R, R <= 65536, 1 <= NC, NC <= 1024
  target sm90
{
  let t_c = NC
  let t_total = t_c
  launch t_total
  shared item: i32[2][1] at 0
  barrier next_full: mbarrier[2] count 1 at 8
  barrier next_empty: mbarrier[2] count 2 at 24
  if leader {
    mbarrier.init next_full
    mbarrier.init next_empty
    fence.mbarrier_init
  }
  cta.sync
  role sched: 1 warp at 0 {
    var next_fill = 0
    var next_commit = 0
    let t_i = cluster.id
    let c = t_i
    var at = 0
    while at >= 0 {
      let s = next_fill % 2
      mbarrier.wait next_empty[s] parity (next_fill / 2 + 1) % 2
      next_fill = next_fill + 1
      let w = atomic.add(CTR[0], 1)
      at = w < R ? w : -1
      store item[s][0] <- at by 4
      warp.sync
      if warp.leader {
        mbarrier.arrive next_full[next_commit % 2]
      }
      next_commit = next_commit + 1
      if w == R + NC - 1 {
        store CTR[0] <- 0 by 4
      }
    }
  }
  role main: 2 warps at 1 {
    var next_wait = 0
    var next_release = 0
    frag x: f32[256] vec 2 layout vector
    let t_i = cluster.id
    let c = t_i
    var at = 0
    while at >= 0 {
      let s = next_wait % 2
      mbarrier.wait next_full[s] parity next_wait / 2 % 2
      next_wait = next_wait + 1
      at = load(item[s][0], by = 4)
      warp.sync
      if warp.leader {
        mbarrier.arrive next_empty[next_release % 2]
      }
      next_release = next_release + 1
      if at >= 0 {
        x = load(X[at, 0 +: 256], by = 8)
        store Y[at, 0 +: 256] <- x * 2.0 by 8
      }
    }
  }
}
