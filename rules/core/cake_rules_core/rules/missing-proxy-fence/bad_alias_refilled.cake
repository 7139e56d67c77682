cake 1 derived
kernel shifted(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 0 <= R, R <= 65536
  target sm90
{
  let t_r = R
  let t_total = t_r
  launch t_total persistent
  shared a: f32[1][256] at 0, b: f32[256] at 0 alias a
  barrier p_full: mbarrier[1] count 1 at 1024
  barrier p_empty: mbarrier[1] count 4 at 1032
  if leader {
    mbarrier.init p_full
    mbarrier.init p_empty
    fence.mbarrier_init
  }
  cta.sync
  role load: 1 warp at 0 {
    var p_fill = 0
    for t_i in cluster.id .. t_total step cluster.count {
      let r = t_i
      let s = 0
      mbarrier.wait p_empty[s] parity (p_fill + 1) % 2
      p_fill = p_fill + 1
      if leader {
        mbarrier.expect p_full[s] bytes 1024
        tma.load a[s] <- X[r, 0 +: 256] signal p_full[s]
      }
    }
  }
  role main: 4 warps at 1 {
    var p_wait = 0
    var p_release = 0
    frag x: f32[256] vec 2 layout vector
    for t_i in cluster.id .. t_total step cluster.count {
      let r = t_i
      let s = 0
      mbarrier.wait p_full[s] parity p_wait % 2
      p_wait = p_wait + 1
      x = load(a[s], by = 8)
      bar.sync 1 threads 128
      store b <- x * 2.0 by 8
      bar.sync 1 threads 128
      x = x + load(b, by = 8)
      store Y[r, 0 +: 256] <- x by 8
      store b <- x by 8
      warp.sync
      if warp.leader {
        mbarrier.arrive p_empty[0]
      }
      p_release = p_release + 1
    }
  }
}
