cake 1
kernel visit(M: i32, N: i32, Y: inout i32[M, N], Z: out i32[M, N], NEXT: workspace i32[1])
  const CL = 2
  require 0 <= M, M <= 1000, 0 <= N, N <= 1000
  target sm90, sm100
  cluster m = CL
{
  tiles t = persistent(m: M, n: N) dynamic NEXT
  role take: 2 warps {
    for (m, n) in t {
      if m < M {
        red.add Y[m, n] <- 1
        store Z[m, n] <- t.n
      }
    }
  }
}
