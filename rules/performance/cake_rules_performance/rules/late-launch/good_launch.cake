cake 1 derived
kernel scale(N: i32, A: in f32[N], B: out f32[N])
  require 1 <= N, N <= 1048576
  target sm90
{
  launch ceildiv(N, 256) persistent
  role main: 4 warps at 0 {
    frag x: f32[256] vec 2 layout vector
    grid.wait
    grid.launch
    for i in cluster.id .. ceildiv(N, 256) step cluster.count {
      x = load(A[i * 256 +: 256], fill = 0, by = 4)
      store B[i * 256 +: 256] <- x * 2 by 4
    }
  }
}
