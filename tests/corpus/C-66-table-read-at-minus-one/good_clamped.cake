cake 1
kernel starts(E: i32, OFF: in i32[E], X: in f32[E, 256], Y: out f32[E, 256])
  require 1 <= E, E <= 65536
  target sm90
{
  tiles t = persistent(e: E)
  role main: 4 warps {
    frag x: f32[256] vec 2
    for e in t {
      let before = load(OFF[max(e - 1, 0)]) + 0
      x = load(X[e, 0 +: 256])
      store Y[e, 0 +: 256] <- x * f32(before)
    }
  }
}
