cake 1 derived
kernel rows(R: i32, X: in i32[R, 4], Y: out i32[R], Z: out i32[R])
  require 1 <= R, R <= 32768
  target sm90
{
  launch R persistent
  role main: 1 warp at 0 {
    for r in cluster.id .. R step cluster.count {
      store Y[r] <- load(X[r, 0], by = 4) + 0 by 4
    }
  }
  role other: 1 warp at 1 {
    var n = 0
    for r in cluster.id .. R step cluster.count {
      store Z[r] <- load(X[r, 1], by = 4) + 0 by 4
      n = n + 1
    }
  }
}
