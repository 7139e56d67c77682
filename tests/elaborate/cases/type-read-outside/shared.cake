cake 1
kernel scale(N: i32, A: in f32[N], C: in i32[4], B: out f32[N])
  const T = 256
  require 1 <= N, N <= 1048576
  target sm90
{
  tiles t = persistent(i: ceildiv(N, T))
  shared s: i32[4]
  let c = load(s[0])
  role main: 4 warps {
    frag x: f32[T] vec 2
    for i in t {
      x = load(A[i * T +: T], fill = 0)
      store B[i * T +: T] <- x * 2
    }
  }
}
