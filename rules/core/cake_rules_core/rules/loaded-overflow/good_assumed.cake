cake 1 derived
kernel pick(E: i32, T: i32, OFF: in i32[E + 1], X: in f32[T + 1, 256], Y: out f32[E, 256])
  require 1 <= E, E <= 65536, 0 <= T, T <= 1048576
  assume OFF[0] == 0, OFF[E] == T, monotone(OFF)
  target sm90
{
  launch E persistent
  role main: 4 warps at 0 {
    frag x: f32[256] vec 2 layout vector
    for e in cluster.id .. E step cluster.count {
      let at = load(OFF[e + 1], by = 4) * 2047 / 2047
      x = load(X[at, 0 +: 256], by = 8)
      store Y[e, 0 +: 256] <- x by 8
    }
  }
}
