cake 1
kernel scale(N: i32, E: i32, T: i32, OFF: in i32[E + 1], A: in f32[N], B: out f32[N], NEXT: workspace i32[1])
  require 1 <= N, N <= 1048576, 1 <= E, E <= 1024, 0 <= T, T <= 65536
  assume OFF[0] == 0, OFF[E] == T, monotone(OFF)
  target sm90
{
  tiles t = ragged(rows: OFF, block = 4) order longest_first(r1 - r0)
  tiles u = ragged(rows: OFF, block = 8) order longest_first(r1 - r0)
  role main: 1 warp {
    frag x: f32[256] vec 8
    for (b, i, r1) in t {
      x = load(A[i * 256 +: 256], fill = 0)
      store B[i * 256 +: 256] <- x * 2
    }
  }
}
