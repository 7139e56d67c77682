cake 1 derived
kernel pass(R: i32, X: in f32[R, 256], W: workspace f32[R, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R
  shared s: f32[1][256] at 0
  barrier full: mbarrier[1] count 1 at 1024
  if leader {
    mbarrier.init full
    fence.mbarrier_init
  }
  cta.sync
  role a: 1 warp at 0 {
    frag x: f32[256] vec 4 layout vector
    let r = cluster.id
    x = load(X[r, 0 +: 256], by = 16)
    store W[r, 0 +: 256] <- x by 16
    fence.proxy.async.global
    warp.sync
    if leader {
      mbarrier.expect full[0] bytes 1024
      bulk.load s[0] <- W[r, 0 +: 256] signal full[0]
    }
    mbarrier.wait full[0] parity 0
    x = load(s[0], by = 16)
    store Y[r, 0 +: 256] <- x by 16
  }
}
