cake 1
kernel k(N: i32)
  require 1 <= N, N <= 64
  target sm90
{
  tmem acc: f32[1][128, 64]
  tiles t = grid(i: N)
  role main: 4 warps {
    for i in t {
      sync main
    }
  }
}
