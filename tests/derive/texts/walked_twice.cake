cake 1
kernel twice(E: i32, T: i32, OFF: in i32[E + 1], Y: out i32[T], Z: out i32[T])
  require 1 <= E, E <= 1000, 0 <= T, T <= 1000
  assume OFF[0] == 0, OFF[E] == T, monotone(OFF)
  target sm90
{
  tiles t = ragged(rows: OFF, block = 3) order group_major
  role main: 1 warp {
    for (b, r0, r1) in t {
      store Y[r0] <- b
    }
    for (b, r0, r1) in t {
      store Z[r0] <- b
    }
  }
}
