cake 1 derived
kernel twice(R: i32, NC: i32, Y: out f32[4, 32], CTR: workspace i32[2])
  require 0 <= R, R <= 65536, 1 <= NC, NC <= 1024
  target sm90
{
  launch 1
  shared item: i32[1][1] at 0, item2: i32[1][1] at 4
  barrier f: mbarrier[1] count 1 at 8
  barrier e: mbarrier[1] count 1 at 16
  barrier f2: mbarrier[1] count 1 at 24
  barrier e2: mbarrier[1] count 1 at 32
  barrier done: mbarrier[1] count 1 at 40
  if leader {
    mbarrier.init f
    mbarrier.init e
    mbarrier.init f2
    mbarrier.init e2
    mbarrier.init done
    fence.mbarrier_init
  }
  cta.sync
  role sched: 1 warp at 0 {
    var n = 0, m = 0
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
      if w == R {
        store CTR[0] <- 0 by 4
      }
    }
    at = 0
    while at >= 0 {
      mbarrier.wait e2[0] parity (m + 1) % 2
      let w = atomic.add(CTR[1], 1)
      at = w < NC ? w : -1
      store item2[0][0] <- at by 4
      warp.sync
      if warp.leader {
        mbarrier.arrive f2[0]
      }
      m = m + 1
      if w == NC {
        store CTR[1] <- 0 by 4
      }
    }
    if n == m {
      if warp.leader {
        mbarrier.arrive done[0]
      }
    }
  }
  role main: 1 warp at 1 {
    var n = 0, m = 0
    var at = 0
    while at >= 0 {
      mbarrier.wait f[0] parity n % 2
      at = load(item[0][0], by = 4)
      warp.sync
      if warp.leader {
        mbarrier.arrive e[0]
      }
      n = n + 1
    }
    at = 0
    while at >= 0 {
      mbarrier.wait f2[0] parity m % 2
      at = load(item2[0][0], by = 4)
      warp.sync
      if warp.leader {
        mbarrier.arrive e2[0]
      }
      m = m + 1
    }
    mbarrier.wait done[0] parity 0
  }
}
