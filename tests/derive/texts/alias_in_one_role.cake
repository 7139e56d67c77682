cake 1
kernel two_sums(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 0 <= R, R <= 65536
  target sm90
{
  tiles t = persistent(r: R)
  shared a: f32[256], part: f32[4] alias a
  role main: 4 warps {
    frag x: f32[256] vec 2
    for r in t {
      x = load(X[r, 0 +: 256])
      store a <- x
      sync main
      x = x + load(a)
      sync main
      store part[warp] <- warpsum(x)
      sync main
      let total = sum(load(part))
      sync main
      store Y[r, 0 +: 256] <- x * total
    }
  }
}
