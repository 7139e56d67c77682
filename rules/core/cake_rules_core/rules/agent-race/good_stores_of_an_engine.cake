cake 1 derived
kernel columns(R: i32, X: in f32[R, 512], Y: out f32[R, 512])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R persistent
  shared s: f32[2][256] at 0
  role main: 1 warp at 0 {
    frag x: f32[256] vec 4 layout vector
    for r in cluster.id .. R step cluster.count {
      for h in 0 .. 2 {
        if leader { bulk.wait.read 1 }
        warp.sync
        x = load(X[r, h * 256 +: 256], by = 16)
        store s[h] <- x by 16
        fence.proxy.async
        warp.sync
        if leader {
          bulk.store Y[r, h * 256 +: 256] <- s[h] exact
          bulk.commit
        }
      }
    }
    if leader { bulk.wait 0 }
  }
}
