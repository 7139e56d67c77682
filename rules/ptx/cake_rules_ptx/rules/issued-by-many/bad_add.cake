cake 1 derived
kernel pass(R: i32, X: in f32[R, 256], W: inout f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R
  shared s: f32[256] at 0
  role main: 1 warp at 0 {
    frag x: f32[256] vec 4 layout vector
    x = load(X[cluster.id, 0 +: 256], by = 16)
    store s <- x by 16
    fence.proxy.async
    warp.sync
    if 0 < R {
      tma.add W[cluster.id, 0 +: 256] <- s
      tma.store.commit
      tma.store.wait 0
    }
  }
}
