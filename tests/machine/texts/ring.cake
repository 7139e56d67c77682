cake 1 derived
kernel ring(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 0 <= R, R <= 65536
  target sm90
{
  launch R persistent
  shared s: f32[2][256] at 0
  barrier full: mbarrier[2] count 1 at 2048
  barrier empty: mbarrier[2] count 2 at 2064
  if leader {
    mbarrier.init full
    mbarrier.init empty
    fence.mbarrier_init
  }
  cta.sync
  role load: 1 warp at 0 {
    var fill = 0
    for t_i in cluster.id .. R step cluster.count {
      let i = fill % 2
      mbarrier.wait empty[i] parity (fill / 2 + 1) % 2
      if leader {
        mbarrier.expect full[i] bytes 1024
        tma.load s[i] <- X[t_i, 0 +: 256] signal full[i]
      }
      fill = fill + 1
    }
  }
  role work: 2 warps at 1 {
    var done = 0
    frag x: f32[256] vec 4 layout vector
    for t_i in cluster.id .. R step cluster.count {
      let i = done % 2
      mbarrier.wait full[i] parity done / 2 % 2
      x = load(s[i], by = 16)
      warp.sync
      if warp.leader {
        mbarrier.arrive empty[i]
      }
      done = done + 1
      store Y[t_i, 0 +: 256] <- x by 16
    }
  }
}
