cake 1
kernel k(E: i32, T: i32, OFF: in i32[E + 1], A: in f32[T, 128], B: out f32[T, 128])
  require 0 <= E, E <= 65536, 0 <= T, T <= 1048576
  assume OFF[E] <= T
  target sm90
{
  tiles t = ragged(rows: OFF, block = 8)
  role main: 4 warps {
    frag x: f32[128] vec 1
    for (e, r0, r1) in t {
      x = load(A[r0, 0 +: 128])
      store B[r0, 0 +: 128] <- x
    }
  }
}
