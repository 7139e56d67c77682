cake 1 derived
kernel lockstep(R: i32, Y: out f32[4, 32], CTR: workspace i32[2])
  require 0 <= R, R <= 65536
  target sm90
  cluster c = 2
{
  launch 1
  shared item: i32[1][1] at 0
  barrier f: mbarrier[1] count 1 at 8
  barrier e: mbarrier[1] count 1 at 16
  barrier peer: mbarrier[1] count 1 at 24
  if leader {
    mbarrier.init f
    mbarrier.init e
    mbarrier.init peer
    fence.mbarrier_init
  }
  cluster.sync
  role sched: 1 warp at 0 {
    var n = 0
    var at = 0
    while at >= 0 {
      mbarrier.wait e[0] parity (n + 1) % 2
      let w = atomic.add(CTR[0], 1)
      at = w < R ? w : -1
      store item[0][0] <- at by 4
      warp.sync
      if warp.leader {
        mbarrier.arrive f[0]
      }
      n = n + 1
      if w == R + 1 {
        store CTR[0] <- 0 by 4
      }
    }
  }
  role main: 1 warp at 1 {
    var n = 0
    var at = 0
    while at >= 0 {
      mbarrier.wait f[0] parity n % 2
      at = load(item[0][0], by = 4)
      warp.sync
      if warp.leader {
        mbarrier.arrive e[0]
        mbarrier.arrive peer[0] at 1 - cluster.c
      }
      mbarrier.wait peer[0] parity n % 2
      n = n + 1
    }
  }
  cluster.sync
}
