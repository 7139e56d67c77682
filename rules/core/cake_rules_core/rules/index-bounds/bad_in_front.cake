cake 1 derived
kernel starts(E: i32, OFF: in i32[E + 1], X: in f32[E, 256], Y: out f32[E, 256])
  require 1 <= E, E <= 65536
  target sm90
{
  launch E persistent
  role main: 4 warps at 0 {
    frag x: f32[256] vec 2 layout vector
    for e in cluster.id .. E step cluster.count {
      let before = e >= 0 ? load(OFF[e - 1], by = 4) : 0
      x = load(X[e, 0 +: 256], by = 8)
      store Y[e, 0 +: 256] <- x * f32(before) by 8
    }
  }
}
