cake 1
kernel scale(N: i32, A: in f32[N], B: out f32[N])
  const T = 256
  require 1 <= N, N <= 1048576
  target sm90
{
  tiles t = grid(i: ceildiv(N, T))
  role main: 4 warps {
    frag x: f32[T] vec 2
    x = 0
    let z = 5
    for i in t {
      let z = i * 2
      frag y: f32[T] vec 2
      y = x
      x = load(A[i * T +: T], fill = 0)
      store B[z * T +: T] <- y
    }
    store B[z * T +: T] <- x
  }
}
