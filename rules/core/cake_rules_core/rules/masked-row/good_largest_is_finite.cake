cake 1 derived
kernel softmax(R: i32, C: i32, X: in f32[R, C], MASK: in f32[R, C], Y: out f32[R, C])
  require 1 <= R, R <= 65536, 1 <= C, C <= 256
  target sm80
{
  let t_r = R
  let t_total = t_r
  launch t_total persistent
  role main: 1 warp at 0 {
    frag x: f32[256] vec 4 layout vector, keep: f32[256] vec 4 layout vector
    for t_i in cluster.id .. t_total step cluster.count {
      let r = t_i
      x = load(X[r, 0 +: 256], by = 4)
      keep = load(MASK[r, 0 +: 256], by = 4)
      x = where(keep > 0.0, x, -inf)
      let top = max(warpmax(x), -3.4028234663852886e+38)
      x = exp2(x - top)
      let total = warpsum(x)
      let scale = total > 0.0 ? 1.0 / total : 0.0
      store Y[r, 0 +: 256] <- x * scale by 4
    }
  }
}
