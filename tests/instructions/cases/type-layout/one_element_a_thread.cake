#! lower
cake 1
kernel scale(N: i32, A: in f32[N], B: out bf16[N])
  const T = 128
  require 1 <= N, N <= 1048576
  target sm90
{
  tiles t = persistent(i: ceildiv(N, T))
  role main: 4 warps {
    frag x: f32[T] vec 1
    for i in t {
      x = load(A[i * T +: T], fill = 0)
      store B[i * T +: T] <- bf16(x)
    }
  }
}
