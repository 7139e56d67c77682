cake 1 derived
kernel two_phases(R: i32, C: i32, Y: out i32[R], Z: out i32[C])
  require 0 <= R, R <= 65536, 0 <= C, C <= 65536
  target sm90
{
  launch max(R, C) persistent
  shared a: i32[2][1] at 0
  barrier full: mbarrier[2] count 1 at 16
  barrier empty: mbarrier[2] count 1 at 32
  if leader {
    mbarrier.init full
    mbarrier.init empty
    fence.mbarrier_init
  }
  cta.sync
  role give: 1 warp at 0 {
    var n = 0
    for r in cluster.id .. R step cluster.count {
      mbarrier.wait empty[n % 2] parity (n / 2 + 1) % 2
      store a[n % 2][0] <- r by 4
      warp.sync
      if leader { mbarrier.arrive full[n % 2] }
      n = n + 1
    }
    for c in cluster.id .. R step cluster.count {
      mbarrier.wait empty[n % 2] parity (n / 2 + 1) % 2
      store a[n % 2][0] <- c by 4
      warp.sync
      if leader { mbarrier.arrive full[n % 2] }
      n = n + 1
    }
  }
  role take: 1 warp at 1 {
    var n = 0
    for r in cluster.id .. R step cluster.count {
      mbarrier.wait full[n % 2] parity n / 2 % 2
      store Y[r] <- load(a[n % 2][0], by = 4) by 4
      warp.sync
      if leader { mbarrier.arrive empty[n % 2] }
      n = n + 1
    }
    for c in cluster.id .. C step cluster.count {
      mbarrier.wait full[n % 2] parity n / 2 % 2
      store Z[c] <- load(a[n % 2][0], by = 4) by 4
      warp.sync
      if leader { mbarrier.arrive empty[n % 2] }
      n = n + 1
    }
  }
}
