cake 1 derived
kernel in_turn(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 0 <= R, R <= 65536
  target sm90
{
  let t_r = ceildiv(R, 2)
  let t_total = t_r
  launch t_total persistent
  shared s: f32[256] at 0
  role main[2]: 4 warps at 0 {
    if main.i == 1 {
      bar.arrive 1 threads 256
    }
    frag x: f32[256] vec 2 layout vector
    x = 0
    for t_i in cluster.id .. t_total step cluster.count {
      let r = t_i
      let at = 2 * r + main.i
      bar.sync 1 + main.i threads 256
      if at < R {
        x = load(X[at, 0 +: 256], by = 8)
      }
      store s <- x by 8
      bar.sync 3 + main.i threads 128
      x = load(s, by = 8)
      bar.sync 3 + main.i threads 128
      bar.arrive 1 + (main.i + 1) % 2 threads 256
      bar.arrive 1 + (main.i + 1) % 2 threads 256
      if at < R {
        store Y[at, 0 +: 256] <- x by 8
      }
    }
  }
}
