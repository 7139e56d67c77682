cake 1 derived
kernel scatter(R: i32, T: i32, AT: in i32[R], X: in f32[R, 256], Y: out f32[T, 256])
  require 1 <= R, R <= 65536, 1 <= T, T <= 65536
  target sm90
{
  launch R
  role main: 4 warps at 0 {
    frag x: f32[256] vec 2 layout vector
    let at = clamp(load(AT[cluster.id], by = 4), 0, T - 1)
    x = load(X[cluster.id, 0 +: 256], by = 8)
    store Y[at, 0 +: 256] <- x by 8
  }
}
