cake 1 derived
kernel pass(R: i32, X: in f32[R, 256], W: inout f32[R, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R
  shared s: f32[256] at 0
  barrier f: mbarrier[1] count 1 at 1024
  if leader {
    mbarrier.init f
    fence.mbarrier_init
  }
  cta.sync
  role main: 1 warp at 0 {
    frag x: f32[256] vec 4 layout vector
    x = load(X[cluster.id, 0 +: 256], by = 16)
    warp.sync
    if leader {
      mbarrier.expect f[0] bytes 1024
      tma.load s <- W[cluster.id, 0 +: 256] signal f[0]
    }
    mbarrier.wait f[0] parity 0
    store W[cluster.id, 0 +: 256] <- x by 16
    x = load(s, by = 16)
    store Y[cluster.id, 0 +: 256] <- x by 16
  }
}
