cake 1 derived
kernel rmsnorm(R: i32, C: i32, X: in bf16[R, C], W: in bf16[C], Y: out bf16[R, C], eps: f32)
  require 0 <= R, R <= 16777216, 1 <= C, C <= 8192, C % 8 == 0
  target sm90
{
  let t_r = R
  let t_total = t_r
  launch t_total persistent
  shared part: f32[2][8] at 0
  role main: 8 warps at 0 {
    var t_n = 0
    frag x: f32[8192] vec 8 layout vector, w: bf16[8192] vec 8 layout vector
    w = load(W[0 +: 8192], fill = 0, by = 16)
    for t_i in cluster.id .. t_total step cluster.count {
      let r = t_i
      x = f32(load(X[r, 0 +: 8192], fill = 0, by = 16))
      store part[t_n % 2][warp] <- warpsum(x * x) by 4
      bar.sync 1 threads 256
      let inv = rsqrt(sum(load(part[t_n % 2], by = 16)) / f32(C) + eps)
      store Y[r, 0 +: 8192] <- bf16(x * inv * f32(w)) by 16
      t_n = t_n + 1
    }
  }
}
