cake 1 derived
kernel scale(N: i32, A: in f32[N], B: out f32[N])
  require 1 <= N, N <= 1048576
  target sm90
{
  launch ceildiv(N, 256) persistent
  role main: 16 warps at 4 regs 120 {
    frag x: f32[1024] vec 2 layout vector
    for i in cluster.id .. ceildiv(N, 256) step cluster.count {
      x = load(A[i * 1024 +: 1024], fill = 0, by = 4)
      store B[i * 1024 +: 1024] <- x * 2 by 4
    }
  }
}
