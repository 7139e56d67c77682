cake 1 derived
kernel k(D: out f32[2, 4])
  target sm90
  cluster c = 2
{
  launch 2
  shared p: f32[2][4] at 0
  role main: 1 warp at 0 {
    cluster.sync
    let x = cluster.load(p[0], at = 1, by = 12)
    store D[0, 0] <- sum(x) by 4
    cluster.sync
  }
}
