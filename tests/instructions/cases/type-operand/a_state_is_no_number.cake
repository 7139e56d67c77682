cake 1
kernel best(N: i32, X: in f32[N], V: out f32[1, 4])
  require 32 <= N, N <= 1048576
  target sm90
{
  role main: 1 warp {
    frag few: topk(4, f32, i32)[1] over row part, x: f32[256] vec 8
    x = load(X[0 +: 256], fill = 0)
    x = x + few
  }
}
