cake 1 derived
kernel owner(R: i32, X: in f32[3, R, 256], W: inout f32[2, R, 256], F: workspace i32[2, R], Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R * 3
  role main: 1 warp at 0 {
    frag x: f32[256] vec 8 layout vector
    var spins = 0
    let r = cluster.id / 3, c = cluster.id % 3
    x = load(X[c, r, 0 +: 256], by = 16)
    if c < 2 {
      store W[c, r, 0 +: 256] <- x by 16
      warp.sync
      red.add F[c, r] <- 1 order release scope gpu by 4
    } else {
      while atomic.add(F[0, r], 0, order = acquire, scope = gpu) < 1 {
        spins = spins + 1
      }
      warp.sync
      x = x + load(W[0, r, 0 +: 256], by = 16) + load(W[1, r, 0 +: 256], by = 16)
      store Y[r, 0 +: 256] <- x by 16
      store F[0, r] <- 0 by 4
      store F[1, r] <- 0 by 4
    }
  }
}
