cake 1
kernel k(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 0 <= R, R <= 65536
  target sm90
  cluster r = 2
{
  tiles t = persistent(r: R, c: 2, each = cluster)
  role main: 1 warp {
    frag x: f32[128] vec 4
    for (r, c) in t {
      x = load(X[r, c * 128 +: 128])
      store Y[r, c * 128 +: 128] <- x
    }
  }
}
