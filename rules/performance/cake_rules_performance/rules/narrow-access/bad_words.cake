cake 1 derived
kernel copy(R: i32, X: in f32[R, 512], Y: out f32[R, 512])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R
  role main: 2 warps at 0 {
    frag x: f32[512] vec 4 layout vector
    x = load(X[cluster.id, 0 +: 512], by = 4)
    store Y[cluster.id, 0 +: 512] <- x by 16
  }
}
