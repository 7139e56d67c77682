cake 1 derived
kernel counted(R: i32, N: inout i32[R], X: in f32[R, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  let t_r = R
  let t_total = t_r
  launch t_total persistent
  shared n: i32[2][1] at 2048, a: f32[2][256] at 0
  barrier p_full: mbarrier[2] count 1 at 2056
  barrier p_empty: mbarrier[2] count 5 at 2072
  barrier q_full: mbarrier[2] count 1 at 2088
  barrier q_empty: mbarrier[2] count 4 at 2104
  if leader {
    mbarrier.init p_full
    mbarrier.init p_empty
    mbarrier.init q_full
    mbarrier.init q_empty
    fence.mbarrier_init
  }
  cta.sync
  role count: 1 warp at 0 {
    var p_fill = 0
    var p_commit = 0
    for t_i in cluster.id .. t_total step cluster.count {
      let r = t_i
      let many = load(N[r], by = 4)
      let s = p_fill % 2
      mbarrier.wait p_empty[s] parity (p_fill / 2 + 1) % 2
      p_fill = p_fill + 1
      store n[s][0] <- many by 4
      warp.sync
      if warp.leader {
        mbarrier.arrive p_full[p_commit % 2]
      }
      p_commit = p_commit + 1
    }
  }
  role load: 1 warp at 1 {
    var p_wait = 0
    var p_release = 0
    var q_fill = 0
    for t_i in cluster.id .. t_total step cluster.count {
      let r = t_i
      let s = p_wait % 2
      mbarrier.wait p_full[s] parity p_wait / 2 % 2
      p_wait = p_wait + 1
      let many = load(n[s][0], by = 4)
      warp.sync
      if warp.leader {
        mbarrier.arrive p_empty[p_release % 2]
      }
      p_release = p_release + 1
      for k in 0 .. many {
        let i = q_fill % 2
        mbarrier.wait q_empty[i] parity (q_fill / 2 + 1) % 2
        q_fill = q_fill + 1
        if leader {
          mbarrier.expect q_full[i] bytes 1024
          tma.load a[i] <- X[r, 0 +: 256] signal q_full[i]
        }
      }
    }
  }
  role main: 4 warps at 2 {
    var p_wait = 0
    var p_release = 0
    var q_wait = 0
    var q_release = 0
    frag x: f32[256] vec 2 layout vector
    for t_i in cluster.id .. t_total step cluster.count {
      let r = t_i
      let s = p_wait % 2
      mbarrier.wait p_full[s] parity p_wait / 2 % 2
      p_wait = p_wait + 1
      let many = load(n[s][0], by = 4)
      warp.sync
      if warp.leader {
        mbarrier.arrive p_empty[p_release % 2]
      }
      p_release = p_release + 1
      x = 0.0
      for k in 0 .. many {
        let i = q_wait % 2
        mbarrier.wait q_full[i] parity q_wait / 2 % 2
        q_wait = q_wait + 1
        x = x + load(a[i], by = 8)
        warp.sync
        if warp.leader {
          mbarrier.arrive q_empty[q_release % 2]
        }
        q_release = q_release + 1
      }
      store Y[r, 0 +: 256] <- x by 8
    }
  }
}
