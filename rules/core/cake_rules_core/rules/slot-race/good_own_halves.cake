cake 1 derived
kernel filled_by_two(N: i32, A: in f32[N], B: out f32[N])
  require 1 <= N, N <= 1048576
  target sm90
{
  let t_i_ = ceildiv(N, 256)
  let t_total = t_i_
  launch t_total persistent
  shared a: f32[2][256] at 0
  barrier p_full: mbarrier[2] count 4 at 2048
  barrier p_empty: mbarrier[2] count 2 at 2064
  if leader {
    mbarrier.init p_full
    mbarrier.init p_empty
    fence.mbarrier_init
  }
  cta.sync
  role fill[2]: 2 warps at 0 {
    var p_fill = 0
    var p_commit = 0
    frag x: f32[128] vec 2 layout vector
    for t_i in cluster.id .. t_total step cluster.count {
      let i = t_i
      let s = p_fill % 2
      mbarrier.wait p_empty[s] parity (p_fill / 2 + 1) % 2
      p_fill = p_fill + 1
      x = load(A[i * 256 + 128 * fill.i +: 128], fill = 0, by = 4)
      store a[s][128 * fill.i +: 128] <- x by 8
      warp.sync
      if warp.leader {
        mbarrier.arrive p_full[p_commit % 2]
      }
      p_commit = p_commit + 1
    }
  }
  role drink[2]: 1 warp at 4 {
    var p_wait = 0
    var p_release = 0
    frag y: f32[128] vec 4 layout vector
    for t_i in cluster.id .. t_total step cluster.count {
      let i = t_i
      let s = p_wait % 2
      mbarrier.wait p_full[s] parity p_wait / 2 % 2
      p_wait = p_wait + 1
      y = load(a[s][128 * drink.i +: 128], by = 16)
      warp.sync
      if warp.leader {
        mbarrier.arrive p_empty[p_release % 2]
      }
      p_release = p_release + 1
      store B[i * 256 + 128 * drink.i +: 128] <- y by 4
    }
  }
}
