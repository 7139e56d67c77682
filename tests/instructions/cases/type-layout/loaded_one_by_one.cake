#! lower
cake 1
kernel scale(N: i32, A: in bf16[N], B: out f32[N])
  const T = 128
  require 1 <= N, N <= 1048576
  target sm90
{
  tiles t = persistent(i: ceildiv(N, T))
  role main: 4 warps {
    frag x: f32[T] vec 1
    for i in t {
      x = f32(load(A[i * T +: T], fill = 0))
      store B[i * T +: T] <- x * 2
    }
  }
}
