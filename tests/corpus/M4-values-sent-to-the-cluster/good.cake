cake 1 derived
kernel sums(N: i32, X: in i32[N, 2], Y: out i32[N, 2])
  require 1 <= N, N <= 65536
  target sm90
  cluster c = 2
{
  let t_c = ceildiv(2, 2), t_n = N
  let t_total = t_c * t_n
  launch t_total persistent
  shared part: i32[2][2] at 0
  barrier p_full: mbarrier[2] count 1 at 16
  barrier p_empty: mbarrier[2] count 2 at 32
  if leader {
    mbarrier.init p_full
    mbarrier.init p_empty
    fence.mbarrier_init
  }
  cluster.sync
  role put: 1 warp at 0 {
    var p_fill = 0
    for t_i in cluster.id .. t_total step cluster.count {
      let c = t_i % t_c * 2 + cluster.c, n = t_i / t_c
      let i = p_fill % 2
      mbarrier.wait p_empty[i] parity (p_fill / 2 + 1) % 2
      p_fill = p_fill + 1
      if leader {
        mbarrier.expect p_full[i] bytes 8
      }
      let own = load(X[n, c], by = 4)
      cluster.send part[i][c] <- own at 0 signal p_full[i]
      cluster.send part[i][c] <- own at 1 signal p_full[i]
    }
  }
  role add: 1 warp at 1 {
    var p_wait = 0
    var p_release = 0
    for t_i in cluster.id .. t_total step cluster.count {
      let c = t_i % t_c * 2 + cluster.c, n = t_i / t_c
      let i = p_wait % 2
      mbarrier.wait p_full[i] parity p_wait / 2 % 2
      p_wait = p_wait + 1
      let total = load(part[i][0], by = 4) + load(part[i][1], by = 4)
      warp.sync
      if warp.leader {
        mbarrier.arrive p_empty[p_release % 2] at 0
        mbarrier.arrive p_empty[p_release % 2] at 1
      }
      p_release = p_release + 1
      store Y[n, c] <- total by 4
    }
  }
  cluster.sync
}
