cake 1
kernel scale(N: i32, A: in f32[N], B: out f32[N])
  const T = 256
  require 1 <= N, N <= 1048576
  target sm90
{
  tiles t = persistent(i: ceildiv(N, T))
  role main: 4 warps {
    frag x: f32[T] vec 2
    let z = 5
    for i in t {
      x = load(A[i * T +: T], fill = 0)
      for j in 0 .. 2 unroll {
        let z = i + j
        var n = 0
        frag y: f32[T] vec 2
        y = x * f32(z)
        n = n + j
        if n > j { store B[z * T +: T] <- y }
        if j == 1 {
          let z = 7
          store B[z * T +: T] <- x
        }
      }
      store B[z * T +: T] <- x
    }
  }
}
