cake 1 derived
kernel owner(R: i32, S: i32, X: in f32[S, R, 256], W: inout f32[S, R, 256], F: workspace i32[R], Y: out f32[R, 256])
  require 1 <= R, R <= 65536, 1 <= S, S <= 64
  target sm90
{
  launch R * (S + 1)
  role main: 1 warp at 0 {
    frag x: f32[256] vec 8 layout vector
    var spins = 0
    let r = cluster.id / (S + 1), c = cluster.id % (S + 1)
    if c < S {
      x = load(X[c, r, 0 +: 256], by = 16)
      store W[c, r, 0 +: 256] <- x by 16
      warp.sync
      red.add F[r] <- 1 order release scope gpu by 4
    } else {
      x = 0.0
      spins = atomic.add(F[r], 0, order = acquire, scope = gpu)
      warp.sync
      for j in 0 .. S {
        x = x + load(W[j, r, 0 +: 256], by = 16)
      }
      store Y[r, 0 +: 256] <- x by 16
      store F[r] <- 0 by 4
    }
  }
}
