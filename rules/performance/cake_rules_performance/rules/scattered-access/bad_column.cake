cake 1 derived
kernel copy(R: i32, X: in f32[256, R], Y: out f32[R, 256])
  require 256 <= R, R <= 65536
  target sm90
{
  launch R / 256
  role main: 2 warps at 0 {
    frag x: f32[256] vec 1 layout vector
    x = load(X[0 +: 256, cluster.id], by = 4)
    store Y[cluster.id, 0 +: 256] <- x by 4
  }
}
