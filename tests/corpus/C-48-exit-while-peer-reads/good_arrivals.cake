cake 1 derived
kernel share(M: i32, N: i32, X: in f32[N, 2, 128], Y: out f32[M, N, 128])
  require 1 <= M, M <= 32768, 1 <= N, N <= 65536
  target sm90
  cluster m = 2
{
  let t_m = ceildiv(M, 2), t_n = N
  let t_total = t_m * t_n
  launch t_total persistent
  shared s: f32[2][2, 128] at 0
  barrier p_full: mbarrier[2] count 1 at 2048
  barrier p_empty: mbarrier[2] count 2 at 2064
  if leader {
    mbarrier.init p_full
    mbarrier.init p_empty
    fence.mbarrier_init
  }
  cluster.sync
  role load: 1 warp at 0 {
    var p_fill = 0
    for t_i in cluster.id .. t_total step cluster.count {
      let m = t_i % t_m * 2 + cluster.m, n = t_i / t_m
      let i = p_fill % 2
      mbarrier.wait p_empty[i] parity (p_fill / 2 + 1) % 2
      p_fill = p_fill + 1
      if leader {
        mbarrier.expect p_full[i] bytes 1024
        tma.load s[i][cluster.m +: 1, :] <- X[n, cluster.m +: 1, 0 +: 128] signal p_full[i] mask 3
      }
    }
  }
  role work: 1 warp at 1 {
    var p_wait = 0
    var p_release = 0
    frag x: f32[128] vec 4 layout vector
    for t_i in cluster.id .. t_total step cluster.count {
      let m = t_i % t_m * 2 + cluster.m, n = t_i / t_m
      let i = p_wait % 2
      mbarrier.wait p_full[i] parity p_wait / 2 % 2
      p_wait = p_wait + 1
      x = load(s[i][0, :], by = 16) + load(s[i][1, :], by = 16)
      warp.sync
      if warp.leader {
        mbarrier.arrive p_empty[p_release % 2] at 0
        mbarrier.arrive p_empty[p_release % 2] at 1
      }
      p_release = p_release + 1
      if m < M {
        store Y[m, n, 0 +: 128] <- x by 16
      }
    }
  }
  cluster.sync
}
