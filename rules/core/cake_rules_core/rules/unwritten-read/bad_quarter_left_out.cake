cake 1 derived
kernel halves(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R persistent
  shared s: f32[2][256] at 0
  barrier full: mbarrier[2] count 2 at 2048
  barrier empty: mbarrier[2] count 1 at 2064
  if leader {
    mbarrier.init full
    mbarrier.init empty
    fence.mbarrier_init
  }
  cta.sync
  role fill[2]: 1 warp at 0 {
    frag x: f32[128] vec 4 layout vector
    var n = 0
    for r in cluster.id .. R step cluster.count {
      mbarrier.wait empty[n % 2] parity (n / 2 + 1) % 2
      x = load(X[r, fill.i * 128 +: 128], by = 16)
      store s[n % 2][fill.i * 64 +: 128] <- x by 16
      warp.sync
      if leader { mbarrier.arrive full[n % 2] }
      n = n + 1
    }
  }
  role drain: 1 warp at 2 {
    frag y: f32[256] vec 4 layout vector
    var n = 0
    for r in cluster.id .. R step cluster.count {
      mbarrier.wait full[n % 2] parity n / 2 % 2
      y = load(s[n % 2], by = 16)
      warp.sync
      if leader { mbarrier.arrive empty[n % 2] }
      store Y[r, 0 +: 256] <- y by 16
      n = n + 1
    }
  }
}
