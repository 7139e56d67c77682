cake 1 derived
kernel sums(R: i32, S: i32, X: in f32[S, R, 256], Y: inout f32[R, 256])
  require 1 <= R, R <= 65536, 1 <= S, S <= 64
  target sm90
{
  launch R * S
  role main: 4 warps at 0 {
    frag x: f32[256] vec 2 layout vector
    let r = cluster.id / S, s = cluster.id % S
    x = load(X[s, r, 0 +: 256], by = 8)
    red.add Y[r, 0 +: 256] <- x scope cta by 8
    if s == 0 {
      red.add Y[r, 0 +: 256] <- x by 8
    }
  }
}
