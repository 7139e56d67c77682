cake 1 derived
kernel rows_of_groups(E: i32, T: i32, OFF: in i32[E + 1], X: in f32[T, 256], Y: out f32[T, 256], t_count: i32,
                      t_items: in i32[t_count, 2])
  require 1 <= E, E <= 1024, 0 <= T, T <= 1048576, 0 <= t_count
  assume OFF[0] == 0, OFF[E] == T, monotone(OFF)
  target sm90
{
  launch t_count persistent
  role main: 1 warp at 0 {
    frag x: f32[256] vec 8 layout vector
    var t_b = load(t_items[cluster.id, 0], by = 4)
    var t_r0 = load(t_items[cluster.id, 1], by = 4)
    for t_i in cluster.id .. t_count step cluster.count {
      let b = max(t_b, 0)
      let r0 = max(t_r0, 0)
      let r1 = load(OFF[max(t_b, 0) + 1], by = 4)
      let t_ahead = min(t_i + cluster.count, t_count - 1)
      t_b = load(t_items[t_ahead, 0], by = 4)
      t_r0 = load(t_items[t_ahead, 1], by = 4)
      for i in 0 .. min(r1 - r0, 4) {
        x = load(X[r0 + i, 0 +: 256], by = 16)
        store Y[r0 + i, 0 +: 256] <- x * f32(b) by 16
      }
    }
  }
}
