cake 1 derived
kernel first(R: i32, X: in f32[R, 128], Y: out f32[R, 128])
  require 1 <= R, R <= 65536
  target sm90
  cluster r = 2
{
  launch R
  role main: 4 warps at 0 {
    frag x: f32[128] vec 1 layout vector
    if cluster.r == 0 {
      grid.wait
      x = load(X[cluster.id, 0 +: 128], by = 4)
      store Y[cluster.id, 0 +: 128] <- x by 4
    }
  }
}
