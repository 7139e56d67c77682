cake 1
kernel rows_of_groups(E: i32, T: i32, OFF: in i32[E + 1], X: in f32[T, 256], Y: out f32[T, 256])
  require 1 <= E, E <= 1024, 0 <= T, T <= 1048576
  assume OFF[0] == 0, OFF[E] == T, monotone(OFF)
  target sm90
{
  tiles t = ragged(rows: OFF, block = 4) order longest_first(r1 - r0)
  role main: 1 warp {
    frag x: f32[256] vec 8
    for (b, r0, r1) in t {
      for i in 0 .. min(r1 - r0, 4) {
        x = load(X[r0 + i, 0 +: 256])
        store Y[r0 + i, 0 +: 256] <- x * f32(b)
      }
    }
  }
}
