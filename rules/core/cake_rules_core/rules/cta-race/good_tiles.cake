cake 1 derived
kernel copy(M: i32, N: i32, X: in f32[M, N], Y: out f32[M, N])
  require 1 <= M, M <= 65536, 1 <= N, N <= 65536, N % 4 == 0
  target sm90
{
  let t_m = ceildiv(M, 16), t_n = ceildiv(N, 256)
  launch t_m * t_n persistent
  role main: 4 warps at 0 {
    frag x: f32[16, 256] vec 4 layout vector
    for t_i in cluster.id .. t_m * t_n step cluster.count {
      let m = t_i / t_n, n = t_i % t_n
      x = load(X[m * 16 +: 16, n * 256 +: 256], fill = 0, by = 16)
      store Y[m * 16 +: 16, n * 256 +: 256] <- x by 16
    }
  }
}
