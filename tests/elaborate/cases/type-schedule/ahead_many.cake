cake 1
kernel rows(R: i32, X: in f32[R, 256], Y: out f32[R, 256], NEXT: workspace i32[1])
  require 0 <= R, R <= 65536
  target sm90
{
  tiles t = persistent(r: R) dynamic NEXT ahead 17
  role main: 4 warps {
    frag x: f32[256] vec 2
    for r in t {
      x = load(X[r, 0 +: 256])
      store Y[r, 0 +: 256] <- x * 2.0
    }
  }
}
