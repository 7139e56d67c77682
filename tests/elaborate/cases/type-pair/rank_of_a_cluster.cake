cake 1 derived
kernel visit(M: i32, N: i32, Y: inout i32[M, N], Z: out i32[M, N], NEXT: workspace i32[1])
  require 0 <= M, M <= 1000, 0 <= N, N <= 1000
  target sm90
  cluster m = 2
{
  let t_m = ceildiv(M, 2), t_n = N
  let t_total = t_m * t_n
  launch t_total persistent
  shared t_item: i32[2][2] at 0
  barrier t_full: mbarrier[2] count 1 at 16
  barrier t_empty: mbarrier[2] count 4 at 32
  if leader {
    mbarrier.init t_full
    mbarrier.init t_empty
    fence.mbarrier_init
  }
  cluster.sync
  role take: 2 warps at 0 {
    var t_n_ = 0
    var t_wait = 0, t_release = 0, t_at = 0
    while t_at >= 0 {
      let t_wait_slot = t_wait % 2
      mbarrier.wait t_full[t_wait_slot] parity t_wait / 2 % 2
      t_wait = t_wait + 1
      t_at = load(t_item[t_wait_slot][0], by = 4)
      let n = max(load(t_item[t_wait_slot][1], by = 4), 0)
      warp.sync
      if warp.leader {
        mbarrier.arrive t_empty[t_release % 2] at 0
      }
      t_release = t_release + 1
      if t_at >= 0 {
        let m = max(t_at, 0) + cluster.m
        if m < M {
          red.add Y[m, n] <- 1 by 4
          store Z[m, n] <- t_n_ by 4
        }
        t_n_ = t_n_ + 1
      }
    }
  }
  role t_sched: 1 warp at 2 on cluster[2] {
    var t_fill = 0, t_commit = 0, t_at = 0, t_n_at = 0
    while t_at >= 0 {
      let t_fill_slot = t_fill % 2
      mbarrier.wait t_empty[t_fill_slot] parity (t_fill / 2 + 1) % 2
      t_fill = t_fill + 1
      if leader {
        mbarrier.expect t_full[t_fill_slot] bytes 8 at 0
        mbarrier.expect t_full[t_fill_slot] bytes 8 at 1
      }
      let t_i = max(atomic.add(NEXT[0], 1), 0)
      t_at = -1
      if t_i < t_total {
        t_at = t_i % t_m * 2 + cluster.m
        t_n_at = t_i / t_m
      }
      cluster.send t_item[t_fill_slot][0] <- t_at at 0 signal t_full[t_fill_slot]
      cluster.send t_item[t_fill_slot][0] <- t_at at 1 signal t_full[t_fill_slot]
      cluster.send t_item[t_fill_slot][1] <- t_n_at at 0 signal t_full[t_fill_slot]
      cluster.send t_item[t_fill_slot][1] <- t_n_at at 1 signal t_full[t_fill_slot]
      t_commit = t_commit + 1
      if t_i == t_total + cluster.count - 1 {
        store NEXT[0] <- 0 by 4
      }
    }
  }
  cluster.sync
}
