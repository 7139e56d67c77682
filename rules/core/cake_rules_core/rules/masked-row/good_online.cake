cake 1 derived
kernel online(R: i32, C: i32, X: in f32[R, C], MASK: in f32[R, C], Y: out f32[R])
  require 1 <= R, R <= 65536, 1 <= C, C <= 65536
  target sm80
{
  launch R
  role main: 1 warp at 0 {
    frag x: f32[256] vec 4 layout vector, keep: f32[256] vec 4 layout vector
    var m = -inf, l = 0.0
    for k in 0 .. ceildiv(C, 256) {
      x = load(X[cluster.id, k * 256 +: 256], by = 4)
      keep = load(MASK[cluster.id, k * 256 +: 256], by = 4)
      x = where(keep > 0.0, x, -inf)
      let top = max(m, warpmax(x))
      let base = top == -inf ? 0.0 : top
      l = l * exp2(m - base) + warpsum(exp2(x - base))
      m = top
    }
    store Y[cluster.id] <- l > 0.0 ? m + log2(l) : -inf by 4
  }
}
