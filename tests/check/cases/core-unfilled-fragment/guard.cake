cake 1
kernel k(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 0 <= R, R <= 1000
  target sm90
{
  tiles t = persistent(r: R)
  role main: 4 warps {
    frag x: f32[256] vec 2
    for r in t {
      if r % 2 == 0 {
        x = load(X[r, 0 +: 256])
      }
      store Y[r, 0 +: 256] <- x
    }
  }
}
