cake 1 derived
kernel rows(R: i32, C: i32, X: in f32[R, C], Y: out f32[R])
  require 1 <= R, R <= 65536, 1 <= C, C <= 65536
  target sm90
{
  let t_m = ceildiv(R, 128), t_n = ceildiv(C, 64)
  launch t_m * t_n persistent
  role main: 4 warps at 0 {
    for t_i in cluster.id .. t_m * t_n step cluster.count {
      let m = t_i % t_m, n = t_i / t_m
      if n == 0 {
        if m * 128 + 32 * warp < R {
          store Y[m * 128 + 32 * warp] <- 1.0 by 4
        }
      }
    }
  }
}
