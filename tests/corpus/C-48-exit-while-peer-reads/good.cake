cake 1 derived
kernel swap(R: i32, X: in f32[R, 128], Y: out f32[R, 128])
  require 1 <= R, R <= 65536, R % 2 == 0
  target sm90
  cluster r = 2
{
  launch R / 2
  shared s: f32[4] at 0
  cluster.sync
  role main: 4 warps at 0 {
    frag x: f32[128] vec 1 layout vector
    let r = cluster.id * 2 + cluster.r
    x = load(X[r, 0 +: 128], by = 4)
    store s[warp] <- warpsum(x) by 4
    cluster.sync
    let other = cluster.load(s[warp], at = 1 - cluster.r, by = 4)
    store Y[r, 0 +: 128] <- x * other by 4
  }
  cluster.sync
}
