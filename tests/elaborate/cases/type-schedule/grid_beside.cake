cake 1
kernel scale(N: i32, E: i32, T: i32, OFF: in i32[E + 1], A: in f32[N], B: out f32[N], NEXT: workspace i32[1])
  require 1 <= N, N <= 1048576, 1 <= E, E <= 1024, 0 <= T, T <= 65536
  assume OFF[0] == 0, OFF[E] == T, monotone(OFF)
  target sm90
{
  tiles t = persistent(i: ceildiv(N, 256))
  tiles u = grid(j: N)
  role main: 1 warp {
    frag x: f32[256] vec 8
    for i in t {
      x = load(A[i * 256 +: 256], fill = 0)
      store B[i * 256 +: 256] <- x * 2
    }
  }
}
