cake 1
kernel grouped(E: i32, T: i32, OFF: in i32[E + 1], X: in f32[T, 64], Y: out f32[T, 64])
  require 1 <= E, E <= 1024, 1 <= T, T <= 1048576
  assume OFF[0] == 0, OFF[E] == T, monotone(OFF)
  target sm90
{
  tiles t = ragged(rows: OFF, block = 64)
  shared s: f32[1][64, 64]
  pipeline p: 1 { s } from load to main
  role load: 1 warp {
    for (b, r0, r1) in t {
      acquire p as i
      tma.load s[i] <- X[r0 +: 64, 0 +: 64]
      commit p
    }
  }
  role main: 1 warp {
    frag x: f32[64] vec 2
    for (b, r0, r1) in t {
      wait p as i
      for j in 0 .. min(64, r1 - r0) {
        x = load(s[i][j, :])
        store Y[r0 + j, 0 +: 64] <- x * f32(b)
      }
      release p
    }
  }
}
