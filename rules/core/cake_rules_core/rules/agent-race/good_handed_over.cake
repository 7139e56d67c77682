cake 1 derived
kernel pass(R: i32, X: in f32[R, 256], W: workspace f32[R, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R persistent
  barrier full: mbarrier[2] count 1 at 0
  if leader {
    mbarrier.init full
    fence.mbarrier_init
  }
  cta.sync
  role a: 1 warp at 0 {
    frag x: f32[256] vec 4 layout vector
    var n = 0
    for r in cluster.id .. R step cluster.count {
      x = load(X[r, 0 +: 256], by = 16)
      store W[r, 0 +: 256] <- x by 16
      warp.sync
      if leader { mbarrier.arrive full[n % 2] }
      n = n + 1
      bar.sync 1 threads 64
    }
  }
  role b: 1 warp at 1 {
    frag x: f32[256] vec 4 layout vector
    var n = 0
    for r in cluster.id .. R step cluster.count {
      mbarrier.wait full[n % 2] parity n / 2 % 2
      x = load(W[r, 0 +: 256], by = 16)
      store Y[r, 0 +: 256] <- x by 16
      n = n + 1
      bar.sync 1 threads 64
    }
  }
}
