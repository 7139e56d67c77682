cake 1 derived
kernel scale(N: i32, A: in f32[N], B: out f32[N])
  require 1 <= N, N <= 1048576
  target sm90
{
  launch ceildiv(N, 256) ctas 2 persistent
  role main: 8 warps at 0 regs 120 {
    frag x: f32[512] vec 2 layout vector
    for i in cluster.id .. ceildiv(N, 256) step cluster.count {
      x = load(A[i * 512 +: 512], fill = 0, by = 4)
      store B[i * 512 +: 512] <- x * 2 by 4
    }
  }
}
