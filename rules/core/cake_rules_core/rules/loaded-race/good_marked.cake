cake 1 derived
kernel marked(R: i32, ON: in i32[R], X: in f32[R, 256], Y: inout f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R
  role main: 4 warps at 0 {
    frag x: f32[256] vec 2 layout vector
    x = load(X[cluster.id, 0 +: 256], by = 8)
    if load(ON[cluster.id], by = 4) == 1 {
      store Y[cluster.id, 0 +: 256] <- x by 8
    }
  }
}
