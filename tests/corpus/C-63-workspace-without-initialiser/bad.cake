cake 1
kernel split(R: i32, S: i32, X: in f32[S, R, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 65536, 1 <= S, S <= 64
  target sm90
{
  tiles t = grid(r: R, s: S)
  role work: 4 warps {
    frag x: f32[256] vec 2
    for (r, s) in t {
      x = load(X[s, r, 0 +: 256])
      red.add Y[r, 0 +: 256] <- x
    }
  }
}
