cake 1 derived
kernel scale(N: i32, A: in f32[N], B: out f32[N])
  require 1 <= N, N <= 1048576
  target sm90
{
  launch ceildiv(N, 256) persistent
  role other: 1 warp at 7  {
    warp.sync
  }
  role main: 5 warps at 0 regs 40 pad 3 {
    frag x: f32[320] vec 2 layout vector
    for i in cluster.id .. ceildiv(N, 256) step cluster.count {
      x = load(A[i * 320 +: 320], fill = 0, by = 4)
      store B[i * 320 +: 320] <- x * 2 by 4
    }
  }
}
