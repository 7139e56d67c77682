cake 1 derived
kernel copy(R: i32, X: in i32[R, 4], Y: out i32[R])
  require 1 <= R, R <= 32768
  assume R % 8 == 0
  target sm80
{
  launch R persistent
  role main: 1 warp at 0 {
    for r in cluster.id .. R step cluster.count {
      store Y[r] <- load(X[r, 0], by = 4) + 0 by 4
    }
  }
}
