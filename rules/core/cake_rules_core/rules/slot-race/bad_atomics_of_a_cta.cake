cake 1 derived
kernel counted(R: i32, Y: out i32[R])
  require 1 <= R, R <= 65536
  target sm90
  cluster m = 2
{
  launch R
  shared s: i32[1] at 0
  store s[0] <- 0 by 4
  cluster.sync
  role main: 1 warp at 0 {
    red.add s[0] <- 1 by 4
    cluster.add s[0] <- 1 at 1 - cluster.m
    cluster.sync
    if cluster.m == 0 {
      store Y[cluster.id] <- load(s[0], by = 4) by 4
    }
  }
}
