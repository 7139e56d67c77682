cake 1 derived
kernel amax(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 0 <= R, R <= 65536
  target sm90
{
  launch R persistent
  shared s: f32[2][256] at 0
  barrier p_full: mbarrier[2] count 1 at 2048
  barrier p_empty: mbarrier[2] count 64 at 2064
  if leader {
    mbarrier.init p_full
    mbarrier.init p_empty
    fence.mbarrier_init
  }
  cta.sync
  role load: 1 warp at 0 {
    var p_fill = 0
    for r in cluster.id .. R step cluster.count {
      let i = p_fill % 2
      mbarrier.wait p_empty[i] parity (p_fill / 2 + 1) % 2
      p_fill = p_fill + 1
      if leader {
        mbarrier.expect p_full[i] bytes 1024
        tma.load s[i] <- X[r, 0 +: 256] signal p_full[i]
      }
    }
  }
  role work: 2 warps at 1 {
    var p_wait = 0
    frag x: f32[256] vec 4 layout vector
    for r in cluster.id .. R step cluster.count {
      let i = p_wait % 2
      mbarrier.wait p_full[i] parity p_wait / 2 % 2
      p_wait = p_wait + 1
      x = load(s[i], by = 16)
      warp.sync
      mbarrier.arrive p_empty[i]
      store Y[r, 0 +: 256] <- x by 16
    }
  }
}
