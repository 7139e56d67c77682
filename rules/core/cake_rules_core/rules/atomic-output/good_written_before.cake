cake 1 derived
kernel rows(R: i32, X: in f32[R, 512], Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R
  role main: 4 warps at 0 {
    frag x: f32[256] vec 2 layout vector
    x = load(X[cluster.id, 0 +: 256], by = 8)
    store Y[cluster.id, 0 +: 256] <- x by 8
    x = load(X[cluster.id, 256 +: 256], by = 8)
    red.add Y[cluster.id, 0 +: 256] <- x by 8
  }
}
