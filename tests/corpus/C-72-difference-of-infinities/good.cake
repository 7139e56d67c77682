cake 1
kernel softmax(R: i32, C: i32, X: in f32[R, C], MASK: in f32[R, C], Y: out f32[R, C])
  const LOWEST = -3.4028234663852886e38
  require 1 <= R, R <= 65536, 1 <= C, C <= 256
  target sm80
{
  tiles t = persistent(r: R)
  role main: 1 warp {
    frag x: f32[256] vec 4, keep: f32[256] vec 4
    for r in t {
      x = load(X[r, 0 +: 256])
      keep = load(MASK[r, 0 +: 256])
      x = where(keep > 0, x, -inf)
      let top = max(warpmax(x), LOWEST)
      x = exp2(x - top)
      let total = warpsum(x)
      let scale = total > 0 ? 1.0 / total : 0.0
      store Y[r, 0 +: 256] <- x * scale
    }
  }
}
