cake 1 derived
kernel multicast(M: i32, N: i32, X: in f32[N, 2, 128], Y: out f32[M, N, 128])
  require 1 <= M, M <= 65536, 1 <= N, N <= 65536
  target sm90
  cluster m = 2
{
  let t_m = ceildiv(M, 2)
  launch t_m * N persistent
  shared s: f32[2][2, 128] at 0
  barrier full: mbarrier[2] count 1 at 2048
  barrier empty: mbarrier[2] count 2 at 2064
  if leader {
    mbarrier.init full
    mbarrier.init empty
    fence.mbarrier_init
  }
  cluster.sync
  role load: 1 warp at 0 {
    var fill = 0
    for t_i in cluster.id .. t_m * N step cluster.count {
      let i = fill % 2
      mbarrier.wait empty[i] parity (fill / 2 + 1) % 2
      if leader {
        mbarrier.expect full[i] bytes 1024
        tma.load s[i][cluster.m +: 1, :] <- X[t_i / t_m, cluster.m +: 1, 0 +: 128] signal full[i] mask 3
      }
      fill = fill + 1
    }
  }
  role work: 1 warp at 1 {
    var done = 0
    frag x: f32[128] vec 4 layout vector
    for t_i in cluster.id .. t_m * N step cluster.count {
      let i = done % 2
      mbarrier.wait full[i] parity done / 2 % 2
      x = load(s[i][0, :], by = 16) + load(s[i][1, :], by = 16)
      warp.sync
      if warp.leader {
        mbarrier.arrive empty[i] at 0
        mbarrier.arrive empty[i] at 1
      }
      done = done + 1
      if t_i % t_m * 2 + cluster.m < M {
        store Y[t_i % t_m * 2 + cluster.m, t_i / t_m, 0 +: 128] <- x by 16
      }
    }
  }
  cluster.sync
}
